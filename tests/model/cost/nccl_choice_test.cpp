#include "model/cost/nccl_choice.hpp"

#include <catch2/catch.hpp>

#include "tests/model/cost/public_sweeps.hpp"

using namespace ddpsim;

namespace {

constexpr double mebibyte = 1 << 20;

Cluster hopper_nodes(int nodes, NcclRelease release = NcclRelease::from_2_28) {
  Cluster cluster = sweeps::nodes(nodes, sweeps::node(90, 8, LinkKind::nvlink, 450), 8, 50);
  cluster.forced.release = release;
  return cluster;
}

}  // namespace

TEST_CASE("before 2.28 NCCL takes an NVLS tree of four nodes from 2 MiB on, since then from 8 MiB",
          "[model][nccl_choice]") {
  // 14 + 2 (7 x 1.25 + 2 x 8.5) = 65.5 us and 2 MiB at 0.6 x 116 GB/s by a tree with LL128: 95.6;
  // 25 + 4 x 14 = 81 us and 2 MiB at 187.9 GB/s by an NVLS tree: 92.2. For 1 MiB 80.6 and 86.6.
  const NvlsTreeSizes before = nvls_tree_sizes(hopper_nodes(4, NcclRelease::before_2_28));
  CHECK_FALSE(before.contain(1 * mebibyte));
  CHECK(before.contain(2 * mebibyte));
  CHECK(before.contain(256 * mebibyte));
  // A step between nodes counts 20.9 us since then, 108.6 us in all: 2 MiB stay with the tree.
  const NvlsTreeSizes since = nvls_tree_sizes(hopper_nodes(4));
  CHECK_FALSE(since.contain(2 * mebibyte));
  CHECK(since.contain(16 * mebibyte));
}

TEST_CASE("NCCL's choice is for links as sold: it does not depend on how fast they are",
          "[model][nccl_choice]") {
  Cluster slow = hopper_nodes(4);
  slow.inter_node.bandwidth = gigabytes_per_second(0.1);
  slow.inter_node.latency = std::chrono::milliseconds{50};
  slow.intra_node.bandwidth = gigabytes_per_second(3);
  CHECK(nvls_tree_sizes(slow) == nvls_tree_sizes(hopper_nodes(4)));
}

TEST_CASE("there is no NVLS tree in one node, before Hopper, or without a switch",
          "[model][nccl_choice]") {
  const auto none = [](const Cluster& cluster) {
    return nvls_tree_sizes(cluster) == NvlsTreeSizes{};
  };
  CHECK(none(sweeps::node(90, 8, LinkKind::nvlink, 450)));
  CHECK(none(sweeps::nodes(4, sweeps::node(80, 8, LinkKind::nvlink, 300), 8, 25)));
  CHECK(none(sweeps::nodes(4, sweeps::node(90, 8, LinkKind::nvlink, 450, false), 8, 50)));
  CHECK(none(sweeps::nodes(4, sweeps::node(90, 2, LinkKind::pcie, 63), 1, 50)));
}

TEST_CASE("an NVLS tree begins where NCCL's law takes it first, and ends where it takes another",
          "[model][nccl_choice]") {
  int begun = 0;
  for (const int capability : {90, 100})
    for (const int nodes : {2, 3, 4, 8, 16})
      for (const NcclRelease release : {NcclRelease::before_2_28, NcclRelease::from_2_28}) {
        // NVLinks and NICs as sold: 18 of 20.6 or 40.1 GB/s in NCCL's count, and 50 GB/s each.
        const double link = 18 * (capability == 90 ? 20.6 : 40.1);
        Cluster cluster =
            sweeps::nodes(nodes, sweeps::node(capability, 8, LinkKind::nvlink, link), 8, 50);
        cluster.forced.release = release;
        cluster.intra_node.nccl_bandwidth = {};
        cluster.inter_node.nccl_bandwidth = {};
        const NcclLaw law(nccl_system(cluster));
        const auto taken = [&](double bytes) {
          return law.choose(Collective::all_reduce, Bytes{static_cast<std::int64_t>(bytes)})
                     .algorithm == NcclAlgorithm::nvls_tree;
        };
        const NvlsTreeSizes sizes = nvls_tree_sizes(cluster);
        CAPTURE(capability, nodes, sizes.from, sizes.to);
        if (sizes == NvlsTreeSizes{}) {
          for (double bytes = mebibyte / 16; bytes < 512 * mebibyte; bytes *= 2)
            CHECK_FALSE(taken(bytes));
          continue;
        }
        CHECK(taken(sizes.from));
        CHECK((sizes.from == mebibyte / 16 || !taken(sizes.from * (1 - 1.0 / 250))));
        CHECK(taken(sizes.to / 2));
        CHECK((sizes.to >= 512 * mebibyte || !taken(sizes.to)));
        ++begun;
      }
  CHECK(begun > 5);
}
