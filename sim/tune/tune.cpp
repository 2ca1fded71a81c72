#include "sim/tune/tune.hpp"

#include <algorithm>
#include <atomic>
#include <numeric>
#include <stdexcept>

#include <fmt/format.h>

#include "model/base/index.hpp"
#include "model/parallel/policy/bucket_plan.hpp"
#include "sim/predict/predict.hpp"
#include "sim/tune/bucket_steps.hpp"
#include "sim/tune/local_search.hpp"
#include "sim/tune/lower_bound.hpp"
#include "sim/tune/merge_rule.hpp"
#include "sim/tune/parallel.hpp"
#include "sim/tune/recommend.hpp"

namespace ddpsim {
namespace {

using Ends = std::vector<int>;

/// With more gradients searches take minutes, and then too much memory: n^2 prices, n^3 pairs.
constexpr int most_gradients = 3000;
constexpr int most_for_pairs = 800;            // seconds, up to some twenty
constexpr int most_for_scattered_pairs = 300;  // the same where buckets are not contiguous
constexpr int most_for_simulated_pairs = 40;   // the same with a comm hook
constexpr std::uint64_t simulated_polish = 1000;

/// What a bucket that is too large costs: more than any step.
constexpr std::chrono::hours forbidden{24};

Training searched(Training training) {
  training = training.in_buckets();
  training.iteration = 0;
  training.last_bucket_cap = false;
  training.buckets.clear();
  training.bucket_caps.clear();
  training.parameter_groups = 0;
  return training;
}

Training with_rule(Training training, BucketRule rule) {
  training.bucket_rule = rule;
  return training;
}

/// A pair of caps of the quick search: enough to compare by and to find it again.
struct Pair {
  Duration step = Duration::max();
  Bytes largest;
  std::size_t buckets = 0;
  int first_end = 0;
  Bytes cap, highest;

  auto key() const { return std::tuple(step, buckets, first_end, cap); }
};

class Tuner {
 public:
  Tuner(const StepModel& model, const Training& training, const TuneOptions& options)
      : model_(model),
        works_(model.works),
        training_(searched(training)),
        options_(options),
        steps_(at(std::max(options.threads, 1)), BucketSteps(model, training_)),
        simulated_(steps_.front().why_simulated().has_value()),
        contiguous_(!simulated_ && all_contiguous(works_, training_)),
        one_type_(all_contiguous(works_, Training{})) {
    for (const int index : works_.arrival) sizes_.push_back(works_.gradients[at(index)].size);
    const Bytes biggest = *std::max_element(sizes_.begin(), sizes_.end());
    if (options.largest_bucket && *options.largest_bucket < biggest)
      throw std::invalid_argument(
          fmt::format("no bucket can be within {}: the largest gradient alone is {}",
                      to_string(*options.largest_bucket), to_string(biggest)));
  }

  Tuning run(const Training& given) {
    Tuning tuning;
    const Training torch = with_rule(training_, BucketRule::torch);
    Training alone = given.without_communication();
    alone.iteration = 0;
    const StepMetrics without = predict(model_, alone).metrics;
    tuning.without = without.step;
    tuning.without_wait = without.input_wait;
    tuning.standard = of_caps(torch, default_first_bucket_cap, default_bucket_cap);
    tuning.given = of_given(given);
    tuning.one_bucket = of_caps(torch, std::nullopt, no_cap);
    tuning.per_parameter = of_caps(torch, std::nullopt, Bytes{1});

    progress("all caps", 0);
    tuning.caps = of_all_caps(training_, first_cap_of_users());
    // If the first bucket is larger than allowed under every cap, it gets the cap of the others.
    if (std::none_of(tuning.caps.begin(), tuning.caps.end(),
                     [&](const Choice& each) { return allowed(each.largest); }))
      tuning.caps = of_all_caps(torch, std::nullopt);
    tuning.best_cap = best_of(tuning.caps);
    tuning.best_even_cap = best_of(of_all_caps(torch, std::nullopt));
    tuning.best_overflow_cap =
        best_of(of_all_caps(with_rule(training_, BucketRule::before_overflow), std::nullopt));
    progress("all pairs of caps", 0.1);
    if (size() <= most_in_pairs())
      tuning.best_pair = contiguous_ ? best_contiguous_pair() : best_pair();
    else
      tuning.why_no_pair = fmt::format("{}pairs are searched for up to {} gradients",
                                       why_few_in_pairs(), most_in_pairs());
    progress("partitions", 0.7);
    search_partitions(tuning);
    progress("errors of link and computation", 0.9);
    std::vector<Choice> candidates = tuning.caps;
    std::erase_if(candidates, [&](const Choice& each) { return !allowed(each.largest); });
    tuning.other_rule = training_.bucket_rule != BucketRule::torch;
    tuning.standard_allowed = allowed(tuning.compared().largest);
    std::vector<Choice*> beside{&tuning.given};
    if (tuning.best_pair) beside.push_back(&*tuning.best_pair);
    if (tuning.best_partition) beside.push_back(&*tuning.best_partition);
    tuning.advice = recommend(steps(), model_.costs, options_, candidates, tuning.compared(),
                              tuning.standard_allowed, beside);
    for (const BucketSteps& steps : steps_) tuning.evaluated += steps.evaluated();
    tuning.evaluated += tuning.advice.evaluated;
    return tuning;
  }

 private:
  void progress(const std::string& what, double fraction) const {
    if (options_.progress) options_.progress(what, fraction);
  }

  BucketSteps& steps() { return steps_.front(); }
  int size() const { return static_cast<int>(sizes_.size()); }

  int most_in_pairs() const {
    return simulated_    ? most_for_simulated_pairs
           : contiguous_ ? most_for_pairs
                         : most_for_scattered_pairs;
  }

  /// Why those are fewer than usual.
  std::string why_few_in_pairs() const {
    if (simulated_ && training_.comm_hook)
      return "with a comm hook every step is simulated as a whole, and ";
    if (simulated_)
      return fmt::format("every step is simulated as a whole ({}), and ",
                         *steps_.front().why_simulated());
    return contiguous_ ? "" : "buckets do not follow the order of gradients here, and ";
  }

  Bytes largest_of(const Buckets& buckets) const {
    Bytes largest;
    for (const auto& bucket : buckets) {
      Bytes size;
      for (const int index : bucket) size += works_.gradients[at(index)].size;
      largest = std::max(largest, size);
    }
    return largest;
  }

  bool allowed(Bytes largest) const {
    return !options_.largest_bucket || largest <= *options_.largest_bucket;
  }

  Choice choice(BucketSteps& steps, Buckets buckets) const {
    Choice made;
    made.step = steps.of(buckets);
    made.input_wait = steps.input_wait();
    made.largest = largest_of(buckets);
    made.buckets = std::move(buckets);
    return made;
  }

  Choice of_caps(const Training& training, std::optional<Bytes> first, Bytes cap) {
    Choice made = choice(steps(), buckets_of(works_, training, first, cap));
    made.first_cap = first;
    made.cap = made.highest_cap = cap;
    if (first) made.highest_first = *first;
    return made;
  }

  /// The cap of the first bucket if a user gives only the cap of the others.
  std::optional<Bytes> first_cap_of_users() const {
    Training training = training_;
    training.give_cap(training.bucket_cap);
    return training.first_bucket_cap;
  }

  /// The scenario's own buckets, in the steady state.
  Choice of_given(Training given) {
    given = given.in_buckets();
    given.iteration = 0;
    Buckets buckets;
    for (const Bucket& bucket : plan_buckets(works_, given)) buckets.push_back(bucket.parameters);
    Choice made = choice(steps(), std::move(buckets));
    if (given.buckets.empty() && given.bucket_caps.empty() && given.parameter_groups == 0) {
      made.cap = made.highest_cap = given.bucket_cap;
      made.first_cap = given.first_bucket_cap;
    }
    return made;
  }

  std::vector<Choice> of_all_caps(const Training& training, std::optional<Bytes> first) {
    std::vector<CapRange> ranges = all_caps(works_, training, first);
    std::vector<Choice> choices(ranges.size());
    parallel_for(ranges.size(), options_.threads, [&](int thread, std::size_t i) {
      if (thread == 0) progress("all caps", 0);
      choices[i] = choice(steps_[at(thread)], std::move(ranges[i].buckets));
      choices[i].first_cap = first;
      choices[i].cap = ranges[i].low;
      choices[i].highest_cap = ranges[i].high;
    });
    return choices;
  }

  /// The best choice by the objective; among equal ones the choice with fewer buckets, then the
  /// first.
  Choice best_of(const std::vector<Choice>& choices) const {
    Duration shortest = Duration::max();
    for (const Choice& each : choices)
      if (allowed(each.largest)) shortest = std::min(shortest, each.step);
    const Duration longest = longest_allowed(shortest);
    const Choice* best = nullptr;
    for (const Choice& each : choices) {
      if (!allowed(each.largest) || each.step > longest) continue;
      if (best == nullptr || rank(each.step, each.largest, each.buckets.size()) <
                                 rank(best->step, best->largest, best->buckets.size()))
        best = &each;
    }
    // Among the choices is a cap of one byte, which gives every gradient its own bucket; such
    // buckets are always allowed.
    return best != nullptr ? *best : choices.front();
  }

  Duration longest_allowed(Duration shortest) const { return longest_step(options_, shortest); }

  /// The order of choices whose steps are not too long: smaller is better.
  std::tuple<Bytes, Duration, std::size_t> rank(Duration step, Bytes largest,
                                                std::size_t buckets) const {
    return {options_.objective == Objective::memory ? largest : Bytes{}, step, buckets};
  }

  /// Over all pairs of caps, several types or another rule.
  Choice best_pair() {
    const std::vector<CapRange> firsts = all_first_caps(works_, training_);
    std::vector<Choice> bests(firsts.size());
    parallel_for(firsts.size(), options_.threads, [&](int thread, std::size_t i) {
      if (thread == 0)
        progress("all pairs of caps",
                 0.1 + 0.6 * static_cast<double>(i) / static_cast<double>(firsts.size()));
      std::vector<Choice> choices;
      for (CapRange& range : all_caps(works_, training_, firsts[i].low)) {
        choices.push_back(choice(steps_[at(thread)], std::move(range.buckets)));
        choices.back().first_cap = firsts[i].low;
        choices.back().highest_first = firsts[i].high;
        choices.back().cap = range.low;
        choices.back().highest_cap = range.high;
      }
      bests[i] = best_of(choices);
    });
    return best_of(bests);
  }

  /// The best pair where buckets are contiguous: each pair is cut and simulated at once, and given
  /// up where its step becomes longer than the best so far.
  Choice best_contiguous_pair() {
    const ContiguousCaps caps(sizes_);
    Pair best = contiguous_pairs(caps, Duration::max(), true);
    if (options_.objective == Objective::memory)
      best = contiguous_pairs(caps, longest_allowed(best.step), false);
    const bool all = best.first_end == caps.size();
    const Bytes first = caps.before(best.first_end - 1) + Bytes{1};
    Choice made = of_caps(training_, first, best.cap);
    made.highest_first = all ? no_cap : caps.before(best.first_end);
    made.highest_cap = best.highest;
    return made;
  }

  Pair contiguous_pairs(const ContiguousCaps& caps, Duration longest, bool shrinking) {
    std::atomic<Duration::rep> limit{longest.count()};
    std::vector<Pair> bests(at(std::max(options_.threads, 1)));
    const auto better = [&](const Pair& one, const Pair& other) {
      if (options_.objective == Objective::memory && !shrinking && one.largest != other.largest)
        return one.largest < other.largest;
      return one.key() < other.key();
    };
    for (Pair& best : bests) best.largest = no_cap;
    std::atomic<std::size_t> done{0};
    parallel_for(sizes_.size(), options_.threads, [&](int thread, std::size_t i) {
      const std::size_t so_far = done++;
      if (thread == 0)
        progress("all pairs of caps",
                 0.1 + 0.6 * static_cast<double>(so_far) / static_cast<double>(sizes_.size()));
      Ends ends;
      Pair pair;
      pair.first_end = static_cast<int>(i) + 1;
      for (pair.cap = Bytes{1}; pair.cap < no_cap; pair.cap = pair.highest + Bytes{1}) {
        ends.assign(1, pair.first_end);
        pair.highest = caps.append(pair.first_end, pair.cap, ends);
        pair.largest = Bytes{};
        for (std::size_t b = 0; b < ends.size(); ++b)
          pair.largest =
              std::max(pair.largest, caps.before(ends[b]) - caps.before(b > 0 ? ends[b - 1] : 0));
        if (!allowed(pair.largest)) continue;
        pair.buckets = ends.size();
        const Duration most{limit.load(std::memory_order_relaxed)};
        pair.step = steps_[at(thread)].of(ends, most);
        if (pair.step > most || !better(pair, bests[at(thread)])) continue;
        bests[at(thread)] = pair;
        if (!shrinking) continue;
        for (Duration::rep known = most.count();
             pair.step.count() < known && !limit.compare_exchange_weak(known, pair.step.count());) {
        }
      }
    });
    return *std::min_element(bests.begin(), bests.end(), better);
  }

  /// The bound, the merge rule and the free partition.
  void search_partitions(Tuning& tuning) {
    if (simulated_) return search_simulated(tuning);
    PartitionProblem problem = steps().ideal();
    const Partition ideal = best_partition(problem);
    tuning.lower_bound = lower_bound(steps(), ideal.step);
    if (!one_type_) return;
    tuning.merged = choice(steps(), full(merge_rule(problem, fit_linear(problem))));
    if (options_.largest_bucket) {
      // What is too large is dear.
      problem.cost = [this](Bytes size) {
        return allowed(size) ? steps().price(size).work : Duration{forbidden};
      };
    }
    std::vector<Ends> starts{options_.largest_bucket ? best_partition(problem).ends : ideal.ends};
    // Priced as if every all-reduce ran beside kernels.
    problem.cost = [this](Bytes size) -> Duration {
      if (!allowed(size)) return Duration{forbidden};
      const BucketSteps::AllReduce& alone = steps().price(size);
      return scaled(alone.work, alone.beside.communication);
    };
    starts.push_back(best_partition(problem).ends);
    std::vector<const Choice*> others{&tuning.best_cap, &tuning.best_even_cap, &tuning.standard,
                                      &tuning.per_parameter, &*tuning.merged};
    if (tuning.best_pair) others.push_back(&*tuning.best_pair);
    for (const Choice* each : others)
      if (auto ends = ends_of(each->buckets)) starts.push_back(std::move(*ends));
    const auto fits = [&](const Ends& ends) {
      return !options_.largest_bucket || allowed(largest_of(full(ends)));
    };
    std::erase_if(starts, [&](const Ends& ends) { return !fits(ends); });
    const Partition best = local_search(steps(), starts, tuning.lower_bound, options_.polish, fits);
    tuning.best_partition = choice(steps(), full(best.ends));
    tuning.partition_proven = best.step == tuning.lower_bound;
  }

  /// A lower bound where several collectives are under way at a time. However they share the link,
  /// the first k of them have not ended before one after the other would have that takes its
  /// transfers alone: the same steps with one at a time, and no latency, are no longer. None where
  /// those have to be simulated, too.
  std::optional<Duration> bound_of_transfers() const {
    if (model_.works.device.collectives_at_once == 1) return std::nullopt;
    StepModel one = model_;
    one.works.device.collectives_at_once = 1;
    one.costs.collective.change.latency = one.costs.collective.change.filling = 0;
    BucketSteps steps(std::move(one), training_);
    if (steps.why_simulated()) return std::nullopt;
    const Partition ideal = best_partition(steps.ideal());
    return lower_bound(steps, ideal.step);
  }

  /// With a comm hook, or several collectives under way at a time, there is no ideal problem to
  /// start from: the best caps are polished, and no step is shorter than its passes.
  void search_simulated(Tuning& tuning) {
    const Training alone = training_.without_communication();
    const StepMetrics passes = predict(model_, alone).metrics;
    const bool optimizer = !updates_parameters(training_.comm_hook.kind);
    const std::optional<Duration> transfers = bound_of_transfers();
    tuning.bound_of_passes = !transfers;
    tuning.lower_bound = std::max(optimizer ? passes.step : passes.forward + passes.backward,
                                  transfers.value_or(Duration::zero()));
    if (tuning.lower_bound == passes.step) tuning.lower_bound_wait = passes.input_wait;
    if (!one_type_) return;
    std::vector<Ends> starts;
    for (const Choice* each :
         {&tuning.best_cap, &tuning.best_even_cap, &tuning.standard, &tuning.per_parameter})
      if (auto ends = ends_of(each->buckets); ends && allowed(each->largest))
        starts.push_back(std::move(*ends));
    if (starts.empty()) {  // no cap makes contiguous buckets
      starts.emplace_back(sizes_.size());
      std::iota(starts.back().begin(), starts.back().end(), 1);
    }
    const Partition best = local_search(
        steps(), starts, tuning.lower_bound, std::min(options_.polish, simulated_polish),
        [&](const Ends& ends) { return allowed(largest_of(full(ends))); });
    tuning.best_partition = choice(steps(), full(best.ends));
    tuning.partition_proven = best.step == tuning.lower_bound;
  }

  Buckets full(const Ends& ends) const {
    Buckets buckets;
    int begin = 0;
    for (const int end : ends) {
      buckets.emplace_back(works_.arrival.begin() + begin, works_.arrival.begin() + end);
      begin = end;
    }
    return buckets;
  }

  std::optional<Ends> ends_of(const Buckets& buckets) const {
    Ends ends;
    std::size_t position = 0;
    for (const auto& bucket : buckets) {
      for (const int index : bucket)
        if (works_.arrival[position++] != index) return std::nullopt;
      ends.push_back(static_cast<int>(position));
    }
    return ends;
  }

  const StepModel& model_;
  const StepWorks& works_;
  const Training training_;
  const TuneOptions& options_;
  std::vector<BucketSteps> steps_;  // [thread]
  const bool simulated_;            // see BucketSteps::why_simulated
  const bool contiguous_;           // caps can be searched in the quick form
  const bool one_type_;             // any contiguous partition is possible
  std::vector<Bytes> sizes_;        // by arrival
};

}  // namespace

Tuning tune(const StepModel& model, const Training& training, const TuneOptions& options) {
  if (model.costs.ranks < 2)
    throw std::invalid_argument("one rank communicates with nobody: there is nothing to tune");
  if (training.delayed)
    throw std::invalid_argument(
        "tune searches buckets of all gradients, and delay_all_reduce takes some out: take it out, "
        "or "
        "try caps with ddpsim sweep --vary training.bucket_cap=1MiB..1GiB*2");
  if (model.works.parameters() > most_gradients)
    throw std::invalid_argument(fmt::format(
        "{} gradients are more than tune searches ({}): try caps with ddpsim sweep --vary "
        "training.bucket_cap=1MiB..1GiB*2",
        model.works.parameters(), most_gradients));
  return Tuner(model, training, options).run(training);
}

}  // namespace ddpsim
