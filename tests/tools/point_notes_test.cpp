#include "tools/study/point_notes.hpp"

#include <catch2/catch.hpp>

#include "tests/tools/program.hpp"

namespace ddpsim {
namespace {

using Lines = std::vector<std::string>;

TEST_CASE("a note on points says how many they are, and the first", "[tools][point_notes]") {
  PointNotes notes;
  notes.add({{"a", "1"}, {"b", "x"}}, {"one"});
  notes.add({{"a", "1"}, {"b", "y"}}, {"two", "one"});
  notes.add({{"a", "2"}, {"b", "x"}}, {});
  CHECK(notes.lines(3) == Lines{"one (at 2 of 3 points, the first a=1, b=x)",
                                "two (at 1 of 3 points, the first a=1, b=y)"});
  CHECK(notes.lines(9) == Lines{"one (at 2 of the first 3 points, the first a=1, b=x)",
                                "two (at 1 of the first 3 points, the first a=1, b=y)"});
  PointNotes only;
  only.add({{"a", "1"}}, {"one"});
  CHECK(only.lines(1) == Lines{"one"});
}

TEST_CASE("sweep and --vary name the points at which a port, not the network, is what bounds",
          "[tools][point_notes]") {
  // PCIe 4.0 x16 carries 31.5 GB/s: more than 200 Gbit/s, less than 400.
  for (const char* command : {"sweep", "run"}) {
    const Outcome outcome = ddpsim(
        {command, first_example, "--set", "compare=[flat]", "--set",
         "cluster={device: a100-80, nodes: 2, inter_node: ethernet-200g}", "--vary",
         "cluster.inter_node=ethernet-200g,ethernet-400g", "--vary", "workload.batch=4,8,16"});
    CAPTURE(command, outcome.err);
    REQUIRE(outcome.code == 0);
    CHECK_THAT(outcome.err,
               Catch::Contains(
                   "a network of more bandwidth would not make them shorter (at 3 of 6 points, "
                   "the first cluster.inter_node=ethernet-400g, workload.batch=4)\n"));
  }
}

}  // namespace
}  // namespace ddpsim
