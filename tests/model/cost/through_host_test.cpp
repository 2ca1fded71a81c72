#include <algorithm>
#include <cmath>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "model/cost/collective.hpp"
#include "model/cost/interference.hpp"
#include "model/cost/port_law.hpp"
#include "tests/model/cost/public_sweeps.hpp"

using namespace ddpsim;

namespace {

/// The rows of a file of tests/data, comments and header left out.
std::vector<std::vector<std::string>> csv_rows(const std::string& name) {
  std::ifstream file(std::string(DDPSIM_TEST_DATA "/") + name);
  REQUIRE(file);
  std::vector<std::vector<std::string>> rows;
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line.front() == '#') continue;
    std::vector<std::string>& row = rows.emplace_back();
    std::istringstream fields(line);
    for (std::string field; std::getline(fields, field, ',');) row.push_back(field);
  }
  rows.erase(rows.begin());
  return rows;
}

Cluster geforce(int gpus, double gigabytes) {
  Cluster cluster = sweeps::node(89, gpus, LinkKind::pcie, gigabytes);
  cluster.device.memory_bandwidth = gigabytes_per_second(1008);
  cluster.device.multiprocessors = 128;
  return cluster;
}

double bus_gigabytes(const Cluster& cluster, Bytes size) {
  const double n = cluster.ranks();
  return 2 * (n - 1) / n * static_cast<double>(size.count) /
         in_seconds(CollectiveLaw(cluster).all_reduce(size).time()) * 1e-9;
}

}  // namespace

TEST_CASE("what crosses the host's memory by kernels is the median of public setups",
          "[model][port_law]") {
  std::vector<double> rates;
  for (const auto& row : csv_rows("through_host_rates.csv")) rates.push_back(std::stod(row.at(3)));
  REQUIRE(rates.size() == 11);
  std::sort(rates.begin(), rates.end());
  CHECK(fitted_ports().through_host == Approx(1e9 * rates[rates.size() / 2]).epsilon(1e-9));
}

TEST_CASE("the host's memory bounds what it is assumed to move, and nothing that is known of it",
          "[model][port_law]") {
  const auto bound = [](const Cluster& cluster) {
    return CollectiveLaw(cluster).all_reduce(GiB).choice.bound;
  };
  const Cluster assumed = geforce(2, 31.5);
  CHECK(bound(assumed) == CollectiveBound::host_memory);
  REQUIRE(assumed_host_rates(assumed));
  CHECK(assumed_host_rates(assumed)->assumed == bus_through_host(assumed));
  CHECK(assumed_host_rates(assumed)->slowest < assumed_host_rates(assumed)->assumed);
  // Twice over lanes of 15.75 GB/s, of which 0.9 is to be had.
  CHECK(assumed_host_rates(geforce(2, 15.75))->quickest.bytes_per_second ==
        Approx(0.9 * 15.75e9 / 2));
  Cluster known = assumed;
  known.intra_node.carries = 0.3;
  CHECK(bound(known) == CollectiveBound::port);
  CHECK_FALSE(assumed_host_rates(known));
  Cluster direct = assumed;
  direct.device.peer_to_peer = true;
  CHECK(bound(direct) == CollectiveBound::port);
  CHECK_FALSE(assumed_host_rates(direct));
}

TEST_CASE(
    "the rate through the host's memory depends neither on lanes up to PCIe 4, nor on size, "
    "nor on how many GPUs there are",
    "[model][port_law]") {
  for (const double lanes : {15.75, 31.5})
    for (const int gpus : {2, 4, 8})
      for (const Bytes size : {128 * MiB, GiB})
        CHECK(bus_gigabytes(geforce(gpus, lanes), size) == Approx(2.6).epsilon(0.01));
  // A narrow link bounds it all the same: 0.9 of 3 GB/s, of which every byte takes two.
  CHECK(bus_gigabytes(geforce(2, 3), GiB) == Approx(0.9 * 3 / 2).epsilon(0.01));
  // Four RTX 5090 on PCIe 5: 27 GB/s in a public log.
  CHECK(bus_gigabytes(sweeps::node(120, 4, LinkKind::pcie, 63), GiB) == Approx(27).epsilon(0.1));
  // GPUs that copy to each other are not concerned.
  Cluster peers = geforce(2, 31.5);
  peers.device.peer_to_peer = true;
  CHECK(bus_gigabytes(peers, GiB) > 20);
}

TEST_CASE("what a link carries through the host's memory goes before the public median",
          "[model][port_law]") {
  for (const double carries : {0.05, 0.2, 0.6, 1.0})
    for (const int gpus : {2, 8}) {
      CAPTURE(carries, gpus);
      Cluster one = geforce(gpus, 15.75);
      one.intra_node.carries = carries;
      CHECK(bus_gigabytes(one, GiB) == Approx(carries * 15.75).epsilon(0.01));
      CHECK(bus_through_host(one).bytes_per_second == Approx(carries * 15.75e9));
      // Between nodes the hop in the node is the same.
      const Cluster two = sweeps::nodes(2, one, gpus, 100);
      CHECK(bus_gigabytes(two, GiB) == Approx(carries * 15.75).epsilon(0.02));
      const double line =
          PortLaw::narrowest(one, Collective::all_reduce, NcclAlgorithm::ring).seconds_per_byte;
      CHECK(in_seconds(CollectiveLaw(one).all_reduce(GiB).transfer) >=
            (1 - 1e-9) * line * static_cast<double>(GiB.count));
    }
  // Of GPUs with PCIe 5 as well, whose lanes alone would carry 0.45 of their line.
  Cluster blackwell = sweeps::node(120, 4, LinkKind::pcie, 63);
  blackwell.intra_node.carries = 0.2;
  CHECK(bus_gigabytes(blackwell, GiB) == Approx(12.6).epsilon(0.01));
}

TEST_CASE("a quarter of what crosses a slow host's memory hides", "[model][interference]") {
  double hidden = 0;
  const auto rows = csv_rows("through_host_steps.csv");
  REQUIRE(rows.size() == 4);
  for (const auto& row : rows) {
    const double compute = std::stod(row.at(4)), serial = std::stod(row.at(5)),
                 ddp = std::stod(row.at(6));
    hidden += (serial - ddp) / (serial - compute) / static_cast<double>(rows.size());
  }
  CHECK(InterferenceLaw::speed_beside_slow_host == Approx(hidden).margin(0.01));
}

TEST_CASE("kernels beside what crosses a host's memory are slower the slower the host is",
          "[model][interference]") {
  const CalibratedCluster cluster{geforce(2, 31.5)};
  const InterferenceLaw law(cluster);
  const auto beside = [&](double gigabytes) {
    CollectiveCost cost;
    cost.transfer = std::chrono::milliseconds{10};
    cost.bus = gigabytes_per_second(gigabytes);
    return law.beside(cost, MiB);
  };
  for (const double slow : {1.0, 2.3}) {
    CHECK(beside(slow).compute_bound == Approx(4));
    CHECK(beside(slow).memory_bound == Approx(4));
    CHECK(beside(slow).per_launch == 0);
    CHECK(beside(slow).communication == Approx(1 / 0.98));
  }
  // As four A40, whose host moves 6 GB/s: gaps before launches and little else.
  for (const double fast : {6.0, 20.0}) {
    CHECK(beside(fast).compute_bound == Approx(1));
    CHECK(beside(fast).per_launch == Approx(30e-6));
  }
  // Half way by the logarithm: 5/8 of the speed, and half of the gap.
  const double between = std::sqrt(2.3 * 6);
  CHECK(beside(between).compute_bound == Approx(8.0 / 5));
  CHECK(beside(between).per_launch == Approx(15e-6));
}

TEST_CASE("between nodes GPUs go through the host's memory no faster than in one node",
          "[model][port_law]") {
  // The hop in the node is the same: 2.6 GB/s on the bus, whatever the NICs carry.
  for (const int nodes : {2, 3, 4, 16})
    for (const int gpus : {2, 4, 8}) {
      const Cluster several = sweeps::nodes(nodes, geforce(gpus, 31.5), gpus, 12.5);
      CHECK(bus_gigabytes(several, GiB) == Approx(2.6).epsilon(0.02));
      CHECK(bus_gigabytes(several, GiB) <= bus_gigabytes(geforce(gpus, 31.5), GiB));
    }
  // The lanes are no wider either: two RTX 5090 in a node.
  const Cluster one = sweeps::node(120, 2, LinkKind::pcie, 63);
  CHECK(bus_gigabytes(sweeps::nodes(2, one, 2, 100), GiB) <= bus_gigabytes(one, GiB));
  // A narrower network bounds it all the same: a ring by 0.92 of 1.25 GB/s.
  const Cluster narrow = sweeps::nodes(2, geforce(4, 31.5), 1, 1.25);
  CHECK(bus_gigabytes(sweeps::forced(narrow, NcclAlgorithm::ring), GiB) ==
        Approx(0.92 * 1.25).epsilon(0.02));
  // Nor is it faster over a network that does not say its kind.
  const Cluster plain = sweeps::nodes(2, geforce(4, 31.5), 1, 12.5, LinkKind::plain);
  CHECK(CollectiveLaw(plain).name() == std::string("alpha-beta"));
  CHECK(bus_gigabytes(plain, GiB) == Approx(2.6).epsilon(0.02));
  // A GPU of its own in each node has no such hop.
  CHECK(bus_gigabytes(sweeps::nodes(2, geforce(1, 31.5), 1, 12.5), GiB) > 10);
}

TEST_CASE("a ring of links as they are written goes through no host's memory",
          "[model][collective]") {
  Cluster one = geforce(4, 15.75), two = sweeps::nodes(2, one, 1, 12.5, LinkKind::ethernet);
  one.collectives = two.collectives = CollectiveModel::alpha_beta;
  CHECK(bus_gigabytes(one, GiB) == Approx(15.75).epsilon(0.01));
  CHECK(bus_gigabytes(two, GiB) == Approx(12.5).epsilon(0.01));
}

TEST_CASE("where collectives run on the hosts GPUs do not copy to each other",
          "[model][collective][interference]") {
  Cluster without = sweeps::nodes(2, geforce(4, 15.75), 1, 12.5, LinkKind::plain);
  without.through_host = gigabytes_per_second(5);
  Cluster with = without;
  with.device.peer_to_peer = true;
  for (const CollectiveModel law : {CollectiveModel::automatic, CollectiveModel::alpha_beta}) {
    without.collectives = with.collectives = law;
    CHECK(bus_gigabytes(without, GiB) == Approx(12.5).epsilon(0.01));
    CHECK(bus_gigabytes(without, MiB) == bus_gigabytes(with, MiB));
  }
  CHECK_FALSE(crosses_host(without));
}

TEST_CASE("between nodes what crosses a host's memory slows kernels as in one node",
          "[model][interference]") {
  const auto beside = [](const Cluster& cluster, double gigabytes) {
    CollectiveCost cost;
    cost.transfer = std::chrono::milliseconds{10};
    cost.bus = gigabytes_per_second(gigabytes);
    return InterferenceLaw(CalibratedCluster{cluster}).beside(cost, MiB);
  };
  const Cluster one = geforce(4, 31.5), two = sweeps::nodes(2, one, 1, 12.5);
  for (const double rate : {2.6, 4.0, 6.0}) {
    CHECK(beside(two, rate).compute_bound == Approx(beside(one, rate).compute_bound));
    CHECK(beside(two, rate).communication == Approx(beside(one, rate).communication));
    CHECK(beside(two, rate).per_launch == Approx(beside(one, rate).per_launch));
  }
  // Where the network lets through half of 2.6 GB/s, the host is at work half of the time: a kernel
  // runs half of it at full speed.
  const double speed = 1 / beside(one, 2.6).compute_bound;
  CHECK(beside(two, 1.3).compute_bound == Approx(1 / (0.5 + 0.5 * speed)));
  CHECK(beside(two, 1.3).per_launch == Approx(beside(one, 2.6).per_launch / 2));
  // A GPU of its own in each node has no such hop.
  CHECK(beside(sweeps::nodes(2, geforce(1, 31.5), 1, 12.5), 2.6).compute_bound == 1);
}
