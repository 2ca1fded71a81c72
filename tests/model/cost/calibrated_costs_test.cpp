#include <cmath>

#include <catch2/catch.hpp>

#include "model/cost/calibrated_times.hpp"
#include "tests/model/cost/priced.hpp"
#include "tests/model/parallel/schedule_story.hpp"

using namespace ddpsim;
using namespace ddpsim::timed;
using namespace std::chrono_literals;

namespace {

MeasuredWork entry(Operation operation, Bytes traffic, Duration median, DType type = DType::fp32) {
  return measured(operation, std::nullopt, traffic, type, {median, median / 2, 2 * median, 9, 1});
}

MeasuredWork entry(Operation operation, Gemm gemm, Bytes traffic, Duration median,
                   DType type = DType::fp32) {
  return measured(operation, gemm, traffic, type, {median, median / 2, 2 * median, 9, 1});
}

template <typename Any>
Any aside(Any work) {
  work.aside = true;
  return work;
}

Calibration of(std::vector<MeasuredWork> tasks) {
  Calibration calibration;
  calibration.ranks = 2;
  calibration.tasks = std::move(tasks);
  return calibration;
}

Kernel kernel_moving(Bytes traffic) {
  Kernel result;
  result.traffic = traffic;
  return result;
}

Kernel kernel_multiplying(Gemm gemm, Bytes traffic, DType type = DType::fp32) {
  Kernel result;
  result.gemm = gemm;
  result.traffic = traffic;
  result.type = type;
  return result;
}

Work multiplying(Operation operation, Gemm gemm, Bytes traffic, DType type = DType::fp32) {
  return work_of(operation, kernel_multiplying(gemm, traffic, type), Caller::library);
}

std::optional<Duration> copy_in(const std::vector<MeasuredWork>& tasks, Bytes traffic) {
  return CalibratedTimes(of(tasks)).time(moving(Operation::copy_in, traffic));
}

constexpr Bytes megabytes(std::int64_t count) {
  return {count * 1'000'000};
}

/// A step on a machine where every kind of task has a time of its own; parameters of 1 and 3 MB.
Workload measured_workload() {
  Workload workload;
  workload.name = "measured";
  workload.layers.push_back(
      {"only", {kernel_moving(megabytes(5))}, {kernel_multiplying({10, 20, 30, 1}, megabytes(6))}});
  workload.parameters = {parameter("a", megabytes(1), 0, 0), parameter("b", megabytes(3), 0, 0)};
  return workload;
}

Calibration measured_machine() {
  // sgd passes 11 times over the 4 MB of parameters.
  return of(
      {entry(Operation::forward, megabytes(5), 1us),
       entry(Operation::backward, Gemm{10, 20, 30, 1}, megabytes(6), 2us),
       entry(Operation::copy_in, megabytes(2), 3us), entry(Operation::copy_in, megabytes(6), 4us),
       entry(Operation::copy_out, megabytes(2), 5us), entry(Operation::copy_out, megabytes(6), 6us),
       entry(Operation::divide, megabytes(2), 7us), entry(Operation::divide, megabytes(6), 8us),
       entry(Operation::divide, megabytes(8), 9us),
       entry(Operation::concatenate, megabytes(8), 10us),
       entry(Operation::accumulate, megabytes(3), 11us),
       entry(Operation::accumulate, megabytes(9), 12us),
       entry(Operation::optimizer, megabytes(44), 13us)});
}

CalibratedCluster measured_cluster() {
  CalibratedCluster cluster = ring(2, 1us, gigabytes_per_second(1));
  cluster.device.synchronous = true;
  cluster.calibration = measured_machine();
  return cluster;
}

CollectiveCost any_collective() {
  return {1ms, 3ms, 0, gigabytes_per_second(1)};
}

}  // namespace

TEST_CASE("what runs aside has times of its own, and others' where there are none",
          "[model][calibrated]") {
  const Gemm gemm{64, 4, 64, 1};
  const CalibratedTimes times(of({entry(Operation::multiply, gemm, megabytes(1), 30us),
                                  aside(entry(Operation::multiply, gemm, megabytes(1), 70us)),
                                  entry(Operation::correct, megabytes(2), 20us),
                                  aside(entry(Operation::correct, megabytes(2), 50us)),
                                  aside(entry(Operation::cast, megabytes(4), 90us)),
                                  entry(Operation::pack, megabytes(4), 10us)}));
  const Work multiplication = multiplying(Operation::multiply, gemm, megabytes(1));
  CHECK(times.time(multiplication) == 30us);
  CHECK(times.time(aside(multiplication)) == 70us);
  CHECK(times.time(aside(moving(Operation::correct, megabytes(2)))) == 50us);
  // Of another size: in proportion to its own.
  CHECK(times.time(aside(moving(Operation::correct, megabytes(4)))) == 100us);
  CHECK(times.time(moving(Operation::correct, megabytes(4))) == 40us);
  // Measured in the other place alone.
  CHECK(times.time(moving(Operation::cast, megabytes(4))) == 90us);
  CHECK(times.time(aside(moving(Operation::pack, megabytes(4)))) == 10us);
}

TEST_CASE("what was measured takes its median", "[model][calibrated_times]") {
  const CalibratedTimes times(
      of({entry(Operation::forward, Gemm{8, 8, 8, 2}, {1024}, 5us),
          entry(Operation::backward, Gemm{8, 8, 8, 2}, {1024}, 7us),
          entry(Operation::forward, Gemm{8, 8, 8, 2}, {1024}, 3us, DType::bf16),
          entry(Operation::forward, {1024}, 2us)}));
  const Gemm gemm{8, 8, 8, 2};
  CHECK(times.time(multiplying(Operation::forward, gemm, {1024})) == 5us);
  CHECK(times.time(multiplying(Operation::backward, gemm, {1024})) == 7us);
  CHECK(times.time(multiplying(Operation::forward, gemm, {1024}, DType::bf16)) == 3us);
  CHECK(times.time(moving(Operation::forward, {1024})) == 2us);
  // Whoever enqueues it, and however often.
  Work launched = multiplying(Operation::forward, gemm, {1024});
  launched.caller = Caller::autograd;
  launched.launches = 3;
  CHECK(times.time(launched) == 5us);
  // What differs in operation, shape, traffic or type was not measured. The law of fp32 through
  // 2048 flops in 5 us and in 7: c of least (c / 5 - 1)^2 + (c / 7 - 1)^2 is 210 / 37 us.
  const double law = 210.0 / 37;
  CHECK(in_us(*times.time(multiplying(Operation::copy_in, gemm, {1024}))) == Approx(law));
  CHECK(in_us(*times.time(multiplying(Operation::forward, {8, 8, 8, 1}, {1024}))) ==
        Approx(law / 2));
  CHECK(in_us(*times.time(multiplying(Operation::forward, gemm, {1025}))) == Approx(law));
  CHECK(!times.time(multiplying(Operation::forward, gemm, {1024}, DType::fp16)));
}

TEST_CASE("an operation's factor lengthens all its tasks, and no others'",
          "[model][calibrated_times]") {
  Calibration calibration = of({entry(Operation::copy_in, megabytes(1), 100us),
                                entry(Operation::copy_out, megabytes(1), 100us)});
  calibration.factors = {{Operation::copy_in, 1.25}};
  const CalibratedTimes times(calibration);
  CHECK(times.time(moving(Operation::copy_in, megabytes(1))) == 125us);
  CHECK(times.time(moving(Operation::copy_in, megabytes(2))) == 250us);
  CHECK(times.time(moving(Operation::copy_out, megabytes(1))) == 100us);
}

TEST_CASE("a GEMM that was not measured follows the law of those that were",
          "[model][calibrated_times]") {
  // 2000 flops in 2 us, 16'000 in 16, whatever the operation: 1 ns a flop.
  const CalibratedTimes times(of({entry(Operation::forward, Gemm{10, 10, 10, 1}, {1200}, 2us),
                                  entry(Operation::backward, Gemm{20, 20, 20, 1}, {4800}, 16us),
                                  entry(Operation::forward, {1200}, 100us)}));
  CHECK(times.time(multiplying(Operation::forward, {10, 10, 20, 3}, {999})) == 12us);
  CHECK(!times.time(multiplying(Operation::forward, {10, 10, 20, 3}, {999}, DType::bf16)));
}

TEST_CASE("between two entries of an operation logarithms are interpolated",
          "[model][calibrated_times]") {
  // 10 us at 1 MB and 20 at 4: a slope of 1/2. sqrt(2) x 10 us = 14.142135623731 us.
  const std::vector<MeasuredWork> tasks{entry(Operation::copy_in, megabytes(4), 20us),
                                        entry(Operation::copy_in, megabytes(1), 10us),
                                        entry(Operation::copy_out, megabytes(2), 1us)};
  CHECK(copy_in(tasks, megabytes(2)) == Duration{14'142'136});
}

TEST_CASE("beyond the ends the slope goes on, from none to in proportion",
          "[model][calibrated_times]") {
  const auto with = [](Duration small, Duration large, Bytes traffic) {
    return copy_in({entry(Operation::copy_in, megabytes(1), small),
                    entry(Operation::copy_in, megabytes(4), large)},
                   traffic);
  };
  CHECK(with(10us, 20us, {250'000}) == 5us);  // a quarter at a slope of 1/2
  CHECK(with(10us, 20us, megabytes(16)) == 40us);
  // Falling times: a slope of none.
  CHECK(with(20us, 10us, {250'000}) == 20us);
  CHECK(with(20us, 10us, megabytes(16)) == 10us);
  // Sixteen times as long for four times as much: in proportion.
  CHECK(with(1us, 16us, {250'000}) == 250ns);
  CHECK(with(1us, 16us, megabytes(8)) == 32us);
}

TEST_CASE("one entry is time in proportion to traffic", "[model][calibrated_times]") {
  const std::vector<MeasuredWork> tasks{entry(Operation::copy_in, megabytes(2), 10us)};
  CHECK(copy_in(tasks, megabytes(6)) == 30us);
  CHECK(copy_in(tasks, {200'000}) == 1us);
  CHECK(copy_in(tasks, {0}) == 0us);
}

TEST_CASE("entries of equal traffic count as one", "[model][calibrated_times]") {
  // sqrt(4 x 9) us at 1 MB, whatever the type; then in proportion.
  CHECK(copy_in({entry(Operation::copy_in, megabytes(1), 4us, DType::bf16),
                 entry(Operation::copy_in, megabytes(1), 9us, DType::fp16)},
                megabytes(2)) == 12us);
}

TEST_CASE("an operation without entries follows those of all others", "[model][calibrated_times]") {
  // 10 us at 1 MB and 20 at 4, of different operations; a GEMM says nothing about copies.
  const std::vector<MeasuredWork> tasks{
      entry(Operation::copy_out, megabytes(1), 10us), entry(Operation::forward, megabytes(4), 20us),
      entry(Operation::copy_in, Gemm{1, 1, 1, 1}, megabytes(2), 1s)};
  CHECK(copy_in(tasks, megabytes(16)) == 40us);
  CHECK(!copy_in({entry(Operation::forward, Gemm{1, 1, 1, 1}, {12}, 1us)}, megabytes(1)));
  CHECK(!copy_in({}, megabytes(1)));
  CHECK(!copy_in({entry(Operation::copy_in, megabytes(1), 0us)}, megabytes(2)));
}

TEST_CASE("every task of a step takes what was measured of its kind", "[model][calibrated_costs]") {
  using Times = std::vector<Duration>;
  const auto step = [](const Training& training) {
    return priced(measured_workload(), measured_cluster(), training, Optimizer::sgd);
  };
  const Priced flat = step(training_of(Strategy::flat));
  CHECK(times_of(flat, Operation::forward) == Times{1us});
  CHECK(times_of(flat, Operation::backward) == Times{2us});
  CHECK(times_of(flat, Operation::concatenate) == Times{10us});
  CHECK(times_of(flat, Operation::divide) == Times{9us});
  CHECK(times_of(flat, Operation::copy_out) == Times{6us, 5us});  // in the order of arrival
  CHECK(times_of(flat, Operation::optimizer) == Times{13us});
  const Priced naive = step(training_of(Strategy::naive));
  CHECK(times_of(naive, Operation::divide) == Times{7us, 8us});
  Training twice = training_of(Strategy::bucketed);
  twice.micro_batches = 2;
  twice.no_sync = true;
  const Priced bucketed = step(twice);
  CHECK(times_of(bucketed, Operation::copy_in) == Times{4us, 3us});
  CHECK(times_of(bucketed, Operation::copy_out) == Times{6us, 5us});
  CHECK(times_of(bucketed, Operation::accumulate) == Times{12us, 11us});
}

TEST_CASE("measured times of a synchronous device hold the host's part",
          "[model][calibrated_costs]") {
  CalibratedCluster cluster = measured_cluster();
  cluster.launch = {1us, 2us, 3us};
  const auto hosts = [&] {
    const Priced step =
        priced(measured_workload(), cluster, training_of(Strategy::flat), Optimizer::sgd);
    Duration kernels{};
    for (const FlatTask& task : step.schedule.tasks)
      if (task.operation != Operation::all_reduce) kernels += step.of(task).host;
    return kernels;
  };
  CHECK(hosts() == 0us);
  // Else each is launched once, as ddpsim does it, without Python: forward, backward, concatenate,
  // divide, two copies, and 4 of the optimizer.
  cluster.device.synchronous = false;
  CHECK(hosts() == 10us);
}

TEST_CASE("buffers are copied at what copies of their size take", "[model][calibrated_costs]") {
  Workload workload = measured_workload();
  workload.buffers = {{4, megabytes(1)}};
  const StepWorks works = works_of(workload, measured_cluster());
  const CostModel model(measured_cluster());
  const StepWorks::BufferWorks& group = works.buffers.at(0);
  // A quarter of 8 MB in 10 us.
  CHECK(cost_of(works, model, group.flatten).work == Duration{2'500'000});
  CHECK(cost_of(works, model, group.restore).work == 5us);
}

TEST_CASE("a profile's kernels keep their times unless measured themselves",
          "[model][calibrated_costs]") {
  Workload workload = two_layers();  // 1 and 1 ms forward, 2, 2 and 3 ms backward, 1 ms optimizer
  workload.layers[1].backward[1].traffic = megabytes(5);
  workload.layers[1].backward[0].traffic = megabytes(6);
  CalibratedCluster cluster = measured_cluster();
  cluster.calibration->tasks = {entry(Operation::backward, megabytes(5), 4us)};
  const Priced step = priced(workload, cluster, training_of(Strategy::none), Optimizer::adamw);
  CHECK(times_of(step, Operation::forward) == std::vector<Duration>{1ms, 1ms});
  CHECK(times_of(step, Operation::backward) == std::vector<Duration>{2ms, 4us, 2ms});
  CHECK(times_of(step, Operation::optimizer) == std::vector<Duration>{1ms});
}

TEST_CASE("of what nothing was measured the device's law holds", "[model][calibrated_costs]") {
  CalibratedCluster cluster = measured_cluster();
  cluster.calibration->tasks.clear();
  CalibratedCluster lawful = cluster;
  lawful.calibration.reset();
  const auto step = [](const CalibratedCluster& machine) {
    return priced(measured_workload(), machine, training_of(Strategy::flat), Optimizer::sgd);
  };
  const Priced unmeasured = step(cluster), law = step(lawful);
  for (const Operation operation :
       {Operation::backward, Operation::concatenate, Operation::optimizer}) {
    CHECK(times_of(unmeasured, operation) == times_of(law, operation));
    CHECK(times_of(law, operation).at(0) > 0us);
  }
}

TEST_CASE("measured all-reduces are the table, unless another law is asked for",
          "[model][calibrated_costs]") {
  CalibratedCluster cluster = ring(8, 5us, gigabytes_per_second(100));
  cluster.intra_node.all_reduce = {{1 * KiB, 1s}, {4 * KiB, 2s}};
  Calibration calibration;
  calibration.ranks = 8;
  for (const auto& [size, time] : AllReduceTable{{1 * KiB, 10us}, {4 * KiB, 20us}})
    calibration.all_reduce.push_back({size, {time, 1us, 1s, 5, 0}});
  cluster.calibration = calibration;
  CHECK(CollectiveLaw(cluster).all_reduce(4 * KiB).time() == 20us);
  CHECK(CollectiveLaw(cluster).name() == std::string("table"));
  // Of two ranks, on eight: 7 times the steps, 1.75 times the bytes. 1 KiB takes 5 us of its 10 at
  // the bandwidth of 4 KiB.
  cluster.calibration->ranks = 2;
  CHECK(CollectiveLaw(cluster).all_reduce(1 * KiB).latency == 35us);
  CHECK(CollectiveLaw(cluster).all_reduce(1 * KiB).transfer == Duration{8'750ns});
  cluster.collectives = CollectiveModel::table;
  CHECK(CollectiveLaw(cluster).all_reduce(1 * KiB).latency == 35us);
  cluster.collectives = CollectiveModel::alpha_beta;
  CHECK(CollectiveLaw(cluster).name() == std::string("alpha-beta"));
  // Nothing was measured: the link's own table.
  cluster.collectives = CollectiveModel::automatic;
  cluster.calibration->all_reduce.clear();
  CHECK(CollectiveLaw(cluster).all_reduce(4 * KiB).time() == 2s);
}

/// Four ranks, whose all-reduces and all-gathers were measured.
CalibratedCluster four_measured_ranks() {
  CalibratedCluster cluster = ring(4, 5us, gigabytes_per_second(100));
  Calibration calibration;
  calibration.ranks = 4;
  for (const auto& [size, time] :
       AllReduceTable{{1 * KiB, 10us}, {4 * KiB, 20us}, {16 * KiB, 40us}})
    calibration.all_reduce.push_back({size, {time, 1us, 1s, 5, 0}});
  for (const auto& [size, time] : AllReduceTable{{1 * KiB, 7us}, {4 * KiB, 16us}})
    calibration.collectives.push_back({Operation::all_gather, 4, size, {time, 1us, 1s, 5, 0}});
  cluster.calibration = calibration;
  return cluster;
}

TEST_CASE("a measured collective takes what it took, and a line between two sizes",
          "[model][calibrated_costs]") {
  CalibratedCluster cluster = four_measured_ranks();
  const CollectiveLaw law(cluster);
  CHECK(law.of(Operation::all_gather, 1 * KiB).time() == 7us);
  CHECK(law.of(Operation::all_gather, 4 * KiB).time() == 16us);
  CHECK(law.of(Operation::all_gather, Bytes{2560}).time() == Duration{11'500ns});
  // Others are a part of an all-reduce as before.
  CHECK(law.of(Operation::reduce_scatter, 4 * KiB).time() == 10us);
  CHECK(law.broadcast(4 * KiB) == 10us);
  // The price of work is the same.
  Work gather;
  gather.operation = Operation::all_gather;
  gather.payload = 4 * KiB;
  CHECK(CostModel(cluster).price({gather}, {}).works.front().work == 16us);
  // Not where another law is asked for.
  cluster.collectives = CollectiveModel::alpha_beta;
  CHECK(CollectiveLaw(cluster).of(Operation::all_gather, 4 * KiB).time() ==
        CollectiveLaw(ring(4, 5us, gigabytes_per_second(100)))
            .of(Operation::all_gather, 4 * KiB)
            .time());
  cluster.calibration->collectives.push_back(
      {Operation::broadcast, 4, 4 * KiB, {3us, 1us, 1s, 5, 0}});
  cluster.collectives = CollectiveModel::automatic;
  CHECK(CollectiveLaw(cluster).broadcast(4 * KiB) == 3us);
}

TEST_CASE("a measured collective of other ranks is scaled as a ring is, that of as many is taken",
          "[model][calibrated_costs]") {
  CalibratedCluster cluster = four_measured_ranks();
  // 4 KiB are at the best rate of the two sizes: all of it is transfer. Two ranks send a third of
  // what four do.
  CHECK(CollectiveLaw(cluster).of(Operation::all_gather, 4 * KiB, 2).time() ==
        scaled(16us, 1.0 / 3));
  // 1 KiB takes 4 us at that rate, and 3 us are latency, of a third of the steps.
  const CollectiveCost small = CollectiveLaw(cluster).of(Operation::all_gather, 1 * KiB, 2);
  CHECK(small.latency == 1us);
  CHECK(small.transfer == scaled(4us, 1.0 / 3));
  cluster.calibration->collectives.push_back(
      {Operation::all_gather, 2, 4 * KiB, {9us, 1us, 1s, 5, 0}});
  CHECK(CollectiveLaw(cluster).of(Operation::all_gather, 4 * KiB, 2).time() == 9us);
  CHECK(CollectiveLaw(cluster).of(Operation::all_gather, 4 * KiB).time() == 16us);
  Work gather;
  gather.operation = Operation::all_gather;
  gather.payload = 4 * KiB;
  gather.group = 2;
  CHECK(CostModel(cluster).price({gather}, {}).works.front().work == 9us);
  // All-reduces among fewer ranks have a table of their own, too.
  cluster.calibration->collectives.push_back(
      {Operation::all_reduce, 2, 4 * KiB, {11us, 1us, 1s, 5, 0}});
  CHECK(CollectiveLaw(cluster).of(Operation::all_reduce, 4 * KiB, 2).time() == 11us);
  CHECK(CollectiveLaw(cluster).of(Operation::all_reduce, 4 * KiB).time() == 20us);
}

TEST_CASE("beyond its measured sizes a collective grows as its law does",
          "[model][calibrated_costs]") {
  // By the law an all-gather of 4 KiB is half of an all-reduce of 16 KiB, 20 us, and one of 16 KiB
  // half of one of 64 KiB: 40 us and 48 KiB more at 5/3 us each, 120 us. Three times as long.
  const CollectiveLaw law(four_measured_ranks());
  CHECK(in_us(law.of(Operation::all_gather, 16 * KiB).time()) == Approx(48));
}

TEST_CASE("over the slower NICs of a node all that was measured transfers as much longer",
          "[model][calibrated_costs]") {
  CalibratedCluster cluster = four_measured_ranks();
  cluster.nodes = 4;
  cluster.ranks_per_node = 1;
  // 16 KiB in 40 us are all transfer, and of four ranks 1.5 times 16 KiB cross each NIC: 614.4
  // MB/s. Of a NIC of 321.2 MB/s TCP leaves 1448 of 1514 bytes, half of that.
  const double nic = 614.4e6 / 2 * 1514 / 1448;
  const auto over = [&](double bytes_per_second) {
    CalibratedCluster slow = cluster;
    slow.exceptions = {RankException{.node = 1, .rank = 1, .nic = Bandwidth{bytes_per_second}}};
    return CollectiveLaw(slow);
  };
  CHECK(over(nic).all_reduce(16 * KiB).time() == 80us);
  // 1 KiB is 2.5 us of transfer and 7.5 of latency; an all-gather of 4 KiB all transfer.
  CHECK(over(nic).all_reduce(1 * KiB).time() == Duration{12'500ns});
  CHECK(over(nic).of(Operation::all_gather, 4 * KiB).time() == 32us);
  // NICs that carry more change nothing, nor do those of GPUs lose what TCP takes.
  CHECK(over(nic * 3).all_reduce(16 * KiB).time() == 40us);
  cluster.calibration->synchronous = false;
  CHECK(over(614.4e6 / 2).all_reduce(16 * KiB).time() == 80us);
  cluster.nodes = 1;
  cluster.ranks_per_node = 4;
  CHECK(over(nic).all_reduce(16 * KiB).time() == 40us);
}

TEST_CASE("measured slowdowns are those of the size, between two in its logarithm",
          "[model][calibrated_costs]") {
  CalibratedCluster cluster = ring(2, 1us, gigabytes_per_second(1));
  cluster.interference.reset();
  cluster.calibration = Calibration{};
  cluster.calibration->interference = {{64 * KiB, 1.1, 0.9}, {4 * MiB, 1.3, 2.1}, {64 * MiB, 2, 1}};
  InterferenceLaw law(cluster);
  const auto felt = [&](Bytes size) { return law.beside(any_collective(), size); };
  for (const Bytes size : {Bytes{0}, Bytes{1}, 1 * KiB, 64 * KiB}) {
    CHECK(felt(size).compute_bound == Approx(1.1));
    CHECK(felt(size).communication == 1);  // no measured factor is below 1
  }
  CHECK(felt(4 * MiB).compute_bound == Approx(1.3));
  CHECK(felt(4 * MiB).communication == Approx(2.1));
  // 512 KiB is half of the way from 2^16 to 2^22, 16 MiB from 2^22 to 2^26.
  CHECK(felt(512 * KiB).compute_bound == Approx(1.2));
  CHECK(felt(512 * KiB).communication == Approx(1.55));
  CHECK(felt(16 * MiB).compute_bound == Approx(1.65));
  CHECK(felt(GiB).compute_bound == Approx(2));
  CHECK(felt(GiB).memory_bound == felt(GiB).compute_bound);
  law.strength = 0.5;
  CHECK(felt(4 * MiB).compute_bound == Approx(1.15));
  CHECK(felt(4 * MiB).communication == Approx(1.55));
  // A collective of no length slows nothing.
  CHECK(law.beside(CollectiveCost{}, 4 * MiB).compute_bound == 1);
}

TEST_CASE(
    "kinds of kernels are slowed by what was measured of their kind, whatever other channels did",
    "[model][calibrated_costs]") {
  CalibratedCluster cluster = ring(2, 1us, gigabytes_per_second(1));
  cluster.interference.reset();
  cluster.calibration = Calibration{};
  cluster.calibration->interference = {
      {64 * KiB, 1.1, 1.5, 1.3, 0}, {4 * MiB, 1.3, 2, 1.7, 0}, {4 * MiB, 9, 9, 9, 1}};
  const InterferenceLaw law(cluster);
  const Interference small = law.beside(any_collective(), 64 * KiB);
  CHECK(small.compute_bound == Approx(1.1));
  CHECK(small.memory_bound == Approx(1.3));
  const Interference between = law.beside(any_collective(), 512 * KiB);
  CHECK(between.compute_bound == Approx(1.2));
  CHECK(between.memory_bound == Approx(1.5));
  CHECK(law.beside(any_collective(), 4 * MiB).communication == Approx(2));
}

TEST_CASE("the interference law is found again in what it predicts", "[model][calibrated_costs]") {
  // 8 ranks; 12 % of the SMs taken, 0.5 % per channel, k = 2.5, g = 0.4; memory of 1000 GB/s.
  Calibration calibration;
  calibration.ranks = 8;
  calibration.synchronous = false;
  const auto spread = [](Duration time) { return Spread{time, time, time, 1, 0}; };
  calibration.tasks = {
      measured(Operation::copy_in, std::nullopt, {1'000'000'000}, DType::fp32, spread(1ms)),
      measured(Operation::copy_in, std::nullopt, {2'000'000'000}, DType::fp32, spread(2ms))};
  for (const std::int64_t megabytes : {1, 4, 16}) {
    const Bytes size{megabytes * 1'000'000};
    const Duration alone = size / gigabytes_per_second(100);
    calibration.all_reduce.push_back({size, spread(alone)});
    const double communication = 1 / (1 - 0.4);
    const double bus = 1.75 * 100e9 / communication;
    calibration.interference.push_back(
        {size, 1 / (1 - 0.12), communication, 1 / (1 - 2.5 * bus / 1000e9), 0});
  }
  for (const int channels : {1, 4, 16})
    calibration.interference.push_back(
        {{4'000'000}, 1 / (1 - 0.005 * channels), 1.2, 1.1, channels});
  const auto fit = fit_interference(calibration);
  REQUIRE(fit);
  CHECK(fit->points == 6);
  CHECK(fit->multiprocessors_taken == Approx(0.12));
  CHECK(fit->taken_per_channel == Approx(0.005));
  CHECK(fit->memory_per_link_byte == Approx(2.5));
  CHECK(fit->bandwidth_lost == Approx(0.4));
  Calibration some = calibration;  // a slope without a point is none
  std::erase_if(some.interference, [](const auto& point) { return point.channels == 0; });
  CHECK(fit_interference(some)->multiprocessors_taken == 0);
  CHECK(fit_interference(some)->memory_per_link_byte == 0);
  CHECK(fit_interference(some)->taken_per_channel == Approx(0.005));
  for (auto& point : calibration.interference) point.memory_slowdown.reset();
  CHECK_FALSE(fit_interference(calibration));
}

TEST_CASE("a bucket's all-reduce interferes as one of its size", "[model][calibrated_costs]") {
  CalibratedCluster cluster = measured_cluster();
  cluster.interference.reset();
  cluster.calibration->interference = {{megabytes(1), 1.25, 1.5}, {megabytes(3), 1.75, 1.5}};
  const Priced step = priced(measured_workload(), cluster, training_of(Strategy::naive));
  std::vector<float> slowdowns;
  for (const FlatTask& task : step.schedule.tasks)
    if (task.operation == Operation::all_reduce)
      slowdowns.push_back(step.of(task).beside.compute_bound);
  CHECK(slowdowns == std::vector<float>{1.25F, 1.75F});
}

TEST_CASE("fixed factors go before measured ones", "[model][calibrated_costs]") {
  CalibratedCluster cluster = ring(2, 1us, gigabytes_per_second(1));
  cluster.interference = FixedInterference{1.15, 1.05};
  cluster.calibration = Calibration{};
  cluster.calibration->interference = {{64 * KiB, 3, 3}};
  const Interference felt = InterferenceLaw(cluster).beside(any_collective(), 64 * KiB);
  CHECK(felt.compute_bound == Approx(1.15));
  CHECK(felt.communication == Approx(1.05));
}

TEST_CASE("an all-reduce that took longer than a larger one is noise, if it did by half",
          "[model][calibrated_costs]") {
  const auto found = [](std::vector<std::pair<Bytes, Duration>> times) {
    std::vector<AllReduceCost> all_reduce;
    for (const auto& [size, time] : times) all_reduce.push_back({size, {time, time, time, 9, 0}});
    return slower_small_all_reduce(all_reduce);
  };
  CHECK_FALSE(found({}));
  CHECK_FALSE(found({{4 * KiB, 100us}, {8 * KiB, 90us}, {16 * KiB, 120us}}));
  const auto worst = found({{256 * KiB, 33ms}, {512 * KiB, 12ms}, {1 * MiB, 10ms}});
  REQUIRE(worst);
  CHECK(worst->first.size == 256 * KiB);
  CHECK(worst->second.size == MiB);
}
