#include "tools/report/reports/validation_record.hpp"

#include <algorithm>
#include <cmath>

#include "model/program/fingerprint.hpp"
#include "tools/report/records/validate_fields.hpp"
#include "tools/report/reports/cluster_report.hpp"
#include "tools/report/reports/results.hpp"
#include "tools/report/reports/unit_report.hpp"

namespace ddpsim {
namespace {

Record spread_record(const Spread& spread) {
  Record record;
  record.add(fields::step_low_ms, in_ms(spread.low))
      .add(fields::step_high_ms, in_ms(spread.high))
      .add(fields::repeats, spread.repeats)
      .add(fields::outliers, spread.outliers);
  return record;
}

Record parts_record(const Breakdown& parts) {
  Record record;
  record.add(fields::compute_ms, in_ms(parts.compute))
      .add(fields::communication_part_ms, in_ms(parts.communication))
      .add(fields::waiting_ms, in_ms(parts.waiting))
      .add(fields::launch_ms, in_ms(parts.launch));
  return record;
}

Record bucket_errors(const BucketTimes& predicted, const BucketTimes& measured, std::size_t index) {
  const auto error = [](Instant p, Instant m) {
    return relative_error(p.time_since_epoch(), m.time_since_epoch());
  };
  Record record;
  record.add(fields::index, index)
      .add(fields::error_of_ready, error(predicted.ready, measured.ready))
      .add(fields::error_of_start, error(predicted.start, measured.start))
      .add(fields::error_of_end, error(predicted.end, measured.end));
  return record;
}

Record error_record(const ValidatedStep& step, const ValidatedStep& none) {
  const StepMetrics &predicted = step.predicted.metrics, &measured = step.measured.metrics;
  const StepMetrics &apart = none.predicted.metrics, &alone = none.measured.metrics;
  List buckets;
  for (std::size_t b = 0; b < measured.buckets.size() && !has_units(step.measured); ++b)
    buckets.emplace_back(bucket_errors(predicted.buckets[b], measured.buckets[b], b));
  Record record;
  record.add(fields::error_of_step, relative_error(predicted.step, measured.step))
      .add(fields::error_of_forward, relative_error(predicted.forward, measured.forward))
      .add(fields::error_of_backward, relative_error(predicted.backward, measured.backward))
      .add(fields::error_of_optimizer, relative_error(predicted.optimizer, measured.optimizer))
      .add(fields::error_of_communication,
           relative_error(predicted.communication, measured.communication))
      .add(fields::error_of_exposed,
           relative_error(exposed(predicted, apart), exposed(measured, alone)))
      .add(fields::difference_of_overlap,
           overlap_ratio(predicted, apart) - overlap_ratio(measured, alone))
      .add(fields::buckets, std::move(buckets));
  return record;
}

Record gradients_record(const ValidatedStep& step) {
  Record record;
  record.add(fields::identical, step.gradients.identical)
      .add(fields::worst_over_tolerance, step.gradients.worst)
      .add(fields::compared_with_mean, step.gradients.kept == Kept::mean)
      .add(fields::wrong, step.gradients.wrong)
      .add(fields::first_wrong,
           step.gradients.wrong == 0 ? FieldValue() : FieldValue(step.gradients.first_wrong))
      .add(fields::overflows, step.overflows);
  return record;
}

void add_late_rank(Record& record, const std::optional<LateRank>& late) {
  if (!late) return;
  record.add(fields::waited_for, late->name.empty() ? FieldValue() : FieldValue(late->name))
      .add(fields::waited_ms, in_ms(late->waited));
}

Record step_record(const Validation& validation, const ValidatedStep& step) {
  const ValidatedStep &none = none_of(validation), &naive = naive_of(validation);
  Record predicted = result_record(
      validation.scenario, {&step.predicted, &none.predicted.metrics, &naive.predicted.metrics});
  Record measured = result_record(
      validation.scenario, {&step.measured, &none.measured.metrics, &naive.measured.metrics});
  Record record;
  for (const Field* same : {&fields::strategy, &fields::bucket_cap_bytes})
    record.add(*same, *predicted.find(*same));
  if (!step.settings.empty()) record.add(fields::set, texts_of(step.settings));
  record.add(fields::schedule_fingerprint, program::fingerprint_text(step.fingerprint));
  predicted.add(fields::parts, parts_record(step.predicted_parts));
  measured.add(fields::parts, parts_record(step.measured_parts))
      .add(fields::spread, spread_record(step.spread));
  add_late_rank(predicted, step.predicted_late);
  add_late_rank(measured, step.measured_late);
  record.add(fields::predicted, std::move(predicted))
      .add(fields::measured, std::move(measured))
      .add(fields::error, error_record(step, none))
      .add(fields::gradients, gradients_record(step))
      .add(fields::unsteady, step.unsteady());
  return record;
}

Record calibrated_record(const Calibration& calibration) {
  Record record;
  record.add(fields::machine, calibration.machine)
      .add(fields::cpu, calibration.cpu)
      .add(fields::link, calibration.link)
      .add(fields::versions, calibration.versions)
      .add(fields::date, calibration.date);
  return record;
}

}  // namespace

const ValidatedStep& none_of(const Validation& validation) {
  return validation.steps.front();
}

const ValidatedStep& naive_of(const Validation& validation) {
  for (const ValidatedStep& step : validation.steps)
    if (step.measured.training.strategy == Strategy::naive) return step;
  return none_of(validation);
}

double relative_error(Duration predicted, Duration measured) {
  if (measured == Duration::zero()) return predicted == Duration::zero() ? 0 : 1;
  return in_seconds(predicted - measured) / std::abs(in_seconds(measured));
}

double median_step_error(const Validation& validation) {
  std::vector<double> errors;
  for (const ValidatedStep& step : validation.steps)
    errors.push_back(
        std::abs(relative_error(step.predicted.metrics.step, step.measured.metrics.step)));
  const auto middle = errors.begin() + static_cast<std::ptrdiff_t>(errors.size() / 2);
  std::nth_element(errors.begin(), middle, errors.end());
  return *middle;
}

Record validation_record(const Validation& validation) {
  List results;
  for (const ValidatedStep& step : validation.steps)
    results.emplace_back(step_record(validation, step));
  Record record;
  record.add(fields::format, "ddpsim.validate/1")
      .add(fields::scenario, validation.scenario.name)
      .add(fields::mode, validation.mode)
      .add(fields::ranks, validation.scenario.cluster.ranks())
      .add(fields::cluster, cluster_record(validation.scenario))
      .add(fields::busy_kernels, validation.busy_kernels)
      .add(fields::stolen_share, validation.stolen)
      .add(fields::calibrated, calibrated_record(validation.calibration))
      .add(fields::results, std::move(results))
      .add(fields::median_step_error, median_step_error(validation));
  return record;
}

}  // namespace ddpsim
