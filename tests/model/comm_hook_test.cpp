// What comm hooks hand to collectives, and when: held against the formulas and check values of the
// reference (sections 4 and 4.1), and the shape of their schedules.
#include "model/comm_hook.hpp"

#include <catch2/catch.hpp>

#include "model/schedule_builder.hpp"
#include "tests/model/schedule_story.hpp"

using namespace ddpsim;
using namespace ddpsim::timed;
using namespace std::chrono_literals;

namespace {

/// The bucket of the reference's check values: 4096 x 1024, 4096, 512 x 256 x 3 x 3, 512.
CommBucket reference_bucket() {
  return {
      {matrix_of({4096, 1024}), matrix_of({4096}), matrix_of({512, 256, 3, 3}), matrix_of({512})},
      DType::fp32};
}

CommHook hook_of(CommHookKind kind) {
  CommHook hook;
  hook.kind = kind;
  return hook;
}

CommHook powersgd(int rank, CommHookKind kind = CommHookKind::powersgd) {
  CommHook hook = hook_of(kind);
  hook.powersgd.rank = rank;
  return hook;
}

std::vector<std::int64_t> payloads(const CommHook& hook, const CommBucket& bucket, int ranks = 2,
                                   int iteration = 0) {
  std::vector<std::int64_t> sizes;
  for (const CommStep& step : comm_steps(hook, bucket, ranks, ranks, true, iteration))
    if (is_collective(step.operation)) sizes.push_back(step.payload.count);
  return sizes;
}

using Sizes = std::vector<std::int64_t>;

Training with_hook(const CommHook& hook) {
  Training training;
  training.buckets = {{2, 1}, {0}};
  training.comm_hook = hook;
  return training;
}

Cluster two_gpus() {
  return ring(2, 1ms, gigabytes_per_second(1));
}
Cluster two_cpus() {
  Cluster cluster = two_gpus();
  cluster.device.synchronous = true;
  return cluster;
}

std::vector<std::string> actions(const Schedule& schedule, std::int32_t bucket, Stream stream) {
  std::vector<std::string> names;
  for (const Task& task : schedule.tasks)
    if (task.bucket == bucket && task.step != nobody && task.stream == stream)
      names.emplace_back(name_of(schedule.buckets[static_cast<std::size_t>(bucket)]
                                     .steps[static_cast<std::size_t>(task.step)]
                                     .action));
  return names;
}

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("R39: 16-bit hooks halve the payload of fp32 and cast back on a side stream",
          "[model][comm_hook][rules]") {
  const CommHookKind kind = GENERATE(CommHookKind::fp16_compress, CommHookKind::bf16_compress);
  CHECK(payloads(hook_of(kind), reference_bucket()) == Sizes{2 * 5'378'560});
  const Schedule gpus =
      build_schedule(costs_of(two_layers(), two_gpus()), with_hook(hook_of(kind)));
  CHECK(actions(gpus, 0, Stream::compute) == Names{"cast to wire", "divide"});
  CHECK(actions(gpus, 0, Stream::communication) == Names{"all-reduce"});
  CHECK(actions(gpus, 0, Stream::aside) == Names{"cast back"});
  // Where kernels run on the host thread, the one that communicates does what follows.
  const Schedule cpus =
      build_schedule(costs_of(two_layers(), two_cpus()), with_hook(hook_of(kind)));
  CHECK(actions(cpus, 0, Stream::host) == Names{"cast to wire", "divide"});
  CHECK(actions(cpus, 0, Stream::communication) == Names{"all-reduce", "cast back"});
}

TEST_CASE("R40: PowerSGD's payload is that of the reference's table", "[model][comm_hook][rules]") {
  CHECK(payloads(powersgd(1), reference_bucket()) == Sizes{4 * 4608, 4 * 4608, 4 * 3328});
  CHECK(payloads(powersgd(2), reference_bucket()) == Sizes{4 * 4608, 4 * 9216, 4 * 6656});
  CHECK(payloads(powersgd(4), reference_bucket()) == Sizes{4 * 4608, 4 * 18432, 4 * 13312});
  CHECK(payloads(powersgd(1, CommHookKind::batched_powersgd), reference_bucket()) ==
        Sizes{4 * 2320, 4 * 2320});
}

TEST_CASE("R40: a gradient is compressed if that saves strictly more than asked",
          "[model][comm_hook][rules]") {
  PowerSgd state;
  CHECK(powersgd_rank(state, {4, 4}) == 0);  // 8 x 1 x 2 = 16 is not below 16
  CHECK(powersgd_rank(state, {4, 5}) == 1);  // 9 x 2 < 20
  CHECK(powersgd_rank(state, {4096, 1}) == 0);
  state.rank = 64;
  state.min_compression_rate = 0.5;
  CHECK(powersgd_rank(state, {8, 1000}) == 8);  // no more than the shorter side
}

TEST_CASE("R41: PowerSGD's first iterations reduce plainly", "[model][comm_hook][rules]") {
  CommHook hook = powersgd(1);
  hook.powersgd.start_iteration = 10;
  const Sizes plain{4 * 5'378'560};
  CHECK(payloads(hook, reference_bucket(), 2, 1) == plain);
  CHECK(payloads(hook, reference_bucket(), 2, 10) == plain);
  CHECK(payloads(hook, reference_bucket(), 2, 11).size() == 3);
  CHECK(payloads(hook, reference_bucket(), 2, 0).size() == 3);  // the steady state
}

TEST_CASE("R42: PowerSGD's all-reduces follow one another, then the host waits for the device",
          "[model][comm_hook][rules]") {
  Workload workload = two_layers();
  workload.parameters[1].shape = {10, 10};  // 400 B
  CommHook hook = powersgd(1);
  const Schedule schedule = build_schedule(costs_of(workload, two_gpus()), with_hook(hook));
  std::int32_t previous = nobody;
  int reduces = 0;
  bool blocked = false;
  for (std::size_t i = 0; i < schedule.tasks.size(); ++i) {
    const Task& task = schedule.tasks[i];
    if (task.bucket != 0 || task.step == nobody) continue;
    if (previous != nobody) {  // each waits for the one before it
      const auto waits = schedule.waits_for(task);
      CHECK(std::find(waits.begin(), waits.end(), static_cast<std::uint32_t>(previous)) !=
            waits.end());
    }
    previous = static_cast<std::int32_t>(i);
    reduces += is_collective(task.operation) ? 1 : 0;
    if (task.operation != Operation::synchronize) continue;
    CHECK(reduces == 3);
    CHECK(task.stream == Stream::host);
    CHECK(task.host_waits);
    blocked = true;
    // What the host issues next comes behind it: the backward kernels of the first layer.
    const bool kernels_follow =
        std::any_of(schedule.tasks.begin() + static_cast<std::ptrdiff_t>(i), schedule.tasks.end(),
                    [](const Task& later) { return later.operation == Operation::backward; });
    CHECK(kernels_follow);
  }
  CHECK(reduces == 3);
  CHECK(blocked);
  const Schedule cpus = build_schedule(costs_of(workload, two_cpus()), with_hook(hook));
  CHECK(count(cpus, Operation::synchronize) == 0);  // there is no device apart from the host
}

TEST_CASE("R43: quantisation gathers twice, a byte an element and eight a channel",
          "[model][comm_hook][rules]") {
  const CommBucket bucket{{matrix_of({1024})}, DType::fp32};
  CHECK(payloads(hook_of(CommHookKind::quantization_pertensor), bucket) == Sizes{8, 1024});
  // It pads even what 512 divides.
  CHECK(payloads(hook_of(CommHookKind::quantization_perchannel), bucket) == Sizes{3 * 8, 3 * 512});
  // Against a ring all-reduce of fp32 it sends W / 8 of the bytes.
  const int ranks = GENERATE(4, 8, 16);
  const double gathered = (ranks - 1) * 1024.0;
  const double reduced = 2.0 * (ranks - 1) / ranks * 4 * 1024;
  CHECK(gathered / reduced == Approx(ranks / 8.0));
  const CollectiveLaw law(ring(ranks, 0ms, gigabytes_per_second(1)));
  CHECK(in_seconds(law.of(Collective::all_gather, Bytes{1024}).time()) /
            in_seconds(law.all_reduce(Bytes{4 * 1024}).time()) ==
        Approx(ranks / 8.0));
}

TEST_CASE("R44: an optimizer in backward runs aside, bucket by bucket, and nothing is copied out",
          "[model][comm_hook][rules]") {
  const Schedule schedule = build_schedule(costs_of(two_layers(), two_gpus()),
                                           with_hook(hook_of(CommHookKind::optimizer_overlap)));
  CHECK(count(schedule, Operation::copy_out) == 0);
  CHECK(count(schedule, Operation::optimizer) == 2);
  Duration sum{};
  for (const Task& task : schedule.tasks)
    if (task.operation == Operation::optimizer) {
      CHECK(task.stream == Stream::aside);
      sum += task.work;
    }
  const StepCosts costs = costs_of(two_layers(), two_gpus());
  CHECK(in_seconds(sum) == Approx(in_seconds(costs.optimizer.front().work)));
  // The sum is divided on the same stream, when it is there.
  CHECK(actions(schedule, 0, Stream::compute).empty());
  CHECK(actions(schedule, 0, Stream::aside) == Names{"divide", "optimizer"});
}

TEST_CASE("a PowerSGD that draws afresh keeps the host of a GPU busy, in proportion to its numbers",
          "[model][comm_hook]") {
  const auto drawn = [](bool warm, bool synchronous) {
    CommHook hook = powersgd(2);
    hook.powersgd.warm_start = warm;
    Duration host{};
    for (const CommStep& step : comm_steps(hook, reference_bucket(), 2, 2, synchronous, 0))
      host += step.host;
    return host;
  };
  CHECK(drawn(true, false) == 0ms);
  CHECK(drawn(false, true) == 0ms);  // its kernel is the host's own work
  CHECK(drawn(false, false) == 2 * (1024 + 256 * 9) * 3ns);
}

TEST_CASE("launches of the largest bucket are counted without overflow", "[model][comm_hook]") {
  const CommBucket huge{{matrix_of({1 << 20, 1 << 20})}, DType::fp32};
  for (const CommStep& step :
       comm_steps(hook_of(CommHookKind::quantization_perchannel), huge, 4096, 8, false, 0)) {
    CHECK(step.kernel.launches > 0);
    CHECK(step.kernel.traffic >= Bytes{});
  }
}

TEST_CASE("a plugin's buffer is of its own type", "[model][comm_hook]") {
  CommHook hook = hook_of(CommHookKind::plugin);
  hook.plugin_type = DType::fp32;
  CHECK(comm_memory(hook, reference_bucket(), 2).transient == Bytes{4 * 5'378'560});
  hook.plugin_type = DType::bf16;
  CHECK(comm_memory(hook, reference_bucket(), 2).transient == Bytes{2 * 5'378'560});
}

TEST_CASE("R24: with a comm hook the hook divides", "[model][comm_hook][rules]") {
  const auto divides = [](CommHookKind kind) {
    return count(build_schedule(costs_of(two_layers(), two_gpus()), with_hook(hook_of(kind))),
                 Operation::divide);
  };
  CHECK(divides(CommHookKind::none) == 0);  // fused into the copies
  CHECK(divides(CommHookKind::allreduce) == 2);
  CHECK(divides(CommHookKind::noop) == 0);
}

TEST_CASE("a wrapper puts what is inside on 16 bit", "[model][comm_hook]") {
  CommHook hook = powersgd(2);
  hook.wrappers = {DType::bf16};
  CHECK(payloads(hook, reference_bucket()) == Sizes{2 * 4608, 2 * 9216, 2 * 6656});
  CHECK(label(hook) == "bf16_compress_wrapper(powersgd rank 2)");
  const auto steps = comm_steps(hook, reference_bucket(), 2, 2, false, 0);
  CHECK(steps.front().action == CommAction::narrow);
  CHECK(steps.back().action == CommAction::widen);
  CHECK(steps.back().type == DType::fp32);
}

TEST_CASE("post_local_sgd reduces over all, then over a subgroup or not at all",
          "[model][comm_hook]") {
  CommHook hook = hook_of(CommHookKind::post_local_sgd);
  hook.post_local_sgd.start_iteration = 5;
  const CommBucket bucket{{matrix_of({100})}, DType::fp32};
  const auto first = [&](int iteration) {
    for (const CommStep& step : comm_steps(hook, bucket, 16, 8, false, iteration))
      if (is_collective(step.operation)) return step.action;
    return CommAction::touch;
  };
  CHECK(first(5) == CommAction::reduce);
  CHECK(first(6) == CommAction::reduce_subgroup);
  CHECK(first(0) == CommAction::reduce_subgroup);
  hook.post_local_sgd.gradient_allreduce = false;
  CHECK(first(6) == CommAction::touch);
  // A node's all-reduce is cheaper than everyone's.
  hook.post_local_sgd.gradient_allreduce = true;
  const auto communication = [&](int subgroup) {
    hook.post_local_sgd.subgroup = subgroup;
    Training training = with_hook(hook);
    Duration sum{};
    const Schedule schedule =
        build_schedule(costs_of(two_layers(), ring(16, 1ms, gigabytes_per_second(1))), training);
    for (const Task& task : schedule.tasks)
      if (is_collective(task.operation)) sum += task.work;
    return sum;
  };
  CHECK(communication(4) < communication(16));
  CHECK(communication(1) == 0ms);
}

TEST_CASE("a list of steps hands over what it says", "[model][comm_hook]") {
  CommHook hook = hook_of(CommHookKind::steps);
  const auto step = [](OwnStep::Kind kind) {
    OwnStep own;
    own.kind = kind;
    return own;
  };
  const CommBucket bucket{{matrix_of({1000})}, DType::fp32};
  OwnStep cast = step(OwnStep::Kind::cast);
  cast.type = DType::fp16;
  hook.steps = {cast, step(OwnStep::Kind::all_reduce)};
  CHECK(payloads(hook, bucket) == Sizes{2000});
  hook.steps = {step(OwnStep::Kind::reduce_scatter), step(OwnStep::Kind::all_gather)};
  CHECK(payloads(hook, bucket, 3) == Sizes{4000, 4 * 334});
  OwnStep topk = step(OwnStep::Kind::topk);
  topk.share = 0.01;
  hook.steps = {topk, step(OwnStep::Kind::all_gather)};
  CHECK(payloads(hook, bucket) == Sizes{10 * 8});
  hook.steps = {step(OwnStep::Kind::all_gather)};
  CHECK(payloads(hook, bucket) == Sizes{4000});
  hook.steps = {step(OwnStep::Kind::broadcast)};
  CHECK(payloads(hook, bucket) == Sizes{4000});
}

TEST_CASE(
    "R49: mixed precision's reduction as steps: bytes of the narrow type, caps of the wide one",
    "[model][comm_hook][rules]") {
  CommHook hook = hook_of(CommHookKind::steps);
  OwnStep cast, reduce, divide;
  cast.kind = OwnStep::Kind::cast;
  cast.type = DType::bf16;
  divide.kind = OwnStep::Kind::scale;
  hook.steps = {cast, reduce, divide};
  CHECK(payloads(hook, reference_bucket()) == Sizes{2 * 5'378'560});
  const Schedule schedule = build_schedule(costs_of(two_layers(), two_gpus()), with_hook(hook));
  // What is summed has not been divided; that follows, aside, before it is cast back.
  CHECK(actions(schedule, 0, Stream::compute) == Names{"cast to wire"});
  CHECK(actions(schedule, 0, Stream::communication) == Names{"all-reduce"});
  CHECK(actions(schedule, 0, Stream::aside) == Names{"scale", "cast back"});
  Training plain = with_hook(hook);
  plain.buckets.clear();
  plain.bucket_cap = Bytes{400};
  plain.first_bucket_cap.reset();
  const Schedule hooked = build_schedule(costs_of(two_layers(), two_gpus()), plain);
  plain.comm_hook = {};
  const Schedule wide = build_schedule(costs_of(two_layers(), two_gpus()), plain);
  REQUIRE(hooked.buckets.size() == wide.buckets.size());
  for (std::size_t b = 0; b < wide.buckets.size(); ++b)
    CHECK(hooked.buckets[b].parameters == wide.buckets[b].parameters);
}

TEST_CASE("a hook that sends nothing leaves the step its copies", "[model][comm_hook]") {
  const Schedule schedule =
      build_schedule(costs_of(two_layers(), two_gpus()), with_hook(hook_of(CommHookKind::noop)));
  CHECK(count(schedule, Operation::all_reduce) == 0);
  CHECK(count(schedule, Operation::copy_in) == 3);
  CHECK(count(schedule, Operation::copy_out) == 3);
}

TEST_CASE("what hooks keep in memory is counted", "[model][comm_hook]") {
  const CommBucket bucket = reference_bucket();
  const std::int64_t n = bucket.elements();
  CHECK(comm_memory(hook_of(CommHookKind::allreduce), bucket, 4).kept == Bytes{});
  CHECK(comm_memory(hook_of(CommHookKind::fp16_compress), bucket, 4).transient == Bytes{2 * n});
  const CommMemory compressed = comm_memory(powersgd(4), bucket, 4);
  CHECK(compressed.kept == Bytes{4 * (n + 18432 + 13312)});  // the error, P and Q
  CHECK(compressed.transient == Bytes{4 * (n + 4608)});
  CHECK(comm_memory(hook_of(CommHookKind::quantization_pertensor), bucket, 4).transient ==
        Bytes{4 * n + n + 4 * n});
  const Schedule schedule = build_schedule(costs_of(two_layers(), two_gpus()),
                                           with_hook(hook_of(CommHookKind::fp16_compress)));
  CHECK(schedule.comm_hook_memory == Bytes{4000 / 2});  // of the larger bucket, transient
}

TEST_CASE("every comm hook is in the list, with a payload and a source", "[model][comm_hook]") {
  REQUIRE(comm_hook_facts().size() == all_comm_hooks.size());
  for (std::size_t i = 0; i < all_comm_hooks.size(); ++i) {
    CHECK(comm_hook_facts()[i].kind == all_comm_hooks[i]);
    CHECK(!comm_hook_facts()[i].payload.empty());
    CHECK(!comm_hook_facts()[i].source.empty());
  }
}
