// How many nodes and ranks a cluster has: what files, settings and flags say of it together.

#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "tests/tools/answers.hpp"
#include "tests/tools/program.hpp"

namespace ddpsim {
namespace {

TEST_CASE("of a cluster that says ranks, nodes keep their size and their number",
          "[tools][cluster]") {
  const Scratch scratch;
  const std::string workload = "name: s\nworkload: {model: resnet18, batch: 8}\ncompare: [none]\n";
  const auto sizes = [&](const std::string& size, const std::vector<std::string>& flags) {
    const std::string cluster =
        "{device: h100-sxm, intra_node: nvlink4, inter_node: ib-ndr, " + size + "}\n";
    const std::string site = scratch.write("site.yaml", cluster).string();
    const std::string own = scratch.write("own.yaml", workload + "cluster: " + cluster).string();
    const std::string named =
        scratch.write("named.yaml", workload + "cluster: site.yaml\n").string();
    std::vector<std::string> found;
    for (std::vector<std::string> words :
         {std::vector{own}, std::vector{named}, std::vector<std::string>{own, "--cluster", site}}) {
      words.insert(words.begin(), "run");
      words.insert(words.end(), flags.begin(), flags.end());
      const Json said = json_of(words)["cluster"];
      found.push_back(std::to_string(said["nodes"].get<int>()) + " x " +
                      std::to_string(said["ranks_per_node"].get<int>()));
    }
    CAPTURE(size, flags, found);
    CHECK(found[0] == found[1]);  // a file is what the scenario would say itself
    CHECK(found[0] == found[2]);
    return found[0];
  };
  for (const char* size : {"ranks: 16, ranks_per_node: 8", "ranks: 16, nodes: 2"}) {
    CHECK(sizes(size, {}) == "2 x 8");
    CHECK(sizes(size, {"--nodes", "4"}) == "4 x 8");
    CHECK(sizes(size, {"--ranks-per-node", "4"}) == "2 x 4");
    CHECK(sizes(size, {"--nodes", "3", "--ranks-per-node", "2"}) == "3 x 2");
  }
  CHECK(sizes("ranks: 16, ranks_per_node: 8", {"--ranks", "32"}) == "4 x 8");
}

TEST_CASE("a cluster's file that contradicts itself is refused where it stands",
          "[tools][cluster]") {
  const Scratch scratch;
  const std::string links = "device: h100-sxm\nintra_node: nvlink4\ninter_node: ib-ndr\n";
  const std::string workload = "name: s\nworkload: {model: resnet18, batch: 8}\n";
  const std::string site =
      scratch.write("site.yaml", links + "nodes: 2\nranks_per_node: 8\nranks: 32\n").string();
  const std::string named = scratch.write("named.yaml", workload + "cluster: site.yaml\n").string();
  const std::string system =
      scratch.write("system.yaml", workload + "cluster: {system: site.yaml}\n").string();
  const std::string says =
      "site.yaml:6:8: ranks: 32 ranks are not nodes x ranks_per_node = 2 x 8: leave one of the "
      "three out";
  refused({"run", first_example, "--cluster", site}, says);
  refused({"run", named}, says);
  refused({"run", system}, says);
  refused({"run", named, "--nodes", "4"}, says);
  const std::string listed =
      scratch.write("listed.yaml", links + "ranks_per_node: [8, 8]\nranks: 24\n").string();
  refused({"run", first_example, "--cluster", listed},
          "listed.yaml:5:8: ranks: 24 ranks are not nodes x ranks_per_node = 2 x 8");
}

TEST_CASE("more ranks in a node than the ready cluster has devices in one are noted",
          "[tools][cluster]") {
  const auto noted = [](std::vector<std::string> more) {
    more.insert(more.begin(), {"run", first_example, "--cluster"});
    const Outcome outcome = ddpsim(more);
    CAPTURE(more, outcome.err);
    CHECK(outcome.code == 0);
    return outcome.err;
  };
  const std::string note =
      "note: dgx-h100 has 8 h100-sxm in a node, and here a node has 12 ranks: ";
  CHECK_THAT(noted({"dgx-h100", "--nodes", "1", "--ranks-per-node", "12"}), Catch::Contains(note));
  CHECK_THAT(noted({"dgx-h100", "--set", "cluster.ranks_per_node=[12, 8]"}), Catch::Contains(note));
  CHECK_THAT(noted({"dgx-h100", "--nodes", "2"}), !Catch::Contains("in a node, and here"));
  CHECK_THAT(noted({"dgx-h100", "--ranks-per-node", "4"}), !Catch::Contains("and here a node"));
  CHECK_THAT(noted({"gb200-nvl72", "--nodes", "1"}), !Catch::Contains("and here a node"));
}

TEST_CASE("the number of ranks varies where it is unambiguous", "[tools][cluster]") {
  const auto sizes = [](const std::string& file, const std::string& ranks,
                        const std::vector<std::string>& more = {}) {
    std::vector<std::string> arguments{"run", file, "--vary", "cluster.ranks=" + ranks};
    arguments.insert(arguments.end(), more.begin(), more.end());
    std::vector<std::pair<int, int>> sizes;
    for (const Json& run : json_of(arguments))
      sizes.emplace_back(run["cluster"]["nodes"], run["cluster"]["ranks_per_node"]);
    return sizes;
  };
  using Sizes = std::vector<std::pair<int, int>>;
  CHECK(sizes(first_example, "2,4,8") == Sizes{{1, 2}, {1, 4}, {1, 8}});
  CHECK(sizes(first_example, "4,8,16", {"--set", "cluster=dgx-h100"}) ==
        Sizes{{1, 4}, {1, 8}, {2, 8}});
  CHECK(sizes(first_example, "2,3", {"--set", "cluster={device: a10, inter_node: ethernet-10g}"}) ==
        Sizes{{2, 1}, {3, 1}});
  const Scratch scratch;
  const std::string two_by_four =
      scratch
          .write("s.yaml",
                 "workload: {model: resnet18, batch: 8}\ncluster: {device: a100-80, nodes: 2, "
                 "ranks_per_node: 4, intra_node: nvlink3, inter_node: ib-hdr}\n")
          .string();
  CHECK(sizes(two_by_four, "4,16") == Sizes{{1, 4}, {4, 4}});  // the machines stay
  refused({"run", two_by_four, "--set", "cluster.ranks=6"},
          "6 ranks do not divide by ranks_per_node = 4");
}

TEST_CASE("nodes that would fit into one rack of one NVLink domain get a note",
          "[tools][cluster]") {
  const auto notes = [](const std::vector<std::string>& flags,
                        const std::string& cluster = "gb200-nvl72") {
    std::vector<std::string> words{"run", first_example, "--cluster", cluster};
    words.insert(words.end(), flags.begin(), flags.end());
    const Outcome outcome = ddpsim(words);
    CHECK(outcome.code == 0);
    return outcome.err;
  };
  CHECK_THAT(notes({"--ranks-per-node", "4", "--nodes", "2"}),
             Catch::Contains("note: 4 of the 72 ranks of a node of gb200-nvl72, which are one "
                             "NVLink domain, are used in each of 2 nodes, and all-reduces between "
                             "these are predicted over the 72 NICs of each: for 8 ranks of one "
                             "NVLink domain write --nodes 1 --ranks-per-node 8"));
  CHECK_THAT(notes({"--ranks-per-node", "36", "--nodes", "2"}), Catch::Contains("36 of the 72"));
  const std::string domain = "NVLink domain";
  CHECK_THAT(notes({"--ranks-per-node", "8", "--nodes", "1"}), !Catch::Contains(domain));
  // As clouds rent racks: no one rack holds these.
  CHECK_THAT(notes({"--ranks-per-node", "64", "--nodes", "2"}), !Catch::Contains(domain));
  CHECK_THAT(notes({"--ranks-per-node", "4", "--nodes", "2"}, "dgx-h100"),
             !Catch::Contains(domain));
}

TEST_CASE("clusters of other sizes side by side are told apart", "[tools][cluster][vary]") {
  const Scratch scratch;
  scratch.write("four.yaml", "system: dgx-a100\nnodes: 4\n");
  const auto answer = [&](std::vector<std::string> words, const std::vector<std::string>& more) {
    words.insert(words.end(), {"--set", "cluster.inter_node=ib-hdr", "--set", "compare=[flat]"});
    words.insert(words.end(), more.begin(), more.end());
    const Outcome outcome = ddpsim(words, scratch.folder());
    CAPTURE(outcome.err);
    REQUIRE(outcome.code == 0);
    return outcome;
  };
  const std::vector<std::string> vary{"--vary", "cluster=four.yaml,dgx-a100"};
  for (const std::string command : {"run", "sweep"}) {
    CAPTURE(command);
    const Outcome differ = answer({command, first_example, "--set", "cluster.price=1 USD/h"}, vary);
    CHECK_THAT(differ.err,
               Catch::Contains("note: the points differ in ranks: cluster: four.yaml has 32 and "
                               "cluster: dgx-a100 has 8; "));
    CHECK_THAT(differ.out, Catch::Matches("(.|\n)* ranks (.|\n)*"));
    const Outcome alike = answer({command, first_example, "--nodes", "2"}, vary);
    CHECK_THAT(alike.err, !Catch::Contains("differ in ranks"));
    CHECK_THAT(alike.out, !Catch::Contains(" ranks  "));
  }
  // Who varies the size knows that it varies.
  CHECK_THAT(answer({"run", first_example}, {"--vary", "cluster.nodes=2,4"}).err,
             !Catch::Contains("differ in ranks"));
  const std::string own = scratch
                              .write("own.yaml",
                                     "workload: {model: gpt2, batch: 8, sequence: 256}\n"
                                     "cluster: {system: dgx-a100, nodes: 2}\n")
                              .string();
  const std::string left_out = "cluster.nodes of the scenario, 2, is left out";
  CHECK_THAT(answer({"run", own}, {"--cluster", "four.yaml"}).err, Catch::Contains(left_out));
  CHECK_THAT(answer({"run", own}, {"--cluster", "four.yaml", "--nodes", "2"}).err,
             !Catch::Contains(left_out));
  CHECK_THAT(answer({"run", own}, {"--cluster", "dgx-h100"}).err, !Catch::Contains(left_out));
}

}  // namespace
}  // namespace ddpsim
