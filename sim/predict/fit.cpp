#include "sim/predict/fit.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "sim/predict/bisect.hpp"
#include "sim/predict/fit_times.hpp"

namespace ddpsim {
namespace {

/// A row and its step as planned, which is the same under every fit.
struct FittedRow {
  explicit FittedRow(const CalibrationRow& calibration)
      : row(calibration.row),
        training(calibration.training),
        model(calibration.model),
        planned(std::make_shared<const PlannedStep>(plan_step(model.works, training))) {}

  const MeasuredRow* row = nullptr;
  const Training& training;
  const StepModel& model;
  std::shared_ptr<const PlannedStep> planned;
};

/// The first row of which that is fitted.
std::optional<FittedRow> first(std::span<const CalibrationRow> rows, Fits what) {
  for (const CalibrationRow& row : rows)
    if (fits_of(row.row->strategy) == what) return FittedRow(row);
  return std::nullopt;
}

Duration predicted_step(const FittedRow& row, const Fit& fit) {
  CostModel costs = row.model.costs;
  apply(fit, costs);
  return step_length(costs, *row.planned);
}

bool is_met(const FittedRow& row, const Fit& fit, double close) {
  return std::abs(in_seconds(predicted_step(row, fit)) / in_seconds(row.row->step) - 1) < close;
}

/// Adds a note if the fit stopped at a bound before it met the measured row.
void note_unless_met(const FittedRow& row, Fit& fit, const char* what) {
  if (is_met(row, fit, 0.002)) return;
  fit.notes.push_back(fmt::format(
      "no {} gives the measured {} step of {:.1f} ms; the nearest is {:.1f} ms", what,
      name_of(row.row->strategy), in_ms(row.row->step), in_ms(predicted_step(row, fit))));
}

/// Between taking the whole latency away and twice what the step could hold.
template <typename Excess>
Duration fitted_overhead(const FittedRow& calls, Excess&& excess) {
  const Step lawful = predict(calls.model.costs, calls.training, calls.planned);
  if (lawful.metrics.collectives == 0) return {};
  Duration latency{};
  const RankOfJob rank = lawful.rank();
  for (const program::Task& task : rank.program.tasks)
    if (rank.origin_of(task).group != nobody)
      latency = std::max(latency, rank.detail_of(task).latency);
  const double widest = 2 * in_us(calls.row->step) / lawful.metrics.collectives;
  return from_seconds(1e-6 * bisect(-in_us(latency), widest,
                                    [&](double us) { return excess(from_seconds(us * 1e-6)); }));
}

Operation operation_of(Covered part) {
  switch (part) {
    case Covered::all_reduce:
      return Operation::all_reduce;
    case Covered::divide:
      return Operation::divide;
    case Covered::concatenate:
      return Operation::concatenate;
    case Covered::copy_back:
      return Operation::copy_out;
  }
  return Operation::all_reduce;
}

bool covers(const std::vector<Covered>& parts, Operation operation) {
  return std::ranges::any_of(parts, [&](Covered part) { return operation_of(part) == operation; });
}

/// The time from the first covered task's start to the last one's end.
Duration covered_length(const Step& step, const std::vector<Covered>& parts) {
  std::optional<Instant> begin;
  Instant end{};
  const RankOfJob rank = step.rank();
  for (std::size_t t = 0; t < rank.times.size(); ++t) {
    const program::Task& task = rank.program.tasks[t];
    if (rank.origin_of(task).group == nobody ||
        !covers(parts, ddpsim::operation_of(rank.job, task)))
      continue;
    const TaskTimes& times = rank.times[t];
    begin = std::min(begin.value_or(times.start), times.start);
    end = std::max(end, times.end);
  }
  return begin ? end - *begin : Duration{};
}

/// A link that carries less than it says looks like a time per collective here, and other buckets
/// are best for the one than for the other.
void note_slow_link(const FittedRow& row, double ratio, Fit& fit) {
  constexpr double odd_ratio = 1.15;
  constexpr Duration odd_overhead = std::chrono::microseconds{100};
  if (ratio < odd_ratio || fit.call_overhead < odd_overhead) return;
  fit.notes.push_back(fmt::format(
      "the {} row wants communication {:.2g} times as long as the link's law has it, taken as "
      "{:+.1f} us per collective: if the link carries less than it says, write what it `carries` "
      "or measure it (ddpsim import nccl-tests), for the best buckets are others then",
      name_of(row.row->strategy), ratio, in_us(fit.call_overhead)));
}

void fit_call_overhead(const FittedRow& calls, Fit& fit) {
  const MeasuredCommunication& timer = *calls.row->communication;
  const auto communication = [&](Duration overhead) {
    CostModel costs = calls.model.costs;
    costs.collective.call_overhead = overhead;
    if (timer.covers.empty()) return communication_length(costs, *calls.planned);
    return covered_length(predict(costs, calls.training, calls.planned), timer.covers);
  };
  const Duration measured = timer.time;
  fit.call_overhead =
      fitted_overhead(calls, [&](Duration overhead) { return communication(overhead) - measured; });
  const Duration met = communication(fit.call_overhead);
  if (std::abs(in_seconds(met) / in_seconds(measured) - 1) > 0.002)
    fit.notes.push_back(fmt::format(
        "measured communication of {:.1f} ms is below what the link's bandwidth allows ({:.1f} "
        "ms): "
        "if it carries more than the law has it, write what it `carries` or measure it (ddpsim "
        "import nccl-tests), for computation is fitted to what is left of the step",
        in_ms(measured), in_ms(met)));
  note_slow_link(calls, in_seconds(met) / in_seconds(communication({})), fit);
}

/// The rest of the step and the row's own communication are two measurements of one thing.
void note_other_communication(const FittedRow& calls, Duration fitted, Fit& fit) {
  constexpr double odd = 0.1, felt = 0.01;  // of the communication, of the step
  const auto& said = calls.row->communication;
  if (!said || !said->covers.empty()) return;
  const double apart = std::abs(in_seconds(fitted - said->time));
  if (apart < odd * in_seconds(said->time) || apart < felt * in_seconds(calls.row->step)) return;
  fit.notes.push_back(fmt::format(
      "the {} row's step leaves {:.1f} ms for communication beside forward and backward, and "
      "the row says {:.1f} ms: the step is met, and collectives take the {:.1f} ms",
      name_of(calls.row->strategy), in_ms(fitted), in_ms(said->time), in_ms(fitted)));
}

/// The step's compute is measured: what is left of it is communication.
void fit_rest_of_step(const FittedRow& calls, Fit& fit) {
  Fit trial = fit;
  fit.call_overhead = fitted_overhead(calls, [&](Duration overhead) {
    trial.call_overhead = overhead;
    return predicted_step(calls, trial) - calls.row->step;
  });
  const auto communication = [&](Duration overhead) {
    CostModel costs = calls.model.costs;
    costs.collective.call_overhead = overhead;
    return communication_length(costs, *calls.planned);
  };
  const Duration fitted = communication(fit.call_overhead);
  note_slow_link(calls, in_seconds(fitted) / in_seconds(communication({})), fit);
  if (is_met(calls, fit, 0.002)) note_other_communication(calls, fitted, fit);
  note_unless_met(calls, fit, "time per collective");
}

bool gives_passes(const FittedRow& row) {
  return row.row->times.forward && row.row->times.backward;
}

/// Fits the computation to the pass times that the row gives.
void meet_times(const FittedRow& row, Fit& fit) {
  StepModel model = row.model;
  fit.passes = fit_times(model, row.training, row.row->times);
}

/// The passes of a row should make its step, or leave something of it for communication.
void note_odd_passes(const FittedRow& row, Fit& fit) {
  constexpr double odd = 0.05;
  const MeasuredTimes& times = row.row->times;
  const Duration passes =
      *times.forward + *times.backward + times.optimizer.value_or(Duration::zero());
  const bool alone = fits_of(row.row->strategy) == Fits::computation;
  if (alone ? is_met(row, fit, odd) : passes < row.row->step) return;
  fit.notes.push_back(fmt::format(
      "forward, backward and optimizer of the {} row make a step of {:.1f} ms, and the row says "
      "{:.1f} ms: are they of the whole step, with all its micro-batches?",
      name_of(row.row->strategy), in_ms(alone ? predicted_step(row, fit) : passes),
      in_ms(row.row->step)));
}

/// One factor on whichever of forward and backward the row does not give by itself.
void fit_compute(const FittedRow& row, Fit& fit) {
  constexpr double least = -5, usual = 5;  // powers of e: from 0.007 to 148 times the law
  // What is tried has to be simulated.
  const double most = std::min(
      usual, std::log(0.5 * in_seconds(longest_simulated) / in_seconds(predicted_step(row, fit))));
  const auto with = [&](double exponent) {
    Fit trial = fit;
    if (!row.row->times.forward) trial.passes.forward = std::exp(exponent);
    if (!row.row->times.backward) trial.passes.backward = std::exp(exponent);
    return trial;
  };
  const double exponent =
      bisect(least, most, [&](double x) { return predicted_step(row, with(x)) - row.row->step; });
  fit = with(exponent);
  note_unless_met(row, fit, "compute time");
  constexpr double odd_factor = 2.5;
  const double factor = std::exp(exponent);
  if (fit.notes.empty() && (factor > odd_factor || factor < 1 / odd_factor))
    fit.notes.push_back(fmt::format(
        "the {} row wants compute {:.2g} times as long as the laws have it: are device, "
        "batch and types those that were measured?",
        name_of(row.row->strategy), factor));
}

/// The passes that the row may give hold communication, and its optimizer a part of the update.
void fit_whole_step(const FittedRow& row, Fit& fit) {
  MeasuredRow step_alone = *row.row;
  step_alone.times = {};
  FittedRow alone = row;
  alone.row = &step_alone;
  fit_compute(alone, fit);
  const MeasuredTimes& times = row.row->times;
  if (times.forward || times.backward || times.optimizer)
    fit.notes.push_back(fmt::format(
        "of the {} row the step alone is fitted: its forward and backward hold gathers, and its "
        "optimizer updates a part",
        name_of(row.row->strategy)));
}

void fit_interference(const FittedRow& row, Fit& fit) {
  constexpr double most = 8, odd_strength = 2.5;
  const auto step = [&](double strength) {
    Fit trial = fit;
    trial.interference = strength;
    return predicted_step(row, trial);
  };
  fit.interference =
      bisect(0, most, [&](double strength) { return step(strength) - row.row->step; });
  note_unless_met(row, fit, "interference");
  if (fit.interference > odd_strength)
    fit.notes.push_back(fmt::format(
        "the {} row wants interference {:.1f} times as strong as the law's: does its step hold "
        "more than the others'?",
        name_of(row.row->strategy), fit.interference));
}

}  // namespace

void apply(const Fit& fit, CostModel& costs) {
  costs.passes.push_back(fit.passes);
  costs.collective.call_overhead = fit.call_overhead;
  costs.interference.strength = fit.interference;
}

bool has_use(const MeasuredRow& row, bool beside_alone) {
  return fits_of(row.strategy) != Fits::computation_and_calls || row.communication.has_value() ||
         !beside_alone;
}

Fit fit(std::span<const CalibrationRow> rows) {
  Fit fit;
  fit.rows = rows.size();
  const std::optional<FittedRow> alone = first(rows, Fits::computation);
  const std::optional<FittedRow> calls = first(rows, Fits::computation_and_calls);
  const bool rest_is_known = calls && !alone && gives_passes(*calls);
  if (calls && calls->row->communication && !rest_is_known) fit_call_overhead(*calls, fit);
  const std::optional<FittedRow> whole = first(rows, Fits::whole_step);
  if (!alone && !calls && whole) fit_whole_step(*whole, fit);
  if (const auto& row = alone ? alone : calls) {
    meet_times(*row, fit);
    if (!gives_passes(*row)) {
      fit_compute(*row, fit);
    } else {
      if (!alone) fit_rest_of_step(*calls, fit);
      note_odd_passes(*row, fit);
    }
  }
  constexpr Duration odd = -std::chrono::microseconds{1};
  if (fit.notes.empty() && fit.call_overhead < odd)
    fit.notes.push_back(fmt::format(
        "the {} row wants {:.1f} us less per collective than the link's law or table: is the "
        "table's time that of a lone call, or does `communication` leave something out?",
        name_of(calls->row->strategy), -in_us(fit.call_overhead)));
  if (const auto row = first(rows, Fits::interference)) fit_interference(*row, fit);
  return fit;
}

}  // namespace ddpsim
