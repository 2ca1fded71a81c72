// What `run --scaling` says beside its curves.

#include <catch2/catch.hpp>

#include "tests/tools/jobs.hpp"

namespace ddpsim {
namespace {

using Words = std::vector<std::string>;

/// A small model on that cluster.
class OnCluster {
 public:
  explicit OnCluster(const std::string& cluster)
      : file_(scratch_
                  .write("s.yaml", "workload: {model: resnet18, batch: 8}\ncluster: " + cluster +
                                       "\ncompare: [naive]\n")
                  .string()) {}

  std::string notes(const Words& flags) const {
    Words words{"run", file_};
    words.insert(words.end(), flags.begin(), flags.end());
    const Outcome outcome = ddpsim(words);
    INFO(outcome.err);
    REQUIRE(outcome.code == 0);
    return outcome.err;
  }

 private:
  Scratch scratch_;
  std::string file_;
};

TEST_CASE("a scaling curve says of what nodes it is where they could hold more ranks",
          "[tools][scaling]") {
  const OnCluster node("{system: dgx-h100}");
  CHECK_THAT(node.notes({"--ranks", "2", "--scaling", "16"}),
             Catch::Contains("--scaling: beyond 2 ranks the curve has more nodes of 2 ranks each, "
                             "as the scenario's is: --ranks-per-node says what a node holds"));
  CHECK_THAT(node.notes({"--scaling", "16"}), !Catch::Contains("--ranks-per-node"));
  CHECK_THAT(node.notes({"--ranks", "2", "--scaling", "2"}), !Catch::Contains("--ranks-per-node"));
}

TEST_CASE("a scaling curve beyond one node has a network that has an effect", "[tools][scaling]") {
  const OnCluster node("{system: dgx-h100}");
  const std::string idle = "inter_node has no effect";
  const Words slow{"--set", "cluster.inter_node.latency=90 us"};
  const auto notes = [&](Words flags) {
    flags.insert(flags.end(), slow.begin(), slow.end());
    return node.notes(flags);
  };
  CHECK_THAT(notes({}), Catch::Contains(idle));
  CHECK_THAT(notes({"--scaling", "8"}), Catch::Contains(idle));
  CHECK_THAT(notes({"--scaling", "16"}), !Catch::Contains(idle));
}

TEST_CASE("a scaling curve says where all-reduces are not those that were measured",
          "[tools][scaling]") {
  const OnCluster two("{system: dgx-h100, nodes: 2}");
  CHECK_THAT(two.notes({"--scaling", "16", "--set",
                        "cluster.inter_node.all_reduce=[{bytes: 1 MiB, time: 1 ms}]"}),
             Catch::Contains("--scaling: all-reduces were measured with 16 ranks: at other sizes "
                             "they are scaled by the law of a ring"));
  CHECK_THAT(two.notes({"--scaling", "16"}), !Catch::Contains("were measured with"));
}

}  // namespace
}  // namespace ddpsim
