// Why what a ZeRO sends is exposed, counted by hand.

#include <utility>

#include <catch2/catch.hpp>

#include "model/parallel/order/build_job.hpp"
#include "model/timeline/units.hpp"
#include "model/timeline/why.hpp"
#include "sim/engine/simulate.hpp"
#include "tests/model/workload/timed.hpp"

namespace ddpsim {
namespace {

using namespace std::chrono_literals;

struct ToldStep {
  program::Job job;
  JobTimeline timeline;

  std::vector<ExposedBucket> buckets() const {
    return why_exposed(job, timeline, measure(job, timeline, 0), 0);
  }
  std::vector<UnitCollective> units() const { return unit_collectives(job, timeline, 0); }
};

/// Four layers of a parameter each: 10 ms forward, 20 ms backward, 8 ms each collective of
/// gradients, 4 ms each of parameters, updates of 1 ms; the host and all else take no time.
ToldStep zero_step(Strategy strategy, const ZeroSettings& settings, int parameters = 4) {
  Training training;
  training.strategy = strategy;
  training.zero1 = training.zero2 = training.zero3 = settings;
  const StepWorks works(timed::chain(parameters, 1ms, 1ms, MiB),
                        timed::ring(2, 1us, Bandwidth{1e9}), Optimizer::sgd);
  program::Job job = build_job(works, training);
  JobCosts costs;
  costs.of_rank = {0, 0};
  Costs& all = costs.kinds.emplace_back();
  for (const Work& work : job.works) {
    WorkCost& cost = all.works.emplace_back();
    if (work.operation == Operation::forward) cost.work = 10ms;
    if (work.operation == Operation::backward) cost.work = 20ms;
    if (work.operation == Operation::optimizer) cost.work = 1ms;
    if (is_collective(work.operation) && work.message == Message::gradients) cost.work = 8ms;
    if (is_collective(work.operation) && work.message == Message::parameters) cost.work = 4ms;
    cost.latency = cost.work;  // which is not shared
  }
  JobTimeline timeline = simulate(job, costs);
  return {std::move(job), std::move(timeline)};
}

constexpr std::int64_t one_parameter = 1 << 18;  // of 4 bytes in a MiB

}  // namespace

TEST_CASE("DeepSpeed's stage 2 exposes what kernels wait for, and without overlap_comm that is all",
          "[sim][zero][why]") {
  ZeroSettings settings{.variant = ZeroVariant::deepspeed};
  settings.reduce_bucket_size = one_parameter;
  const auto buckets = zero_step(Strategy::zero2, settings).buckets();
  REQUIRE(buckets.size() == 4);
  for (std::size_t b = 0; b < 4; ++b) {
    CAPTURE(b);
    CHECK(buckets[b].times.exposed == 8ms);
    // A bucket is reduced once the next gradient is there: two layers' backward of 20 ms follow
    // the first, one follows the second, and nothing the others.
    CHECK(buckets[b].by(b < 2 ? Cause::kernels_wait : Cause::gradients) == 8ms);
  }
  settings.overlap_comm = true;
  const auto hidden = zero_step(Strategy::zero2, settings).buckets();
  REQUIRE(hidden.size() == 2);
  for (std::size_t b = 0; b < 2; ++b) {
    CHECK(hidden[b].bucket == b + 2);
    CHECK(hidden[b].times.exposed == 8ms);
    CHECK(hidden[b].by(Cause::kernels_wait) == 0ms);
  }
}

TEST_CASE("what is sent behind the update is exposed by itself, all of it together",
          "[sim][zero][why]") {
  // Two parameters of each rank: four broadcasts of 4 ms.
  const auto torch = zero_step(Strategy::zero1, {});
  auto sent = updated_sends(torch.job, torch.timeline, 0);
  REQUIRE(sent);
  CHECK(sent->operation == Operation::broadcast);
  CHECK(sent->count == 4);
  CHECK(sent->payload == 4 * MiB);
  CHECK(sent->why.times.exposed == 16ms);
  CHECK(sent->why.by(Cause::itself) == 16ms);
  // One gather of all parts.
  const auto deepspeed = zero_step(Strategy::zero1, {.variant = ZeroVariant::deepspeed});
  sent = updated_sends(deepspeed.job, deepspeed.timeline, 0);
  REQUIRE(sent);
  CHECK(sent->operation == Operation::all_gather);
  CHECK(sent->count == 1);
  CHECK(2 * sent->payload == 4 * MiB);
  CHECK(sent->why.by(Cause::itself) == 4ms);
  // Under DistributedDataParallel nothing is.
  const auto ddp = zero_step(Strategy::bucketed, {});
  CHECK(!updated_sends(ddp.job, ddp.timeline, 0));
}

TEST_CASE("Megatron-LM's gathers behind the update are its buckets', and go into the next step",
          "[sim][zero][why]") {
  ZeroSettings settings{.variant = ZeroVariant::megatron};
  settings.overlap_grad_reduce = true;
  settings.ddp_bucket_size = one_parameter;
  settings.average_in_collective = true;
  const auto exposed_of_kind = [](const ToldStep& step, UnitCollectiveKind kind) {
    Duration exposed{};
    for (const UnitCollective& each : step.units())
      if (each.kind == kind) exposed += each.why.times.exposed;
    return exposed;
  };
  const auto behind = zero_step(Strategy::zero1, settings);
  CHECK(exposed_of_kind(behind, UnitCollectiveKind::updated_gather) == 16ms);
  CHECK(exposed_of_kind(behind, UnitCollectiveKind::reduction) == 8ms);  // the last one's
  // Gathered in forward, one ahead: all but the first hide behind 10 ms of kernels.
  settings.overlap_param_gather = true;
  const auto ahead = zero_step(Strategy::zero1, settings);
  CHECK(exposed_of_kind(ahead, UnitCollectiveKind::updated_gather) == 0ms);
  CHECK(exposed_of_kind(ahead, UnitCollectiveKind::forward_gather) == 4ms);
}

TEST_CASE("stage 3 without overlap_comm exposes what it gathers ahead, as kernels wait for it",
          "[sim][zero][why]") {
  ZeroSettings settings{.variant = ZeroVariant::deepspeed, .overlap_comm = false};
  settings.param_persistence_threshold = 0;
  settings.reduce_bucket_size = one_parameter;
  settings.max_reuse_distance = 0;
  settings.prefetch_bucket_size = 2 * one_parameter;
  const auto told = zero_step(Strategy::zero3, settings).units();
  Duration waiting{}, exposed{};
  for (const UnitCollective& each : told)
    if (each.kind != UnitCollectiveKind::reduction) {
      waiting += each.why.by(Cause::kernels_wait);
      exposed += each.why.times.exposed;
    }
  CHECK(waiting > 0ms);
  CHECK(waiting < exposed);  // the first of a pass is needed at once
  settings.overlap_comm = true;
  for (const UnitCollective& each : zero_step(Strategy::zero3, settings).units())
    CHECK(each.why.by(Cause::kernels_wait) == 0ms);
}

}  // namespace ddpsim
