// What comm hooks hand to collectives, and when: held against the formulas and check values of the
// reference (sections 4 and 4.1), and the shape of their schedules.
#include <set>

#include <catch2/catch.hpp>

#include "model/parallel/hooks/low_rank.hpp"
#include "model/parallel/policy/iteration.hpp"
#include "model/program/operands.hpp"
#include "model/program/variants.hpp"
#include "tests/model/cost/priced.hpp"
#include "tests/model/flat_step.hpp"
#include "tests/model/parallel/hook_tasks.hpp"
#include "tests/model/parallel/schedule_story.hpp"

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
  const HookCall call{
      .ranks = ranks, .ranks_per_node = ranks, .synchronous = true, .iteration = iteration};
  for (const HookTask& task : hook_tasks(hook, bucket, call))
    if (task.is_collective()) sizes.push_back(task.work.payload.count);
  return sizes;
}

using Sizes = std::vector<std::int64_t>;

Training with_hook(const CommHook& hook) {
  Training training;
  training.buckets = {{2, 1}, {0}};
  training.comm_hook = hook;
  return training;
}

StepWorks on_two_gpus(const Workload& workload = two_layers()) {
  return works_of(workload, two_ranks());
}
StepWorks on_two_cpus(const Workload& workload = two_layers()) {
  return works_of(workload, two_ranks(true));
}

std::vector<std::string> actions(const FlatStep& schedule, std::int32_t bucket, StepStream stream) {
  std::vector<std::string> names;
  for (const FlatTask& task : schedule.tasks)
    if (task.bucket == bucket && task.stream == stream && !task.hook_step.empty())
      names.push_back(task.hook_step);
  return names;
}

using Names = std::vector<std::string>;

/// What the optimizer of two_layers takes.
Duration optimizer_time() {
  const StepWorks works = on_two_gpus();
  return cost_of(works, CostModel(two_ranks()), works.optimizer.front()).work;
}

}  // namespace

TEST_CASE("R39: 16-bit hooks halve the payload of fp32 and cast back on a side stream",
          "[model][comm_hook][rules]") {
  const CommHookKind kind = GENERATE(CommHookKind::fp16_compress, CommHookKind::bf16_compress);
  CHECK(payloads(hook_of(kind), reference_bucket()) == Sizes{2 * 5'378'560});
  const FlatStep gpus = flat_step(on_two_gpus(), with_hook(hook_of(kind)));
  CHECK(actions(gpus, 0, StepStream::compute) == Names{"cast to wire", "divide"});
  CHECK(actions(gpus, 0, StepStream::communication) == Names{"all-reduce"});
  CHECK(actions(gpus, 0, StepStream::aside) == Names{"cast back"});
  // Where kernels run on the host thread, the one that communicates does what follows.
  const FlatStep cpus = flat_step(on_two_cpus(), with_hook(hook_of(kind)));
  CHECK(actions(cpus, 0, StepStream::host) == Names{"cast to wire", "divide"});
  CHECK(actions(cpus, 0, StepStream::communication) == Names{"all-reduce", "cast back"});
}

TEST_CASE("beside what a hook computes aside, backward takes as much longer as was measured",
          "[model][comm_hook]") {
  const CostModel usual(two_ranks(true));
  CostModel beside = usual;
  beside.backward_beside_hook = 1.5;
  Training training = with_hook(hook_of(CommHookKind::fp16_compress));
  training.micro_batches = 2;
  training.no_sync = true;
  const auto times = [](const CostModel& model, const Training& given, Operation operation) {
    return times_of(priced(on_two_cpus(), model, given), operation);
  };
  const std::vector<Duration> before = times(usual, training, Operation::backward);
  const std::vector<Duration> after = times(beside, training, Operation::backward);
  REQUIRE(before.size() == after.size());
  for (std::size_t i = 0; i < before.size(); ++i) {
    const bool last = i >= before.size() / 2;  // the micro-batch that communicates
    CHECK(after[i] == (last ? scaled(before[i], 1.5) : before[i]));
    CHECK(before[i] > Duration::zero());
  }
  CHECK(times(usual, training, Operation::forward) == times(beside, training, Operation::forward));
  // Nothing is computed aside.
  for (const CommHookKind kind : {CommHookKind::none, CommHookKind::allreduce})
    CHECK(times(usual, with_hook(hook_of(kind)), Operation::backward) ==
          times(beside, with_hook(hook_of(kind)), Operation::backward));
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
  state.rank = 3;
  state.min_compression_rate = 2;
  CHECK(powersgd_rank(state, {12, 12}) == 0);  // 24 x 3 x 2 = 144 is not below 144
  CHECK(powersgd_rank(state, {12, 13}) == 3);  // 25 x 3 x 2 = 150 < 156
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
  const FlatStep schedule = flat_step(on_two_gpus(workload), with_hook(hook));
  std::int32_t previous = nobody;
  int reduces = 0;
  bool blocked = false;
  for (std::size_t i = 0; i < schedule.tasks.size(); ++i) {
    const FlatTask& task = schedule.tasks[i];
    if (task.bucket != 0 || task.hook_step.empty()) continue;
    if (previous != nobody) {  // each waits for the one before it
      const auto waits = schedule.waits_for(task);
      CHECK(std::find(waits.begin(), waits.end(), static_cast<std::uint32_t>(previous)) !=
            waits.end());
    }
    previous = static_cast<std::int32_t>(i);
    reduces += is_collective(task.operation) ? 1 : 0;
    if (task.operation != Operation::synchronize) continue;
    CHECK(reduces == 3);
    CHECK(task.stream == StepStream::host);
    CHECK(schedule.host_waits(task));
    blocked = true;
    // What the host issues next comes behind it: the backward kernels of the first layer.
    const bool kernels_follow =
        std::any_of(schedule.tasks.begin() + static_cast<std::ptrdiff_t>(i), schedule.tasks.end(),
                    [](const FlatTask& later) { return later.operation == Operation::backward; });
    CHECK(kernels_follow);
  }
  CHECK(reduces == 3);
  CHECK(blocked);
  const FlatStep cpus = flat_step(on_two_cpus(workload), with_hook(hook));
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
  CHECK(in_seconds(law.of(Operation::all_gather, Bytes{1024}).time()) /
            in_seconds(law.all_reduce(Bytes{4 * 1024}).time()) ==
        Approx(ranks / 8.0));
}

TEST_CASE("R44: an optimizer in backward runs aside, bucket by bucket, and nothing is copied out",
          "[model][comm_hook][rules]") {
  const Priced step =
      priced(two_layers(), two_ranks(), with_hook(hook_of(CommHookKind::optimizer_overlap)));
  const FlatStep& schedule = step.schedule;
  CHECK(count(schedule, Operation::copy_out) == 0);
  CHECK(count(schedule, Operation::optimizer) == 2);
  Duration sum{};
  for (const FlatTask& task : schedule.tasks)
    if (task.operation == Operation::optimizer) {
      CHECK(task.stream == StepStream::aside);
      sum += step.of(task).work;
    }
  CHECK(sum > 0ms);
  CHECK(in_seconds(sum) == Approx(in_seconds(optimizer_time())));
  // The sum is divided on the same stream, when it is there.
  CHECK(actions(schedule, 0, StepStream::compute).empty());
  CHECK(actions(schedule, 0, StepStream::aside) == Names{"divide", "optimizer"});
}

TEST_CASE("R45: with ZeRO's hooks a bucket's owner alone updates and broadcasts it",
          "[model][comm_hook][rules]") {
  const auto kind = GENERATE(CommHookKind::zero_step, CommHookKind::zero_step_interleaved);
  const bool late = kind == CommHookKind::zero_step;
  CAPTURE(name_of(kind));
  const CommBucket bucket{{matrix_of({1000})}, DType::fp32};
  CHECK(payloads(hook_of(kind), bucket) == Sizes{4000, 4000});
  const StepWorks works = on_two_gpus();
  const CostModel model(two_ranks());
  const Priced step = priced(works, model, with_hook(hook_of(kind)));
  const FlatStep& schedule = step.schedule;
  CHECK(count(schedule, Operation::copy_out) == 3);  // DDP goes on as ever
  // All all-reduces before all broadcasts, or in turn; each from the bucket's owner: 0, then 1.
  Names sent;
  for (const FlatTask& task : schedule.tasks)
    if (is_collective(task.operation)) {
      sent.push_back(words(task));
      CHECK(task.root == (task.operation == Operation::broadcast ? task.bucket : 0));
    }
  CHECK(sent == (late ? Names{"all-reduce 0", "all-reduce 1", "broadcast 0", "broadcast 1"}
                      : Names{"all-reduce 0", "broadcast 0", "all-reduce 1", "broadcast 1"}));
  // No optimizer follows: what the ranks do is one optimizer's work.
  Duration sum{};
  const program::Job job = build_job(works, with_hook(hook_of(kind)));
  REQUIRE(job.program_of == std::vector<std::uint16_t>{0, 1});
  const Costs costs = model.price(job.works, job.passes);
  for (const int rank : {0, 1})
    for (const FlatTask& task : flat(job, at(rank)).tasks) {
      if (task.operation != Operation::optimizer) continue;
      CHECK(task.stream == (late ? StepStream::compute : StepStream::aside));
      CHECK(task.bucket == rank);
      CHECK(costs.works[task.work].work > 0ms);
      sum += costs.works[task.work].work;
    }
  CHECK(in_seconds(sum) == Approx(in_seconds(optimizer_time())));
  const auto kinds_of_ranks = [&](CommHookKind hook) {
    const StepWorks many = works_of(two_layers(), ring(64, 1ms, gigabytes_per_second(1)));
    return build_job(many, with_hook(hook_of(hook))).programs.size();
  };
  CHECK(kinds_of_ranks(kind) == 3);  // two owners, and all others
  CHECK(kinds_of_ranks(CommHookKind::allreduce) == 1);
}

TEST_CASE("R45: who waits for what under ZeRO's hooks", "[model][comm_hook][rules]") {
  const auto built = [](CommHookKind kind, std::size_t rank) {
    return flat(build_job(on_two_gpus(), with_hook(hook_of(kind))), rank);
  };
  // What comes behind backward, of rank 1: the optimizer of bucket 0 is not its own.
  const FlatStep plain = built(CommHookKind::zero_step, 1);
  std::vector<Story> hooks_waits, waits;
  for (const FlatTask& task : plain.tasks)
    if (task.operation == Operation::wait) {
      const bool is_hooks = task.purpose == program::Purpose::hook;
      Story& each = (is_hooks ? hooks_waits : waits).emplace_back();
      for (const std::uint32_t earlier : plain.waits_for(task))
        each.push_back(words(plain.tasks[earlier]));
      CHECK(task.stream == StepStream::compute);
    }
  CHECK(hooks_waits == std::vector<Story>{{"all-reduce 1"}});
  // The hook's last wait, then DDP's own.
  CHECK(waits == std::vector<Story>{{"broadcast 1"}, {"all-reduce 0"}, {"all-reduce 1"}});
  // Its broadcast comes behind the owner's update, and elsewhere behind what was before that.
  CHECK(waits_for(built(CommHookKind::zero_step, 0), "broadcast 0") == Story{"optimizer 0"});
  CHECK(waits_for(plain, "broadcast 0") == Story{"divide 1"});

  const FlatStep turns = built(CommHookKind::zero_step_interleaved, 0);
  CHECK(waits_for(turns, "optimizer 0") == Story{"all-reduce 0"});
  CHECK(waits_for(turns, "broadcast 0") == Story{"optimizer 0"});
  CHECK(waits_for(turns, "wait 0") == Story{"optimizer 0"});
  CHECK(waits_for(turns, "wait 1") == Story{"broadcast 1"});
  // On CPUs the host waits, or the communicating thread does the work.
  const StepWorks cpus = on_two_cpus();
  for (const auto& [kind, stream] :
       {std::pair{CommHookKind::zero_step, StepStream::host},
        std::pair{CommHookKind::zero_step_interleaved, StepStream::communication}})
    for (const FlatTask& task : flat_step(cpus, with_hook(hook_of(kind))).tasks) {
      if (task.operation == Operation::optimizer) CHECK(task.stream == stream);
      if (task.operation == Operation::wait) CHECK(task.stream == StepStream::host);
    }
}

TEST_CASE("R45: ZeRO's hooks leave parameters alone until they have seen the rebuilt buckets",
          "[model][comm_hook][rules]") {
  const auto kind = GENERATE(CommHookKind::zero_step, CommHookKind::zero_step_interleaved);
  const StepWorks works = on_two_gpus();
  for (const bool static_graph : {false, true})
    for (const bool explicit_buckets : {false, true}) {
      Training training = with_hook(hook_of(kind));
      if (!explicit_buckets) training.buckets.clear();
      training.static_graph = static_graph;
      const int quiet = static_graph ? 3 : 2;
      CAPTURE(static_graph, explicit_buckets);
      for (training.iteration = 0; training.iteration <= 5; ++training.iteration) {
        CAPTURE(training.iteration);
        const bool updates = training.iteration == 0 || training.iteration > quiet;
        const program::Job job = build_job(works, training);
        const FlatStep schedule = flat(job);
        int optimizers = 0;  // of all ranks
        for (std::size_t kind = 0; kind < job.programs.size(); ++kind)
          optimizers += count(flat(job, kind), Operation::optimizer);
        CHECK((optimizers > 0) == updates);
        CHECK((count(schedule, Operation::broadcast) > optimizers) ==
              (training.iteration == quiet && !explicit_buckets));  // the rebuild's two
        const bool said =
            phase_label(training).find("parameters not updated yet") != std::string::npos;
        CHECK(said == !updates);
        if (training.iteration > 0)
          CHECK(first_like(training, training.iteration) ==
                std::min(training.iteration, quiet + 1));
      }
    }
}

TEST_CASE("R45: what would break ZeRO's hooks in PyTorch is refused", "[model][comm_hook][rules]") {
  const StepWorks works = on_two_gpus();
  const auto refusal = [&](auto change) -> std::string {
    Training training = with_hook(hook_of(CommHookKind::zero_step));
    change(training);
    try {
      flat_step(works, training);
    } catch (const std::invalid_argument& problem) {
      return problem.what();
    }
    return "";
  };
  CHECK(refusal([](Training&) {}).empty());
  CHECK_THAT(refusal([](Training& t) { t.find_unused_parameters = true; }),
             Catch::Contains("never does with find_unused_parameters"));
  CHECK(refusal([](Training& t) { t.find_unused_parameters = t.static_graph = true; }).empty());
  CHECK_THAT(refusal([](Training& t) { t.join = Join{}; }), Catch::Contains("join"));
  CHECK_THAT(refusal([](Training& t) {
               t.static_graph = t.find_unused_parameters = t.skip_all_reduce_unused_params = true;
             }),
             Catch::Contains("skip_all_reduce_unused_params"));
  Workload mixed = two_layers();
  mixed.parameters[0].dtype = DType::bf16;
  CHECK_THROWS_WITH(
      flat_step(on_two_gpus(mixed), with_hook(hook_of(CommHookKind::zero_step_interleaved))),
      Catch::Contains("one type"));
}

TEST_CASE("a PowerSGD that draws afresh keeps the host of a GPU busy, in proportion to its numbers",
          "[model][comm_hook]") {
  const auto drawn = [](bool warm, bool synchronous) {
    CommHook hook = powersgd(2);
    hook.powersgd.warm_start = warm;
    Duration host{};
    const HookCall call{.ranks = 2, .synchronous = synchronous};
    for (const HookTask& task : hook_tasks(hook, reference_bucket(), call)) host += task.work.host;
    return host;
  };
  CHECK(drawn(true, false) == 0ms);
  CHECK(drawn(false, true) == 0ms);  // its kernel is the host's own work
  CHECK(drawn(false, false) == 2 * (1024 + 256 * 9) * 3ns);
}

TEST_CASE("error feedback adds what was lost before it compresses, and keeps what is lost after",
          "[model][comm_hook]") {
  const auto kind = GENERATE(CommHookKind::powersgd, CommHookKind::batched_powersgd);
  CommHook hook = powersgd(2, kind);
  const auto places = [&](std::string_view label) {
    const auto tasks = hook_tasks(hook, reference_bucket(), {.ranks = 2});
    std::vector<std::size_t> found;
    for (std::size_t i = 0; i < tasks.size(); ++i)
      if (tasks[i].label == label) found.push_back(i);
    return found;
  };
  const auto added = places("add error"), kept = places("keep error");
  REQUIRE(added.size() == 1);
  REQUIRE(kept.size() == 1);
  CHECK(added.front() < places("P = M Q").front());
  CHECK(kept.front() > places("M = P Q^T").back());
  hook.powersgd.error_feedback = false;
  CHECK(places("add error").empty());
  CHECK(places("keep error").empty());
}

TEST_CASE("batched PowerSGD multiplies one square matrix, three times", "[model][comm_hook]") {
  // 4100 elements, padded to 65 x 65: P = M Q, Q = M^T P, M = P Q^T, of rank 2.
  const CommBucket bucket{{matrix_of({41, 100})}, DType::fp32};
  const CommHook hook = powersgd(2, CommHookKind::batched_powersgd);
  Names products;
  for (const HookTask& task : hook_tasks(hook, bucket, {.ranks = 2})) {
    if (!task.work.gemm) continue;
    products.emplace_back(task.label);
    CHECK(task.work.gemm->m * task.work.gemm->n * task.work.gemm->k == 65 * 65 * 2);
  }
  CHECK(products == Names{"P = M Q", "Q = M^T P", "M = P Q^T"});
}

TEST_CASE("PowerSGD divides what it compressed, where it compressed anything",
          "[model][comm_hook]") {
  const auto divided = [](const CommBucket& bucket) {
    std::vector<std::int64_t> bytes;
    for (const HookTask& task : hook_tasks(powersgd(2), bucket, {.ranks = 2}))
      if (task.label == "divide Q") bytes.push_back(task.work.traffic.count);
    return bytes;
  };
  // Q of a matrix of 64 x 32 and rank 2 has 32 x 2 numbers, read and written in 4 bytes each.
  CHECK(divided({{matrix_of({64, 32})}, DType::fp32}) == Sizes{2 * 32 * 2 * 4});
  CHECK(divided({{matrix_of({64})}, DType::fp32}).empty());
}

TEST_CASE("launches of the largest bucket are counted without overflow", "[model][comm_hook]") {
  const CommBucket huge{{matrix_of({1 << 20, 1 << 20})}, DType::fp32};
  for (const HookTask& task :
       hook_tasks(hook_of(CommHookKind::quantization_perchannel), huge, {.ranks = 4096})) {
    CHECK(task.work.launches > 0);
    CHECK(task.work.traffic >= Bytes{});
  }
}

TEST_CASE("R24: with a comm hook the hook divides", "[model][comm_hook][rules]") {
  const auto divides = [](CommHookKind kind) {
    return count(flat_step(on_two_gpus(), with_hook(hook_of(kind))), Operation::divide);
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
  const WrittenHook written = written_hook(hook, reference_bucket(), {.ranks = 2});
  CHECK(written.tasks.front().label == "cast to wire");
  CHECK(written.tasks.back().label == "cast back");
  CHECK(written.action<program::Cast>("cast back").to == written.data);
  CHECK(written.buffer("b").type == DType::fp32);
}

TEST_CASE("post_local_sgd reduces over all, then over a subgroup or not at all",
          "[model][comm_hook]") {
  CommHook hook = hook_of(CommHookKind::post_local_sgd);
  hook.post_local_sgd.start_iteration = 5;
  const CommBucket bucket{{matrix_of({100})}, DType::fp32};
  const auto first = [&](int iteration) -> std::string_view {
    const HookCall call{.ranks = 16, .ranks_per_node = 8, .iteration = iteration};
    for (const HookTask& task : hook_tasks(hook, bucket, call))
      if (task.is_collective()) return task.label;
    return "";
  };
  CHECK(first(5) == "all-reduce");
  CHECK(first(6) == "all-reduce in subgroup");
  CHECK(first(0) == "all-reduce in subgroup");
  hook.post_local_sgd.gradient_allreduce = false;
  CHECK(first(6).empty());
  // A node's all-reduce is cheaper than everyone's.
  hook.post_local_sgd.gradient_allreduce = true;
  const auto communication = [&](int subgroup) {
    hook.post_local_sgd.subgroup = subgroup;
    Training training = with_hook(hook);
    Duration sum{};
    const Priced step = priced(two_layers(), ring(16, 1ms, gigabytes_per_second(1)), training);
    for (const FlatTask& task : step.schedule.tasks)
      if (is_collective(task.operation)) sum += step.of(task).work;
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
  // What has been gathered is whole again: to gather once more takes all of it.
  hook.steps.push_back(step(OwnStep::Kind::all_gather));
  CHECK(payloads(hook, bucket, 3) == Sizes{4000, 4 * 334, 4000});
  OwnStep topk = step(OwnStep::Kind::topk);
  topk.share = 0.01;
  hook.steps = {topk, step(OwnStep::Kind::all_gather)};
  CHECK(payloads(hook, bucket) == Sizes{10 * 8});
  // Six passes over 4000 bytes (magnitudes read and written, four of a partial sort), and each of
  // the ten values and its place of eight bytes together are written, by four kernels.
  const HookTask selected = hook_tasks(hook, bucket, {.ranks = 2}).front();
  CHECK(selected.work.traffic == Bytes{6 * 4000 + 10 * 8});
  CHECK(selected.work.launches == 4);
  topk.share = 1e-9;  // a bucket hands over one value at least
  hook.steps = {topk, step(OwnStep::Kind::all_gather)};
  CHECK(payloads(hook, bucket) == Sizes{8});
  hook.steps = {step(OwnStep::Kind::all_gather)};
  CHECK(payloads(hook, bucket) == Sizes{4000});
  hook.steps = {step(OwnStep::Kind::broadcast)};
  CHECK(payloads(hook, bucket) == Sizes{4000});
}

TEST_CASE("each selection of a list of steps has room for the pairs that it hands over",
          "[model][comm_hook]") {
  CommHook hook = hook_of(CommHookKind::steps);
  for (const double share : {0.1, 0.5}) {
    OwnStep& topk = hook.steps.emplace_back();
    topk.kind = OwnStep::Kind::topk;
    topk.share = share;
    hook.steps.emplace_back().kind = OwnStep::Kind::all_gather;
  }
  Sizes selected;
  for (const HookTask& task : hook_tasks(hook, {{matrix_of({1000})}}, {.ranks = 2}))
    if (const auto* select = std::get_if<program::Select>(&task.action))
      selected.push_back(select->pairs.count);
  CHECK(selected == Sizes{100 * 8, 500 * 8});
}

TEST_CASE("a comm hook keeps no memory that its tasks do not use", "[model][comm_hook]") {
  const CommBucket bucket{{matrix_of({100, 10}), matrix_of({100})}, DType::fp32};
  for (const CommHookKind kind : all_comm_hooks) {
    CommHook hook = hook_of(kind);
    hook.wrappers = {DType::bf16};
    for (const OwnStep::Kind each : all_own_steps) hook.steps.emplace_back().kind = each;
    const WrittenHook written = written_hook(hook, bucket, {.ranks = 2});
    const program::Job& job = written.memory.job;
    std::set<program::BufferId> used;
    for (const HookTask& task : written.tasks) {
      const program::Accesses accesses = program::accesses_of(task.action, job.own, 0);
      for (const auto* slices : {&accesses.reads, &accesses.writes})
        for (const program::Slice& each : *slices) used.insert(each.buffer);
    }
    for (program::BufferId b = 0; b < job.buffers.size(); ++b) {
      const program::Buffer& buffer = job.buffers[b];
      CAPTURE(name_of(kind), job.labels[at(buffer.name)]);
      if (buffer.holds == program::Holds::hook || buffer.holds == program::Holds::gathered)
        CHECK((buffer.is_view() || used.contains(b)));
    }
  }
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
  const FlatStep schedule = flat_step(on_two_gpus(), with_hook(hook));
  // What is summed has not been divided; that follows, aside, before it is cast back.
  CHECK(actions(schedule, 0, StepStream::compute) == Names{"cast to wire"});
  CHECK(actions(schedule, 0, StepStream::communication) == Names{"all-reduce"});
  CHECK(actions(schedule, 0, StepStream::aside) == Names{"scale", "cast back"});
  Training plain = with_hook(hook);
  plain.buckets.clear();
  plain.bucket_cap = Bytes{400};
  plain.first_bucket_cap.reset();
  const FlatStep hooked = flat_step(on_two_gpus(), plain);
  plain.comm_hook = {};
  const FlatStep wide = flat_step(on_two_gpus(), plain);
  REQUIRE(hooked.buckets.size() == wide.buckets.size());
  for (std::size_t b = 0; b < wide.buckets.size(); ++b)
    CHECK(hooked.buckets[b].parameters == wide.buckets[b].parameters);
}

TEST_CASE("a hook that sends nothing leaves the step its copies", "[model][comm_hook]") {
  const FlatStep schedule = flat_step(on_two_gpus(), with_hook(hook_of(CommHookKind::noop)));
  CHECK(count(schedule, Operation::all_reduce) == 0);
  CHECK(count(schedule, Operation::copy_in) == 3);
  CHECK(count(schedule, Operation::copy_out) == 3);
}

TEST_CASE("every step of one's own has a name", "[model][comm_hook]") {
  std::set<std::string_view> names;
  for (const OwnStep::Kind kind : all_own_steps) {
    CAPTURE(static_cast<int>(kind));
    CHECK((!name_of(kind).empty() && name_of(kind) != "?"));
    CHECK(names.insert(name_of(kind)).second);
  }
}

TEST_CASE("every comm hook is in the list, with a payload and a source", "[model][comm_hook]") {
  REQUIRE(comm_hooks().size() == all_comm_hooks.size());
  for (std::size_t i = 0; i < all_comm_hooks.size(); ++i) {
    CHECK(comm_hooks()[i].kind == all_comm_hooks[i]);
    CHECK(!comm_hooks()[i].name.empty());
    CHECK(!comm_hooks()[i].payload.empty());
    CHECK(!comm_hooks()[i].source.empty());
  }
}

TEST_CASE("a task says what sums are divided by, among whom, and by which scale",
          "[model][comm_hook]") {
  const CommBucket bucket{{matrix_of({100, 10}), matrix_of({100})}, DType::fp32};
  const auto written = [&](const CommHook& hook, int iteration = 0) {
    return written_hook(hook, bucket, {.ranks = 6, .ranks_per_node = 3, .iteration = iteration});
  };
  const auto divisor = [&](const CommHook& hook, int iteration = 0) {
    const WrittenHook of = written(hook, iteration);
    const std::int16_t ranks = of.action<program::Scale>("divide").mean_over;
    return of.memory.job.communicators.at(at(ranks)).groups.front().size();
  };
  CHECK(divisor(hook_of(CommHookKind::allreduce)) == 6);
  // Among the three ranks of a node, or as many as are asked for.
  CommHook local = hook_of(CommHookKind::post_local_sgd);
  local.post_local_sgd.start_iteration = 1;
  CHECK(divisor(local, 1) == 6);
  CHECK(written(local, 1).task("all-reduce").work.group == 0);
  CHECK(divisor(local) == 3);
  CHECK(written(local).task("all-reduce in subgroup").work.group == 3);
  local.post_local_sgd.subgroup = 2;
  CHECK(divisor(local) == 2);
  CHECK(written(local).task("all-reduce in subgroup").work.group == 2);
  // What the user scales by is a number, even if it is said to be the ranks.
  CommHook own = hook_of(CommHookKind::steps);
  own.steps.resize(1);
  own.steps[0].kind = OwnStep::Kind::scale;
  CHECK(written(own).action<program::Scale>("scale").factor == Approx(1.0 / 6));
  CHECK(written(own).action<program::Scale>("scale").mean_over == nobody);
  own.steps[0].factor = 0.5;
  CHECK(written(own).action<program::Scale>("scale").factor == 0.5);
  CHECK(written(own).action<program::Scale>("scale").mean_over == nobody);
  // One scale for all elements, or for each channel of 512: three of them, each of eight bytes.
  for (const auto& [kind, channel, scales] :
       {std::tuple{CommHookKind::quantization_pertensor, 0, 2},
        std::tuple{CommHookKind::quantization_perchannel, 512, 6}}) {
    const WrittenHook quantized = written(hook_of(kind));
    CHECK(quantized.action<program::Observe>("find scale").channel == channel);
    CHECK(quantized.action<program::Quantize>("quantize").channel == channel);
    CHECK(quantized.action<program::Dequantize>("dequantize").channel == channel);
    CHECK(quantized.buffer("scales").elements == scales);
    CHECK(quantized.buffer("all scales").elements == 6 * scales);
    CHECK(quantized.buffer("all codes").elements == 6 * quantized.buffer("codes").elements);
  }
  CommHook plugged = hook_of(CommHookKind::plugin);
  plugged.plugin = "sign";
  const WrittenHook of_plugin = written(plugged);
  for (const std::string_view label : {"plugin before", "plugin after"})
    CHECK(of_plugin.memory.job.labels[at(of_plugin.action<program::Plugin>(label).code)] == "sign");
}

TEST_CASE("PowerSGD's tasks say what is added to norms, and whether random numbers serve again",
          "[model][comm_hook]") {
  const CommBucket bucket{{matrix_of({100, 10}), matrix_of({100})}, DType::fp32};
  const CommBucket uncompressed{{matrix_of({100})}, DType::fp32};
  const auto epsilons = [&](const CommHook& hook) {
    const WrittenHook written = written_hook(hook, bucket, {.ranks = 2});
    return std::pair{written.action<program::Orthogonalize>("orthogonalize P").epsilon,
                     written.action<program::Orthogonalize>("orthogonalize Q").epsilon};
  };
  CommHook hook = powersgd(1);
  hook.powersgd.orthogonalization_epsilon = 1e-8;
  CHECK(epsilons(hook) == std::pair{1e-8, 1e-8});
  // In the steady state Q starts as if it had just been drawn; with nothing compressed a seed is
  // taken for it all the same.
  for (const CommBucket& each : {bucket, uncompressed}) {
    const WrittenHook warm = written_hook(hook, each, {.ranks = 2});
    CHECK(warm.buffer("Q 0").start == program::Start::random);
    CHECK(warm.buffer("Q").life == program::Life::job);
    CHECK_FALSE(warm.task("pack uncompressed").then);
  }
  hook.powersgd.warm_start = false;
  const WrittenHook cold = written_hook(hook, bucket, {.ranks = 2});
  CHECK(cold.buffer("Q 0").start == program::Start::zeros);
  CHECK(cold.buffer("Q").life == program::Life::step);
  CHECK(cold.action<program::Draw>("draw Q").fresh);
  CHECK_FALSE(cold.task("pack uncompressed").then);
  const WrittenHook seeded = written_hook(hook, uncompressed, {.ranks = 2});
  REQUIRE(seeded.task("pack uncompressed").then);
  CHECK(std::get<program::Draw>(*seeded.task("pack uncompressed").then).fresh);
  // Batched PowerSGD adds nothing to its norms.
  hook.kind = CommHookKind::batched_powersgd;
  CHECK(epsilons(hook) == std::pair{0.0, 0.0});
}

TEST_CASE("PowerSGD's tasks say which matrices it compresses", "[model][comm_hook]") {
  const CommBucket bucket{
      {matrix_of({100, 10}), matrix_of({100}), matrix_of({40, 50}), matrix_of({100, 10})},
      DType::fp32};
  struct Compressed {
    std::int32_t gradient;
    std::int64_t rows, rank, columns;
    bool operator==(const Compressed&) const = default;
  };
  const auto compressed = [&](const CommHook& hook) {
    std::vector<Compressed> found;
    for (const HookTask& task : hook_tasks(hook, bucket, {.ranks = 2}))
      if (task.label == "P = M Q") {
        const auto& product = std::get<program::Multiply>(task.action);
        found.push_back({task.gradient, product.m, product.n, product.k});
      }
    return found;
  };
  using All = std::vector<Compressed>;
  // Those of equal shapes one after the other: the first and the last, then the third.
  CHECK(compressed(powersgd(2)) == All{{0, 100, 2, 10}, {3, 100, 2, 10}, {2, 40, 2, 50}});
  // Batched: all 4100 elements, padded to 65 x 65.
  CHECK(compressed(powersgd(2, CommHookKind::batched_powersgd)) == All{{nobody, 65, 2, 65}});
  CHECK(compressed(hook_of(CommHookKind::fp16_compress)).empty());
}

TEST_CASE("hooks keep the same state if all their settings are the same", "[model][comm_hook]") {
  CommHook hook = powersgd(2);
  hook.steps.resize(1);
  CHECK(state_of(CommHook{}).empty());
  CHECK(state_of(hook) == state_of(CommHook{hook}));
  std::set<std::string> states{state_of(hook)};
  int count = 1;
  const auto change = [&](auto changed) {
    CommHook other = hook;
    changed(other);
    ++count;
    CHECK(states.insert(state_of(other)).second);
  };
  change([](CommHook& h) { h.kind = CommHookKind::batched_powersgd; });
  change([](CommHook& h) { h.wrappers = {DType::bf16}; });
  change([](CommHook& h) { h.wrappers = {DType::bf16, DType::fp16}; });
  change([](CommHook& h) { h.wrappers = {DType::fp16, DType::bf16}; });
  change([](CommHook& h) { h.powersgd.rank = 3; });
  change([](CommHook& h) { h.powersgd.start_iteration = 3; });
  change([](CommHook& h) { h.powersgd.min_compression_rate = 3; });
  change([](CommHook& h) { h.powersgd.error_feedback = false; });
  change([](CommHook& h) { h.powersgd.warm_start = false; });
  change([](CommHook& h) { h.powersgd.orthogonalization_epsilon = 1e-8; });
  change([](CommHook& h) { h.powersgd.seed = 1; });
  change([](CommHook& h) { h.post_local_sgd.start_iteration = 3; });
  change([](CommHook& h) { h.post_local_sgd.subgroup = 3; });
  change([](CommHook& h) { h.post_local_sgd.gradient_allreduce = false; });
  change([](CommHook& h) { h.post_local_sgd.period = 3; });
  change([](CommHook& h) { h.plugin = "sign"; });
  change([](CommHook& h) { h.plugin_type = DType::bf16; });
  change([](CommHook& h) { h.steps.resize(2); });
  change([](CommHook& h) { h.steps[0].kind = OwnStep::Kind::cast; });
  change([](CommHook& h) { h.steps[0].type = DType::bf16; });
  change([](CommHook& h) { h.steps[0].factor = 0; });
  change([](CommHook& h) { h.steps[0].factor = 0.5; });
  change([](CommHook& h) { h.steps[0].share = 0.5; });
  change([](CommHook& h) { h.steps[0].name = "own"; });
  change([](CommHook& h) { h.steps[0].passes = 3; });
  change([](CommHook& h) { h.steps[0].launches = 3; });
  change([](CommHook& h) { h.steps[0].communicator = 1; });
  CHECK(states.size() == static_cast<std::size_t>(count));
}

TEST_CASE("a job says which state its comm hook keeps, in every iteration the same",
          "[model][comm_hook]") {
  CommHook hook = powersgd(1);
  hook.powersgd.seed = 7;
  hook.powersgd.start_iteration = 3;
  Training training = with_hook(hook);
  const program::Job steady = build_job(on_two_gpus(), training);
  CHECK(steady.hook == state_of(hook));
  CHECK(steady.state == state_of(hook) + "; 2 1; 0");  // other buckets are another state
  CHECK(steady.seed == 7);
  training.iteration = 1;
  CHECK(build_job(on_two_gpus(), training).state == steady.state);
  training.strategy = Strategy::overlap;  // calls no comm hook
  CHECK(build_job(on_two_gpus(), training).state.empty());
  CHECK(build_job(on_two_gpus(), with_hook({})).hook.empty());
}
