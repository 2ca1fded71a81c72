#include "sim/tune/tune.hpp"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include <catch2/catch.hpp>

#include "sim/predict/predict.hpp"
#include "sim/tune/bucket_steps.hpp"
#include "sim/tune/merge_rule.hpp"
#include "tests/sim/tune/random_partitions.hpp"

namespace ddpsim {
namespace {

using namespace std::chrono_literals;
using fixtures::Dice;

Duration simulated(const StepModel& model, Training training, std::optional<Bytes> first,
                   Bytes cap) {
  training.strategy = Strategy::bucketed;
  training.first_bucket_cap = first;
  training.bucket_cap = cap;
  return predict(model, training).metrics.step;
}

Training random_settings(Dice& dice) {
  Training training;
  training.first_bucket_cap = Bytes{dice.between(1, 100)};
  if (dice.one_in(4)) training.first_bucket_cap.reset();
  if (dice.one_in(4)) training.bucket_rule = BucketRule::before_overflow;
  training.find_unused_parameters = dice.one_in(6);
  training.gradient_as_bucket_view = dice.one_in(4);
  return training;
}

}  // namespace

TEST_CASE("a step beyond six hours is refused, by the quick search and by the simulated one",
          "[sim][tune]") {
  // An hour for each of seven layers.
  const StepModel model = timed::model_of(timed::chain(7, 30min, 30min, Bytes{1000}),
                                          timed::ring(2, 1us, gigabytes_per_second(1)));
  const std::string refused =
      "a step of 7 hours is beyond what is simulated (6 hours): check batch, bandwidth and latency";
  CHECK_THROWS_WITH(tune(model, Training{}, TuneOptions{}), refused);
  Training hooked;
  hooked.comm_hook.kind = CommHookKind::fp16_compress;
  REQUIRE(BucketSteps(model, hooked).why_simulated());
  CHECK_THROWS_WITH(tune(model, hooked, TuneOptions{}), refused);
}

TEST_CASE("the best cap found is the best of every cap there is", "[sim][tune]") {
  int gained = 0;
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    Dice dice(seed);
    const StepModel model = fixtures::small_model(dice, dice.one_in(2), true);
    Training training = random_settings(dice);
    training.pytorch = dice.one_in(2) ? PyTorch::v2_13 : PyTorch::v1_13;
    // As it is for who gives a cap: 2.13 takes it for the first bucket too.
    Training with_cap = training;
    with_cap.give_cap(Bytes{1});
    const std::optional<Bytes> first = with_cap.first_bucket_cap;
    Duration shortest = Duration::max();
    const std::int64_t largest = fixtures::total(model).count;
    for (std::int64_t cap = 1; cap <= largest + 1; ++cap)
      shortest = std::min(shortest, simulated(model, training, first, {cap}));
    const Tuning tuning = tune(model, training);
    CAPTURE(seed, model.works.gradients.size());
    REQUIRE(tuning.best_cap.step == shortest);
    REQUIRE(simulated(model, training, first, tuning.best_cap.cap) == shortest);
    REQUIRE(simulated(model, training, first, tuning.best_cap.highest_cap) == shortest);
    REQUIRE(tuning.standard.step == simulated(
                                        model,
                                        [&] {
                                          Training standard = training;
                                          standard.bucket_rule = BucketRule::torch;
                                          return standard;
                                        }(),
                                        MiB, 25 * MiB));
    gained += tuning.best_cap.step < tuning.standard.step ? 1 : 0;
  }
  CHECK(gained > 100);
}

TEST_CASE("the best pair found is the best of every pair there is", "[sim][tune]") {
  int contiguous = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    Dice dice(seed);
    const StepModel model = fixtures::small_model(dice, dice.one_in(2), true);
    const std::int64_t largest = fixtures::total(model).count;
    if (largest > 160) continue;
    const Training training = random_settings(dice);
    contiguous += all_contiguous(model.works, training) ? 1 : 0;
    BucketSteps steps(model, training);
    Duration shortest = Duration::max();
    for (std::int64_t first = 1; first <= largest + 1; ++first)
      for (std::int64_t cap = 1; cap <= largest + 1; ++cap)
        shortest =
            std::min(shortest, steps.of(buckets_of(model.works, training, Bytes{first}, {cap})));
    const Choice best = tune(model, training).best_pair.value();
    CAPTURE(seed, largest);
    REQUIRE(best.step == shortest);
    REQUIRE(simulated(model, training, best.first_cap, best.cap) == shortest);
    REQUIRE(simulated(model, training, best.highest_first, best.highest_cap) == shortest);
  }
  CHECK(contiguous > 5);
}

TEST_CASE("the free partition is between the bound and every other choice", "[sim][tune]") {
  int best_of_all = 0, cases = 0, proven = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    Dice dice(seed);
    const StepModel model = fixtures::random_one_type_model(dice, 10, dice.one_in(2));
    const Tuning tuning = tune(model, {});
    REQUIRE(tuning.best_partition);
    const Duration found = tuning.best_partition->step;
    CAPTURE(seed);
    REQUIRE(tuning.lower_bound <= found);
    for (const Choice* other : {&tuning.standard, &tuning.best_cap, &tuning.best_even_cap,
                                &*tuning.best_pair, &tuning.one_bucket, &tuning.per_parameter})
      REQUIRE(found <= other->step);
    REQUIRE(found <= tuning.merged->step);
    Duration shortest = Duration::max();
    BucketSteps steps(model, {});
    fixtures::for_each_partition(steps.size(), [&](const std::vector<int>& ends) {
      shortest = std::min(shortest, steps.of(ends));
    });
    REQUIRE(found >= shortest);
    best_of_all += found == shortest ? 1 : 0;
    if (tuning.partition_proven) {
      ++proven;
      REQUIRE(found == shortest);
    }
    ++cases;
  }
  CHECK(best_of_all > cases * 9 / 10);  // a local search, with no promise
  CHECK(proven > cases / 10);
}

TEST_CASE("no partition is shorter than the bound where several collectives are under way",
          "[sim][tune]") {
  int communicating = 0, cases = 0;
  for (std::uint64_t seed = 0; seed < 120; ++seed) {
    Dice dice(seed);
    StepModel model = fixtures::random_one_type_model(dice, 8, dice.one_in(2));
    model.works.device.collectives_at_once = dice.between(2, 3);
    const Tuning tuning = tune(model, {});
    CAPTURE(seed);
    BucketSteps steps(model, {});
    REQUIRE(steps.why_simulated());
    fixtures::for_each_partition(steps.size(), [&](const std::vector<int>& ends) {
      REQUIRE(steps.of(ends) >= tuning.lower_bound);
    });
    Training alone;
    alone.strategy = Strategy::none;
    // What a bound by the passes alone would not know.
    communicating += tuning.lower_bound > predict(model, alone).metrics.step ? 1 : 0;
    ++cases;
  }
  CHECK(communicating > cases / 2);
}

TEST_CASE("the number of threads changes nothing", "[sim][tune]") {
  int scattered = 0;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    Dice dice(seed);
    const bool one_type = dice.one_in(2);
    const StepModel model = one_type ? fixtures::random_one_type_model(dice, 12, true)
                                     : fixtures::small_model(dice, false, true);
    TuneOptions several;
    several.threads = 4;
    several.link_uncertainty = several.compute_uncertainty = 0.2;
    if (dice.one_in(2)) several.objective = Objective::memory;
    TuneOptions one = several;
    one.threads = 1;
    const Tuning a = tune(model, {}, one), b = tune(model, {}, several);
    CAPTURE(seed);
    CHECK(a.best_pair->buckets == b.best_pair->buckets);
    CHECK(a.best_pair->cap == b.best_pair->cap);
    CHECK(a.best_cap.cap == b.best_cap.cap);
    CHECK(a.advice.choice.cap == b.advice.choice.cap);
    CHECK(a.advice.regret == b.advice.regret);
    REQUIRE(a.best_partition.has_value() == b.best_partition.has_value());
    if (a.best_partition) CHECK(a.best_partition->buckets == b.best_partition->buckets);
    scattered += a.best_partition ? 0 : 1;
  }
  CHECK(scattered > 5);
}

TEST_CASE("no bucket is larger than allowed, and memory can be the objective", "[sim][tune]") {
  int smaller = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    Dice dice(seed);
    const StepModel model = fixtures::random_one_type_model(dice, 10, true);
    Bytes biggest;
    for (const GradientInfo& gradient : model.works.gradients)
      biggest = std::max(biggest, gradient.size);
    TuneOptions limited;
    limited.largest_bucket = 2 * biggest;
    const Tuning small = tune(model, {}, limited);
    for (const Choice* choice : {&small.best_cap, &*small.best_pair, &*small.best_partition})
      CHECK(choice->largest <= 2 * biggest);
    limited.largest_bucket = biggest - Bytes{1};
    CHECK_THROWS_AS(tune(model, {}, limited), std::invalid_argument);

    TuneOptions memory;
    memory.objective = Objective::memory;
    memory.within = 0.05;
    const Tuning free = tune(model, {}), tight = tune(model, {}, memory);
    CHECK(in_seconds(tight.best_cap.step) <= in_seconds(free.best_cap.step) * 1.05 * (1 + 1e-12));
    CHECK(tight.best_cap.largest <= free.best_cap.largest);
    CHECK(in_seconds(tight.best_pair->step) <=
          in_seconds(free.best_pair->step) * 1.05 * (1 + 1e-12));
    CHECK(tight.best_pair->largest <= free.best_pair->largest);
    for (const Choice& each : tight.caps)
      if (each.step <= scaled(free.best_cap.step, 1.05))
        CHECK(each.largest >= tight.best_cap.largest);
    smaller += tight.best_cap.largest < free.best_cap.largest ? 1 : 0;
  }
  CHECK(smaller > 5);
}

TEST_CASE("for less memory the default is kept where no cap has a smaller largest bucket",
          "[sim][tune]") {
  int kept = 0, smaller = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    Dice dice(seed);
    const StepModel model = fixtures::random_one_type_model(dice, 10, true);
    TuneOptions options;
    options.objective = Objective::memory;
    options.within = 0.05;
    const Tuning tuning = tune(model, {}, options);
    Duration shortest = tuning.standard.step;
    for (const Choice& each : tuning.caps) shortest = std::min(shortest, each.step);
    const Choice& choice = tuning.advice.choice;
    CAPTURE(seed);
    CHECK(choice.step <= scaled(shortest, 1.05));
    if (tuning.standard.step > scaled(shortest, 1.05)) continue;
    CHECK(choice.largest <= tuning.standard.largest);
    smaller += choice.largest < tuning.standard.largest ? 1 : 0;
    if (choice.largest < tuning.standard.largest) continue;
    CHECK(choice.buckets == tuning.standard.buckets);
    CHECK_FALSE(tuning.advice.pays);
    ++kept;
  }
  CHECK(kept > 0);
  CHECK(smaller > 0);
}

TEST_CASE("the recommended cap regrets least when link and kernels are not as told",
          "[sim][tune]") {
  int pays = 0, others_are_best = 0;
  for (std::uint64_t seed = 0; seed < 120; ++seed) {
    Dice dice(seed);
    const StepModel model = fixtures::small_model(dice, true, true);
    Training training;
    training.first_bucket_cap = Bytes{dice.between(1, 40)};
    TuneOptions options;
    options.link_uncertainty = 0.3;
    options.compute_uncertainty = 0.2;
    options.noise = 0;
    const Tuning tuning = tune(model, training, options);
    const Advice& advice = tuning.advice;
    REQUIRE(advice.corners.size() == 9);
    // Each cap and the default, in every corner; and what was evaluated before that.
    REQUIRE(advice.evaluated >= 9);
    CHECK(tuning.evaluated - advice.evaluated == tune(model, training).evaluated);
    CHECK(advice.corners[0].link == 1);
    CHECK(advice.corners[0].compute == 1);
    // The same by hand: every cap, and the default, in every corner; chosen by regret, then by
    // buckets.
    std::vector<double> worst(tuning.caps.size(), 0);
    double chosen = 0, standard = 0;
    for (const Corner& corner : advice.corners) {
      StepModel changed = model;
      changed.costs.passes.push_back({corner.compute, corner.compute, corner.compute});
      changed.costs.copy_factor *= corner.compute;
      BucketSteps steps(changed, training, corner.link);
      std::vector<double> times;
      for (const Choice& each : tuning.caps) times.push_back(in_seconds(steps.of(each.buckets)));
      times.push_back(in_seconds(steps.of(tuning.standard.buckets)));
      const double best = *std::min_element(times.begin(), times.end());
      for (std::size_t i = 0; i < worst.size(); ++i)
        worst[i] = std::max(worst[i], times[i] / best - 1);
      standard = std::max(standard, times.back() / best - 1);
      chosen = std::max(chosen, in_seconds(steps.of(advice.choice.buckets)) / best - 1);
      std::vector<const Choice*> weighed{&advice.choice, &tuning.given};
      if (tuning.best_pair) weighed.push_back(&*tuning.best_pair);
      if (tuning.best_partition) weighed.push_back(&*tuning.best_partition);
      const auto c = static_cast<std::size_t>(&corner - advice.corners.data());
      for (const Choice* each : weighed) {
        REQUIRE(each->with_errors.size() == 9);
        CHECK(each->with_errors[c] == steps.of(each->buckets));
      }
    }
    CAPTURE(seed);
    CHECK(advice.regret == Approx(chosen).margin(1e-12));
    const double least = *std::min_element(worst.begin(), worst.end());
    if (advice.pays) {
      ++pays;
      // Within 0.1 % of the least, rounded up to a tenth of a per cent for a rounder cap.
      CHECK(advice.regret <= std::ceil(1000 * (least + 0.001)) / 1000 + 1e-12);
      CHECK(advice.choice.step < tuning.standard.step);
    } else {
      CHECK(advice.choice.buckets == tuning.standard.buckets);
      CHECK(advice.regret == Approx(standard).margin(1e-12));
    }
    others_are_best += advice.choice.cap != tuning.best_cap.cap ? 1 : 0;
  }
  CHECK(pays > 30);
  CHECK(others_are_best > 5);
}

TEST_CASE("where a cap hardly matters the default stays", "[sim][tune]") {
  Dice dice(3);
  const StepModel model = fixtures::random_one_type_model(dice, 9, true);
  TuneOptions options;
  options.noise = 1;  // nothing can gain so much
  const Tuning tuning = tune(model, {}, options);
  CHECK_FALSE(tuning.advice.pays);
  CHECK(tuning.advice.choice.cap == 25 * MiB);
  CHECK(tuning.advice.choice.step == tuning.standard.step);
  CHECK(tuning.gain() == 0);
}

TEST_CASE("under another rule than torch's the scenario's buckets stay, not DDP's default",
          "[sim][tune]") {
  int differ = 0;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    Dice dice(seed);
    const StepModel model = fixtures::random_one_type_model(dice, 9, true);
    Training training;
    training.give_rule(BucketRule::before_overflow);
    training.bucket_cap = Bytes{dice.between(1, 40)};
    TuneOptions options;
    options.noise = 1;  // nothing can gain so much
    const Tuning tuning = tune(model, training, options);
    CAPTURE(seed);
    CHECK(tuning.other_rule);
    CHECK_FALSE(tuning.advice.pays);
    CHECK(tuning.advice.choice.buckets == tuning.given.buckets);
    CHECK(tuning.advice.choice.step == tuning.given.step);
    CHECK(tuning.gain() == 0);
    differ += tuning.given.buckets != tuning.standard.buckets ? 1 : 0;
  }
  CHECK(differ > 0);
}

TEST_CASE("without uncertainty the regret is how much longer the choice is than the shortest",
          "[sim][tune]") {
  int regretted = 0, kept_default = 0, fewer = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    Dice dice(seed);
    const StepModel model = fixtures::random_one_type_model(dice, 10, true);
    TuneOptions options;
    options.within = 0.05;
    if (seed % 3 == 0) options.objective = Objective::memory;
    if (seed % 3 == 1) options.noise = 1;
    const Tuning tuning = tune(model, {}, options);
    Duration shortest = tuning.standard.step;
    for (const Choice& each : tuning.caps) shortest = std::min(shortest, each.step);
    const Advice& advice = tuning.advice;
    CAPTURE(seed);
    CHECK(advice.corners.empty());
    CHECK(advice.evaluated == 0);
    CHECK(advice.regret ==
          Approx(in_seconds(advice.choice.step) / in_seconds(shortest) - 1).margin(1e-12));
    regretted += advice.regret > 0 ? 1 : 0;
    if (options.objective == Objective::memory) continue;
    if (!advice.pays) {
      CHECK(advice.choice.buckets == tuning.standard.buckets);
      ++kept_default;
      continue;
    }
    // The fewest buckets of those within 0.1 % of the shortest cap.
    CHECK(advice.choice.step <= scaled(tuning.best_cap.step, 1.001));
    for (const Choice& each : tuning.caps)
      if (each.step <= scaled(tuning.best_cap.step, 1.001))
        CHECK(each.buckets.size() >= advice.choice.buckets.size());
    fewer += advice.choice.buckets.size() < tuning.best_cap.buckets.size() ? 1 : 0;
  }
  CHECK(regretted > 10);
  CHECK(kept_default > 10);
  CHECK(fewer > 0);
}

TEST_CASE("progress goes from nothing towards one and never back", "[sim][tune]") {
  for (const int gradients : {3, 9, 40}) {
    Dice dice(11);
    const StepModel model = fixtures::random_one_type_model(dice, gradients, true);
    double last = 0;
    int told = 0;
    TuneOptions options;
    options.progress = [&](const std::string& what, double fraction) {
      CAPTURE(what);
      CHECK(!what.empty());
      CHECK(fraction >= last);
      CHECK(fraction <= 1);
      last = fraction;
      ++told;
    };
    tune(model, {}, options);
    CHECK(told > 3);
  }
  // Of several types, whose buckets no cap makes contiguous.
  Dice dice(2);
  const StepModel model = fixtures::small_model(dice, false, true);
  double last = 0;
  TuneOptions options;
  options.progress = [&](const std::string&, double fraction) {
    CHECK(fraction >= last);
    last = fraction;
  };
  tune(model, {}, options);
  CHECK(last == 0.9);  // what is left is the errors of link and computation
}

TEST_CASE("advice is tried where link and computation are as predicted, slower and faster",
          "[sim][tune]") {
  Dice dice(5);
  const StepModel model = fixtures::random_one_type_model(dice, 9, true);
  TuneOptions options;
  options.link_uncertainty = 0.25;
  options.compute_uncertainty = 0.6;
  std::set<std::pair<double, double>> tried;
  for (const Corner& corner : tune(model, {}, options).advice.corners)
    tried.emplace(corner.link, corner.compute);
  std::set<std::pair<double, double>> expected;
  for (const double link : {1 / 1.25, 1.0, 1.25})
    for (const double compute : {1 / 1.6, 1.0, 1.6}) expected.emplace(link, compute);
  CHECK(tried == expected);
}

TEST_CASE("a default with too large a bucket is not recommended", "[sim][tune]") {
  Dice dice(5);
  StepModel model = fixtures::random_one_type_model(dice, 9, true);
  Bytes biggest;
  for (const GradientInfo& gradient : model.works.gradients)
    biggest = std::max(biggest, gradient.size);
  TuneOptions options;
  options.noise = 1;
  options.largest_bucket = biggest;
  const Tuning tuning = tune(model, {}, options);
  REQUIRE(tuning.standard.largest > biggest);
  CHECK_FALSE(tuning.standard_allowed);
  CHECK_FALSE(tuning.advice.pays);
  CHECK(tuning.advice.choice.largest <= biggest);
}

TEST_CASE("more gradients than can be searched are refused", "[sim][tune]") {
  Workload workload;
  workload.layers.emplace_back().backward.push_back(timed::kernel(1us));
  for (int i = 0; i < 3001; ++i)
    workload.parameters.push_back(timed::parameter(std::to_string(i), Bytes{4}, 0, 0));
  const StepModel model(workload, timed::ring(2, 1us, gigabytes_per_second(1)), Optimizer::none);
  CHECK_THROWS_WITH(tune(model, {}), Catch::Contains("3001 gradients are more than tune searches"));
}

TEST_CASE("a comm hook on buckets that no cap makes contiguous is tuned as well", "[sim][tune]") {
  // With find_unused_parameters buckets follow registration, and hooks fire the other way round in
  // the midst.
  Workload workload = timed::in_order_example();
  const StepModel model(workload, timed::ring(2, 10us, gigabytes_per_second(1)), Optimizer::none);
  Training training;
  training.find_unused_parameters = true;
  training.comm_hook.kind = CommHookKind::fp16_compress;
  TuneOptions options;
  options.largest_bucket = 9 * KiB;  // two gradients
  for (const bool limited : {false, true}) {
    const Tuning tuning = tune(model, training, limited ? options : TuneOptions{});
    REQUIRE(tuning.best_partition);
    Training best = training;
    best.buckets = tuning.best_partition->buckets;
    CHECK(predict(model, best).metrics.step == tuning.best_partition->step);
    CHECK(tuning.lower_bound <= tuning.best_partition->step);
  }
}

TEST_CASE("one rank has nothing to tune", "[sim][tune]") {
  Dice dice(3);
  StepModel model = fixtures::random_one_type_model(dice, 9, true);
  model.costs.ranks = 1;
  CHECK_THROWS_AS(tune(model, {}), std::invalid_argument);
}

TEST_CASE("MG-WFBP merges what is ready within a startup of the one before", "[sim][merge_rule]") {
  // Startup 5 us, 1 us a byte. Gradient 0 is ready at 10, so an all-reduce of it starts at 10 and
  // is past its startup at 15: gradient 1, ready at 14, joins it. They would start at 14 and be
  // past it at 19: gradient 2, ready at 19, does not join. 14 + 5 + 20 = 39: gradient 2 alone would
  // start at 39 and be past its startup at 44: gradient 3, ready at 43, joins.
  // 43 + 5: gradient 4, ready at 60, does not.
  PartitionProblem problem;
  for (const int ready : {10, 14, 19, 43, 60})
    problem.ready.push_back(Instant{} + std::chrono::microseconds{ready});
  problem.sizes.assign(5, {10});
  CHECK(merge_rule(problem, {5e-6, 1e-6}) == std::vector<int>{2, 4, 5});
  // Without a startup only those travel together that have to wait anyway: 1 starts at 20, when 2
  // is ready too.
  CHECK(merge_rule(problem, {0, 1e-6}) == std::vector<int>{1, 3, 4, 5});
  CHECK(merge_rule(problem, {1, 1e-6}) == std::vector<int>{5});
}

TEST_CASE("a linear cost is found again, and the closest line to one that is not",
          "[sim][merge_rule]") {
  PartitionProblem problem;
  problem.sizes = {{1000}, {70'000}, {3'000'000}};
  problem.cost = [](Bytes size) { return 40us + size.count * Duration{2000}; };  // 2 ns a byte
  const LinearCost line = fit_linear(problem);
  CHECK(line.startup == Approx(40e-6));
  CHECK(line.per_byte == Approx(2e-9));
  problem.cost = [](Bytes) { return Duration{30us}; };
  CHECK(fit_linear(problem).startup == Approx(30e-6));
  CHECK(fit_linear(problem).per_byte == Approx(0).margin(1e-15));
  // Times that grow faster than sizes: no startup below zero.
  problem.cost = [](Bytes size) { return Duration{size.count * size.count}; };
  CHECK(fit_linear(problem).startup == 0);
  CHECK(fit_linear(problem).per_byte > 0);
}

}  // namespace ddpsim
