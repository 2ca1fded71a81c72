#include "scenarios/reader/catalogue/named_files.hpp"

#include <vector>

#include <catch2/catch.hpp>

#include "tests/scenarios/reader/scratch.hpp"

namespace ddpsim {
namespace {

using Names = std::vector<std::string>;

TEST_CASE("files that a file names are found once each, and so are those that they name",
          "[scenarios][named_files]") {
  const Scratch scratch;
  std::filesystem::create_directory(scratch.path("sub"));
  scratch.write("sub/table.csv", "bytes,time\n");
  scratch.write("sub/link.yaml", "all_reduce: table.csv\nbase: ../other.yaml\n");
  scratch.write("other.yaml", "a: [1, other.yaml, {b: sub/link.yaml}]\n");
  scratch.write("model.yaml", "- {unfinished\n");  // no YAML: it names nothing
  const auto file = scratch.write("s.yaml",
                                  "workload: {model: model.yaml}\n"
                                  "cluster: {intra_node: [sub/link.yaml, none.yaml]}\n"
                                  "text: 'model.yaml is no path of its own'\n");
  Names names;
  std::string table;
  NamedFiles named([&](const std::filesystem::path& found, const std::string& content) {
    names.push_back(found.lexically_normal().lexically_relative(scratch.folder()).string());
    if (names.back() == "sub/table.csv") table = content;
  });
  named.add_file(file);
  CHECK(names == Names{"s.yaml", "model.yaml", "sub/link.yaml", "sub/table.csv", "other.yaml"});
  CHECK(table == "bytes,time\n");
  // What was found stays known.
  named.add_text("{again: sub/table.csv}", scratch.folder());
  CHECK(names.size() == 5);
  scratch.write("new.csv", "bytes,time\n");
  named.add_text("new.csv", scratch.folder());
  CHECK(names.back() == "new.csv");
  named.add_file(scratch.path("there-is-none.yaml"));
  CHECK(names.size() == 6);
}

}  // namespace
}  // namespace ddpsim
