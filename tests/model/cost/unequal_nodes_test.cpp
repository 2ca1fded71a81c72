#include <algorithm>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "model/cost/collective.hpp"
#include "model/cost/collective_ports.hpp"
#include "model/cost/nccl_choice.hpp"
#include "model/cost/port_law.hpp"
#include "tests/model/cost/link_dice.hpp"
#include "tests/model/cost/public_sweeps.hpp"

using namespace ddpsim;

namespace {

RanksPerNode ranks(std::vector<int> of_each) {
  return RanksPerNode(std::move(of_each));
}

Cluster with_ranks(Cluster cluster, std::vector<int> of_each) {
  cluster.nodes = static_cast<int>(of_each.size());
  cluster.ranks_per_node = ranks(std::move(of_each));
  return cluster;
}

/// H100 with a NIC of 400 Gbit/s for each rank.
Cluster hoppers(std::vector<int> of_each) {
  return with_ranks(sweeps::nodes(2, sweeps::node(90, 8, LinkKind::nvlink, 450), 0, 50),
                    std::move(of_each));
}

/// A job on a few nodes of several ranks each, linked at random; NVLS, which only nodes that are
/// alike have, is not there.
Cluster unequal(LinkDice& dice) {
  const LinkKind inside = dice.one_of<LinkKind>({LinkKind::nvlink, LinkKind::pcie});
  Cluster cluster =
      sweeps::node(dice.one_of<int>({70, 80, 90, 100}), 1, inside, line_rate_of(dice), false);
  cluster.device.peer_to_peer = dice.share() < 0.7;
  cluster = sweeps::nodes(1, cluster, dice.whole(0, 8), line_rate_of(dice),
                          dice.one_of<LinkKind>({LinkKind::ethernet, LinkKind::infiniband}));
  std::vector<int> of_each(static_cast<std::size_t>(dice.whole(2, 6)));
  for (int& of_node : of_each) of_node = dice.whole(2, 8);
  return with_ranks(cluster, of_each);
}

template <class Check>
void on_unequal_clusters(Check&& check) {
  for (const std::uint64_t seed : property_seeds()) {
    LinkDice dice(seed);
    for (int round = 0; round < 1000; ++round) {
      const Cluster cluster = unequal(dice);
      const std::string words = to_string(cluster.ranks_per_node) + " of sm" +
                                std::to_string(cluster.device.compute_capability) + ", " +
                                std::string(name_of(cluster.intra_node.kind)) + " " +
                                to_string(cluster.intra_node.bandwidth) + ", " +
                                std::to_string(cluster.inter_node.nics) + " " +
                                std::string(name_of(cluster.inter_node.kind)) + " " +
                                to_string(cluster.inter_node.bandwidth);
      CAPTURE(seed, round, words);
      check(cluster, dice);
    }
  }
}

/// Every node with so many ranks.
Cluster all_with(Cluster cluster, int of_each) {
  cluster.ranks_per_node = of_each;
  return cluster;
}

constexpr std::array tree_and_ring{NcclAlgorithm::tree, NcclAlgorithm::ring};

/// Checks the price of each combination that the one offers, and the other as well.
template <class Check>
void on_combinations(const Cluster& one, const Cluster& other, Bytes size, Check&& check) {
  const PortLaw law(one), other_law(other);
  for (const NcclAlgorithm algorithm : tree_and_ring)
    for (const NcclProtocol protocol : all_nccl_protocols) {
      const auto price = [&](const PortLaw& of) {
        return of.price(Collective::all_reduce, algorithm, protocol, size);
      };
      const auto a = price(law), b = price(other_law);
      if (!a) continue;
      REQUIRE(b);
      CAPTURE(name_of(algorithm), name_of(protocol), size.count);
      check(in_seconds(a->time()), in_seconds(b->time()));
    }
}

}  // namespace

TEST_CASE("ranks of nodes are counted and told", "[model][ranks_per_node]") {
  const RanksPerNode uneven = ranks({8, 8, 4});
  CHECK_FALSE(uneven.equal());
  CHECK(uneven.largest() == 8);
  CHECK(uneven.smallest() == 4);
  CHECK(uneven.total(3) == 20);
  CHECK(uneven.first(2) == RanksPerNode(8));
  CHECK(uneven.place_of(7) == 7);
  CHECK(uneven.place_of(8) == 0);
  CHECK(uneven.place_of(19) == 3);
  CHECK(RanksPerNode(4).place_of(6) == 2);
  CHECK(to_string(uneven) == "2 x 8 + 4");
  CHECK(to_string(ranks({8, 4})) == "8 + 4");
  CHECK(to_string(ranks({1, 2, 1, 2, 1, 2, 1})) == "1 to 2");
  CHECK(to_string(RanksPerNode(8)) == "8");
  CHECK(ranks({8, 8}) == RanksPerNode(8));
  CHECK_THROWS_AS(ranks({}), std::invalid_argument);
  CHECK_THROWS_AS(ranks({4, 0}), std::invalid_argument);
}

TEST_CASE("eight and four H100 go at the rate of the four", "[model][port_law][unequal_nodes]") {
  // A NIC for each rank: four join the smaller node to the larger, which has eight.
  const Cluster cluster = hoppers({8, 4});
  CHECK(nics_per_node(cluster) == 4);
  const Ports ring = ports_of(cluster, Collective::all_reduce, NcclAlgorithm::ring);
  CHECK(ring[0].per_byte == Approx(2 * 11.0 / 12 * 7 / 8));  // of the eight: most stay inside
  CHECK(ring[1].per_byte == Approx(2 * 11.0 / 12 / 4));      // of each of the four
  CHECK(ring[2].per_byte == Approx(2 * 11.0 / 12 / 4));
  const Ports tree = ports_of(cluster, Collective::all_reduce, NcclAlgorithm::tree);
  CHECK(tree[0].per_byte == Approx(2 * 7.0 / 8));
  CHECK(tree[2].per_byte == Approx(1.0 / 4));
  // 1 GiB through four NICs of 50 GB/s takes 5.4 ms at line rate.
  const double line = static_cast<double>(GiB.count) / 200e9;
  const double time = in_seconds(CollectiveLaw(cluster).all_reduce(GiB).time());
  CHECK(time > line);
  CHECK(time < 1.35 * line);
  CHECK(time > in_seconds(CollectiveLaw(hoppers({8, 8})).all_reduce(GiB).time()));
}

TEST_CASE("NVLS is for nodes that are alike", "[model][port_law][unequal_nodes]") {
  const auto offers = [](const Cluster& cluster) {
    return PortLaw(cluster)
        .price(Collective::all_reduce, NcclAlgorithm::nvls_tree, NcclProtocol::simple, GiB)
        .has_value();
  };
  CHECK(offers(hoppers({8, 8})));
  CHECK_FALSE(offers(hoppers({8, 4})));
  CHECK(nvls_tree_sizes(hoppers({8, 4})) == NvlsTreeSizes{});
  CHECK(nccl_system(hoppers({8, 4})).nvls.channels == 0);
  CHECK_THROWS_AS(PortLaw(sweeps::forced(hoppers({8, 4}), NcclAlgorithm::nvls_tree)),
                  std::invalid_argument);
}

TEST_CASE("NCCL's search gives unequal nodes the channels of the narrowest",
          "[model][nccl_system][unequal_nodes]") {
  const NcclSystem uneven = nccl_system(hoppers({8, 4})), small = nccl_system(hoppers({4, 4}));
  CHECK(uneven.ring.channels == small.ring.channels);
  CHECK(uneven.ring.inter.bytes_per_second == small.ring.inter.bytes_per_second);
  CHECK(uneven.ring.inter < nccl_system(hoppers({8, 8})).ring.inter);
  CHECK(uneven.ranks() == 12);
  CHECK(uneven.mean_ranks() == 6);
}

TEST_CASE("steps count the ranks that are there, and a tree's chain is the largest node's",
          "[model][port_law][unequal_nodes]") {
  const auto steps = [](const Cluster& cluster, NcclAlgorithm algorithm) {
    return nccl_latency_us(nccl_system(cluster), Collective::all_reduce, algorithm,
                           NcclProtocol::ll);
  };
  // A ring: 2 x 11 steps, two of them between nodes at 2.7 us, the others at NCCL's 1 us a post.
  CHECK(steps(hoppers({8, 4}), NcclAlgorithm::ring) == Approx(6.6 + 20 * 1.0 + 2 * 2.7));
  // A tree: up and down seven hops of 0.6 us, and one of 5 us between the nodes.
  CHECK(steps(hoppers({8, 4}), NcclAlgorithm::tree) == Approx(6.8 + 2 * (7 * 0.6 + 5.0)));
}

TEST_CASE("halving and doubling needs nodes that are alike", "[model][gloo_law][unequal_nodes]") {
  Cluster hosts = hoppers({4, 2});
  hosts.device.compute_capability = 0;
  hosts.collectives = CollectiveModel::gloo;
  CHECK(CollectiveLaw(hosts).all_reduce(MiB).time() > Duration::zero());
  hosts.forced.gloo = GlooAlgorithm::halving_doubling;
  CHECK_THROWS_AS(CollectiveLaw(hosts), std::invalid_argument);
}

TEST_CASE("no all-reduce of unequal nodes is faster than its bytes through the narrowest cut",
          "[model][port_law][unequal_nodes][properties]") {
  on_unequal_clusters([](const Cluster& cluster, LinkDice& dice) {
    const double bytes = dice.spread(1024, 8 * 1073741824.0);
    const CollectiveCost cost =
        CollectiveLaw(cluster).all_reduce(Bytes{static_cast<std::int64_t>(bytes)});
    // The sum of the other nodes has to enter each node, through its NICs.
    const std::vector<int> of_each = cluster.ranks_per_node.equal()
                                         ? std::vector<int>(static_cast<std::size_t>(cluster.nodes),
                                                            cluster.ranks_per_node.largest())
                                         : cluster.ranks_per_node.of_each();
    for (const int of_node : of_each) {
      const int nics = nics_of_node(cluster, of_node);
      CAPTURE(of_node, nics, bytes);
      REQUIRE(in_seconds(cost.transfer) >=
              (1 - 1e-9) * (bytes - 1) / (nics * cluster.inter_node.bandwidth.bytes_per_second) -
                  1e-11);
    }
    REQUIRE(in_seconds(cost.transfer) >=
            (1 - 1e-9) * (bytes - 1) *
                    PortLaw::narrowest(cluster, Collective::all_reduce, *cost.choice.algorithm)
                        .seconds_per_byte -
                1e-11);
  });
}

TEST_CASE("ranks that the smaller nodes lack never slow an all-reduce down",
          "[model][port_law][unequal_nodes][properties]") {
  // Every node as small as the smallest: fewer ranks, as many NICs at the narrowest node.
  on_unequal_clusters([](const Cluster& cluster, LinkDice& dice) {
    const Bytes size{static_cast<std::int64_t>(dice.spread(1, 8 * 1073741824.0))};
    on_combinations(
        cluster, all_with(cluster, cluster.ranks_per_node.smallest()), size,
        [](double mixed, double small) { REQUIRE(mixed >= small * (1 - 1e-9) - 1e-11); });
  });
}

TEST_CASE("nodes with as many NICs each are no slower for lacking ranks",
          "[model][port_law][unequal_nodes][properties]") {
  // Where NICs come with ranks a smaller node is a narrower one, and where GPUs reach NICs over a
  // PCIe port of their own fewer GPUs have fewer of those: both are left out here.
  int compared = 0;
  on_unequal_clusters([&](Cluster cluster, LinkDice& dice) {
    if (cluster.inter_node.nics == 0) cluster.inter_node.nics = 1;
    const double to_nics = ports_of(cluster, Collective::all_reduce, NcclAlgorithm::ring)[1].rate;
    const double nics =
        std::max(8, cluster.inter_node.nics) * cluster.inter_node.bandwidth.bytes_per_second;
    if (cluster.intra_node.kind == LinkKind::nvlink &&
        to_nics * cluster.ranks_per_node.smallest() < 1.2 * nics)
      return;
    ++compared;
    const Bytes size{static_cast<std::int64_t>(dice.spread(1, 8 * 1073741824.0))};
    on_combinations(
        cluster, all_with(cluster, cluster.ranks_per_node.largest()), size,
        [](double mixed, double large) { REQUIRE(mixed <= large * (1 + 1e-9) + 1e-11); });
  });
  CHECK(compared > 300);
}

TEST_CASE("one more rank on the smallest node costs a large all-reduce steps and no bandwidth",
          "[model][port_law][unequal_nodes][properties]") {
  on_unequal_clusters([](Cluster cluster, LinkDice&) {
    if (cluster.ranks_per_node.equal()) return;
    std::vector<int> of_each = cluster.ranks_per_node.of_each();
    ++*std::min_element(of_each.begin(), of_each.end());
    const Cluster more = with_ranks(cluster, of_each);
    // A ring of n sends (n - 1) / n of what it is of; one rank more sends that much more.
    const double n = cluster.ranks(), ring = n * n / (n * n - 1);
    std::vector<double> steps;
    on_combinations(cluster, more, Bytes{1}, [&](double before, double after) {
      steps.push_back(std::max(0.0, after - before));
    });
    std::size_t next = 0;
    on_combinations(cluster, more, 4 * GiB, [&](double before, double after) {
      REQUIRE(after <= ring * before * (1 + 1e-9) + steps[next++] + 1e-11);
    });
  });
}
