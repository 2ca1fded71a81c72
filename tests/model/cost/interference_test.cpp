#include "model/cost/interference.hpp"

#include <cstdio>
#include <fstream>
#include <map>
#include <string>

#include <catch2/catch.hpp>

#include "tests/model/workload/timed.hpp"

using namespace ddpsim;
using namespace std::chrono_literals;

namespace {

/// 100 SMs, 1 TB/s of memory, the law of the header.
Cluster lawful() {
  Cluster cluster = timed::ring(2, 0us, gigabytes_per_second(100));
  cluster.interference.reset();
  return cluster;
}

CollectiveCost collective(Duration latency, Duration transfer, int channels, double bus_gigabytes) {
  return {latency, transfer, channels, gigabytes_per_second(bus_gigabytes)};
}

Interference beside(const InterferenceLaw& law, const CollectiveCost& cost, Bytes size = MiB) {
  return law.beside(cost, size);
}

}  // namespace

TEST_CASE("a collective takes SMs from kernels bound by arithmetic", "[model][interference]") {
  // 24 of the H100's 132: 132 / 108.
  Cluster cluster = lawful();
  cluster.device.multiprocessors = 132;
  const InterferenceLaw law(cluster);
  CHECK(beside(law, collective(1ms, 1ms, 24, 1)).compute_bound == Approx(132.0 / 108));
  CHECK(beside(law, collective(1ms, 1ms, 0, 1)).compute_bound == 1);
  // Half of the device is always left.
  CHECK(beside(law, collective(1ms, 1ms, 500, 1)).compute_bound == 2);
}

TEST_CASE("a collective takes memory bandwidth from kernels bound by it", "[model][interference]") {
  // 2.5 bytes of memory traffic for each on the bus, of which half of 200 GB/s are left beside
  // compute: 250 of 1000 GB/s. 1 / (1 - 0.25).
  const InterferenceLaw law(lawful());
  CHECK(beside(law, collective(1ms, 1ms, 0, 200)).memory_bound == Approx(4.0 / 3));
  // A kernel keeps a fifth whatever the collective asks for.
  CHECK(beside(law, collective(1ms, 1ms, 0, 2000)).memory_bound == Approx(5));
  // What a device reaches of its memory counts.
  Cluster cluster = lawful();
  cluster.device.memory_efficiency = 0.5;
  CHECK(beside(InterferenceLaw(cluster), collective(1ms, 1ms, 0, 200)).memory_bound == Approx(2));
}

TEST_CASE("a collective loses half of its bandwidth and none of its latency",
          "[model][interference]") {
  const InterferenceLaw law(lawful());
  // 1 + 2 x 3 of 1 + 3.
  CHECK(beside(law, collective(1ms, 3ms, 0, 1)).communication == Approx(7.0 / 4));
  CHECK(beside(law, collective(0ms, 3ms, 0, 1)).communication == Approx(2));
  CHECK(beside(law, collective(1ms, 0ms, 0, 1)).communication == Approx(1));
}

TEST_CASE("through the host's memory collectives lose little, and kernels start later",
          "[model][interference]") {
  Cluster cluster = lawful();
  cluster.intra_node.kind = LinkKind::pcie;
  cluster.device.peer_to_peer = true;
  CHECK(beside(InterferenceLaw(cluster), collective(0ms, 3ms, 0, 1)).communication ==
        Approx(1 / 0.55));
  CHECK(beside(InterferenceLaw(cluster), collective(0ms, 3ms, 0, 1)).per_launch == 0);
  cluster.device.peer_to_peer = false;
  InterferenceLaw law(cluster);
  CHECK(beside(law, collective(0ms, 3ms, 0, 1)).communication == Approx(1 / 0.98));
  CHECK(beside(law, collective(0ms, 3ms, 0, 6)).per_launch == Approx(30e-6));
  CHECK(beside(law, CollectiveCost{}).per_launch == 0);
  law.strength = 2;
  CHECK(beside(law, collective(0ms, 3ms, 0, 6)).per_launch == Approx(60e-6));
  // A GPU of its own in each node has a NIC alone beside it; a CPU launches nothing.
  cluster.nodes = 2;
  cluster.ranks_per_node = 1;
  CHECK(beside(InterferenceLaw(cluster), collective(0ms, 3ms, 0, 6)).per_launch == 0);
  cluster.nodes = 1;
  cluster.ranks_per_node = 2;
  cluster.device.synchronous = true;
  CHECK(beside(InterferenceLaw(cluster), collective(0ms, 3ms, 0, 1)).per_launch == 0);
}

TEST_CASE("what crossing the host's memory costs is the mean of published measurements",
          "[model][interference]") {
  struct Sum {
    int cells = 0;
    double later = 0, slower = 0;
  };
  std::map<std::string, Sum> gpus;
  std::ifstream file(DDPSIM_TEST_DATA "/beside_collectives.csv");
  REQUIRE(file);
  for (std::string line; std::getline(file, line);) {
    char gpu[8], kernels[16];
    double message, alone, kernels_slower, collective_slower;
    int launches;
    if (std::sscanf(line.c_str(), "%7[^,],%lf,%15[^,],%d,%lf,%lf,%lf", gpu, &message, kernels,
                    &launches, &alone, &kernels_slower, &collective_slower) != 7)
      continue;  // a comment or the header
    Sum& sum = gpus[gpu];
    ++sum.cells;
    sum.later += 1e-6 * alone * (kernels_slower - 1) / launches;
    sum.slower += collective_slower;
  }
  REQUIRE(gpus.size() == 2);
  double later = 0, slower = 0;
  for (const auto& [gpu, sum] : gpus) {
    later += sum.later / sum.cells / 2;
    slower += sum.slower / sum.cells / 2;
  }
  // To 10 us and to a per cent.
  CHECK(InterferenceLaw::seconds_later_through_host == Approx(later).margin(5e-6));
  CHECK(1 / (1 - InterferenceLaw::lost_through_host) == Approx(slower).margin(0.005));
}

TEST_CASE("a collective of no length slows nothing", "[model][interference]") {
  const Interference felt = beside(InterferenceLaw(lawful()), CollectiveCost{});
  CHECK(felt.compute_bound == 1);
  CHECK(felt.memory_bound == 1);
  CHECK(felt.communication == 1);
}

TEST_CASE("a CPU loses memory bandwidth but no SMs", "[model][interference]") {
  Cluster cluster = lawful();
  cluster.device.synchronous = true;
  const Interference felt = beside(InterferenceLaw(cluster), collective(1ms, 3ms, 24, 200));
  CHECK(felt.compute_bound == 1);
  CHECK(felt.memory_bound == Approx(4.0 / 3));
  CHECK(felt.communication == Approx(7.0 / 4));
}

TEST_CASE("fixed factors stand in place of the law", "[model][interference]") {
  Cluster cluster = lawful();
  cluster.interference = FixedInterference{1.15, 1.05};
  const Interference felt = beside(InterferenceLaw(cluster), collective(1ms, 3ms, 24, 200));
  CHECK(felt.compute_bound == Approx(1.15));
  CHECK(felt.memory_bound == Approx(1.15));
  CHECK(felt.communication == Approx(1.05));
}

TEST_CASE("strength scales what exceeds one", "[model][interference]") {
  InterferenceLaw law(lawful());
  const CollectiveCost cost = collective(1ms, 3ms, 20, 200);  // 1.25, 4/3, 7/4
  law.strength = 0;
  CHECK(beside(law, cost).compute_bound == 1);
  CHECK(beside(law, cost).memory_bound == 1);
  CHECK(beside(law, cost).communication == 1);
  law.strength = 3;
  CHECK(beside(law, cost).compute_bound == Approx(1.75));
  CHECK(beside(law, cost).memory_bound == Approx(2));
  CHECK(beside(law, cost).communication == Approx(3.25));
}

TEST_CASE("a kernel suffers the worse of both losses", "[model][interference]") {
  const Interference beside{1.2F, 2, 1};
  CHECK(compute_slowdown(beside, 0) == Approx(1.2));
  CHECK(compute_slowdown(beside, 0.1F) == Approx(1.2));  // 1.1 of memory alone
  CHECK(compute_slowdown(beside, 0.5F) == Approx(1.5));
  CHECK(compute_slowdown(beside, 1) == Approx(2));
  // And each launch comes later: 100 launches in 10 ms by 30 us each.
  const Interference later{1.2F, 2, 1, 30e-6F};
  CHECK(compute_slowdown(later, 0.5F, 100 / 0.01F) == Approx(1.5 + 0.3));
}
