#include "model/cost/gloo_law.hpp"

#include <stdexcept>

#include <catch2/catch.hpp>

#include "model/cost/collective.hpp"

using namespace ddpsim;
using namespace std::chrono_literals;

namespace {

/// Hosts of one rank on Ethernet of 1.25 GB/s, 30 us a step, memory of 57.6 GB/s.
Cluster hosts(int nodes, int ranks_per_node = 1) {
  Cluster cluster;
  cluster.collectives = CollectiveModel::gloo;
  cluster.nodes = nodes;
  cluster.ranks_per_node = ranks_per_node;
  cluster.device.memory_bandwidth = gigabytes_per_second(76.8);
  cluster.device.memory_efficiency = 0.75;
  cluster.inter_node.kind = LinkKind::ethernet;
  cluster.inter_node.latency = 30us;
  cluster.inter_node.bandwidth = gigabytes_per_second(1.25);
  cluster.intra_node.latency = 10us;
  cluster.intra_node.bandwidth = gigabytes_per_second(3);
  return cluster;
}

Cluster halving(Cluster cluster) {
  cluster.forced.gloo = GlooAlgorithm::halving_doubling;
  return cluster;
}

constexpr double payload = 1448.0 / 1514;
constexpr double mebibytes_64 = 64 * 1048576.0;

}  // namespace

TEST_CASE("Gloo's ring sends 2 (n-1)/n of the bytes in 2 (n-1) steps", "[model][gloo_law]") {
  const CollectiveCost cost = CollectiveLaw(hosts(4)).all_reduce(64 * MiB);
  CHECK(cost.latency == 180us);
  CHECK(in_seconds(cost.transfer) == Approx(1.5 * mebibytes_64 / (payload * 1.25e9)));
  CHECK(cost.choice.gloo == GlooAlgorithm::ring);
  CHECK_FALSE(cost.choice.algorithm);
  CHECK(cost.choice.nics == 1);
  CHECK(cost.choice.bound == CollectiveBound::nic);
  CHECK(CollectiveLaw(hosts(4)).name() == std::string("gloo"));
  CHECK(CollectiveLaw(hosts(4)).all_reduce({8}).choice.bound == CollectiveBound::latency);
}

TEST_CASE("halving and doubling takes log2 n steps each way for the same bytes",
          "[model][gloo_law]") {
  const CollectiveCost cost = CollectiveLaw(halving(hosts(8))).all_reduce(64 * MiB);
  CHECK(cost.latency == 180us);  // a ring: 420 us
  CHECK(in_seconds(cost.transfer) == Approx(1.75 * mebibytes_64 / (payload * 1.25e9)));
  CHECK(cost.choice.gloo == GlooAlgorithm::halving_doubling);
  CHECK_THROWS_WITH(CollectiveLaw(halving(hosts(6))), Catch::Contains("powers of two"));
}

TEST_CASE("within nodes a ring goes through the ranks' links, and one NIC of each node",
          "[model][gloo_law]") {
  // 8 ranks on two nodes: 7 hops a half, of which two leave a node.
  Cluster cluster = hosts(2, 4);
  const CollectiveCost cost = CollectiveLaw(cluster).all_reduce(64 * MiB);
  CHECK(cost.latency == 2 * (5 * 10us + 2 * 30us));
  CHECK(in_seconds(cost.transfer) == Approx(1.75 * mebibytes_64 / (payload * 1.25e9)));
  cluster.inter_node.nics = 4;  // a process speaks through one
  CHECK(CollectiveLaw(cluster).all_reduce(64 * MiB).transfer == cost.transfer);
  CHECK(CollectiveLaw(cluster).all_reduce(64 * MiB).choice.nics == 1);
  // Halving and doubling: 2 x 1/2 through the NICs, 2 x 3/4 through the ranks' links.
  const CollectiveCost halved = CollectiveLaw(halving(cluster)).all_reduce(64 * MiB);
  CHECK(halved.latency == 2 * (2 * 10us + 30us));
  CHECK(in_seconds(halved.transfer) == Approx(mebibytes_64 / (payload * 1.25e9)));
  cluster.intra_node.bandwidth = gigabytes_per_second(0.5);
  CHECK(in_seconds(CollectiveLaw(halving(cluster)).all_reduce(64 * MiB).transfer) ==
        Approx(1.5 * mebibytes_64 / 0.5e9));
  CHECK(CollectiveLaw(halving(cluster)).all_reduce(64 * MiB).choice.bound == CollectiveBound::port);
}

TEST_CASE("a host's memory bounds what a fast wire carries", "[model][gloo_law]") {
  // Two ranks: 1/2 of the bytes each way a half, copied 4 times; in the first half added up as
  // well, 3 more, at 0.75 x 8 GB/s.
  Cluster cluster = hosts(2);
  cluster.inter_node.bandwidth = gigabytes_per_second(50);
  cluster.device.memory_bandwidth = gigabytes_per_second(8);
  const CollectiveCost cost = CollectiveLaw(cluster).all_reduce(64 * MiB);
  CHECK(in_seconds(cost.transfer) == Approx(0.5 * 11 * mebibytes_64 / 6e9));
  CHECK(cost.choice.bound == CollectiveBound::memory);
  // The wire of 1.25 GB/s hides the copies of the second half, not the sums of the first.
  cluster.inter_node.bandwidth = gigabytes_per_second(1.25);
  cluster.device.memory_bandwidth = gigabytes_per_second(10);
  CHECK(in_seconds(CollectiveLaw(cluster).all_reduce(64 * MiB).transfer) ==
        Approx(0.5 * mebibytes_64 * (1 / (payload * 1.25e9) + 7 / 7.5e9)));
}

TEST_CASE("one rank sends nothing, and a link without bandwidth is refused", "[model][gloo_law]") {
  CHECK(CollectiveLaw(hosts(1)).all_reduce(64 * MiB).time() == 0us);
  Cluster cluster = hosts(2);
  cluster.inter_node.bandwidth = {};
  CHECK_THROWS_WITH(CollectiveLaw(cluster), Catch::Contains("no bandwidth"));
  cluster = hosts(2);
  cluster.device.compute_capability = 80;
  CHECK_THROWS_WITH(CollectiveLaw(cluster), Catch::Contains("hosts"));
}
