#include "scenarios/reader/text/while_unchanged.hpp"

#include <stdexcept>

#include <catch2/catch.hpp>

#include "tests/scenarios/reader/scratch.hpp"

namespace ddpsim {
namespace {

using std::chrono::hours;

TEST_CASE("what is made of a file is made again once the file has changed", "[scenarios]") {
  const Scratch scratch;
  const std::filesystem::path file = scratch.write("a.yaml", "a");
  WhileUnchanged<int> kept;
  int made = 0;
  const auto make = [&] { return ++made; };
  // Just written: another change of the same moment would not be seen.
  CHECK(kept.of(file, make) == 1);
  CHECK(kept.of(file, make) == 2);

  const auto now = std::filesystem::file_time_type::clock::now();
  std::filesystem::last_write_time(file, now - hours{2});
  CHECK(kept.of(file, make) == 3);
  CHECK(kept.of(file, make) == 3);
  CHECK(kept.of(file.parent_path() / "none.yaml", make) == 4);  // nothing is kept of no file
  CHECK(kept.of(file.parent_path() / "none.yaml", make) == 5);
  CHECK(kept.of(file, make) == 3);

  std::filesystem::last_write_time(file, now - hours{1});
  CHECK_THROWS_AS(kept.of(file, []() -> int { throw std::runtime_error("cannot be read"); }),
                  std::runtime_error);
  CHECK(kept.of(file, make) == 6);
  CHECK(kept.of(file, make) == 6);
}

}  // namespace
}  // namespace ddpsim
