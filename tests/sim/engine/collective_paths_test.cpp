// Where collectives run and in whose queue: over the hosts' memory, beside DDP's own, or waited for
// by nobody.
#include <algorithm>

#include <catch2/catch.hpp>

#include "sim/predict/predict.hpp"
#include "sim/tune/tune.hpp"
#include "tests/model/flat_step.hpp"
#include "tests/model/parallel/schedule_story.hpp"
#include "tests/sim/predict/models.hpp"

namespace ddpsim::timed {
namespace {

using namespace std::chrono_literals;

/// 1 GB/s between GPU and host: a byte is a nanosecond.
StepModel through_host(Workload workload = two_layers(), int ranks = 2) {
  Cluster cluster = ring(ranks, 1ms, gigabytes_per_second(1));
  cluster.through_host = gigabytes_per_second(1);
  return model_of(workload, cluster);
}

Bytes moved(const FlatStep& schedule, Operation operation) {
  Bytes sum;
  for (const FlatTask& task : schedule.tasks)
    if (task.operation == operation) sum += schedule.work_of(task).payload;
  return sum;
}

/// `b` and `c` go together, sent by the hook on `a`, whose gradient comes last.
Training delayed() {
  Training training = small_caps();
  training.delayed = DelayedAllReduce{{1, 2}, 0};
  return training;
}

bool any_host_waits(const FlatStep& schedule) {
  return std::ranges::any_of(schedule.tasks,
                             [&](const FlatTask& task) { return schedule.host_waits(task); });
}

}  // namespace

TEST_CASE("R38: each bucket is copied to the host, reduced there and copied back", "[sim][rules]") {
  const StepModel model = through_host();
  const FlatStep schedule = flat_step(model.works, small_caps());
  const Costs costs = model.costs.price(schedule.works, schedule.passes);
  CHECK(waits_for(schedule, "copy to host 0") == Story{"copy in 2 -> 0"});
  CHECK(waits_for(schedule, "all-reduce 0") == Story{"copy to host 0"});
  CHECK(waits_for(schedule, "copy to device 0") == Story{"all-reduce 0"});
  CHECK(moved(schedule, Operation::copy_to_host) == Bytes{4440});
  CHECK(moved(schedule, Operation::copy_to_device) == Bytes{4440});
  for (const FlatTask& task : schedule.tasks) {
    if (task.operation == Operation::copy_to_host) {
      CHECK(task.stream == StepStream::to_host);
      CHECK(costs.works[task.work].work == Duration{1000 * schedule.work_of(task).payload.count});
    }
    if (task.operation == Operation::copy_to_device) CHECK(task.stream == StepStream::to_device);
  }
}

TEST_CASE("R38: the host waits for the all-reduce, the device for the copy behind it",
          "[sim][rules]") {
  const FlatStep schedule = flat_step(through_host().works, small_caps());
  std::vector<const FlatTask*> waits;
  for (const FlatTask& task : schedule.tasks)
    if (task.operation == Operation::wait && task.bucket == 0) waits.push_back(&task);
  REQUIRE(waits.size() == 2);
  CHECK(schedule.host_waits(*waits[0]));
  CHECK(schedule.tasks[schedule.waits_for(*waits[0]).front()].operation == Operation::all_reduce);
  CHECK(!schedule.host_waits(*waits[1]));
  CHECK(schedule.tasks[schedule.waits_for(*waits[1]).front()].operation ==
        Operation::copy_to_device);
  // On the devices nothing is copied, and no host waits.
  const FlatStep direct =
      flat_step(works_of(two_layers(), ring(2, 1ms, gigabytes_per_second(1))), small_caps());
  CHECK(count(direct, Operation::copy_to_host) == 0);
  CHECK(!any_host_waits(direct));
}

TEST_CASE("R38: what DDP tells and what comm hooks send goes the same way", "[sim][rules]") {
  Workload workload = two_layers();
  workload.buffers = {{2, Bytes{64}}};
  Training training = small_caps();
  training.find_unused_parameters = true;
  const FlatStep told = flat_step(through_host(workload).works, training);
  CHECK(moved(told, Operation::copy_to_host) == Bytes{4440 + 64 + 12});
  CHECK(count(told, Operation::copy_to_device) == count(told, Operation::all_reduce) + 1);

  training = small_caps();
  training.comm_hook.kind = CommHookKind::fp16_compress;
  CHECK(moved(flat_step(through_host().works, training), Operation::copy_to_host) == Bytes{2220});
  // Everyone's parts come back: four ranks' bytes and scales.
  training.comm_hook.kind = CommHookKind::quantization_pertensor;
  const FlatStep gathered = flat_step(through_host(two_layers(), 4).works, training);
  CHECK(moved(gathered, Operation::copy_to_device) == 4 * moved(gathered, Operation::copy_to_host));
}

TEST_CASE("R38: a copy is beside the kernels of backward, and lengthens what comes after",
          "[sim][rules]") {
  Workload workload = two_layers();
  workload.parameters[2].shape = {250'000};  // 1 MB: 1 ms of copies each way
  const Step step = predict(through_host(workload), small_caps());
  const Step direct =
      predict(model_of(workload, ring(2, 1ms, gigabytes_per_second(1))), small_caps());
  CHECK(step.metrics.backward == direct.metrics.backward);
  CHECK(step.metrics.buckets[0].start - direct.metrics.buckets[0].start == 1ms);
}

TEST_CASE("R50: delayed parameters go in one all-reduce behind their hook", "[sim][rules]") {
  const FlatStep schedule = flat_step(works_of(two_layers(), constant(2, 5ms)), delayed());
  REQUIRE(schedule.buckets.size() == 2);
  CHECK(schedule.buckets[0].parameters == std::vector<std::int32_t>{0});
  CHECK(schedule.buckets[1].parameters == std::vector<std::int32_t>{1, 2});
  CHECK(schedule.buckets[1].size == Bytes{440});
  const Story lines = story(schedule);
  const auto of = [&](const std::string& line) {
    return std::find(lines.begin(), lines.end(), line) - lines.begin();
  };
  CHECK(of("backward 0.0") < of("divide 1"));
  CHECK(of("all-reduce 1") == of("divide 1") + 1);
  CHECK(of("hook 0 -> 0") == of("all-reduce 1") + 1);  // the user's hook comes before DDP's
  // They are in DDP's buckets no more: it has no hooks on them, and copies nothing.
  for (const int index : {1, 2})
    for (const FlatTask& task : schedule.tasks) CHECK(task.parameter != index);
}

TEST_CASE("R50: nobody waits for the delayed all-reduce", "[sim][rules]") {
  const StepModel model = model_of(two_layers(), constant(2, 5ms));
  const Step predicted = predict(model, delayed());
  const RankOfJob rank = predicted.rank();
  const auto& tasks = rank.program.tasks;
  const auto sent = std::ranges::find_if(tasks, [&](const program::Task& task) {
    return rank.communicates(task) && rank.origin_of(task).group == 1;
  });
  REQUIRE(sent != tasks.end());
  const auto index = static_cast<std::size_t>(sent - tasks.begin());
  CHECK(std::ranges::count(rank.program.after, index) == 0);
  CHECK(count(flat(predicted.job()), Operation::wait) == 1);
  // One communicator is one queue, so DDP's own bucket stands behind it all the same.
  CHECK(predicted.metrics.buckets[0].start >= rank.times[index].end);
}

TEST_CASE("R50: a hook that comes before a delayed gradient is refused", "[sim][rules]") {
  const StepModel model = model_of(two_layers(), constant(2, 5ms));
  Training training = delayed();
  training.delayed = DelayedAllReduce{{0}, 1};
  CHECK_THROWS_WITH(flat_step(model.works, training),
                    "training.delay_all_reduce.hook: a gets its gradient after this one, or never, "
                    "and would be sent before: name a parameter that comes later in backward");
  training = delayed();
  training.micro_batches = 2;
  CHECK_THROWS_WITH(flat_step(model.works, training), Catch::Contains("set micro_batches: 1"));
}

TEST_CASE("R17: collectives of a comm hook's own group stand in a queue of their own",
          "[sim][rules]") {
  Training training = small_caps();
  training.comm_hook.kind = CommHookKind::steps;
  OwnStep scatter, gather;
  scatter.kind = OwnStep::Kind::reduce_scatter;
  gather.kind = OwnStep::Kind::all_gather;
  training.comm_hook.steps = {scatter, gather};
  Workload workload = two_layers();
  for (Parameter& each : workload.parameters) each.shape = {2'000'000};
  const StepModel model = model_of(workload, ring(2, 1us, gigabytes_per_second(1)));
  const Step one = predict(model, training);
  training.comm_hook.steps[1].communicator = 1;
  const Step two = predict(model, training);
  // With one communicator no two collectives are under way; with two, gathers of a bucket run
  // beside the next one's reduce-scatter.
  const auto overlaps = [](const Step& predicted) {
    const RankOfJob rank = predicted.rank();
    int found = 0;
    Instant free{};
    for (std::size_t i = 0; i < rank.program.tasks.size(); ++i) {
      if (!rank.communicates(rank.program.tasks[i])) continue;
      const TaskTimes& at = rank.times[i];
      found += at.start < free ? 1 : 0;
      free = std::max(free, at.end);
    }
    return found;
  };
  CHECK(overlaps(one) == 0);
  CHECK(overlaps(two) > 0);
  const FlatStep schedule = flat(two.job());
  for (const FlatTask& task : schedule.tasks)
    if (is_collective(task.operation))
      CHECK(schedule.work_of(task).communicator ==
            (task.operation == Operation::all_gather ? 1 : 0));
}

TEST_CASE("communication is the time in which any collective is under way", "[sim][metrics]") {
  Cluster cluster = ring(2, 1us, gigabytes_per_second(1));
  Workload workload = two_layers();
  for (Parameter& each : workload.parameters) each.shape = {2'000'000};
  const Step one = predict(model_of(workload, cluster), small_caps());
  cluster.collectives_at_once = 2;
  const Step two = predict(model_of(workload, cluster), small_caps());
  // The link is as busy either way, but for latencies that overlap.
  CHECK(two.metrics.communication <= one.metrics.communication);
  CHECK(two.metrics.communication >= one.metrics.communication - Duration{10us});
}

TEST_CASE("R17: comm hooks compute behind collectives of their own group", "[sim][rules]") {
  Training training = small_caps();
  const StepModel model = model_of(two_layers(), ring(4, 1us, gigabytes_per_second(1)));
  training.comm_hook.kind = CommHookKind::steps;
  OwnStep cast, reduce;
  cast.kind = OwnStep::Kind::cast;
  cast.type = DType::fp16;
  reduce.communicator = 1;
  training.comm_hook.steps = {cast, reduce};
  const Step own = predict(model, training);  // cast back aside
  training.comm_hook.steps[1].communicator = 0;
  CHECK(own.metrics.step == predict(model, training).metrics.step);
  CHECK(count(flat(own.job()), Operation::cast) == 6);
}

TEST_CASE("R38: the host waits for collectives only", "[sim][rules]") {
  Training training = small_caps();
  training.comm_hook.kind = CommHookKind::noop;
  const FlatStep nothing = flat_step(through_host().works, training);
  CHECK(!any_host_waits(nothing));
  training.comm_hook.kind = CommHookKind::fp16_compress;
  const FlatStep cast = flat_step(through_host().works, training);
  for (const FlatTask& task : cast.tasks)
    if (cast.host_waits(task))
      CHECK(is_collective(cast.tasks[cast.waits_for(task).front()].operation));
}

TEST_CASE("R50: what DDP tells counts its own parameters only", "[sim][rules]") {
  Training training = delayed();
  training.find_unused_parameters = true;
  const FlatStep schedule = flat_step(works_of(two_layers(), constant(2, 5ms)), training);
  for (const FlatTask& task : schedule.tasks)
    if (is_collective(task.operation) && schedule.work_of(task).message == Message::used_map)
      CHECK(schedule.work_of(task).payload == Bytes{4});
  training = delayed();
  training.iteration = 2;
  const FlatStep rebuilt = flat_step(works_of(two_layers(), constant(2, 5ms)), training);
  int told = 0;
  for (const FlatTask& task : rebuilt.tasks) {
    if (!is_collective(task.operation)) continue;
    const Work& work = rebuilt.work_of(task);
    if (work.message == Message::bucket_indices) told += work.payload == Bytes{8};
    if (work.message == Message::bucket_lengths) told += work.payload == Bytes{4};
  }
  CHECK(told == 2);
}

TEST_CASE("R50: what cannot go with a delayed all-reduce is refused", "[sim][rules]") {
  const StepModel model = model_of(two_layers(), constant(2, 5ms));
  Training training = delayed();
  training.join = Join{};
  CHECK_THROWS_WITH(flat_step(model.works, training), Catch::Contains("take join out"));
  training = delayed();
  training.comm_hook.kind = CommHookKind::optimizer_overlap;
  CHECK_THROWS_WITH(flat_step(model.works, training), Catch::Contains("in DDP's buckets only"));
  CHECK_THROWS_WITH(tune(model, delayed(), TuneOptions{}), Catch::Contains("takes some out"));
}

}  // namespace ddpsim::timed
