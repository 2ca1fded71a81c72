// A network of another kind in the place of a ready cluster's keeps its NICs.
#include <catch2/catch.hpp>

#include "tests/tools/program.hpp"

namespace ddpsim {
namespace {

using Words = std::vector<std::string>;

const std::string kept_nics_said =
    "note: ethernet-100g is taken with the 8 NICs that a node of dgx-h100 has, and by itself has "
    "one: --set 'cluster.inter_node={base: ethernet-100g, nics: 1}' (or --vary) takes one";

/// What a command says on stderr of four DGX H100.
std::string said_of_nics(const std::string& command, const Words& more) {
  const Scratch scratch;
  scratch.write("s.yaml",
                "workload: {model: gpt2, batch: 1, sequence: 64}\n"
                "cluster: {system: dgx-h100, nodes: 4}\ncompare: [flat]\n");
  Words arguments{command, "s.yaml"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  const Outcome outcome = ddpsim(arguments, scratch.folder());
  CAPTURE(arguments, outcome.err);
  CHECK(outcome.code == 0);
  return outcome.err;
}

}  // namespace

TEST_CASE("a network of another kind is noted with the NICs that it keeps", "[tools][kept_nics]") {
  const Words ethernet{"--set", "cluster.inter_node=ethernet-100g"};
  for (const char* command : {"run", "tune"})
    CHECK_THAT(said_of_nics(command, ethernet), Catch::Contains(kept_nics_said + "\n"));
  CHECK_THAT(said_of_nics("run", {"--link", "ethernet-100g"}), Catch::Contains(kept_nics_said));
  const Words varied{"--vary", "cluster.inter_node=ib-ndr,ethernet-100g"};
  for (const char* command : {"run", "sweep"})
    CHECK_THAT(said_of_nics(command, varied),
               Catch::Contains(kept_nics_said +
                               " (at 1 of 2 points, the first cluster.inter_node=ethernet-100g)"));
  CHECK_THAT(
      said_of_nics("run", {"--set", "cluster.inter_node={base: ethernet-100g, carries: 0.9}"}),
      Catch::Contains("by itself has one: --set cluster.inter_node.nics=1 (or --vary)"));
}

TEST_CASE("nothing is noted of NICs that are said, or would be as many", "[tools][kept_nics]") {
  for (const char* network : {"cluster.inter_node={base: ethernet-100g, nics: 1}",
                              "cluster.inter_node=ib-hdr", "cluster.inter_node.nics=4"})
    CHECK_THAT(said_of_nics("run", {"--set", network}), !Catch::Contains("is taken with the"));
  CHECK_THAT(said_of_nics("run", {"--set", "cluster.inter_node=ethernet-100g", "--set",
                                  "cluster.inter_node.nics=1"}),
             !Catch::Contains("is taken with the"));
  CHECK_THAT(said_of_nics("run", {"--nodes", "1", "--set", "cluster.inter_node=ethernet-100g"}),
             !Catch::Contains("is taken with the"));
}

}  // namespace ddpsim
