#include "model/parallel/memory/held_memory.hpp"

#include <algorithm>

#include <catch2/catch.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "model/parallel/order/build_job.hpp"
#include "model/program/memory_along.hpp"
#include "model/program/operands.hpp"
#include "model/program/text.hpp"
#include "tests/model/parallel/random_trainings.hpp"

namespace ddpsim {
namespace {

using namespace std::chrono_literals;
using program::Hold;
using program::Holds;
using program::Job;
using program::Life;

struct HeldStep {
  Workload workload;
  Training training;
  Optimizer optimizer = Optimizer::none;
  int ranks = 2;

  Job job() const {
    const Cluster cluster = timed::ring(ranks, 1us, gigabytes_per_second(1));
    const StepWorks works(workload, cluster, optimizer);
    return build_job(works, training);
  }
  Job with_memory() const { return program::with_memory(job(), workload, optimizer, training); }
  program::MemoryPeak peak() const {
    const Job held = with_memory();
    return peak_of(memory_along(held, held.programs[0]));
  }
};

/// What comes and goes of one kind, in order: "+100 @3" comes before task 3.
std::string changes_in(const Job& job, Holds holds, std::size_t program = 0) {
  std::string text;
  for (const auto& change : memory_along(job, job.programs[program]).changes)
    if (change.holds == holds)
      text +=
          fmt::format("{}{:+} @{}", text.empty() ? "" : ", ", change.bytes.count, change.before);
  return text;
}

ModuleMemory memory_of_module(std::int64_t kept, std::int64_t forward, std::int64_t backward,
                              int kernel) {
  return {.kept = {kept},
          .forward_working = {forward},
          .backward_working = {backward},
          .first_forward = kernel,
          .first_backward = 1 - kernel};
}

/// One layer of modules a and b, of a kernel each in either pass, and a parameter each.
HeldStep two_modules() {
  HeldStep step;
  step.training.strategy = Strategy::none;
  step.workload.layers = {{"only",
                           {timed::kernel(1ms), timed::kernel(1ms)},
                           {timed::kernel(1ms), timed::kernel(1ms)},
                           {memory_of_module(100, 7, 9, 0), memory_of_module(10, 5, 3, 1)}}};
  step.workload.parameters = {timed::parameter("a", Bytes{8}, 0, 1),
                              timed::parameter("b", Bytes{40}, 0, 0)};
  return step;
}

/// Parameters of 40 kB, one a layer, with DDP's buckets of two.
HeldStep chain_of_four() {
  HeldStep step;
  step.workload = timed::chain(4, 1ms, 1ms, Bytes{40'000});
  step.training.strategy = Strategy::bucketed;
  step.training.bucket_cap = step.training.first_bucket_cap.emplace(80'000);
  return step;
}

}  // namespace

TEST_CASE("activations pile up module by module and go in reverse, with what passes take meanwhile",
          "[model][ddp][memory]") {
  // Tasks 0 a, 1 b forward, 2 b, 3 a backward.
  const Job job = two_modules().with_memory();
  REQUIRE(job.programs[0].tasks.size() == 4);
  CHECK(changes_in(job, Holds::activation) == "+100 @0, +10 @1, -10 @3, -100 @4");
  CHECK(changes_in(job, Holds::working) ==
        "+7 @0, -7 @1, +5 @1, -5 @2, +3 @2, -3 @3, +9 @3, -9 @4");
  // Gradients come with their kernels and stay for the optimizer.
  CHECK(changes_in(job, Holds::gradient) == "+40 @2, +8 @3");
}

TEST_CASE("modules whose kernels are one, or that have none, come and go one after the other",
          "[model][ddp][memory]") {
  HeldStep step = two_modules();
  Layer& layer = step.workload.layers.front();
  layer.forward.pop_back();
  layer.backward.pop_back();
  layer.memory = {memory_of_module(100, 7, 9, 0), memory_of_module(10, 5, 3, 0)};
  for (ModuleMemory& each : layer.memory) each.first_backward = 0;
  step.workload.parameters.pop_back();
  step.workload.parameters.front().ready_after = 0;
  const Job job = step.with_memory();
  CHECK(changes_in(job, Holds::activation) == "+100 @0, +10 @0, -10 @1, -100 @2");
  CHECK(changes_in(job, Holds::working) ==
        "+7 @0, -7 @0, +5 @0, -5 @1, +3 @1, -3 @1, +9 @1, -9 @2");
}

TEST_CASE("where it is known what is alive at most, that is kept and taken together",
          "[model][ddp][memory]") {
  // Beside 110 that are kept b's pass takes 140 at most, a's 60 beside its own 100.
  HeldStep step = two_modules();
  step.workload.layers[0].memory[1].backward_peak = Bytes{250};
  step.workload.layers[0].memory[0].backward_peak = Bytes{160};
  CHECK(changes_in(step.with_memory(), Holds::working) ==
        "+7 @0, -7 @1, +5 @1, -5 @2, +140 @2, -140 @3, +60 @3, -60 @4");
}

TEST_CASE("each micro-batch has its activations, and its gradients are added to those before",
          "[model][ddp][memory]") {
  HeldStep step = two_modules();
  step.training.micro_batches = 2;
  const Job job = step.with_memory();
  // 4, 5 forward; 6 b backward, 7 added up; 8 a, 9 added up.
  REQUIRE(job.programs[0].tasks.size() == 10);
  CHECK(changes_in(job, Holds::activation) ==
        "+100 @0, +10 @1, -10 @3, -100 @4, +100 @4, +10 @5, -10 @8, -100 @9");
  CHECK(changes_in(job, Holds::gradient) == "+40 @2, +8 @3, +40 @6, -40 @8, +8 @8, -8 @10");
}

TEST_CASE("DDP's buckets stay, a flat one comes when gradients are put into it",
          "[model][ddp][memory]") {
  HeldStep step = chain_of_four();
  const auto begins_with = [](const Job& job) {
    return memory_along(job, job.programs[0]).begin[Holds::bucket];
  };
  CHECK(begins_with(step.with_memory()) == Bytes{160'000});
  CHECK(changes_in(step.with_memory(), Holds::bucket).empty());
  step.training.copied_buckets = true;
  CHECK(begins_with(step.with_memory()) == Bytes{160'000});
  step.training.copied_buckets = false;
  step.training.flattened_buckets = true;
  CHECK(begins_with(step.with_memory()) == Bytes{});
  CHECK(step.peak().most[Holds::bucket] == Bytes{160'000});
  step.training.flattened_buckets = false;
  step.training.strategy = Strategy::flat;
  CHECK(begins_with(step.with_memory()) == Bytes{});
  const Job flat = step.with_memory();
  // Eight kernels, the concatenation (8), all-reduce, wait, division, and four copies back.
  CHECK(changes_in(flat, Holds::bucket) ==
        fmt::format("+160000 @8, -160000 @{}", flat.programs[0].tasks.size()));
  // As views gradients lie there from then on, and their own memory goes.
  step.training.flat_views = true;
  CHECK(changes_in(step.with_memory(), Holds::bucket) == "+160000 @8");
  CHECK(step.peak().most[Holds::gradient] == Bytes{160'000});
}

TEST_CASE("a gradient is memory of its own until it is in its bucket", "[model][ddp][memory]") {
  HeldStep step = chain_of_four();
  step.training.gradient_as_bucket_view = true;
  CHECK(step.peak().most[Holds::gradient] == Bytes{});  // nothing is known of what passes take
  for (Layer& layer : step.workload.layers) layer.memory.push_back(memory_of_module(1, 1, 1, 0));
  CHECK(step.peak().most[Holds::gradient] == Bytes{40'000});
  CHECK(step.peak().most[Holds::bucket] == Bytes{160'000});
  // torch 1.13 sets gradients to zero: they stay, here as views, and each is made beside them.
  step.training.pytorch = PyTorch::v1_13;
  CHECK(step.peak().most[Holds::gradient] == Bytes{40'000});
  step.training.gradient_as_bucket_view = false;
  CHECK(step.peak().most[Holds::gradient] == Bytes{160'000 + 40'000});
}

TEST_CASE("a comm hook's tensors are one bucket's at a time, but for what it keeps",
          "[model][ddp][memory]") {
  // 10,000 elements a parameter, two to a bucket.
  HeldStep step = chain_of_four();
  step.training.comm_hook.kind = CommHookKind::fp16_compress;
  CHECK(step.peak().most[Holds::hook] == Bytes{2 * 20'000});
  // At rank 1 a matrix of 100 x 100 has 100 numbers in P and in Q; all of it is compressed. Kept:
  // those and the error; for a while: the input of one bucket.
  for (Parameter& each : step.workload.parameters) each.shape = {100, 100};
  step.training.comm_hook.kind = CommHookKind::powersgd;
  const auto kept = [](std::int64_t elements) { return 4 * Bytes{elements}; };
  CHECK(step.peak().most[Holds::hook] == kept(4 * 200 + 40'000) + kept(20'000));
  step.training.comm_hook.powersgd.error_feedback = false;
  CHECK(step.peak().most[Holds::hook] == kept(4 * 200));
  step.training.comm_hook.powersgd.warm_start = false;
  CHECK(step.peak().most[Holds::hook] == kept(2 * 200));
}

TEST_CASE("what each comm hook keeps and takes is counted", "[model][ddp][memory]") {
  // One bucket of n = 5,378,560 elements, four ranks. Of rank 4 the two matrices have low = 4 x
  // (4096 + 1024 + 512 + 2304) numbers in P and Q; plain = 4096 + 512 others are not compressed.
  const std::int64_t n = 5'378'560, low = 4 * (4096 + 1024 + 512 + 2304), plain = 4608;
  HeldStep step;
  step.ranks = 4;
  step.workload = timed::chain(1, 1ms, 1ms, Bytes{4});
  step.workload.parameters.clear();
  for (const std::vector<std::int64_t>& shape :
       {std::vector<std::int64_t>{4096, 1024}, {4096}, {512, 256, 3, 3}, {512}}) {
    step.workload.parameters.push_back(timed::parameter(fmt::format("{}", shape), Bytes{4}, 0, 0));
    step.workload.parameters.back().shape = shape;
  }
  step.training.strategy = Strategy::bucketed;
  step.training.bucket_cap = step.training.first_bucket_cap.emplace(GiB);
  CommHook& hook = step.training.comm_hook;
  const auto takes = [&](CommHookKind kind) {
    hook.kind = kind;
    return step.peak().most[Holds::hook].count;
  };
  CHECK(takes(CommHookKind::allreduce) == 0);
  CHECK(takes(CommHookKind::fp16_compress) == 2 * n);
  hook.powersgd.rank = 4;
  CHECK(takes(CommHookKind::powersgd) == 4 * (n + low) + 4 * (n + plain));
  hook.powersgd.error_feedback = false;
  CHECK(takes(CommHookKind::powersgd) == 4 * (low + plain));
  hook.powersgd.error_feedback = true;
  // Inside a wrapper everything is of the wrapper's type, and so is a copy of the bucket.
  hook.wrappers = {DType::bf16};
  CHECK(takes(CommHookKind::powersgd) == 2 * n + 2 * (n + low) + 2 * (n + plain));
  hook.wrappers.clear();
  // All gradients as one square matrix, beside the bucket: 2320 is the first whose square holds n.
  const std::int64_t side = 2320;
  CHECK(takes(CommHookKind::batched_powersgd) == 4 * (2 * side * 4 + 3 * side * side));
  // Codes of four ranks, and first this rank's, then the result; a scale and a zero point of each.
  CHECK(takes(CommHookKind::quantization_pertensor) == 4 * n + 4 * n + 4 * 8);
  const std::int64_t channels = n / 512 + 1;
  CHECK(takes(CommHookKind::quantization_perchannel) == 4 * 512 * channels + 4 * n + 32 * channels);
  hook.plugin_type = DType::bf16;
  CHECK(takes(CommHookKind::plugin) == 2 * n);
  hook.steps.resize(1);
  hook.steps.front().kind = OwnStep::Kind::cast;
  hook.steps.front().type = DType::fp32;
  CHECK(takes(CommHookKind::steps) == 0);
  hook.steps.front().type = DType::fp16;
  CHECK(takes(CommHookKind::steps) == 2 * n);
  // Values and their places, this rank's beside those of all.
  hook.steps.front().kind = OwnStep::Kind::topk;
  hook.steps.front().share = 0.25;
  hook.steps.emplace_back().kind = OwnStep::Kind::all_gather;
  CHECK(takes(CommHookKind::steps) == 5 * (n / 4) * 8);
}

TEST_CASE("an optimizer holds state of what has gradients, and takes more while it updates",
          "[model][ddp][memory]") {
  HeldStep step = chain_of_four();
  step.training.strategy = Strategy::none;
  step.optimizer = Optimizer::adamw;
  CHECK(step.peak().most[Holds::optimizer] == Bytes{2 * 160'000});
  CHECK(step.peak().most[Holds::working] == Bytes{160'000});  // square roots
  step.optimizer = Optimizer::lamb;                           // whose state no job holds
  CHECK(step.peak().most[Holds::optimizer] == Bytes{2 * 160'000});
  step.optimizer = Optimizer::adamw_loop;
  CHECK(step.peak().most[Holds::working] ==
        optimizer_working(step.optimizer, step.workload, std::vector<std::int32_t>{0}));
  step.optimizer = Optimizer::sgd_plain;
  CHECK(step.peak().most[Holds::optimizer] == Bytes{});
  step.workload.parameters[1].unused = true;
  step.optimizer = Optimizer::adamw;
  CHECK(step.peak().most[Holds::optimizer] == Bytes{2 * 120'000});
}

TEST_CASE("ranks that update a bucket alone hold its state alone", "[model][ddp][memory]") {
  // Three ranks: the first owns two of four buckets, the others one each.
  HeldStep step = chain_of_four();
  step.ranks = 3;
  step.optimizer = Optimizer::adamw;
  step.training.bucket_cap = step.training.first_bucket_cap.emplace(40'000);
  step.training.comm_hook.kind = CommHookKind::zero_step;
  const Job job = step.with_memory();
  REQUIRE(job.programs.size() == 3);
  const auto state = [&](std::size_t program) {
    return peak_of(memory_along(job, job.programs[program])).most[Holds::optimizer];
  };
  CHECK(state(0) == Bytes{2 * 80'000});
  CHECK(state(1) == Bytes{2 * 40'000});
  CHECK(state(2) == Bytes{2 * 40'000});
}

TEST_CASE("what is used is there, comes and goes in turn, and no activation is left over",
          "[model][ddp][memory][properties]") {
  drawn::Draw draw(53);
  int hooks = 0, holds = 0;
  for (int round = 0; round < 500; ++round) {
    drawn::RandomStep step = drawn::random_step_of(draw);
    for (Layer& layer : step.workload.layers)
      for (int left = draw.between(1, 3); left > 0; --left)
        layer.memory.push_back({.kept = {draw.between(0, 100)},
                                .forward_working = {draw.between(0, 100)},
                                .backward_working = {draw.between(0, 100)},
                                .first_forward = static_cast<int>(layer.memory.size()),
                                .first_backward = left - 1});
    const Job job =
        program::with_memory(step.job, step.workload, step.works.updates, step.training);
    CAPTURE(round, name_of(step.training.strategy), text_of(job));
    hooks += step.training.comm_hook ? 1 : 0;
    for (const program::Program& program : job.programs) {
      REQUIRE(std::ranges::is_sorted(program.holds, {}, &Hold::before));
      std::vector<bool> there(job.buffers.size());
      auto hold = program.holds.begin();
      const auto come_and_go = [&](std::size_t until) {
        for (; hold != program.holds.end() && hold->before <= until; ++hold) {
          REQUIRE(job.buffers[hold->buffer].life == Life::held);
          REQUIRE(there[hold->buffer] != hold->begins);
          there[hold->buffer] = hold->begins;
          ++holds;
        }
      };
      for (std::size_t t = 0; t < program.tasks.size(); ++t) {
        come_and_go(t);
        const auto& deed = job.deed_of(program.tasks[t]);
        const program::Accesses used = accesses_of(deed.action, job.actions_of(program.tasks[t]));
        for (const auto* slices : {&used.reads, &used.writes})
          for (const program::Slice& slice : *slices) {
            program::BufferId root = slice.buffer;
            while (job.buffers[root].is_view()) root = job.buffers[root].inside.buffer;
            const program::Buffer& buffer = job.buffers[root];
            const bool is_other = buffer.holds == Holds::optimizer ||
                                  (buffer.holds == Holds::gradient &&
                                   step.workload.parameters[at(buffer.index)].sparse);
            if (buffer.life == Life::held && !is_other) REQUIRE(there[root]);
          }
      }
      come_and_go(program.tasks.size());
      REQUIRE(hold == program.holds.end());
      for (program::BufferId b = 0; b < job.buffers.size(); ++b) {
        const Holds kind = job.buffers[b].holds;
        if (kind == Holds::activation || kind == Holds::working || kind == Holds::hook)
          REQUIRE_FALSE(there[b]);
      }
    }
  }
  CHECK(hooks > 50);
  CHECK(holds > 10'000);
}

}  // namespace ddpsim
