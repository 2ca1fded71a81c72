#include "model/cost/cost_model.hpp"

#include <catch2/catch.hpp>

#include "model/base/statistics.hpp"
#include "tests/model/cost/priced.hpp"
#include "tests/model/parallel/random_trainings.hpp"
#include "tests/model/parallel/schedule_story.hpp"

using namespace ddpsim;
using namespace ddpsim::timed;
using namespace std::chrono_literals;

namespace {

/// 1 TB/s of memory: a millionth of a second per MB.
Cluster round_pair() {
  return ring(2, 1us, gigabytes_per_second(1));
}

constexpr Duration kernel_start = 3200ns;

/// A model that has times to fit.
CostModel scaled_by(CostModel model, const PassFactors& factors) {
  model.passes.push_back(factors);
  return model;
}

/// What a step without communication costs on the pair.
Priced plain_step(const CostModel& model, const Workload& workload = two_layers()) {
  return priced(works_of(workload, round_pair()), model, training_of(Strategy::none));
}

/// Each task with an operation, in order.
std::vector<Duration> host_times(const Priced& step, Operation operation) {
  std::vector<Duration> times;
  for (const FlatTask& task : step.schedule.tasks)
    if (task.operation == operation) times.push_back(step.of(task).host);
  return times;
}

using Times = std::vector<Duration>;

struct KernelTimes {
  Duration host{}, work{}, last_launch{};
};

/// What kernels of a pass cost by themselves, each as often as it runs.
void append(std::vector<KernelTimes>& pass, const StepWorks& works, const CostModel& model,
            const std::vector<KnownWork>& kernels) {
  for (const KnownWork kernel : kernels) {
    const WorkCost cost = cost_of(works, model, kernel);
    pass.push_back({cost.host, cost.work, cost.last_launch});
  }
}

/// Device times follow the factor; host times too if the host takes longer than the device, or else
/// as far as the factor is below one.
void scale_slowly(std::vector<KernelTimes>& pass, double factor) {
  double host = 0, work = 0;
  for (const KernelTimes& kernel : pass) {
    host += in_seconds(kernel.host);
    work += in_seconds(kernel.work);
  }
  const bool host_bound = host > work;
  for (KernelTimes& kernel : pass) {
    if (host_bound || factor < 1) kernel.host = scaled(kernel.host, factor);
    kernel.work = scaled(kernel.work, factor);
    kernel.last_launch = scaled(kernel.last_launch, factor);
  }
}

}  // namespace

TEST_CASE("a copy reads and writes, an accumulation reads twice", "[model][cost_model]") {
  const StepWorks works = works_of(chain(1, 1ms, 1ms, {1'000'000}), round_pair());
  const auto time = [&](KnownWork known) {
    return cost_of(works, CostModel(round_pair()), known).work;
  };
  CHECK(time(works.copy_in.at(0)) == 2us + kernel_start);
  CHECK(time(works.copy_out.at(0)) == 2us + kernel_start);
  CHECK(time(works.copy_back.at(0)) == 2us + kernel_start);
  CHECK(time(works.divide.at(0)) == 2us + kernel_start);
  CHECK(time(works.accumulate.at(0)) == 3us + kernel_start);
}

TEST_CASE("concatenating and dividing the whole move all gradients in one launch",
          "[model][cost_model]") {
  const StepWorks works = works_of(chain(5, 1ms, 1ms, {1'000'000}), round_pair());
  for (const KnownWork whole : {works.concatenate, works.flat_divide}) {
    CHECK(cost_of(works, CostModel(round_pair()), whole).work == 10us + kernel_start);
    CHECK(works.table[whole.number].launches == 1);
  }
}

TEST_CASE("the slowest rank is as measured, or else as the spread of steps makes likely",
          "[model][cost_model]") {
  CHECK(CostModel(round_pair()).slowest_rank == 1);
  CalibratedCluster spread = round_pair();
  CHECK(CostModel(spread, 0.1).slowest_rank == Approx(1 + 0.1 * expected_largest(spread.ranks())));
  spread.skew = 0.04;
  CHECK(CostModel(spread).slowest_rank == Approx(1 + 0.04 * expected_largest(spread.ranks())));
  CHECK(CostModel(spread, 0.1).slowest_rank ==
        Approx(1 + 0.1 * expected_largest(spread.ranks())));  // the profile's goes before it
  spread.calibration.emplace().slowest_rank = 1.02;
  CHECK(CostModel(spread, 0.1).slowest_rank == 1.02);
  CalibratedCluster alone = ring(1, 1ms, gigabytes_per_second(1));
  alone.skew = 0.04;
  CHECK(CostModel(alone, 0.1).slowest_rank == 1);
}

TEST_CASE("exceptions count among the ranks of which one is the slowest", "[model][cost_model]") {
  CalibratedCluster cluster = ring(4, 1ms, gigabytes_per_second(1));
  cluster.skew = 0.04;
  CHECK(CostModel(cluster).slowest_rank == Approx(1 + 0.04 * expected_largest(4)));
  RankException slow;
  slow.rank = 1;
  slow.ranks = 2;
  slow.compute = 1.5;
  cluster.exceptions = {slow};
  CHECK(CostModel(cluster).slowest_rank == Approx(1 + 0.04 * expected_largest(4)));
}

TEST_CASE("what lasts between ranks and what changes from step to step make the slowest together",
          "[model][cost_model]") {
  CalibratedCluster cluster = round_pair();
  cluster.skew = 0.03;
  cluster.jitter = 0.04;
  const double largest = expected_largest(cluster.ranks());
  CHECK(CostModel(cluster).slowest_rank == Approx(1 + 0.05 * largest));
  CHECK(rank_spread(cluster, 0).lasting == 0.03);
  CHECK(rank_spread(cluster, 0).changing == 0.04);
  // The scenario's jitter goes before a profile's spread, which stands for both where it is alone.
  CHECK(rank_spread(cluster, 0.1).changing == 0.04);
  cluster.jitter.reset();
  CHECK(rank_spread(cluster, 0.1).changing == 0.1);
  CHECK(rank_spread(cluster, 0.1).lasting == 0);
  CHECK(rank_spread(cluster, 0).changing == 0);
  // What a calibration measured stays; what jitter does not explain of it lasts.
  cluster.calibration.emplace().slowest_rank = 1 + 0.05 * largest;
  cluster.jitter = 0.04;
  CHECK(CostModel(cluster).slowest_rank == 1 + 0.05 * largest);
  CHECK(rank_spread(cluster, 0).lasting == Approx(0.03));
  cluster.jitter = 0.06;
  CHECK(rank_spread(cluster, 0).lasting == 0);
}

TEST_CASE("scaling a pass scales its device times", "[model][cost_model]") {
  const CostModel before(round_pair());
  const Priced after = plain_step(scaled_by(before, {2, 3, 0.5}));
  CHECK(times_of(after, Operation::forward) == Times{2ms, 2ms});
  CHECK(after.of(after.schedule.tasks[0]).last_launch == 2ms);
  CHECK(times_of(after, Operation::backward) == Times{6ms, 9ms, 6ms});
  CHECK(times_of(after, Operation::optimizer) == Times{500us});
  const Training bucketed;
  const StepWorks works = two_layer_works();
  CHECK(times_of(priced(works, scaled_by(before, {2, 3, 0.5}), bucketed), Operation::copy_in) ==
        times_of(priced(works, before, bucketed), Operation::copy_in));  // no part of a pass
}

TEST_CASE("a slower device leaves the host as it is, a faster one needs it to keep up",
          "[model][cost_model]") {
  // Forward is 2 ms of work behind 200 us of host, backward 7 ms behind 8 of the host's: on a
  // machine that was measured, a launch of 1 us each.
  Workload workload = two_layers();
  for (Layer& layer : workload.layers) {
    for (Kernel& kernel : layer.forward) kernel.launches = 100;
    for (Kernel& kernel : layer.backward) kernel.launches = 2667;
  }
  CalibratedCluster launching = round_pair();
  launching.launch.kernel = 1us;
  launching.calibration.emplace();
  const CostModel before(launching);
  CHECK(host_times(plain_step(before, workload), Operation::forward) == Times{100us, 100us});
  const Priced slow = plain_step(scaled_by(before, {2, 3, 1}), workload);
  CHECK(host_times(slow, Operation::forward) == Times{100us, 100us});
  CHECK(host_times(slow, Operation::backward) ==
        Times{8001us, 8001us, 8001us});  // it bounds the pass
  // One factor on both passes has one reason: the device, which bounds forward.
  const Priced slow_device = plain_step(scaled_by(before, {2, 2, 1}), workload);
  CHECK(host_times(slow_device, Operation::forward) == Times{100us, 100us});
  CHECK(host_times(slow_device, Operation::backward) == Times{2667us, 2667us, 2667us});
  const Priced fast = plain_step(scaled_by(before, {0.5, 0.5, 1}), workload);
  CHECK(host_times(fast, Operation::forward) == Times{50us, 50us});
  CHECK(host_times(fast, Operation::backward) ==
        Times{Duration{1'333'500ns}, Duration{1'333'500ns}, Duration{1'333'500ns}});
}

TEST_CASE("fitted passes are scaled one factor after the other, as kernels by themselves would be",
          "[model][cost_model][oracle]") {
  drawn::Draw draw(21);
  for (int round = 0; round < 500; ++round) {
    CAPTURE(round);
    const drawn::RandomStep step = drawn::random_step_of(draw);
    CostModel model(step.cluster);
    model.backward_beside_hook = 1.25;
    std::vector<KernelTimes> forward, backward, optimizer;
    for (const StepWorks::LayerWorks& layer : step.works.layers) {
      append(forward, step.works, model, layer.forward);
      append(backward, step.works, model, layer.backward);
    }
    append(optimizer, step.works, model, step.works.optimizer);
    for (int fit = 0; fit < 2; ++fit) {
      model.passes.push_back({draw.real(0.5, 2), draw.real(0.5, 2), draw.real(0.5, 2)});
      scale_slowly(forward, model.passes.back().forward);
      scale_slowly(backward, model.passes.back().backward);
      scale_slowly(optimizer, model.passes.back().optimizer);
    }
    const Costs costs = model.price(step.job.works, step.job.passes);
    const auto holds = [&](std::uint32_t work, const KernelTimes& expected) {
      const WorkCost& cost = costs.works[work];
      REQUIRE(cost.host == expected.host);
      REQUIRE(cost.work ==
              (step.job.works[work].beside_hook ? scaled(expected.work, 1.25) : expected.work));
      REQUIRE(cost.last_launch == expected.last_launch);
    };
    const Passes& passes = step.job.passes;
    for (std::size_t k = 0; k < forward.size(); ++k) holds(passes.forward[k], forward[k]);
    for (std::size_t k = 0; k < backward.size(); ++k) holds(passes.backward[k], backward[k]);
    for (std::size_t k = 0; k < optimizer.size(); ++k) holds(passes.optimizer[k], optimizer[k]);
    // [layer] its first kernel in the pass
    std::vector<std::size_t> first(1, 0);
    for (const StepWorks::LayerWorks& layer : step.works.layers)
      first.push_back(first.back() + layer.backward.size());
    for (const FlatTask& task : flat(step.job).tasks)  // with a hook beside it, or without
      if (task.operation == Operation::backward)
        holds(task.work, backward[first[at(task.layer)] + at(task.kernel)]);
  }
}

TEST_CASE("the update of some parameters is their share of the fitted optimizer",
          "[model][cost_model]") {
  // Buckets of 440 and 4000 bytes of 4440; the optimizer takes 1 ms, fitted to 3.
  Training training;
  training.buckets = {{2, 1}, {0}};
  training.comm_hook.kind = CommHookKind::optimizer_overlap;
  const Priced step =
      priced(two_layer_works(), scaled_by(CostModel(two_ranks()), {1, 1, 3}), training);
  CHECK(times_of(step, Operation::optimizer) ==
        Times{scaled(3ms, 440.0 / 4440), scaled(3ms, 4000.0 / 4440)});
  for (const FlatTask& task : step.schedule.tasks)
    if (task.operation == Operation::optimizer) CHECK(step.of(task).memory_fraction == 1);
}

TEST_CASE("a factor on copies holds for all that computes, except the passes",
          "[model][cost_model]") {
  drawn::Draw draw(22);
  for (int round = 0; round < 300; ++round) {
    CAPTURE(round);
    const drawn::RandomStep step = drawn::random_step_of(draw);
    CostModel model(step.cluster);
    const Costs before = model.price(step.job.works, step.job.passes);
    model.copy_factor = 1.5;
    const Costs after = model.price(step.job.works, step.job.passes);
    for (std::size_t w = 0; w < step.job.works.size(); ++w) {
      const Work& work = step.job.works[w];
      CAPTURE(describe(work));
      const bool pass = work.operation == Operation::forward ||
                        work.operation == Operation::backward ||
                        work.operation == Operation::optimizer;
      const double factor = work.computes() && !pass ? 1.5 : 1;
      REQUIRE(after.works[w].work == scaled(before.works[w].work, factor));
      REQUIRE(after.works[w].last_launch == scaled(before.works[w].last_launch, factor));
      REQUIRE(after.works[w].host == before.works[w].host);
    }
  }
}

TEST_CASE("launches for free leave the host what it computes itself, and the device all",
          "[model][cost_model]") {
  drawn::Draw draw(23);
  for (int round = 0; round < 300; ++round) {
    CAPTURE(round);
    const drawn::RandomStep step = drawn::random_step_of(draw);
    CostModel model(step.cluster);
    const Costs usual = model.price(step.job.works, step.job.passes);
    model.launch = {};
    model.free_launch = true;
    const Costs free = model.price(step.job.works, step.job.passes);
    for (std::size_t w = 0; w < step.job.works.size(); ++w) {
      const Work& work = step.job.works[w];
      CHECK(free.works[w].take_up == 0us);
      CAPTURE(describe(work));
      REQUIRE(free.works[w].host == work.host);
      REQUIRE(free.works[w].work == usual.works[w].work);
    }
  }
}

TEST_CASE("a unit's hooks take the host as long as so many launches", "[model][cost_model]") {
  Work hooks;
  hooks.operation = Operation::unit_hook;
  hooks.launches = 40;
  FlatStep schedule;
  schedule.works = {hooks};
  Cluster launching = round_pair();
  launching.launch = {3us, 0us, 7us};
  const WorkCost cost = price(CostModel(launching), schedule).works.at(0);
  CHECK(cost.host == 40 * 3us);
  CHECK(cost.work == 0us);
}

TEST_CASE("a kernel launched in no time ends with its work, whatever else its host does",
          "[model][cost_model]") {
  Work hooked = moving(Operation::own_kernel, {4'000'000}, Caller::python_loop, 5);
  hooked.hook_calls = 1;
  hooked.host = 100us;
  FlatStep schedule;
  schedule.works = {hooked};
  Cluster launching = round_pair();
  launching.launch = {3us, 0us, 7us};
  // 4 MB at 1 TB/s, and a ramp for each of five launches; twice 3 us each, in a Python loop.
  const WorkCost slow = price(CostModel(launching), schedule).works.at(0);
  CHECK(slow.work == 4us + 5 * kernel_start);
  CHECK(slow.host == 5 * 6us + 100us + 7us);
  CHECK(slow.first_launch == slow.host / 5);
  CHECK(slow.last_launch == slow.work / 5);
  launching.launch.kernel = 0us;
  const WorkCost quick = price(CostModel(launching), schedule).works.at(0);
  CHECK(quick.work == slow.work);
  CHECK(quick.host == 107us);
  CHECK(quick.last_launch == 0us);
}

TEST_CASE("broadcasts of buffers stay what they are when the link changes", "[model][cost_model]") {
  Workload workload = two_layers();
  workload.buffers = {{2, {1'000'000}}};
  Training training = small_caps();
  training.iteration = 2;  // buckets are rebuilt: broadcasts that are no buffers
  const StepWorks works = works_of(workload, two_ranks());
  const CostModel model(two_ranks());
  CostModel changed = model;
  changed.collective.change.transfer = 0.5;
  changed.collective.change.latency = 0;
  changed.collective.call_overhead = 50us;
  const Priced before = priced(works, model, training), after = priced(works, changed, training);
  int buffers = 0, others = 0;
  for (std::size_t w = 0; w < before.schedule.works.size(); ++w) {
    const Work& work = before.schedule.works[w];
    if (!is_collective(work.operation)) continue;
    CAPTURE(describe(work));
    const bool same = before.costs.works[w].work == after.costs.works[w].work;
    CHECK(same == (work.message == Message::buffers));
    ++(work.message == Message::buffers ? buffers : others);
  }
  CHECK(buffers == 1);
  CHECK(others == 5);  // indices and lengths, three buckets
  // A broadcast takes half of an all-reduce's steps and bytes: one of 1 ms, 1 MB at 1 GB/s.
  for (const Priced* step : {&before, &after})
    for (const FlatTask& task : step->schedule.tasks)
      if (step->schedule.work_of(task).message == Message::buffers && is_collective(task.operation))
        CHECK(step->of(task).work == 1500us);
}

TEST_CASE("a collective of a few ranks of one node takes that node's link", "[model][cost_model]") {
  Cluster cluster = ring(4, 10us, gigabytes_per_second(100));
  cluster.nodes = 2;
  cluster.inter_node.latency = 1ms;
  cluster.inter_node.bandwidth = gigabytes_per_second(1);
  Work sum;
  sum.operation = Operation::all_reduce;
  sum.payload = {1'000'000};
  const auto time = [&](int group, CostModel model) {
    FlatStep schedule;
    schedule.works = {sum};
    schedule.works.front().group = group;
    return price(model, schedule).works.front().work;
  };
  // A ring of n: 2 (n - 1) steps of the latency and of an n-th of the bytes.
  const CostModel model(cluster);
  CHECK(time(4, model) == 6 * (10us + 2'500ns));
  CHECK(time(2, model) == 2 * (10us + 5us));
  CHECK(time(1, model) == 0us);
  CHECK(time(8, model) == 14 * (1ms + 125us));  // over both nodes
  CHECK(time(0, model) == time(8, model));
  // What is fitted to the link holds here too.
  CostModel faster = model;
  faster.collective.change.latency = 0.5;
  faster.collective.change.transfer = 0.25;
  CHECK(time(4, faster) == 6 * (5us + 625ns));
}

TEST_CASE("a collective across nodes has its share of their NICs", "[model][cost_model]") {
  Cluster cluster = ring(4, 10us, gigabytes_per_second(100));
  cluster.nodes = 4;
  cluster.inter_node.latency = 1ms;
  cluster.inter_node.bandwidth = gigabytes_per_second(1);
  const auto time = [&](int group, int stride) {
    FlatStep schedule;
    schedule.works = {{}};
    Work& sum = schedule.works.front();
    sum.operation = Operation::all_reduce;
    sum.payload = {1'000'000};
    sum.group = group;
    sum.stride = stride;
    return price(CostModel(cluster), schedule).works.front().work;
  };
  // Four groups of a rank on each node: a ring of 4 over nodes, 6 steps of a quarter of the bytes.
  for (const auto& [nics, quickness] : {std::pair(8, 1), {4, 1}, {2, 2}, {1, 4}}) {
    CAPTURE(nics);
    cluster.inter_node.nics = nics;
    const int each = std::max(1, nics / 4);
    CHECK(time(4, 4) == 6 * (1ms + quickness * 250us / each));
    // Of groups of two, every other node.
    CHECK(time(2, 4) == 2 * (1ms + quickness * 500us / each));
    CHECK(time(2, 8) == time(2, 4));
  }
  // Groups of two ranks on each node share its NICs by halves.
  cluster.inter_node.nics = 2;
  CHECK(time(8, 2) == 14 * (1ms + 125us));
  // Within a node, what groups of neighbours take.
  cluster.nodes = 1;
  CHECK(time(2, 2) == time(2, 1));
}

TEST_CASE("a wait for a gather or a reduce-scatter costs what it was measured to",
          "[model][cost_model]") {
  Cluster cluster = two_ranks(true);
  cluster.launch.wait = 50us;
  const auto cost = [&](Operation awaited) {
    FlatStep schedule;
    schedule.works.resize(1);
    schedule.works.front().operation = Operation::wait;
    schedule.works.front().awaited = awaited;
    return price(CostModel(cluster), schedule).works.front().host;
  };
  CHECK(cost(Operation::all_gather) == 50us);
  cluster.launch.wait_all_gather = 20us;
  CHECK(cost(Operation::all_gather) == 20us);
  CHECK(cost(Operation::reduce_scatter) == 50us);
  cluster.launch.wait_reduce_scatter = 0us;
  CHECK(cost(Operation::reduce_scatter) == 0us);
  for (const Operation other : {Operation::all_reduce, Operation::broadcast, Operation::all_to_all})
    CHECK(cost(other) == 50us);
}

TEST_CASE("the host pays for hooks, graph walks and, on a synchronous device, waits",
          "[model][cost_model]") {
  const auto cost = [](Work work, bool synchronous) {
    Cluster cluster = two_ranks(synchronous);
    cluster.launch = {1us, 2us, 3us, 4us, 5us};
    FlatStep schedule;
    schedule.works = {work};
    return price(CostModel(cluster), schedule).works.front();
  };
  Work hook;
  hook.operation = Operation::hook;
  hook.hook_calls = 1;
  Work search;
  search.operation = Operation::search_unused;
  search.launches = 40;
  Work wait;
  wait.operation = Operation::wait;
  Work for_buffers = wait;
  for_buffers.message = Message::buffers;
  Work left_out = wait;
  left_out.launches = 0;
  for (const bool synchronous : {false, true}) {
    CHECK(cost(hook, synchronous).host == 3us);
    CHECK(cost(search, synchronous).host == 40us);
    CHECK(cost(wait, synchronous).host == (synchronous ? 5us : 0us));
    CHECK(cost(for_buffers, synchronous).host == 0us);  // never measured
    CHECK(cost(left_out, synchronous).host == 0us);     // another rank's
    for (const Work& work : {hook, search, wait}) CHECK(cost(work, synchronous).work == 0us);
  }
  Work copy;
  copy.operation = Operation::copy_to_host;
  copy.payload = {1'000'000};
  Cluster through = two_ranks();
  through.through_host = gigabytes_per_second(10);
  through.launch = {1us, 2us, 3us, 4us, 5us};
  FlatStep schedule;
  Work own, handed_over;
  own.operation = handed_over.operation = Operation::all_reduce;
  handed_over.handed_over = true;
  schedule.works = {copy, own, handed_over};
  const Costs costs = price(CostModel(through), schedule);
  CHECK(costs.works[0].work == 100us);
  CHECK(costs.works[0].host == 1us);
  CHECK(costs.works[1].take_up == 0us);
  CHECK(costs.works[2].take_up == 4us);
  CHECK(costs.works[2].work == costs.works[1].work);
}
