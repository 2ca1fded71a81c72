// Steps with hooks of the user's, on gradients and layers.
#include <algorithm>

#include <catch2/catch.hpp>

#include "sim/predict/predict.hpp"
#include "sim/tune/bucket_steps.hpp"
#include "sim/tune/tune.hpp"
#include "tests/sim/tune/random_partitions.hpp"

namespace ddpsim {
namespace {

using fixtures::Dice;
using namespace std::chrono_literals;

/// Gradient hooks of every kind, on random parameters or on whole layers.
std::vector<UserHook> random_hooks(Dice& dice, const Workload& workload) {
  std::vector<UserHook> hooks;
  for (int left = dice.between(1, 4); left > 0; --left) {
    UserHook hook;
    hook.kind = std::array{UserHookKind::clip, UserHookKind::scale, UserHookKind::noise,
                           UserHookKind::record,
                           UserHookKind::plugin}[static_cast<std::size_t>(dice.between(0, 4))];
    hook.value = 1;
    hook.launches = dice.between(1, 3);
    if (dice.one_in(2)) hook.host = dice.time(50);
    const bool by_layer = hook.kind == UserHookKind::clip;
    for (std::int32_t layer = 0; layer < static_cast<std::int32_t>(workload.layers.size());
         ++layer) {
      std::vector<std::int32_t> members;
      for (std::size_t p = 0; p < workload.parameters.size(); ++p)
        if (workload.parameters[p].layer == layer && (by_layer || dice.one_in(2)))
          members.push_back(static_cast<std::int32_t>(p));
      if (by_layer && !members.empty() && dice.one_in(2)) hook.groups.push_back(members);
      for (std::size_t m = 0; !by_layer && m < members.size(); ++m)
        hook.groups.push_back({members[m]});
    }
    hooks.push_back(hook);
  }
  return hooks;
}

UserHook chunks_on(std::int32_t layer) {
  UserHook hook;
  hook.kind = UserHookKind::chunks;
  hook.chunks.count = 4;
  hook.chunks.threads = 4;
  hook.layers = {layer};
  hook.outputs = {Bytes{10'000'000}};
  return hook;
}

}  // namespace

TEST_CASE("with gradient hooks too, the tuner's steps are the predicted ones, to the tick",
          "[sim][user_hooks]") {
  int compared = 0, longer = 0;
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    Dice dice(seed);
    const Workload workload = fixtures::random_workload(dice);
    StepModel model(workload, fixtures::random_cluster(dice, dice.one_in(2)), Optimizer::sgd);
    if (dice.one_in(3)) model.costs.slowest_rank = 1 + 0.01 * dice.between(1, 40);
    Training training;
    training.micro_batches = dice.one_in(3) ? 2 : 1;
    training.no_sync = dice.one_in(2);
    training.gradient_as_bucket_view = dice.one_in(3);
    const Duration bare = predict(model, training).metrics.step;
    training.hooks = random_hooks(dice, workload);
    longer += predict(model, training).metrics.step > bare ? 1 : 0;
    BucketSteps steps(model, training);
    for (int draw = 0; draw < 4; ++draw) {
      std::vector<int> ends;
      for (int end = 1; end < steps.size(); ++end)
        if (dice.one_in(draw + 1)) ends.push_back(end);
      ends.push_back(steps.size());
      Training explicit_buckets = training;
      explicit_buckets.buckets = fixtures::buckets_of(model, ends);
      CAPTURE(seed, draw, model.costs.synchronous, training.micro_batches);
      REQUIRE(steps.of(ends) == predict(model, explicit_buckets).metrics.step);
      ++compared;
    }
  }
  CHECK(compared == 1600);
  CHECK(longer > 300);
}

TEST_CASE("the tuner's best is what run predicts, with hooks and with chunks",
          "[sim][user_hooks]") {
  Workload workload = timed::chain(6, 1ms, 2ms, Bytes{4'000'000});
  for (const bool on_host : {false, true}) {
    Cluster cluster = timed::ring(4, 20us, gigabytes_per_second(4));
    cluster.device.synchronous = on_host;
    const StepModel model(workload, cluster, Optimizer::sgd);
    Training training;
    UserHook scale;
    scale.kind = UserHookKind::scale;
    scale.groups = {{0}, {3}};
    training.hooks = {scale, chunks_on(2)};
    const Tuning tuning = tune(model, training, {});
    Training best = training;
    best.buckets = tuning.best_cap.buckets;
    CHECK(tuning.best_cap.step == predict(model, best).metrics.step);
    CHECK(tuning.lower_bound <= tuning.best_cap.step);
  }
}

TEST_CASE("chunks are host time in the midst of forward: usually a loss", "[sim][user_hooks]") {
  // 10 MB: 2 ms of host memory, four hand-overs; on a GPU there and back at 25 GB/s besides.
  const Workload workload = timed::chain(3, 1ms, 2ms, Bytes{4000});
  for (const bool on_host : {false, true}) {
    CAPTURE(on_host);
    Cluster cluster = timed::constant(2, 10us);
    cluster.device.synchronous = on_host;
    StepModel model(workload, cluster, Optimizer::none);
    timed::free_copies(model);
    Training training;
    training.strategy = Strategy::none;
    const Step without = predict(model, training);
    training.hooks = {chunks_on(0)};
    const Step with = predict(model, training);
    const Duration lost = with.metrics.step - without.metrics.step;
    CHECK(lost >= 2040us + (on_host ? 0us : 800us));
    CHECK(lost <= 2040us + (on_host ? 0us : 900us));
    CHECK(with.metrics.forward - without.metrics.forward == lost);
    CHECK(with.metrics.backward == without.metrics.backward);
  }
}

TEST_CASE("a clip that holds back a layer's gradients delays their bucket", "[sim][user_hooks]") {
  // Backward's kernels of one layer end at 10, 30, ...; b is ready first, and waits for d.
  const Workload workload = timed::in_order_example();
  const StepModel model(workload, timed::constant(2, 1ms), Optimizer::none);
  Training training;
  training.buckets = {{1}, {0, 2, 3}};
  const Instant alone = predict(model, training).metrics.buckets[0].start;
  UserHook clip;
  clip.kind = UserHookKind::clip;
  clip.groups = {{0, 1, 2, 3}};
  training.hooks = {clip};
  const Instant held = predict(model, training).metrics.buckets[0].start;
  CHECK(alone < Instant{} + 11ms);
  CHECK(held > Instant{} + 50ms);  // d comes then
}

}  // namespace ddpsim
