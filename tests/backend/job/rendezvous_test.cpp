#include "backend/job/rendezvous.hpp"

#include <catch2/catch.hpp>
#include <fmt/format.h>

#include "backend/device_error.hpp"
#include "backend/version.hpp"
#include "tests/scenarios/reader/scratch.hpp"

namespace ddpsim {
namespace {

using namespace std::chrono_literals;

std::unique_ptr<Rendezvous> in(const Scratch& scratch) {
  return Rendezvous::open("file:" + scratch.folder().string(), "", 1s);
}

/// What rank 1 would say of itself.
void introduce_rank_1(Rendezvous& rendezvous, const std::string& text) {
  rendezvous.store().set("ddpsim-hello-1", {text.begin(), text.end()});
}

std::string refusal(Rendezvous& rendezvous) {
  try {
    rendezvous.meet(0, 2, "the same", 1s);
  } catch (const DeviceError& problem) {
    return problem.what();
  }
  return "";
}

}  // namespace

TEST_CASE("a rank of another version is named with both versions", "[backend][rendezvous]") {
  const Scratch scratch;
  const auto mine = in(scratch), theirs = in(scratch);
  introduce_rank_1(*theirs, "0.0.9\n2\n0123456789abcdef");
  CHECK(refusal(*mine) ==
        fmt::format("rank 1 runs ddpsim 0.0.9, this is {}: start the same version everywhere",
                    version));
}

TEST_CASE("a rank that says what no ddpsim would is refused too", "[backend][rendezvous]") {
  const Scratch scratch;
  const auto mine = in(scratch), theirs = in(scratch);
  introduce_rank_1(*theirs, std::string(100000, 'x'));
  CHECK_THAT(refusal(*mine), Catch::StartsWith("rank 1 runs ddpsim of another kind"));
}

TEST_CASE("a rank that is there already is another job's", "[backend][rendezvous]") {
  const Scratch scratch;
  const auto theirs = in(scratch);
  theirs->store().set("ddpsim-hello-0", {'x'});
  const auto mine = in(scratch);
  CHECK_THAT(refusal(*mine), Catch::Contains("already holds a rank 0: another job uses it"));
}

TEST_CASE("ranks leave a folder that was there as they found it", "[backend][rendezvous]") {
  const Scratch scratch;
  {
    const auto mine = in(scratch);
    introduce_rank_1(*mine, "x");
    CHECK_FALSE(std::filesystem::is_empty(scratch.folder()));
  }
  CHECK(std::filesystem::is_empty(scratch.folder()));
}

TEST_CASE("the last rank to leave removes a folder that the job made, whoever made it",
          "[backend][rendezvous]") {
  const Scratch scratch;
  const std::string job = GENERATE("", "job-7");
  const auto open = [&] {
    return Rendezvous::open("file:" + scratch.path("meet").string(), job, 1s);
  };
  const std::filesystem::path folder = scratch.path("meet") / job;
  auto maker = open(), other = open();
  maker->store().set("ddpsim-hello-0", {'x'});
  introduce_rank_1(*other, "x");
  const bool maker_first = GENERATE(true, false);
  CAPTURE(job, maker_first);
  (maker_first ? maker : other).reset();
  CHECK(std::filesystem::exists(folder));
  (maker_first ? other : maker).reset();
  CHECK_FALSE(std::filesystem::exists(folder));
}

}  // namespace ddpsim
