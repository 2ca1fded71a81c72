#include "scenarios/reader/cluster/exceptions_reader.hpp"

#include <chrono>

#include <catch2/catch.hpp>

#include "tests/scenarios/reader/refusal.hpp"

namespace ddpsim {
namespace {

using namespace std::chrono_literals;

/// Two nodes of four ranks with these exceptions, which stand in line 4 from column 16 on.
std::string eight_ranks(const std::string& exceptions) {
  return "workload: {model: resnet18, batch: 8}\n"
         "cluster:\n"
         "  {device: h100-sxm, nodes: 2, ranks_per_node: 4, intra_node: nvlink4, inter_node: "
         "ib-ndr,\n"
         "   exceptions: " +
         exceptions + "}\n";
}

std::vector<RankException> exceptions_of(const std::string& exceptions) {
  const Scratch scratch;
  return read_scenario(scratch.write("s.yaml", eight_ranks(exceptions))).cluster.exceptions;
}

std::string refused_exceptions(const std::string& exceptions) {
  const Scratch scratch;
  return refusal(scratch, eight_ranks(exceptions));
}

TEST_CASE("exceptions are ranks, or nodes with their ranks", "[scenarios][exceptions_reader]") {
  const std::vector<RankException> all = exceptions_of(
      "[{rank: 3, compute: 1.3, pause: 200 ms, at: 40 %}, {node: 1, nic: 100 Gbit/s}]");
  REQUIRE(all.size() == 2);
  CHECK(!all[0].node);
  CHECK(all[0].rank == 3);
  CHECK(all[0].ranks == 1);
  CHECK(all[0].compute == 1.3);
  CHECK(!all[0].nic);
  CHECK(all[0].pause == 200ms);
  CHECK(all[0].at == Approx(0.4));
  CHECK(all[1].node == 1);
  CHECK(all[1].rank == 4);
  CHECK(all[1].ranks == 0);  // of its NICs alone
  CHECK(all[1].compute == 1);
  REQUIRE(all[1].nic);
  CHECK(all[1].nic->bytes_per_second == 12.5e9);
  CHECK(all[1].pause == Duration::zero());
  CHECK(exceptions_of("[]").empty());
  CHECK(exceptions_of("[{rank: 0, pause: 1 s}]").front().at == 0);
}

TEST_CASE("the ranks of a node are counted where nodes differ", "[scenarios][exceptions_reader]") {
  const Scratch scratch;
  const Cluster cluster =
      read_scenario(
          scratch.write("s.yaml",
                        "workload: {model: resnet18, batch: 8}\n"
                        "cluster: {device: h100-sxm, ranks_per_node: [8, 4, 2], "
                        "intra_node: nvlink4, inter_node: ib-ndr,\n"
                        "  exceptions: [{node: 2, compute: 2}, {node: 0, compute: 3}]}\n"))
          .cluster;
  REQUIRE(cluster.exceptions.size() == 2);
  CHECK(cluster.exceptions[0].rank == 12);
  CHECK(cluster.exceptions[0].ranks == 2);
  CHECK(cluster.exceptions[1].rank == 0);
  CHECK(cluster.exceptions[1].ranks == 8);
}

TEST_CASE("exceptions can be set, and follow a ready cluster", "[scenarios][exceptions_reader]") {
  const Scratch scratch;
  const auto file = scratch.write("s.yaml",
                                  "workload: {model: resnet18, batch: 8}\n"
                                  "cluster: {system: dgx-h100, nodes: 2, exceptions: [{node: 1, "
                                  "compute: 1.1}]}\n");
  CHECK(read_scenario(file).cluster.exceptions.front().rank == 8);
  const auto set = [&](const std::string& value) {
    return read_scenario(file, {{"cluster.exceptions", value}}).cluster.exceptions;
  };
  CHECK(set("[{rank: 5, compute: 1.3}]").front().rank == 5);
  CHECK(set("[{rank: 5, compute: 1.3x}]").front().compute == 1.3);
  CHECK(set("[{rank: 5, compute: '1.3 x'}]").front().compute == 1.3);
  CHECK(set("[]").empty());
}

TEST_CASE("an exception says whose it is and what differs", "[scenarios][exceptions_reader]") {
  // The first entry begins in column 17.
  CHECK(refused_exceptions("[{compute: 2}]") ==
        "s.yaml:4:17: cluster.exceptions: missing key \"rank\" or \"node\": it says which ranks "
        "differ");
  CHECK(refused_exceptions("[{rank: 1}]") ==
        "s.yaml:4:17: cluster.exceptions: missing key \"compute\", \"nic\" or \"pause\": it says "
        "what differs");
  CHECK_THAT(refused_exceptions("[{rank: 1, node: 1, compute: 2}]"),
             Catch::StartsWith("s.yaml:4:") &&
                 Catch::Contains("rank and node exclude each other: write an entry for each"));
  CHECK_THAT(refused_exceptions("[{rank: 1, nic: 1 GB/s}]"),
             Catch::Contains("the NICs are the node's: write node in place of rank"));
  CHECK_THAT(refused_exceptions("[{rank: 1, compute: 2, at: 40 %}]"),
             Catch::Contains("at says when a pause comes: write pause as well"));
  CHECK_THAT(refused_exceptions("[{rank: 1, compute: 0.01}]"), Catch::Contains("from 0.1 to 100"));
  CHECK_THAT(refused_exceptions("[{rank: 1, compute: 200x}]"),
             Catch::Contains("expected a factor from 0.1x to 100x, got \"200x\""));
  CHECK_THAT(refused_exceptions("[{rank: 1, compute: x}]"), Catch::Contains("got \"x\""));
  CHECK_THAT(refused_exceptions("[{rank: 1, compute: nanx}]"), Catch::Contains("got \"nanx\""));
  CHECK_THAT(refused_exceptions("[{rank: 1, compute: 1.3y}]"), Catch::Contains("from 0.1 to 100"));
  CHECK_THAT(refused_exceptions("[{rank: 1, pause: 5}]"), Catch::Contains("s.yaml:4:34: "));
  CHECK_THAT(refused_exceptions("[{rank: 1, compute: 2, spead: 1}]"),
             Catch::Contains("unknown key"));
  CHECK_THAT(refused_exceptions("{rank: 1, compute: 2}"),
             Catch::Contains("expected a list such as [{rank: 5, compute: 1.3x}]"));
}

TEST_CASE("exceptions are ranks that there are, each once", "[scenarios][exceptions_reader]") {
  CHECK(refused_exceptions("[{rank: 8, compute: 2}]") ==
        "s.yaml:4:24: cluster.exceptions.rank: expected a rank from 0 to 7, as there are 8, got 8");
  CHECK(refused_exceptions("[{node: 2, compute: 2}]") ==
        "s.yaml:4:24: cluster.exceptions.node: expected a node from 0 to 1, as there are 2, got 2");
  const std::string twice =
      " has an entry already: write one entry for each rank, with all that differs";
  CHECK(refused_exceptions("[{rank: 1, compute: 2}, {rank: 1, pause: 1 s}]") ==
        "s.yaml:4:40: cluster.exceptions: rank 1" + twice);
  CHECK(refused_exceptions("[{rank: 5, compute: 2}, {node: 1, pause: 1 s}]") ==
        "s.yaml:4:40: cluster.exceptions: a rank of node 1" + twice);
  CHECK_THAT(refused_exceptions("[{node: 1, pause: 1 s}, {rank: 4, compute: 2}]"),
             Catch::Contains("rank 4" + twice));
  CHECK_THAT(refused_exceptions("[{node: 1, pause: 1 s}, {rank: 7, compute: 2}]"),
             Catch::Contains("rank 7" + twice));
  CHECK_THAT(refused_exceptions("[{node: 1, nic: 1 GB/s, compute: 2}, {rank: 7, compute: 2}]"),
             Catch::Contains("rank 7" + twice));
  CHECK(refused_exceptions("[{node: 1, pause: 1 s}, {rank: 3, compute: 2}, {rank: 0, compute: 2}]")
            .empty());
  CHECK_THAT(refused_exceptions("[{node: 1, nic: 1 GB/s}, {node: 1, compute: 2}]"),
             Catch::Contains("node 1 has an entry already: write one entry for each node, with all "
                             "that differs"));
}

TEST_CASE("a NIC carries something", "[scenarios][exceptions_reader]") {
  CHECK(refused_exceptions("[{node: 1, nic: 1 bit/s}]") ==
        "s.yaml:4:32: cluster.exceptions.nic: expected a rate such as \"100 Gbit/s\" and at least "
        "1 kB/s, got \"1 bit/s\"");
  CHECK(refused_exceptions("[{node: 1, nic: 1 kB/s}]").empty());
}

TEST_CASE("a node's NICs may differ beside its ranks", "[scenarios][exceptions_reader]") {
  for (const char* list : {"[{rank: 7, compute: 1.3}, {node: 1, nic: 25 Gbit/s}]",
                           "[{node: 1, nic: 25 Gbit/s}, {rank: 7, compute: 1.3}]"}) {
    CAPTURE(list);
    const std::vector<RankException> all = exceptions_of(list);
    REQUIRE(all.size() == 2);
    // Who asks for a rank finds what differs of it.
    REQUIRE(exception_of(all, 7) != nullptr);
    CHECK(exception_of(all, 7)->compute == 1.3);
    for (int rank = 0; rank < 7; ++rank) CHECK(exception_of(all, rank) == nullptr);
  }
}

TEST_CASE("one rank at least is as the device says", "[scenarios][exceptions_reader]") {
  CHECK(refused_exceptions("[{node: 0, compute: 2}, {node: 1, compute: 2}]") ==
        "s.yaml:4:16: cluster.exceptions: all 8 ranks differ from the device: write as the device "
        "what most ranks are, and leave these out");
  CHECK(refused_exceptions("[{node: 0, compute: 2}, {node: 1, nic: 10 GB/s}]").empty());
  CHECK(refused_exceptions("[{node: 0, compute: 1}, {node: 1, compute: 2}]").empty());
  const Scratch scratch;
  CHECK_THAT(refusal_at(scratch, 7, "  ranks_per_node: 1\n  exceptions: [{rank: 0, compute: 2}]"),
             Catch::Contains("the only rank differs from the device"));
}

TEST_CASE("a NIC needs a network", "[scenarios][exceptions_reader]") {
  const Scratch scratch;
  CHECK(refusal_at(scratch, 7, "  ranks_per_node: 2\n  exceptions: [{node: 0, nic: 1 GB/s}]") ==
        "s.yaml:8:31: cluster.exceptions.nic: nothing leaves the only node: take nic out, or write "
        "nodes and inter_node");
}

}  // namespace
}  // namespace ddpsim
