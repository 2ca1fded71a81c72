#include <stdexcept>

#include <catch2/catch.hpp>

#include "tests/model/cost/nccl_nodes.hpp"

// Graphs marked "log" were printed by NCCL itself (NCCL_DEBUG=INFO, NCCL_DEBUG_SUBSYS=GRAPH); the
// others follow from the rules of its search, worked out beside them.

using namespace ddpsim;
using namespace ddpsim::nccl_nodes;

namespace {

void check_graph(const NcclGraph& graph, int channels, double intra, double inter) {
  CHECK(graph.channels == channels);
  CHECK(in_gigabytes(graph.intra) == Approx(intra));
  CHECK(in_gigabytes(graph.inter) == Approx(inter));
}

}  // namespace

TEST_CASE("the search finds the channels NCCL finds", "[model][nccl_system]") {
  SECTION("8 H100 on an NVSwitch (log, NVIDIA/nccl#1197)") {
    const NcclSystem eight_h100 = nccl_system(h100_node(8));
    check_graph(eight_h100.ring, 12, 30, 30);
    check_graph(eight_h100.tree, 12, 30, 30);
    check_graph(eight_h100.nvls, 8, 40, 60);
    CHECK(eight_h100.channels == 24);
    CHECK(eight_h100.nvls_channels == 16);
    CHECK(eight_h100.ring.nvlink);
  }
  SECTION("2 H100 on an NVSwitch") {
    const NcclSystem two_h100 = nccl_system(h100_node(2));
    check_graph(two_h100.ring, 12, 30, 30);
    check_graph(two_h100.tree, 12, 60, 60);
    check_graph(two_h100.nvls, 2, 60, 60);
    CHECK(two_h100.channels == 24);
  }
  SECTION("8 A100 on an NVSwitch") {
    const NcclSystem system = nccl_system(node_of(8, 80, LinkKind::nvlink, 12 * 20.0));
    check_graph(system.ring, 12, 20, 20);
    check_graph(system.tree, 12, 20, 20);
    CHECK(system.nvls.channels == 0);
    CHECK(system.channels == 24);
  }
  SECTION("nodes of 8 H100 with 8 NICs of 400 Gb/s, behind PCIe 5: 48 of 50 GB/s") {
    const NcclSystem system = nccl_system(nodes_of(4, h100_node(8), LinkKind::infiniband, 50));
    check_graph(system.ring, 8, 48, 48);
    check_graph(system.tree, 8, 48, 48);
    check_graph(system.nvls, 8, 40, 48);
    CHECK(system.channels == 16);
    CHECK(system.nvls_channels == 16);
  }
  SECTION("2 hosts of one GPU, two interfaces of 10 Gb/s (log)") {
    const NcclSystem system =
        nccl_system(nodes_of(2, node_of(1, 120, LinkKind::pcie, 48), LinkKind::ethernet, 1.25, 2));
    check_graph(system.ring, 2, 1.2, 1.2);
    check_graph(system.tree, 2, 2.4, 1.2);
    CHECK(system.channels == 4);
    CHECK_FALSE(system.ring.nvlink);
    CHECK_FALSE(system.direct_nics);
  }
}

TEST_CASE("the search follows its rules on other systems", "[model][nccl_system]") {
  SECTION("8 B200: 8 rings of 90 GB/s in 721.8, driven by 16 CTAs; 9 * 80 for NVLS") {
    const NcclSystem system = nccl_system(node_of(8, 100, LinkKind::nvlink, 18 * 40.1));
    check_graph(system.ring, 16, 45, 45);
    check_graph(system.nvls, 8, 80, 90);
    CHECK(system.channels == 16);  // of 32, halved by 2.28
    CHECK(system.nvls_channels == 24);
  }
  SECTION("fewer than eight rings of more than 45 GB/s between Hoppers have four CTAs each") {
    const NcclSystem few = nccl_system(nodes_of(4, h100_node(8), LinkKind::infiniband, 50, 6));
    check_graph(few.ring, 6, 48, 48);
    CHECK(few.channels == 4 * 6);
    const NcclSystem slow = nccl_system(nodes_of(4, h100_node(8), LinkKind::infiniband, 25, 6));
    REQUIRE(in_gigabytes(slow.ring.intra) <= 45);
    CHECK(slow.channels == 2 * slow.ring.channels);
  }
  SECTION("8 V100: 3 rings of 40 GB/s in 120, doubled") {
    const NcclSystem system = nccl_system(node_of(8, 70, LinkKind::nvlink, 6 * 20.0));
    check_graph(system.ring, 6, 20, 20);
    CHECK(system.channels == 12);
  }
  SECTION("a PCIe 4 pair: 20 GB/s take all 24 through Intel's root complex; on AMD 2 * 12 fit") {
    Cluster pair = node_of(2, 89, LinkKind::pcie, 24);
    check_graph(nccl_system(pair).ring, 1, 20, 20);
    CHECK(nccl_system(pair).channels == 2);
    pair.cpu = CpuVendor::amd;
    check_graph(nccl_system(pair).ring, 2, 12, 12);
  }
  SECTION("a PCIe 5 pair: one ring of 40 GB/s, doubled, and raised to 24 where 48 are left") {
    Cluster pair = node_of(2, 120, LinkKind::pcie, 48);
    check_graph(nccl_system(pair).ring, 2, 20, 20);
    pair.cpu = CpuVendor::amd;
    check_graph(nccl_system(pair).ring, 2, 24, 24);
  }
  SECTION("PCIe 3 between V100: 12 takes 14.4 of 12, 10 takes 12") {
    check_graph(nccl_system(node_of(4, 70, LinkKind::pcie, 12)).ring, 1, 10, 10);
  }
  SECTION("a plain link pays no root complex") {
    check_graph(nccl_system(node_of(4, 70, LinkKind::plain, 12)).ring, 1, 12, 12);
  }
  SECTION("Ethernet is one NIC a node unless told: one ring of 12 in 12.5 GB/s") {
    const Cluster cluster = nodes_of(2, h100_node(8), LinkKind::ethernet, 12.5);
    check_graph(nccl_system(cluster).ring, 1, 12, 12);
    CHECK(nccl_system(cluster).channels == 2);
  }
  SECTION("where no speed of the list fits, one channel of 0.1 GB/s is assumed") {
    const NcclSystem system = nccl_system(node_of(2, 120, LinkKind::pcie, 12));
    check_graph(system.ring, 1, 0.1, 0.1);
    check_graph(system.tree, 1, 0.1, 0.1);
  }
  SECTION("a GPU alone has the 64 channels of a log (NVIDIA/nccl-tests#287)") {
    CHECK(nccl_system(h100_node(1)).channels == 64);
  }
}

TEST_CASE("a tree has room for more where a few GPUs can take turns at its end",
          "[model][nccl_system]") {
  // Of 2 GPUs a chain's last sends nothing: 370.8 GB/s hold 6 chains of 60 in each direction, the
  // 12 of the ring. Of 8 each chain spares 1/8, less than the step from 30 to 40 GB/s.
  CHECK(in_gigabytes(nccl_system(h100_node(2)).tree.intra) == Approx(60));
  CHECK(in_gigabytes(nccl_system(h100_node(8)).tree.intra) == Approx(30));
  // Of 3, 9 chains of 40 fit alike and 12 with different ends. Of 4, 12 * 3 hops would just fill
  // the 4 * 9, but 3 chains must end at each GPU, too rare for the search's 2^14 steps.
  CHECK(in_gigabytes(nccl_system(h100_node(3)).tree.intra) == Approx(40));
  CHECK(in_gigabytes(nccl_system(h100_node(4)).tree.intra) == Approx(30));
  // Between nodes a tree inside a node may be up to twice as fast as between them: 24 GB/s of NICs
  // of 200 Gb/s, and on NVLink 8 * 7/8 * 48 = 336 of 370.8.
  const NcclSystem system = nccl_system(nodes_of(2, h100_node(8), LinkKind::infiniband, 25));
  check_graph(system.tree, 8, 48, 24);
}

TEST_CASE("a cluster has a node and a rank", "[model][nccl_system]") {
  CHECK_THROWS_AS(nccl_system(h100_node(0)), std::invalid_argument);
  CHECK_THROWS_AS(nccl_system(nodes_of(0, h100_node(8), LinkKind::infiniband, 50)),
                  std::invalid_argument);
}
