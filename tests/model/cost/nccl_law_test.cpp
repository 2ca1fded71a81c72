#include "model/cost/nccl_law.hpp"

#include <cmath>
#include <stdexcept>
#include <tuple>
#include <vector>

#include <catch2/catch.hpp>

#include "tests/model/cost/nccl_nodes.hpp"

// Figures marked "log" were printed by NCCL itself (NCCL_DEBUG=INFO, subsystems GRAPH and TUNING);
// the others follow from the formulas of NCCL 2.28.9, worked out apart from this code, to the
// digits shown.

using namespace ddpsim;
using namespace ddpsim::nccl_nodes;

namespace {

using Algorithm = NcclAlgorithm;
using Protocol = NcclProtocol;

/// Equal to a figure printed with that many decimals.
Approx printed(double value, int decimals = 1) {
  return Approx(value).epsilon(0).margin(0.5 * std::pow(10.0, -decimals) + 1e-9);
}

// The three worked examples.
const NcclSystem two_h100 = nccl_system(h100_node(2));
const NcclSystem eight_h100 = nccl_system(h100_node(8));
const Cluster four_nodes = nodes_of(4, h100_node(8), LinkKind::infiniband, 50);

/// Two hosts with a GPU and two interfaces each that say 10 Gb/s (which NCCL also assumes of an
/// interface that does not say): the log shows two rings of 1.2 GB/s.
const Cluster two_hosts =
    nodes_of(2, node_of(1, 120, LinkKind::pcie, 48), LinkKind::ethernet, 1.25, 2);

struct Cell {
  Collective collective;
  Algorithm algorithm;
  Protocol protocol;
  double latency_us, gigabytes;
  int decimals = 1;  ///< of `gigabytes`
};

/// The bare cell: latency before the plateau, bandwidth beyond the tree's correction.
void check_cells(const NcclLaw& law, const std::vector<Cell>& cells) {
  for (const Cell& cell : cells) {
    CAPTURE(static_cast<int>(cell.collective), name_of(cell.algorithm), name_of(cell.protocol));
    const auto small = law.estimate(cell.collective, cell.algorithm, cell.protocol, Bytes{8});
    const auto large = law.estimate(cell.collective, cell.algorithm, cell.protocol, GiB);
    REQUIRE((small && large));
    CHECK(in_us(small->latency) == printed(cell.latency_us));
    CHECK(in_gigabytes(large->algorithm_bandwidth) == printed(cell.gigabytes, cell.decimals));
  }
}

struct Choice {
  Bytes size;
  double time_us;
  Algorithm algorithm;
  Protocol protocol;
};

void check_choices(const NcclLaw& law, const std::vector<Choice>& choices) {
  for (const Choice& expected : choices) {
    const NcclEstimate chosen = law.choose(Collective::all_reduce, expected.size);
    CAPTURE(to_string(expected.size), name_of(chosen.algorithm), name_of(chosen.protocol));
    CHECK(in_us(chosen.time) == printed(expected.time_us));
    CHECK(chosen.algorithm == expected.algorithm);
    CHECK(chosen.protocol == expected.protocol);
  }
}

constexpr auto AR = Collective::all_reduce, AG = Collective::all_gather,
               RS = Collective::reduce_scatter, broadcast = Collective::broadcast,
               reduce = Collective::reduce;
constexpr auto tree = Algorithm::tree, rings = Algorithm::ring, nvls = Algorithm::nvls,
               nvls_tree = Algorithm::nvls_tree;
constexpr auto LL = Protocol::ll, LL128 = Protocol::ll128, simple = Protocol::simple;

}  // namespace

TEST_CASE("two H100 on an NVSwitch cost what NCCL's formulas give", "[model][nccl_law]") {
  // Ring Simple: 12 * 30 = 360 GB/s and n/steps = 2/2; 8.4 + 2 * 3.4 = 15.2 us.
  check_cells(NcclLaw(two_h100), {{AR, rings, LL, 7.8, 141.0},
                                  {AR, rings, LL128, 17.8, 331.2},
                                  {AR, rings, simple, 15.2, 360.0},
                                  {AR, tree, LL, 8.0, 61.1},
                                  {AR, tree, LL128, 16.5, 180.6},
                                  {AR, tree, simple, 16.4, 232.2},
                                  {AR, nvls, simple, 25.0, 102.0},
                                  {AG, rings, LL, 7.2, 282, 0},
                                  {AG, rings, LL128, 15.9, 662, 0},
                                  {AG, rings, simple, 11.8, 720, 0},
                                  {RS, rings, LL, 7.2, 282, 0},
                                  {RS, rings, LL128, 15.9, 662, 0},
                                  {RS, rings, simple, 11.8, 720, 0},
                                  {broadcast, rings, LL, 7.2, 141, 0},
                                  {broadcast, rings, LL128, 15.9, 331, 0},
                                  {broadcast, rings, simple, 11.8, 360, 0},
                                  {reduce, rings, simple, 11.8, 360, 0}});
}

TEST_CASE("eight H100 on an NVSwitch cost what NCCL's formulas give", "[model][nccl_law]") {
  // NVLS: 40 * 0.85 * 7/8 * 2 = 59.5 GB/s of each of 8 heads, times n/steps = 8/14: 272.
  check_cells(NcclLaw(eight_h100), {{AR, rings, LL, 15.0, 80.6},
                                    {AR, rings, LL128, 40.6, 189.3},
                                    {AR, rings, simple, 56.0, 205.7},
                                    {AR, tree, LL, 15.2, 43.6},
                                    {AR, tree, LL128, 31.5, 128.8},
                                    {AR, tree, simple, 64.4, 165.6},
                                    {AR, nvls, simple, 25.0, 272.0},
                                    {AG, rings, LL, 10.8, 161, 0},
                                    {AG, rings, LL128, 27.3, 379, 0},
                                    {AG, rings, simple, 32.2, 411, 0},
                                    {RS, rings, LL, 10.8, 161, 0},
                                    {RS, rings, LL128, 27.3, 379, 0},
                                    {RS, rings, simple, 32.2, 411, 0},
                                    {broadcast, rings, LL, 7.2, 141, 0},
                                    {broadcast, rings, LL128, 15.9, 331, 0},
                                    {broadcast, rings, simple, 11.8, 360, 0}});
}

TEST_CASE("four nodes of eight H100 cost what NCCL's formulas give", "[model][nccl_law]") {
  // Ring Simple: 8 * 48 = 384 GB/s, * 32/62; 8.4 + (62 - 6) * max(3.4, 3 * 1.0) + 6 * 14 = 282.8
  // us.
  const NcclLaw law(nccl_system(four_nodes));
  check_cells(law, {{AR, rings, LL, 78.8, 10.5},
                    {AR, rings, LL128, 144.4, 151.5},
                    {AR, rings, simple, 282.8, 198.2},
                    {AR, tree, LL, 35.2, 10.2},
                    {AR, tree, LL128, 65.5, 116.0},
                    {AR, tree, simple, 120.4, 144.0},
                    {AR, nvls_tree, simple, 108.6, 187.9},
                    {AG, rings, LL, 42.7, 21.1},
                    {AG, rings, LL128, 79.2, 303, 0},
                    {AG, rings, simple, 145.6, 396, 0},
                    {RS, rings, LL, 42.7, 21.1},
                    {RS, rings, LL128, 79.2, 303, 0},
                    {RS, rings, simple, 145.6, 396, 0},
                    {broadcast, rings, LL, 9.3, 20.4},
                    {broadcast, rings, LL128, 18.0, 294, 0},
                    {broadcast, rings, simple, 22.4, 384, 0}});
  // The plateau starts at 64 B for each of 16 channels and 32 ranks.
  CHECK(in_us(law.estimate(AR, rings, simple, GiB)->latency) == printed(395.9));
  CHECK(in_us(law.estimate(AR, rings, simple, 32 * KiB)->latency) == printed(395.9));
  CHECK(in_us(law.estimate(AR, rings, simple, 32 * KiB - Bytes{1})->latency) == printed(282.8));
}

TEST_CASE(
    "beyond the plateau's start a ring between nodes waits longer, before Ampere longer still",
    "[model][nccl_law]") {
  for (const auto& [capability, factor] :
       {std::pair{70, 1.9}, {75, 1.9}, {80, 1.4}, {86, 1.4}, {90, 1.4}}) {
    const NcclLaw law(nccl_system(nodes_of(4, node_of(8, capability, LinkKind::nvlink, 12 * 20.0),
                                           LinkKind::infiniband, 25)));
    CAPTURE(capability);
    CHECK(in_us(law.estimate(AR, rings, simple, GiB)->latency) /
              in_us(law.estimate(AR, rings, simple, KiB)->latency) ==
          Approx(factor).epsilon(1e-6));
  }
}

TEST_CASE("AMD hosts post to their NICs more slowly and lower LL's cap", "[model][nccl_law]") {
  Cluster amd = four_nodes;
  amd.cpu = CpuVendor::amd;
  const NcclLaw law(nccl_system(amd));
  check_cells(law, {{AR, rings, LL, 134.8, 9.8}, {AR, rings, simple, 428.4, 198.2}});
  CHECK(in_us(law.estimate(AR, rings, simple, GiB)->latency) == printed(599.8));
}

TEST_CASE("two hosts on sockets cost what the log of NCCL says", "[model][nccl_law]") {
  const NcclLaw law(nccl_system(two_hosts));
  check_cells(law, {{AR, tree, LL, 16.8, 0.5},
                    {AR, tree, simple, 36.4, 1.9},
                    {AR, rings, LL, 16.6, 1.2},
                    {AR, rings, simple, 36.4, 2.4},
                    {AG, rings, LL, 11.6, 2.4},
                    {AG, rings, simple, 22.4, 4.8},
                    {RS, rings, LL, 11.6, 2.4},
                    {RS, rings, simple, 22.4, 4.8},
                    {broadcast, rings, LL, 9.3, 1.2},
                    {broadcast, rings, simple, 22.4, 2.4},
                    {reduce, rings, LL, 9.3, 1.2},
                    {reduce, rings, simple, 22.4, 2.4}});
  // The log has a bandwidth of 0.0 for LL128, and these choices and CTAs for an all-reduce.
  CHECK_FALSE(law.estimate(AR, rings, LL128, MiB));
  CHECK_FALSE(law.estimate(AR, tree, LL128, MiB));
  for (const auto& [kibibytes, protocol, channels] :
       {std::tuple{4, LL, 1}, {16, LL, 2}, {32, LL, 4}, {64, LL, 4}, {128, simple, 4}}) {
    const NcclEstimate chosen = law.choose(AR, kibibytes * KiB);
    CAPTURE(kibibytes);
    CHECK(chosen.algorithm == rings);
    CHECK(chosen.protocol == protocol);
    CHECK(chosen.channels == channels);
  }
}

TEST_CASE("NCCL's choice moves from latency to bandwidth as messages grow", "[model][nccl_law]") {
  SECTION("two H100") {
    check_choices(NcclLaw(two_h100), {{Bytes{8}, 7.8, rings, LL},
                                      {64 * KiB, 8.3, rings, LL},
                                      {256 * KiB, 9.7, rings, LL},
                                      {MiB, 15.2, rings, LL},
                                      {4 * MiB, 26.9, rings, simple},
                                      {16 * MiB, 61.8, rings, simple},
                                      {25 * MiB, 88.0, rings, simple},
                                      {64 * MiB, 201.6, rings, simple},
                                      {128 * MiB, 388.0, rings, simple},
                                      {256 * MiB, 760.9, rings, simple},
                                      {GiB, 2997.8, rings, simple}});
  }
  SECTION("eight H100") {
    check_choices(NcclLaw(eight_h100), {{Bytes{8}, 15.0, rings, LL},
                                        {64 * KiB, 15.8, rings, LL},
                                        {256 * KiB, 18.3, rings, LL},
                                        {MiB, 28.0, rings, LL},
                                        {4 * MiB, 40.4, nvls, simple},
                                        {16 * MiB, 86.7, nvls, simple},
                                        {25 * MiB, 121.4, nvls, simple},
                                        {64 * MiB, 271.7, nvls, simple},
                                        {128 * MiB, 518.4, nvls, simple},
                                        {256 * MiB, 1011.9, nvls, simple},
                                        {GiB, 3972.6, nvls, simple}});
  }
  SECTION("eight H100 without NVLS") {
    check_choices(NcclLaw(eight_h100, false), {{Bytes{8}, 15.0, rings, LL},
                                               {64 * KiB, 15.8, rings, LL},
                                               {256 * KiB, 18.3, rings, LL},
                                               {MiB, 28.0, rings, LL},
                                               {4 * MiB, 62.8, rings, LL128},
                                               {16 * MiB, 129.2, rings, LL128},
                                               {25 * MiB, 179.1, rings, LL128},
                                               {64 * MiB, 382.2, rings, simple},
                                               {128 * MiB, 708.4, rings, simple},
                                               {256 * MiB, 1360.9, rings, simple},
                                               {GiB, 5275.6, rings, simple}});
  }
  SECTION("four nodes of eight H100") {
    check_choices(NcclLaw(nccl_system(four_nodes)), {{Bytes{8}, 35.2, tree, LL},
                                                     {64 * KiB, 45.9, tree, LL},
                                                     {256 * KiB, 69.3, tree, LL128},
                                                     {MiB, 80.6, tree, LL128},
                                                     {4 * MiB, 110.7, tree, LL128},
                                                     {16 * MiB, 197.9, nvls_tree, simple},
                                                     {25 * MiB, 248.1, nvls_tree, simple},
                                                     {64 * MiB, 465.8, nvls_tree, simple},
                                                     {128 * MiB, 823.0, nvls_tree, simple},
                                                     {256 * MiB, 1537.4, nvls_tree, simple},
                                                     {GiB, 5813.6, rings, simple}});
  }
}

TEST_CASE("a bucket is gathered, scattered and broadcast by the best ring", "[model][nccl_law]") {
  const NcclLaw one_node(eight_h100), many_nodes(nccl_system(four_nodes));
  for (const Collective collective : {AG, RS}) {
    CHECK(in_us(one_node.choose(collective, 25 * MiB).time) == printed(95.9));
    CHECK(one_node.choose(collective, 25 * MiB).protocol == simple);
    CHECK(in_us(many_nodes.choose(collective, 25 * MiB).time) == printed(165.7));
    CHECK(many_nodes.choose(collective, 25 * MiB).protocol == LL128);
  }
  CHECK(in_us(one_node.choose(broadcast, 25 * MiB).time) == printed(84.6));
  CHECK(in_us(many_nodes.choose(broadcast, 25 * MiB).time) == printed(90.7));
}

TEST_CASE("a message takes a CTA for each share of its bytes", "[model][nccl_law]") {
  const NcclLaw law(eight_h100);
  const auto channels = [&](Algorithm algorithm, Protocol protocol, Bytes size) {
    return law.estimate(AR, algorithm, protocol, size)->channels;
  };
  // Ring LL: 8 B for each of 8 ranks and 512 threads, 32 KiB a CTA.
  CHECK(channels(rings, LL, Bytes{8}) == 1);
  CHECK(channels(rings, LL, 64 * KiB) == 2);
  CHECK(channels(rings, LL, MiB) == 24);
  // Simple: 64 B for each of 512 threads, also 32 KiB, so 24 CTAs from 768 KiB on.
  CHECK(channels(rings, simple, 768 * KiB - Bytes{1}) == 23);
  CHECK(channels(rings, simple, 768 * KiB) == 24);
  CHECK(channels(tree, simple, GiB) == 24);
  // LL128: 8 B for each of 640 threads, 5 KiB a CTA.
  CHECK(channels(rings, LL128, 50 * KiB) == 10);
  CHECK(channels(nvls, simple, Bytes{8}) == 16);
}

TEST_CASE("what NCCL switches off has no estimate", "[model][nccl_law]") {
  const NcclLaw one_node(eight_h100), many_nodes(nccl_system(four_nodes));
  CHECK_FALSE(one_node.estimate(AR, nvls_tree, simple, GiB));
  CHECK_FALSE(many_nodes.estimate(AR, nvls, simple, GiB));
  CHECK_FALSE(one_node.estimate(AR, nvls, LL, GiB));
  CHECK_FALSE(NcclLaw(eight_h100, false).estimate(AR, nvls, simple, GiB));
  CHECK_FALSE(one_node.estimate(AG, tree, simple, GiB));
  CHECK_FALSE(one_node.estimate(broadcast, nvls, simple, GiB));
  const NcclLaw pcie(nccl_system(node_of(2, 89, LinkKind::pcie, 24)));
  CHECK_FALSE(pcie.estimate(AR, rings, LL128, GiB));
  // GPUs beside their RDMA NICs may use LL128 between nodes; on Ampere not through another GPU's.
  const Cluster a100 = node_of(8, 80, LinkKind::nvlink, 240);
  const auto ll128_with_nics = [&](int nics) {
    const Cluster cluster = nodes_of(2, a100, LinkKind::infiniband, 25, nics);
    return NcclLaw(nccl_system(cluster)).estimate(AR, rings, LL128, GiB).has_value();
  };
  CHECK(ll128_with_nics(8));
  CHECK_FALSE(ll128_with_nics(4));
}

TEST_CASE("one rank costs nothing and less than one is an error", "[model][nccl_law]") {
  const NcclSystem alone = nccl_system(h100_node(1));
  CHECK(NcclLaw(alone).choose(AR, GiB).time == Duration::zero());
  CHECK_FALSE(NcclLaw(alone).estimate(AR, rings, simple, GiB));
  NcclSystem nobody = two_h100;
  nobody.ranks_per_node = 0;
  CHECK_THROWS_AS(NcclLaw(nobody), std::invalid_argument);
}
