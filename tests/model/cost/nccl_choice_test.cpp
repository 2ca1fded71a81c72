#include "model/cost/nccl_choice.hpp"

#include <catch2/catch.hpp>

#include "tests/model/cost/public_sweeps.hpp"

using namespace ddpsim;

namespace {

Cluster hopper_nodes(int nodes, NcclRelease release = NcclRelease::from_2_28) {
  const Cluster node = sweeps::node(90, 8, LinkKind::nvlink, 450);
  Cluster cluster = nodes == 1 ? node : sweeps::nodes(nodes, node, 8, 50);
  cluster.forced.release = release;
  return cluster;
}

NcclAlgorithm algorithm_of(const NcclChoice& choice, Bytes size) {
  std::size_t range = choice.count - 1;
  while (range > 0 && static_cast<double>(size.count) < choice.ranges[range].from) --range;
  return choice.ranges[range].algorithm;
}

}  // namespace

TEST_CASE("before 2.28 NCCL takes an NVLS tree of four nodes from 2 MiB, and a tree below",
          "[model][nccl_choice]") {
  // 14 + 2 (7 x 1.25 + 2 x 8.5) = 65.5 us and 2 MiB at 0.6 x 116 GB/s by a tree with LL128: 95.6;
  // 25 + 4 x 14 = 81 us and 2 MiB at 187.9 GB/s by an NVLS tree: 92.2. For 1 MiB 80.6 and 86.6.
  const NcclChoice before(hopper_nodes(4, NcclRelease::before_2_28));
  CHECK(algorithm_of(before, 1 * MiB) == NcclAlgorithm::tree);
  CHECK(algorithm_of(before, 2 * MiB) == NcclAlgorithm::nvls_tree);
  // Since then a step between nodes counts 20.9 us: 108.6 us, so 2 MiB stay with the tree.
  const NcclChoice since(hopper_nodes(4));
  CHECK(algorithm_of(since, 2 * MiB) == NcclAlgorithm::tree);
  CHECK(algorithm_of(since, 32 * MiB) == NcclAlgorithm::nvls_tree);
}

TEST_CASE("NCCL's choice is for links as sold: it does not depend on how fast they are",
          "[model][nccl_choice]") {
  const NcclChoice usual(hopper_nodes(4));
  Cluster slow = hopper_nodes(4);
  slow.inter_node.bandwidth = gigabytes_per_second(0.1);
  slow.intra_node.bandwidth = gigabytes_per_second(3);
  const NcclChoice same(slow);
  REQUIRE(same.count == usual.count);
  for (std::size_t range = 0; range < usual.count; ++range) {
    CHECK(same.ranges[range].from == usual.ranges[range].from);
    CHECK(same.ranges[range].algorithm == usual.ranges[range].algorithm);
  }
}

TEST_CASE("within a node NCCL takes rings, and NVLS where there is a switch that adds up",
          "[model][nccl_choice]") {
  const NcclChoice hopper(hopper_nodes(1));
  CHECK(algorithm_of(hopper, Bytes{1024}) == NcclAlgorithm::ring);
  CHECK(algorithm_of(hopper, 25 * MiB) == NcclAlgorithm::nvls);
  const NcclChoice ampere(sweeps::node(80, 8, LinkKind::nvlink, 300));
  CHECK(algorithm_of(ampere, 25 * MiB) == NcclAlgorithm::ring);
}

TEST_CASE("a protocol that is forced has the algorithm that NCCL takes with it",
          "[model][nccl_choice]") {
  // LL has no NVLS.
  Cluster cluster = hopper_nodes(1);
  cluster.forced.protocol = NcclProtocol::ll;
  CHECK(algorithm_of(NcclChoice(cluster), 25 * MiB) == NcclAlgorithm::ring);
}
