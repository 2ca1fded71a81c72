#include "tests/sim/tune/bucket_structure.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <string>

#include <catch2/catch.hpp>

#include "model/parallel/order/build_job.hpp"
#include "model/timeline/job_timeline.hpp"
#include "sim/predict/predict.hpp"
#include "sim/tune/bucket_steps.hpp"
#include "sim/tune/lower_bound.hpp"
#include "tests/model/parallel/random_trainings.hpp"
#include "tests/sim/predict/random_exceptions.hpp"
#include "tests/sim/predict/random_trainings.hpp"
#include "tests/sim/tune/random_partitions.hpp"

namespace ddpsim {
namespace {

using namespace std::chrono_literals;
using fixtures::Dice;

/// A job of one program whose tasks can be changed one by one.
struct Draft {
  struct Row {
    program::Task task;
    std::vector<std::uint32_t> after;
  };
  program::Job job;
  std::vector<Row> tasks;

  Draft() = default;
  explicit Draft(program::Job of_it) : job(std::move(of_it)) {
    const program::Program& program = job.programs.front();
    for (std::size_t t = 0; t < program.tasks.size(); ++t) {
      const auto after = program.waits_for(t);
      tasks.push_back({program.tasks[t], {after.begin(), after.end()}});
    }
  }

  program::Job written() const {
    program::Job result = job;
    program::Program& program = result.programs.front();
    program.tasks.clear();
    program.after.clear();
    for (const Row& row : tasks) {
      program.after.insert(program.after.end(), row.after.begin(), row.after.end());
      program.tasks.push_back(row.task);
      program.tasks.back().after_end = static_cast<std::uint32_t>(program.after.size());
    }
    return result;
  }
};

/// A step with all gradients in one bucket, and with a bucket for each.
struct Extremes {
  Draft whole, each;

  Extremes(const StepWorks& works, Training training) {
    training.buckets = {works.arrival};
    whole = Draft(build_job(works, training, true));
    training.buckets.clear();
    for (const int index : works.arrival) training.buckets.push_back({index});
    each = Draft(build_job(works, training, true));
  }

  std::string why() const {
    return std::string(why_more_than_buckets(whole.written(), each.written()).value_or(""));
  }
};

/// Three layers with a parameter each.
Extremes three(const Training& training = {}, bool synchronous = false) {
  Workload workload = timed::chain(3, 1ms, 2ms, Bytes{4000});
  workload.optimizer = 1ms;
  workload.buffers = {{2, Bytes{64}}};
  Cluster cluster = timed::ring(2, 1us, gigabytes_per_second(1));
  cluster.device.synchronous = synchronous;
  return Extremes(timed::works_of(workload, cluster), training);
}

/// The index of the nth task with an operation, and of a bucket or of none.
std::uint32_t place_of(const Draft& step, Operation operation, bool of_bucket, int nth = 0) {
  for (std::uint32_t i = 0; i < step.tasks.size(); ++i) {
    const program::Task& task = step.tasks[i].task;
    const bool has_bucket = step.job.deed_of(task).origin.group != nobody;
    if (operation_of(step.job, task) == operation && has_bucket == of_bucket && nth-- == 0)
      return i;
  }
  throw std::out_of_range("there is no such task");
}

Draft::Row& task_of(Draft& step, Operation operation, bool of_bucket, int nth = 0) {
  return step.tasks[place_of(step, operation, of_bucket, nth)];
}

/// Other work for one task alone.
void change_work(Draft& step, Draft::Row& row, const std::function<void(Work&)>& change) {
  Work work = step.job.works[row.task.work];
  change(work);
  row.task.work = static_cast<std::uint32_t>(step.job.works.size());
  step.job.works.push_back(work);
}

void become(Draft& step, Draft::Row& row, Operation operation) {
  change_work(step, row, [&](Work& work) { work.operation = operation; });
}

/// Another bucket for one task alone.
void put_into(Draft& step, Draft::Row& row, std::int32_t bucket) {
  program::Deed deed = step.job.deed_of(row.task);
  deed.origin.group = bucket;
  row.task.deed = static_cast<std::uint32_t>(step.job.known_deeds() + step.job.own.deeds.size());
  step.job.own.deeds.push_back(deed);
}

std::uint8_t stream_named(const Draft& step, const std::string& name) {
  const auto& streams = step.job.streams;
  const auto found = std::ranges::find(streams, name, &program::Stream::name);
  REQUIRE(found != streams.end());
  return static_cast<std::uint8_t>(found - streams.begin());
}

Training training_with(const std::function<void(Training&)>& change) {
  Training training;
  change(training);
  return training;
}

/// With a collective of DDP's own behind the buckets, which is waited for behind theirs.
const Training with_used_map =
    training_with([](Training& training) { training.find_unused_parameters = true; });
const Training in_place =
    training_with([](Training& training) { training.gradient_as_bucket_view = true; });
const Training two_rounds = training_with([](Training& training) { training.micro_batches = 2; });

/// Why two steps do not qualify, and the smallest change to ones that do that makes it so.
struct Case {
  std::string why;
  Training training;
  std::function<void(Draft&, Draft&)> change;  ///< of `whole` and `each`
};

const std::vector<Case>& cases() {
  constexpr auto nothing = [](Draft&, Draft&) {};
  static const std::vector<Case> all{
      {"several collectives are under way at a time",
       {},
       [](Draft& whole, Draft&) { whole.job.communicators.front().at_once = 2; }},
      {"not every gradient is in DDP's buckets",
       {},
       [](Draft& whole, Draft&) { whole.job.groups.front().parameters.pop_back(); }},
      {"tasks run on more streams",
       {},
       [](Draft& whole, Draft&) {
         task_of(whole, Operation::optimizer, false).task.stream = stream_named(whole, "aside");
       }},
      {"tasks run on more streams",
       {},
       [](Draft& whole, Draft&) {
         task_of(whole, Operation::optimizer, false).task.stream =
             stream_named(whole, "communication");
       }},
      {"host and device both compute",
       {},
       [](Draft& whole, Draft&) { task_of(whole, Operation::optimizer, false).task.stream = 0; }},
      {"there are several communicators",
       {},
       [](Draft& whole, Draft&) {
         change_work(whole, task_of(whole, Operation::all_reduce, true),
                     [](Work& work) { work.communicator = 1; });
       }},
      {"a comm hook has steps",
       training_with([](Training& training) { training.comm_hook.kind = CommHookKind::allreduce; }),
       nothing},
      {"ranks have different work",
       {},
       [](Draft& whole, Draft&) {
         whole.job.programs.push_back(whole.job.programs.front());
         whole.job.program_of.back() = 1;
       }},
      {"the host waits for the device", training_with([](Training& training) {
         training.join = Join{};
         training.join->divide_by_initial_world_size = false;
       }),
       nothing},
      {"the host waits for the device", with_used_map,
       [](Draft& whole, Draft&) { task_of(whole, Operation::wait, false, 1).task.stream = 0; }},
      {"a kernel waits for more than its stream",
       {},
       [](Draft& whole, Draft&) { task_of(whole, Operation::optimizer, false).after = {0}; }},
      {"kernels work on whole buckets",
       training_with([](Training& training) { training.batched_grad_copy = true; }), nothing},
      {"kernels work on whole buckets",
       training_with([](Training& training) { training.flattened_buckets = true; }), nothing},
      {"kernels work on whole buckets", training_with([](Training& training) {
         training.flattened_buckets = true;
         training.average = Average::all_reduce;
       }),
       nothing},
      {"a bucket is not one all-reduce",
       {},
       [](Draft& whole, Draft&) {
         become(whole, task_of(whole, Operation::all_reduce, true), Operation::all_gather);
       }},
      {"a bucket is not one all-reduce",
       {},
       [](Draft& whole, Draft&) {
         change_work(whole, task_of(whole, Operation::all_reduce, true),
                     [](Work& work) { work.handed_over = false; });
       }},
      {"more than buckets is handed over",
       {},
       [](Draft& whole, Draft&) {
         change_work(whole, task_of(whole, Operation::broadcast, false),
                     [](Work& work) { work.handed_over = true; });
       }},
      {"a collective does not just wait for the kernels before it",
       {},
       [](Draft&, Draft& each) {  // a kernel further back
         Draft::Row& row = task_of(each, Operation::all_reduce, true, 1);
         row.after = {row.after.front() - 2};
       }},
      {"a wait is for no collective", with_used_map,
       [](Draft& whole, Draft&) { task_of(whole, Operation::wait, false).after = {}; }},
      {"a bucket's result is not that of its all-reduce",
       training_with([](Training& training) { training.comm_hook.kind = CommHookKind::noop; }),
       nothing},
      {"a bucket's result is not that of its all-reduce",
       {},
       [](Draft&, Draft& each) {
         task_of(each, Operation::wait, true, 1).after = {
             place_of(each, Operation::all_reduce, true, 0)};
       }},
      {"others wait for a bucket", with_used_map,
       [](Draft& whole, Draft&) {
         task_of(whole, Operation::wait, false, 1).after = {
             place_of(whole, Operation::all_reduce, true)};
       }},
      {"a wait is for several collectives", with_used_map,
       [](Draft& whole, Draft&) {
         task_of(whole, Operation::wait, false, 1).after = {
             place_of(whole, Operation::all_reduce, false),
             place_of(whole, Operation::broadcast, false)};
       }},
      {"not every bucket is sent and waited for",
       {},
       [](Draft&, Draft& each) { each.tasks.clear(); }},
      {"a gradient is put in its bucket twice",
       {},
       [](Draft&, Draft& each) { put_into(each, task_of(each, Operation::copy_in, true, 1), 0); }},
      {"gradients come in another order in another micro-batch", two_rounds,
       [](Draft&, Draft& each) {
         put_into(each, task_of(each, Operation::copy_in, true, 3), 1);
         put_into(each, task_of(each, Operation::copy_in, true, 4), 0);
       }},
      {"a bucket is not sent as soon as its turn comes", Training{},
       [](Draft&, Draft& each) {  // only behind the next kernel
         const std::uint32_t sent = place_of(each, Operation::all_reduce, true, 0);
         std::swap(each.tasks[sent], each.tasks[sent + 1]);
         each.tasks[sent + 1].after = {sent};
         task_of(each, Operation::wait, true, 0).after = {sent + 1};
       }},
      {"buckets are not waited for in order", in_place,
       [](Draft&, Draft& each) {
         std::swap(task_of(each, Operation::wait, true, 0),
                   task_of(each, Operation::wait, true, 1));
       }},
      {"something else is done between two waits", in_place,
       [](Draft&, Draft& each) {
         std::swap(task_of(each, Operation::wait, true, 2),
                   task_of(each, Operation::optimizer, false));
       }},
      {"something else is sent between buckets", with_used_map,
       [](Draft&,
          Draft& each) {  // in the place of the backward kernel behind the first bucket
         const std::uint32_t map = place_of(each, Operation::all_reduce, false);
         const std::uint32_t kernel = place_of(each, Operation::backward, false, 1);
         std::swap(each.tasks[map], each.tasks[kernel]);
         each.tasks[kernel].after = {place_of(each, Operation::copy_in, true, 0)};
         task_of(each, Operation::wait, false, 1).after = {kernel};
       }},
      {"a gradient is copied back apart from its wait",
       {},
       [](Draft&, Draft& each) {
         std::swap(task_of(each, Operation::copy_out, true, 2),
                   task_of(each, Operation::optimizer, false));
       }},
      {"not every gradient is copied back",
       {},
       [](Draft&, Draft& each) {
         become(each, task_of(each, Operation::copy_out, true, 2), Operation::optimizer);
       }},
      {"one bucket is sent or waited for elsewhere than several",
       {},
       [](Draft& whole, Draft&) {
         std::swap(task_of(whole, Operation::wait, true),
                   task_of(whole, Operation::copy_out, true, 0));
       }},
      {"other kernels run under other buckets",
       {},
       [](Draft&, Draft& each) {
         change_work(each, task_of(each, Operation::optimizer, false),
                     [](Work& work) { work.known_time = 2ms; });
       }},
      {"other kernels run under other buckets", {}, [](Draft&, Draft& each) {
         each.tasks.pop_back();
       }}};
  return all;
}

}  // namespace

TEST_CASE("DDP's steps differ in launches and waits of buckets", "[sim][bucket_structure]") {
  CHECK(three().why().empty());
  CHECK(three(in_place).why().empty());
  CHECK(three(two_rounds).why().empty());
  CHECK(three(with_used_map).why().empty());
  CHECK(three({}, true).why().empty());
  CHECK(three(two_rounds, true).why().empty());
  // So do these, which do more than that, but the same under all buckets.
  Training joined;
  joined.join = Join{};
  joined.broadcast_buffers = false;
  CHECK(three(joined).why().empty());
  joined.join->throw_on_early_termination = joined.broadcast_buffers = true;
  CHECK(three(joined, true).why().empty());
  CHECK(three(joined).why() == "the host waits for the device");
  Training early;
  early.iteration = 2;
  CHECK(three(early).why().empty());
}

TEST_CASE("a network without kernels in its forward pass qualifies too",
          "[sim][bucket_structure]") {
  Workload workload = timed::chain(3, 1ms, 2ms, Bytes{4000});
  for (Layer& layer : workload.layers) layer.forward.clear();
  Cluster cluster = timed::ring(2, 1us, gigabytes_per_second(1));
  cluster.device.synchronous = GENERATE(false, true);
  CHECK(Extremes(timed::works_of(workload, cluster), {}).why().empty());
}

TEST_CASE("what differs in more than launches and waits of buckets is told by its structure",
          "[sim][bucket_structure]") {
  for (const Case& each : cases()) {
    CAPTURE(each.why);
    Extremes extremes = three(each.training);
    each.change(extremes.whole, extremes.each);
    CHECK(extremes.why() == each.why);
  }
}

TEST_CASE("gradients that DDP does not reduce are in none of its buckets",
          "[sim][bucket_structure]") {
  Training training;
  training.delayed = DelayedAllReduce{{2}, 0};
  Extremes extremes = three();
  extremes.whole = Draft(build_job(timed::works_of(timed::chain(3, 1ms, 2ms, Bytes{4000}),
                                                   timed::ring(2, 1us, gigabytes_per_second(1))),
                                   training));
  CHECK(extremes.why() == "not every gradient is in DDP's buckets");
}

namespace {

struct Draw {
  Workload workload;
  StepModel model;
  Training training;

  bool has(bool Parameter::*flag) const {
    return std::any_of(workload.parameters.begin(), workload.parameters.end(),
                       [&](const Parameter& each) { return each.*flag; });
  }
  bool hooks(bool chunks) const {
    return std::any_of(training.hooks.begin(), training.hooks.end(), [&](const UserHook& each) {
      return (each.kind == UserHookKind::chunks) == chunks;
    });
  }
};

/// What a draw may have, and how many that have it are fast and simulated, of 4000 at least.
struct Feature {
  const char* name;
  bool (*in)(const Draw&);
  int fast, simulated;
};
constexpr int always = -1;  // in place of `fast`: none is

const std::vector<Feature> features{
    {"views", [](const Draw& d) { return d.training.gradient_as_bucket_view; }, 350, 600},
    {"views of 1.13",
     [](const Draw& d) {
       return d.training.gradient_as_bucket_view && d.training.pytorch == PyTorch::v1_13;
     },
     90, 150},
    {"views of 2.13",
     [](const Draw& d) {
       return d.training.gradient_as_bucket_view && d.training.pytorch == PyTorch::v2_13;
     },
     80, 150},
    {"micro-batches",
     [](const Draw& d) { return d.training.micro_batches > 1 && !d.training.no_sync; }, 180, 300},
    {"no_sync", [](const Draw& d) { return d.training.micro_batches > 1 && d.training.no_sync; },
     160, 300},
    {"find_unused",
     [](const Draw& d) { return d.training.find_unused_parameters && !d.has(&Parameter::unused); },
     140, 300},
    {"static graph", [](const Draw& d) { return d.training.static_graph; }, 140, 350},
    {"unused", [](const Draw& d) { return d.has(&Parameter::unused); }, 5, 350},
    {"sparse", [](const Draw& d) { return d.has(&Parameter::sparse); }, always, 350},
    {"several types",
     [](const Draw& d) {
       return std::any_of(d.model.works.gradients.begin(), d.model.works.gradients.end(),
                          [&](const GradientInfo& each) {
                            return each.dtype != d.model.works.gradients[0].dtype;
                          });
     },
     200, 300},
    {"buffers",
     [](const Draw& d) { return d.training.broadcast_buffers && !d.model.works.buffers.empty(); },
     300, 500},
    {"iteration 1", [](const Draw& d) { return d.training.iteration == 1; }, 30, 100},
    {"later iterations", [](const Draw& d) { return d.training.iteration > 1; }, 110, 250},
    {"join", [](const Draw& d) { return d.training.join.has_value(); }, 50, 400},
    {"skip unused", [](const Draw& d) { return d.training.skip_all_reduce_unused_params; }, 140,
     300},
    {"batched copies",
     [](const Draw& d) { return d.training.batched_grad_copy && !d.training.comm_hook; }, always,
     380},
    {"comm hook", [](const Draw& d) { return static_cast<bool>(d.training.comm_hook); }, always,
     400},
    {"wrapped comm hook", [](const Draw& d) { return !d.training.comm_hook.wrappers.empty(); },
     always, 80},
    {"noop", [](const Draw& d) { return d.training.comm_hook.kind == CommHookKind::noop; }, always,
     30},
    {"gradient hooks", [](const Draw& d) { return d.hooks(false); }, 140, 350},
    {"chunks on the host", [](const Draw& d) { return d.hooks(true) && d.model.costs.synchronous; },
     35, 50},
    {"chunks of a GPU", [](const Draw& d) { return d.hooks(true) && !d.model.costs.synchronous; },
     always, 350},
    {"several at once", [](const Draw& d) { return d.model.works.device.collectives_at_once > 1; },
     always, 220},
    {"through the host", [](const Draw& d) { return d.model.works.device.through_host; }, always,
     180},
    {"slower rank",
     [](const Draw& d) { return d.model.costs.slowest_rank > 1 && d.model.costs.ranks > 1; }, 300,
     500},
    {"exceptions", [](const Draw& d) { return !d.model.costs.exceptions.empty(); }, 200, 400}};

/// What was fast when the tuner went by a list of features: it has to stay so.
bool is_on_the_list(const Draw& draw) {
  const Training& training = draw.training;
  return !training.comm_hook && !training.join && !training.batched_grad_copy &&
         training.iteration == 0 && draw.model.works.device.collectives_at_once == 1 &&
         !draw.model.works.device.through_host && !draw.hooks(true) &&
         !draw.has(&Parameter::sparse) && !draw.has(&Parameter::unused);
}

/// Every bucketing takes as long as predicted.
void check_steps(Dice& dice, const StepModel& model, const Training& training, BucketSteps& steps) {
  for (int draw = 0; draw < 4; ++draw) {
    const int one_in = dice.between(1, 4);
    std::vector<int> ends;
    for (int end = 1; end < steps.size(); ++end)
      if (dice.one_in(one_in)) ends.push_back(end);
    ends.push_back(steps.size());
    Training explicit_buckets = training;
    explicit_buckets.buckets = fixtures::buckets_of(model, ends);
    const Duration expected = predict(model, explicit_buckets).metrics.step;
    CAPTURE(draw, ends);
    REQUIRE(steps.of(ends) == expected);
    REQUIRE(steps.of(ends, expected) == expected);
    REQUIRE(steps.of(ends, expected - Duration{1}) > expected - Duration{1});
  }
  if (steps.why_simulated() || steps.size() > 6) return;
  const Duration bound = lower_bound(steps, best_partition(steps.ideal()).step);
  fixtures::for_each_partition(
      steps.size(), [&](const std::vector<int>& ends) { REQUIRE(steps.of(ends) >= bound); });
}

}  // namespace

TEST_CASE("whatever a training asks for, steps are as predicted to the tick, or it is said why not",
          "[sim][bucket_structure]") {
  std::set<std::string> known, met;
  for (const Case& each : cases()) known.insert(each.why);
  std::map<std::string, int> fast, simulated;  // [feature] draws
  int refused = 0;
  for (std::uint64_t seed = 0; seed < 4000; ++seed) {
    CAPTURE(seed);
    Dice dice(seed);
    const Workload workload = fixtures::any_workload(dice);
    const StepModel model(workload, fixtures::any_cluster(dice), Optimizer::sgd);
    Draw draw{workload, model, {}};
    if (dice.one_in(3)) draw.model.costs.slowest_rank = 1 + 0.01 * dice.between(1, 40);
    if (seed % 3 == 0) fixtures::differ_some_ranks(dice, draw.model.costs);
    draw.training = fixtures::any_training(dice, workload);
    draw.training.buckets = {draw.model.works.arrival};
    try {
      build_job(draw.model.works, draw.training);
    } catch (const std::invalid_argument&) {
      ++refused;
      CHECK_THROWS_AS(BucketSteps(draw.model, draw.training), std::invalid_argument);
      continue;
    }
    BucketSteps steps(draw.model, draw.training);
    const std::string why(steps.why_simulated().value_or(""));
    REQUIRE(why == Extremes(draw.model.works, draw.training).why());
    CAPTURE(why, draw.model.costs.synchronous, draw.training.iteration);
    check_steps(dice, draw.model, draw.training, steps);
    if (!why.empty()) REQUIRE(known.count(why) == 1);
    if (!why.empty()) met.insert(why);
    std::map<std::string, int>& counts = why.empty() ? fast : simulated;
    ++counts["any"];
    if (is_on_the_list(draw)) ++counts["on the list"];
    for (const Feature& each : features)
      if (each.in(draw)) ++counts[each.name];
  }
  CHECK(fast["on the list"] > 1000);
  CHECK(simulated["on the list"] == 0);
  CHECK(fast["any"] > fast["on the list"] + 250);
  CHECK(refused < 100);
  CHECK(met.size() >= 10);
  for (const Feature& each : features) {
    CAPTURE(each.name);
    if (each.fast == always)
      CHECK(fast[each.name] == 0);
    else
      CHECK(fast[each.name] >= each.fast);
    CHECK(simulated[each.name] >= each.simulated);
  }
}

namespace {

/// What a step consists of and how it is trained, as far as its buckets may change something.
struct Drawn {
  StepWorks works;
  Training training;
};

/// With collectives of the network's own, and gradients that arrive in any order.
Workload drawn_workload(drawn::Draw& draw) {
  Workload workload = drawn::random_workload(draw);
  const auto layers = static_cast<int>(workload.layers.size());
  if (draw.one_in(4))
    for (int left = draw.between(1, 3); left > 0; --left) {
      const int layer = draw.between(0, layers - 1);
      const auto kernels = static_cast<int>(workload.layers[at(layer)].backward.size());
      workload.collectives.push_back({.size = {draw.between(1, 1000) * 4},
                                      .backward = true,
                                      .layer = layer,
                                      .after = draw.between(0, kernels - 1)});
    }
  if (draw.one_in(3)) {
    workload.arrival = arrival_order(workload);
    for (std::size_t i = 1; i < workload.arrival.size(); ++i)
      std::swap(workload.arrival[i], workload.arrival[at(draw.between(0, static_cast<int>(i)))]);
  }
  return workload;
}

Drawn drawn_step(drawn::Draw& draw) {
  const Workload workload = drawn_workload(draw);
  Cluster cluster = drawn::random_cluster(draw);
  if (!draw.one_in(3)) cluster.collectives_at_once = 1;
  if (!draw.one_in(3)) cluster.through_host.reset();
  Training training = drawn::random_training(draw, workload);
  training.strategy = Strategy::bucketed;
  training.delayed.reset();
  if (!draw.one_in(3)) training.comm_hook = {};
  if (!draw.one_in(3)) training.batched_grad_copy = false;
  if (draw.one_in(3)) training.average = Average::all_reduce;
  return {StepWorks(workload, cluster, Optimizer::sgd), training};
}

}  // namespace

TEST_CASE("a policy says of every step what the comparison of two steps finds",
          "[sim][bucket_structure]") {
  std::map<std::string, int> said;
  int refused = 0;
  for (std::uint64_t seed = 0; seed < 8000; ++seed) {
    CAPTURE(seed);
    drawn::Draw draw(seed);
    const Drawn step = drawn_step(draw);
    try {
      const std::string why(
          build_one_bucket(step.works, step.training).marks.why_more().value_or(""));
      CHECK(why == Extremes(step.works, step.training).why());
      ++said[why];
    } catch (const std::invalid_argument&) {
      ++refused;
    }
  }
  CHECK(refused < 2000);
  CHECK(said[""] > 2000);
  for (const char* why :
       {"several collectives are under way at a time", "tasks run on more streams",
        "the host waits for the device", "kernels work on whole buckets", "a comm hook has steps",
        "there are several communicators", "a bucket's result is not that of its all-reduce",
        "a bucket is not one all-reduce", "a bucket is not sent as soon as its turn comes",
        "something else is sent between buckets", "buckets are not waited for in order",
        "something else is done between two waits", "a gradient is copied back apart from its wait",
        "not every gradient is copied back", "other kernels run under other buckets"}) {
    CAPTURE(why);
    CHECK(said[why] > 5);
  }
}

TEST_CASE("a step that sends no bucket says so", "[sim][bucket_structure]") {
  Workload workload = timed::chain(3, 1ms, 2ms, Bytes{4000});
  for (Parameter& each : workload.parameters) each.unused = true;
  const StepWorks works = timed::works_of(workload, timed::ring(2, 1us, gigabytes_per_second(1)));
  Training training;
  training.static_graph = true;
  const std::string why(build_one_bucket(works, training).marks.why_more().value_or(""));
  CHECK(why == "not every bucket is sent and waited for");
  CHECK(why == Extremes(works, training).why());
}

TEST_CASE("marks are on the tasks that buckets decide on", "[sim][bucket_structure]") {
  using Kind = BucketMark::Kind;
  const StepWorks works = timed::works_of(timed::chain(2, 1ms, 2ms, Bytes{4000}),
                                          timed::ring(2, 1us, gigabytes_per_second(1)));
  const OneBucket step = build_one_bucket(works, two_rounds);
  const auto& tasks = step.job.programs.front().tasks;
  std::vector<std::pair<Kind, Operation>> marked;
  std::vector<std::int32_t> parameters;
  for (const BucketMark& mark : step.marks.all()) {
    const auto task = std::ranges::find(tasks, mark.deed, &program::Task::deed);
    REQUIRE(task != tasks.end());
    marked.emplace_back(mark.kind, operation_of(step.job, *task));
    parameters.push_back(mark.parameter);
    CHECK(step.job.deed_of(*task).origin.parameter == mark.parameter);
  }
  // The gradient of the last layer comes first.
  const std::vector<std::pair<Kind, Operation>> round{
      {Kind::filled, Operation::copy_in},      {Kind::filled, Operation::copy_in},
      {Kind::launched, Operation::all_reduce}, {Kind::awaited, Operation::wait},
      {Kind::taken, Operation::copy_out},      {Kind::taken, Operation::copy_out}};
  auto both = round;
  both.insert(both.end(), round.begin(), round.end());
  CHECK(marked == both);
  CHECK(parameters == std::vector<std::int32_t>{1, 0, nobody, nobody, 1, 0,  //
                                                1, 0, nobody, nobody, 1, 0});
}

}  // namespace ddpsim
