#include "model/cost/collective.hpp"

#include <stdexcept>

#include <catch2/catch.hpp>

#include "tests/model/workload/timed.hpp"

using namespace ddpsim;
using namespace ddpsim::timed;
using namespace std::chrono_literals;

namespace {

/// 10 us at 1 KiB and 20 at 4 KiB: 10/3 us a KiB. 80 us at 16 KiB: from there 5 us a KiB.
const AllReduceTable table{{1 * KiB, 10us}, {4 * KiB, 20us}, {16 * KiB, 80us}};

std::string name_of_law(const Cluster& cluster) {
  return CollectiveLaw(cluster).name();
}

Cluster two_nodes(LinkKind kind, int nics, int ranks_per_node) {
  Cluster cluster = ring(ranks_per_node, 2us, gigabytes_per_second(150));
  cluster.nodes = 2;
  cluster.inter_node.kind = kind;
  cluster.inter_node.nics = nics;
  cluster.inter_node.latency = 10us;
  cluster.inter_node.bandwidth = gigabytes_per_second(10);
  return cluster;
}

/// Bus bandwidth of a cluster's ring, in GB/s: it moves 2 (n - 1) / n of the bytes.
double ring_gigabytes(const Cluster& cluster) {
  return CollectiveLaw(cluster).all_reduce({1'000'000'000}).bus.bytes_per_second * 1e-9;
}

}  // namespace

TEST_CASE("a table gives its own points exactly", "[model][collective]") {
  for (const auto& [size, time] : table) CHECK(table_time(table, size) == time);
}

TEST_CASE("between two points of a table lies a straight line", "[model][collective]") {
  // 1 KiB of the 3 between: a third of 10 us more. 4 of the 12 KiB: a third of 60 us.
  CHECK(table_time(table, 2 * KiB) == Duration{13'333'333});
  CHECK(table_time(table, 8 * KiB) == 40us);
}

TEST_CASE("beyond the ends of a table its last lines go on", "[model][collective]") {
  CHECK(table_time(table, {256}) == 7500ns);             // 3/4 KiB below: 2.5 us less
  CHECK(table_time(table, 64 * KiB) == 320us);           // 48 KiB more at 5 us
  CHECK(table_time(table, {0}) == Duration{6'666'667});  // the first line's latency
  // A line that would begin below zero begins at zero: 1 us at 1 KiB, 100 us at 4 KiB.
  CHECK(table_time({{1 * KiB, 1us}, {4 * KiB, 100us}}, {512}) == 500ns);
}

TEST_CASE("two points that are close say nothing of what is beyond them", "[model][collective]") {
  // 1 GB in 10 ms; a last point of 1.1 GB happens to have taken long. By the slope of the two 4.4
  // GB would take 61 ms. From a point of half the size a MB takes 10.8 us, and 10 us at the best
  // rate of the table: 33 ms for 3.3 GB more.
  const auto ms = [](double value) { return from_seconds(1e-3 * value); };
  const AllReduceTable close{{Bytes{500'000'000}, ms(5)},
                             {Bytes{1'000'000'000}, ms(10)},
                             {Bytes{1'100'000'000}, ms(11.5)}};
  CHECK(table_time(close, Bytes{4'400'000'000}) == ms(11.5 + 33));
  // Nothing of half the size: the best rate alone.
  const AllReduceTable two{{Bytes{1'000'000'000}, ms(10)}, {Bytes{1'100'000'000}, ms(11.5)}};
  CHECK(table_time(two, Bytes{4'400'000'000}) == ms(11.5 + 33));
  // Small messages are mostly latency: the slope is less than bytes over time.
  const AllReduceTable small{{Bytes{1'000'000}, ms(1)}, {Bytes{2'000'000}, ms(1.1)}};
  CHECK(table_time(small, Bytes{12'000'000}) == ms(1.1 + 1));
}

TEST_CASE("no point of a table is exceeded beside it", "[model][collective]") {
  // 512 KiB took longer than 1 MiB: something disturbed it. A law takes what the larger took.
  const AllReduceTable noisy{{256 * KiB, 60us}, {512 * KiB, 240us}, {1 * MiB, 115us}};
  const AllReduceTable calm = growing(noisy);
  CHECK(calm == AllReduceTable{{256 * KiB, 60us}, {512 * KiB, 115us}, {1 * MiB, 115us}});
  Cluster cluster = constant(2, 1ms);
  cluster.intra_node.all_reduce = noisy;
  const CollectiveLaw law(cluster);
  Duration before{};
  for (std::int64_t size = 16; size <= 4 * MiB.count; size += 4096) {
    const Duration time = law.all_reduce({size}).time();
    CHECK(time >= before);
    for (const auto& [point, measured] : noisy)
      if (Bytes{size} <= point) CHECK(time <= measured);
    before = time;
  }
}

TEST_CASE("a table of one point is bandwidth alone", "[model][collective]") {
  const AllReduceTable one{{1 * MiB, 1ms}};
  CHECK(table_time(one, 1 * MiB) == 1ms);
  CHECK(table_time(one, 5 * MiB) == 5ms);
  CHECK(table_time(one, 256 * KiB) == 250us);
}

TEST_CASE("an empty table is refused", "[model][collective]") {
  CHECK_THROWS_AS(table_time({}, 1 * KiB), std::invalid_argument);
}

TEST_CASE("a ring takes 2 (n - 1) steps of latency and bytes / n", "[model][collective]") {
  // Four ranks: 6 steps of 5 us and of 25 MB at 100 GB/s.
  const CollectiveLaw law(ring(4, 5us, gigabytes_per_second(100)));
  const CollectiveCost cost = law.all_reduce({100'000'000});
  CHECK(cost.latency == 30us);
  CHECK(cost.transfer == 1500us);
  CHECK(cost.time() == 1530us);
  CHECK(cost.bus.bytes_per_second == Approx(100e9));
  CHECK(cost.channels == 0);  // no CUDA device
}

TEST_CASE("one rank has nothing to reduce", "[model][collective]") {
  CollectiveLaw law(ring(1, 5us, gigabytes_per_second(100)));
  law.call_overhead = 7us;
  CHECK(law.all_reduce(1 * GiB).time() == 0us);
  CHECK(law.broadcast(1 * GiB) == 0us);
}

TEST_CASE("the slowest hop sets the pace between nodes", "[model][collective]") {
  // Eight ranks on two nodes: 14 steps of the network's 10 us.
  const CollectiveLaw law(two_nodes(LinkKind::ethernet, 0, 4));
  CHECK(law.all_reduce({8}).latency == 140us);
  // A NIC of 10 GB/s: one per node on ethernet, one per rank on InfiniBand, or as many as said.
  CHECK(ring_gigabytes(two_nodes(LinkKind::ethernet, 0, 4)) == Approx(10));
  CHECK(ring_gigabytes(two_nodes(LinkKind::infiniband, 0, 4)) == Approx(40));
  CHECK(ring_gigabytes(two_nodes(LinkKind::ethernet, 3, 4)) == Approx(30));
  // Twenty of them carry more than the 150 GB/s inside a node, if there is an inside.
  CHECK(ring_gigabytes(two_nodes(LinkKind::ethernet, 20, 4)) == Approx(150));
  CHECK(ring_gigabytes(two_nodes(LinkKind::ethernet, 20, 1)) == Approx(200));
}

TEST_CASE("a table is latency above the best bandwidth it reached", "[model][collective]") {
  // 16 KiB in 80 us and 4 KiB in 20 are the best: 204.8 B/us. 1 KiB takes 5 us of its 10 that way.
  Cluster cluster = constant(2, 1ms);
  cluster.intra_node.all_reduce = table;
  const CollectiveCost cost = CollectiveLaw(cluster).all_reduce(1 * KiB);
  CHECK(cost.latency == 5us);
  CHECK(cost.transfer == 5us);
  // Better than ever measured, by its slope of 1 from there: bandwidth alone.
  CHECK(CollectiveLaw(cluster).all_reduce(64 * KiB).latency == 0us);
}

TEST_CASE("a table of one rank is none of several ranks", "[model][collective]") {
  Cluster cluster = constant(1, 1ms);
  cluster.intra_node.all_reduce = table;
  cluster.intra_node.table_ranks = 1;
  CHECK(CollectiveLaw(cluster).all_reduce(1 * KiB).time() == 0us);
  cluster = constant(2, 1ms);
  cluster.intra_node.all_reduce = table;
  cluster.intra_node.table_ranks = 1;
  CHECK_THROWS_AS(CollectiveLaw(cluster), std::invalid_argument);
}

TEST_CASE("a table of other ranks is scaled as a ring would be", "[model][collective]") {
  // Measured on two ranks: 2 steps, once the bytes. Eight ranks: 14 steps, 1.75 times the bytes.
  Cluster cluster = constant(8, 1ms);
  cluster.intra_node.all_reduce = table;
  cluster.intra_node.table_ranks = 2;
  const CollectiveCost cost = CollectiveLaw(cluster).all_reduce(1 * KiB);
  CHECK(cost.latency == 35us);
  CHECK(cost.transfer == Duration{8'750ns});
  cluster.intra_node.table_ranks = 8;
  CHECK(CollectiveLaw(cluster).all_reduce(1 * KiB).time() == 10us);
}

TEST_CASE("what a call costs on top is latency, and leaves the bandwidth part",
          "[model][collective]") {
  CollectiveLaw law(ring(4, 5us, gigabytes_per_second(100)));
  law.call_overhead = 12us;
  CHECK(law.all_reduce({100'000'000}).latency == 42us);
  CHECK(law.all_reduce({100'000'000}).transfer == 1500us);
  law.call_overhead = -12us;
  CHECK(law.all_reduce({100'000'000}).time() == 1518us);
  law.call_overhead = -1s;
  CHECK(law.all_reduce({100'000'000}).time() == 1500us);
}

TEST_CASE("the law follows from what is known of the link", "[model][collective]") {
  // A plain link is latency and bandwidth, of a CUDA device too; a link with a kind is NCCL's
  // business; a table goes before either.
  Cluster cluster = ring(2, 5us, gigabytes_per_second(100));
  CHECK(name_of_law(cluster) == "alpha-beta");
  cluster.device.compute_capability = 90;
  CHECK(name_of_law(cluster) == "alpha-beta");
  cluster.intra_node.kind = LinkKind::nvlink;
  CHECK(name_of_law(cluster) == "nccl");
  cluster.device.compute_capability = 0;
  CHECK(name_of_law(cluster) == "alpha-beta");
  cluster.intra_node.all_reduce = table;
  CHECK(name_of_law(cluster) == "table");
  cluster.device.compute_capability = 90;
  CHECK(name_of_law(cluster) == "table");
}

TEST_CASE("between nodes the network's link decides", "[model][collective]") {
  Cluster cluster = two_nodes(LinkKind::plain, 0, 4);
  cluster.intra_node.all_reduce = table;
  CHECK(name_of_law(cluster) == "alpha-beta");
  cluster.inter_node.all_reduce = table;
  CHECK(name_of_law(cluster) == "table");
}

TEST_CASE("a law may be asked for", "[model][collective]") {
  Cluster cluster = eight_gpus();
  cluster.intra_node.all_reduce = table;
  cluster.collectives = CollectiveModel::alpha_beta;
  CHECK(name_of_law(cluster) == "alpha-beta");
  cluster.collectives = CollectiveModel::nccl;
  CHECK(name_of_law(cluster) == "nccl");
  cluster.collectives = CollectiveModel::table;
  CHECK(name_of_law(cluster) == "table");
}

TEST_CASE("a law without its figures is refused", "[model][collective]") {
  Cluster cluster = ring(2, 5us, gigabytes_per_second(100));
  cluster.collectives = CollectiveModel::nccl;
  CHECK_THROWS_WITH(CollectiveLaw(cluster), Catch::Contains("needs a CUDA device"));
  cluster.collectives = CollectiveModel::table;
  CHECK_THROWS_WITH(CollectiveLaw(cluster), Catch::Contains("no all_reduce table"));
  cluster.collectives = CollectiveModel::alpha_beta;
  cluster.intra_node.bandwidth = {};
  CHECK_THROWS_WITH(CollectiveLaw(cluster), Catch::Contains("no bandwidth"));
  cluster.ranks_per_node = 1;
  CHECK_NOTHROW(CollectiveLaw(cluster));
}

TEST_CASE("the law of GPUs is that of their ports", "[model][collective]") {
  const Cluster cluster = eight_gpus();
  const CollectiveLaw law(cluster);
  const PortLaw ports(cluster);
  for (const Bytes size : {8 * KiB, 25 * MiB, 1 * GiB}) {
    const PortLaw::Price price = ports.chosen(Collective::all_reduce, size);
    const CollectiveCost cost = law.all_reduce(size);
    CHECK(cost.time() == price.time());
    CHECK(cost.latency == price.latency);
    CHECK(cost.channels == price.choice.channels);
    CHECK(law.broadcast(size) == ports.chosen(Collective::broadcast, size).time());
  }
}

TEST_CASE("GPUs that may not reach each other over PCIe send twice over the bus",
          "[model][collective]") {
  Cluster cluster = eight_gpus();
  cluster.ranks_per_node = 4;
  cluster.intra_node.kind = LinkKind::pcie;
  cluster.intra_node.nvswitch = false;
  cluster.intra_node.bandwidth = gigabytes_per_second(24);
  cluster.forced = {NcclAlgorithm::ring, NcclProtocol::simple, {}};
  cluster.device.compute_capability = 120;  // before PCIe 5 kernels, not lanes, set the pace
  cluster.device.peer_to_peer = true;
  const CollectiveCost direct = CollectiveLaw(cluster).all_reduce(25 * MiB);
  cluster.device.peer_to_peer = false;
  const CollectiveCost staged = CollectiveLaw(cluster).all_reduce(25 * MiB);
  const PortConstants& shares = fitted_ports();
  CHECK(in_us(staged.transfer) == Approx(2 * shares.pcie / shares.host * in_us(direct.transfer)));
  CHECK(staged.latency == direct.latency);
  CHECK(direct.time() < staged.time());
}

TEST_CASE("a reduce-scatter on a ring has half of an all-reduce's steps and bytes",
          "[model][collective]") {
  // Of four ranks: three steps of 5 us, and 3/4 of 100 MB at 100 GB/s.
  const CollectiveLaw law(ring(4, 5us, gigabytes_per_second(100)));
  const CollectiveCost cost = law.of(Operation::reduce_scatter, {100'000'000});
  CHECK(cost.latency == 15us);
  CHECK(cost.transfer == 750us);
}

TEST_CASE("on CPUs a reduce-scatter is an all-reduce, as in PyTorch's Gloo",
          "[model][collective]") {
  // Of four ranks: six steps of 5 us, and 2 x 3/4 of 100 MB at 100 GB/s.
  CalibratedCluster cluster = ring(4, 5us, gigabytes_per_second(100));
  cluster.device.synchronous = true;
  CHECK(CollectiveLaw(cluster).of(Operation::reduce_scatter, {100'000'000}).time() ==
        30us + 1500us);
  // An all-gather goes around once.
  CHECK(CollectiveLaw(cluster).of(Operation::all_gather, {25'000'000}).time() == 15us + 750us);
  // Ranks of ddpsim's own reduce-scatter by half a ring; torch's profile is of Gloo's.
  cluster.calibration.emplace();
  cluster.calibration->ranks = 4;
  cluster.calibration->all_reduce = {{{100'000'000}, {2ms, 2ms, 2ms, 5, 0}}};
  cluster.calibration->backend = "gloo";
  CHECK(CollectiveLaw(cluster).of(Operation::reduce_scatter, {100'000'000}).time() == 1ms);
  cluster.calibration->backend = "torch gloo";
  CHECK(CollectiveLaw(cluster).of(Operation::reduce_scatter, {100'000'000}).time() == 2ms);
}

TEST_CASE("an all-to-all sends what a reduce-scatter does, a message all of its bytes in one step",
          "[model][collective]") {
  const CollectiveLaw law(ring(4, 5us, gigabytes_per_second(100)));
  CHECK(law.of(Operation::all_to_all, {100'000'000}).time() == 15us + 750us);
  CHECK(law.of(Operation::send_receive, {100'000'000}).time() == 5us + 1ms);
  CHECK(law.of(Operation::send_receive, {100'000'000}, 2).time() == 5us + 1ms);
  // Of two ranks, too.
  const CollectiveLaw pair(ring(2, 5us, gigabytes_per_second(100)));
  CHECK(pair.of(Operation::send_receive, {100'000'000}).time() == 5us + 1ms);
}

TEST_CASE("a broadcast on a ring is half of an all-reduce", "[model][collective]") {
  // Three steps of 5 us and 25 MB at 100 GB/s. What training adds to an all-reduce is not part of
  // it.
  CollectiveLaw law(ring(4, 5us, gigabytes_per_second(100)));
  law.call_overhead = 20us;
  CHECK(law.broadcast({100'000'000}) == 15us + 750us);
}
TEST_CASE("a table that does not grow is no link without bandwidth", "[model][collective]") {
  // As a noisy measurement has it: beyond the last size a byte takes what the quickest took.
  const AllReduceTable flat = growing({{Bytes{1 << 18}, std::chrono::milliseconds{33}},
                                       {Bytes{1 << 19}, std::chrono::milliseconds{12}},
                                       {Bytes{1 << 20}, std::chrono::milliseconds{10}}});
  CHECK(in_ms(table_time(flat, 24 * MiB)) == Approx(240));
  CHECK(in_ms(table_time(flat, 192 * MiB)) == Approx(1920));
}
