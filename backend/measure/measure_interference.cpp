#include "backend/measure/measure_interference.hpp"

#include <algorithm>

#include "backend/measure/measure_step.hpp"
#include "backend/measure/samples.hpp"
#include "backend/measure/steal.hpp"
#include "model/base/index.hpp"
#include "model/program/variants.hpp"

namespace ddpsim {

MeasureInterference::MeasureInterference(Backend& backend, const program::Job& step,
                                         Settings settings)
    : backend_(backend), step_(step), settings_(std::move(settings)) {}

std::optional<MeasuredInterference> MeasureInterference::beside(Bytes size, bool one_by_one,
                                                                Duration idle) {
  rounds_.clear();
  starts_.clear();
  transfers_.clear();
  const Duration pause = one_by_one ? std::chrono::microseconds{500} : Duration::zero();
  // Some twenty all-reduces, or three steps.
  const int many = 3 + static_cast<int>(20 * in_seconds(idle + pause) / settings_.step_seconds);
  if (many * settings_.step_seconds > 3 * in_seconds(settings_.patience)) return std::nullopt;
  const program::Job alone = repeated(without_communication(step_), many);
  if (!measure_rounds(alone, with_background(alone, size, pause), size, pause)) return std::nullopt;
  // Where the stream of all-reduces began late or ran dry now and then, the slowdown is scaled to
  // the time in which all-reduces were under way.
  const double busy = in_seconds(middle([](const Round& round) { return round.met; })) /
                      in_seconds(middle([](const Round& round) { return round.slow; }));
  if (any_rank(backend_, busy < (one_by_one ? 0.1 : 0.3) || transfers_.empty()))
    return std::nullopt;
  const MeasuredInterference point = result(size, idle, busy);
  if (!point.is_plausible()) return std::nullopt;
  return point;
}

/// False: someone stopped it.
bool MeasureInterference::measure_rounds(const program::Job& alone, const program::Job& beside,
                                         Bytes size, Duration pause) {
  const int most = 3 + 2 * (settings_.repeats / 15);  // odd, for the one in the middle
  Duration spent{};
  const auto begun = std::chrono::steady_clock::now();
  for (int round = 0; round < most; ++round) {
    if (!settings_.go_on(size)) {
      stopped_ = true;
      return false;
    }
    rounds_.push_back(measure_round(alone, beside, pause));
    spent += rounds_.back().slow;
    if (round % 2 == 1) continue;                             // the median is of an odd number
    if (round >= 2 && spent > 3 * settings_.patience) break;  // on all ranks
    if (any_rank(backend_, std::chrono::steady_clock::now() - begun > allowed_)) break;
  }
  return true;
}

MeasureInterference::Round MeasureInterference::measure_round(const program::Job& alone,
                                                              const program::Job& beside,
                                                              Duration pause) {
  const auto run_undisturbed = [&](const program::Job& step) {
    return undisturbed(backend_, [&] { return backend_.run(step); });
  };
  const RankRun before = run_undisturbed(alone);
  const RankRun run = run_undisturbed(beside);
  const Duration beside_it =
      scaled(std::max(Duration::zero(), run.computed - run.background_begun), run.background_busy);
  Round round;
  round.quick = mean_over_ranks(backend_, before.computed);
  round.slow = mean_over_ranks(backend_, run.computed);
  round.met = mean_over_ranks(backend_, beside_it);
  round.quick_kinds = by_kind(alone, before);
  round.slow_kinds = by_kind(beside, run);
  if (!any_rank(backend_, beside_it == Duration::zero()))
    starts_.push_back(mean_over_ranks(backend_, run.background_begun));
  // One more was under way when this rank had computed (or a pause), half done on average.
  const double last = pause > Duration::zero() ? 0.5 * run.background_busy : 0.5;
  if (beside_it > Duration::zero())
    transfers_.push_back(scaled(beside_it, 1 / (run.background_ended + last)));
  return round;
}

/// How long the kernels of a run took, by kind, all ranks together.
MeasureInterference::ByKind MeasureInterference::by_kind(const program::Job& step,
                                                         const RankRun& run) {
  const program::Program& program = step.programs[step.program_of[at(backend_.rank())]];
  ByKind mine;
  for (std::size_t i = 0; i < run.times.size(); ++i)
    if (const auto work = measured_as(step.works[program.tasks[i].work]))
      (work->gemm ? mine.arithmetic : mine.memory) += run.times[i].end - run.times[i].start;
  return {sum_of(gathered(backend_, {mine.arithmetic})), sum_of(gathered(backend_, {mine.memory}))};
}

/// The median over rounds of what `pick` takes from each.
template <typename Pick>
Duration MeasureInterference::middle(Pick pick) const {
  std::vector<Duration> all;
  for (const Round& round : rounds_) all.push_back(pick(round));
  return spread_of(std::move(all)).median;
}

/// `busy`: the share of the computation with a transfer under way.
MeasuredInterference MeasureInterference::result(Bytes size, Duration idle, double busy) const {
  const auto felt = [&](Duration with, Duration without) {
    // This share of the time with a transfer under way is lost.
    const double lost = (1 - in_seconds(without) / in_seconds(with)) / busy;
    return 1 / std::max(1e-3, 1 - lost);
  };
  const auto arithmetic = [&](auto kinds) {
    return middle([&](const Round& round) { return (round.*kinds).arithmetic; });
  };
  const auto memory = [&](auto kinds) {
    return middle([&](const Round& round) { return (round.*kinds).memory; });
  };
  MeasuredInterference point;
  point.size = size;
  point.compute_slowdown = felt(middle([](const Round& round) { return round.slow; }),
                                middle([](const Round& round) { return round.quick; }));
  const Duration each = mean_over_ranks(backend_, spread_of(transfers_).median);
  point.communication_slowdown = in_seconds(each) / in_seconds(idle);
  // Only streams tell kinds apart: what slows a host thread slows all it does.
  const Duration quick_arithmetic = arithmetic(&Round::quick_kinds);
  const Duration quick_memory = memory(&Round::quick_kinds);
  if (!backend_.synchronous() && quick_arithmetic > Duration::zero() &&
      quick_memory > Duration::zero()) {
    point.compute_slowdown = felt(arithmetic(&Round::slow_kinds), quick_arithmetic);
    point.memory_slowdown = felt(memory(&Round::slow_kinds), quick_memory);
  }
  return point;
}

}  // namespace ddpsim
