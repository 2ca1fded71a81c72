#include "tools/report/reports/validation_report.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "model/program/fingerprint.hpp"
#include "tools/report/records/ms_text.hpp"
#include "tools/report/records/validate_fields.hpp"
#include "tools/report/reports/cluster_report.hpp"
#include "tools/report/reports/validation_record.hpp"
#include "tools/report/writers/chart.hpp"
#include "tools/study/machine_doubts.hpp"
#include "tools/study/names.hpp"

namespace ddpsim {
namespace {

double overlap(const Step& step, const Step& none) {
  return overlap_ratio(step.metrics, none.metrics);
}

/// Does a step communicate at all?
bool communicates(const ValidatedStep& step) {
  return step.measured.metrics.collectives > 0;
}

List both(double predicted, double measured) {
  return {predicted, measured};
}
List both(Duration predicted, Duration measured) {
  return both(in_ms(predicted), in_ms(measured));
}
List both(Instant predicted, Instant measured) {
  return both(in_ms(predicted), in_ms(measured));
}

Table steps_table(const Validation& validation) {
  Table table{{fields::strategy_in_words, fields::predicted_step_ms, fields::measured_step_ms,
               fields::step_error, fields::range_in_words, fields::pair_of(fields::forward_ms),
               fields::pair_of(fields::backward_ms), fields::pair_of(fields::optimizer_ms)}};
  for (const ValidatedStep& step : validation.steps) {
    const StepMetrics &p = step.predicted.metrics, &m = step.measured.metrics;
    table.add({label_of(step), in_ms(p.step), in_ms(m.step), relative_error(p.step, m.step),
               fmt::format("{} - {}{}", ms_text(step.spread.low), ms_text(step.spread.high),
                           step.unsteady() ? " !" : ""),
               both(p.forward, m.forward), both(p.backward, m.backward),
               both(p.optimizer, m.optimizer)});
  }
  return table;
}

/// Both sides carried out the same schedules.
std::string schedules_text(const Validation& validation) {
  std::string text = "schedules, by fingerprint, simulated and executed by every rank:";
  for (const ValidatedStep& step : validation.steps)
    text += fmt::format("{} {} {}", &step == &validation.steps.front() ? "" : ",", label_of(step),
                        program::fingerprint_text(step.fingerprint));
  return text;
}

Table overlap_table(const Validation& validation) {
  Table table{{fields::strategy_in_words, fields::pair_of(fields::communication_ms),
               fields::communication_error, fields::pair_of(fields::exposed_ms),
               fields::overlap_in_words, fields::compute_ms, fields::communication_part_ms,
               fields::waiting_ms, fields::launch_ms}};
  const ValidatedStep& none = none_of(validation);
  for (const ValidatedStep& step : validation.steps) {
    const StepMetrics &p = step.predicted.metrics, &m = step.measured.metrics;
    const Breakdown &a = step.predicted_parts, &b = step.measured_parts;
    TableRow row{label_of(step)};
    if (communicates(step)) {
      row.emplace_back(both(p.communication, m.communication));
      row.emplace_back(relative_error(p.communication, m.communication));
      row.emplace_back(both(exposed(p, none.predicted.metrics), exposed(m, none.measured.metrics)));
      row.emplace_back(fmt::format("{:.0f} | {:.0f} %",
                                   100 * overlap(step.predicted, none.predicted),
                                   100 * overlap(step.measured, none.measured)));
    } else {
      row.resize(5);
    }
    for (const Duration more : {a.compute - b.compute, a.communication - b.communication,
                                a.waiting - b.waiting, a.launch - b.launch})
      row.emplace_back(in_ms(more));
    table.add(std::move(row));
  }
  return table;
}

/// Whom buckets of each strategy wait for: "rank 5, 7.20 ms | rank 5, 7.43 ms". No rows: no rank is
/// an exception.
Table late_ranks_table(const Validation& validation) {
  Table table{{fields::strategy_in_words, fields::waited_in_words}};
  table.title = "whom a rank that is no exception waits for at its buckets: predicted | measured";
  const auto text = [](const LateRank& late) {
    return fmt::format("{}, {} ms", late.name.empty() ? "no exception" : late.name,
                       ms_text(late.waited));
  };
  for (const ValidatedStep& step : validation.steps)
    if (step.predicted_late && step.measured_late)
      table.add({label_of(step),
                 fmt::format("{} | {}", text(*step.predicted_late), text(*step.measured_late))});
  return table;
}

Table bucket_table(const ValidatedStep& step) {
  Table table{{fields::index, fields::bytes, fields::pair_of(fields::ready_ms),
               fields::pair_of(fields::start_ms), fields::pair_of(fields::end_ms),
               fields::end_error}};
  table.title = fmt::format("buckets of {}: predicted | measured", label_of(step));
  for (std::size_t b = 0; b < step.measured.job().groups.size(); ++b) {
    const BucketTimes &p = step.predicted.metrics.buckets[b], &m = step.measured.metrics.buckets[b];
    table.add({b, step.measured.job().groups[b].size.count, both(p.ready, m.ready),
               both(p.start, m.start), both(p.end, m.end),
               relative_error(p.end.time_since_epoch(), m.end.time_since_epoch())});
  }
  return table;
}

/// What comm hooks do to gradients.
std::string exceptions_text(const Validation& validation) {
  std::string text;
  for (const ValidatedStep& step : validation.steps) {
    const std::string label = label_of(step);
    if (step.gradients.kept == Kept::same_everywhere)
      text += fmt::format(
          "{} drops a part of each gradient: its gradients were compared between "
          "ranks, and not with the mean\n",
          label);
    if (step.gradients.kept == Kept::nothing)
      text += fmt::format(
          "{} does not average gradients in every step: its gradients were not "
          "compared\n",
          label);
  }
  return text;
}

std::string overflows_text(const Validation& validation) {
  std::string text;
  for (const ValidatedStep& step : validation.steps)
    if (step.overflows > 0)
      text += fmt::format(
          "OVERFLOW: {} gradients became infinite in 16 bit under {}: scale them down, or take "
          "bf16_compress\n",
          step.overflows, label_of(step));
  return text;
}

}  // namespace

std::string gradients_text(const Validation& validation) {
  double worst = 0;
  for (const ValidatedStep& step : validation.steps) {
    worst = std::max(worst, step.gradients.worst);
    if (step.gradients.good()) continue;
    const std::string label = label_of(step);
    const int wrong = step.gradients.wrong;
    return fmt::format("gradients WRONG under {}: {} of {} {} {}; the first is that of {}\n", label,
                       wrong, validation.scenario.workload.parameters.size(),
                       wrong == 1 ? "differs" : "differ",
                       step.gradients.identical
                           ? fmt::format("from the mean by up to {:.3g} times what rounding allows",
                                         step.gradients.worst)
                           : "between ranks",
                       step.gradients.first_wrong);
  }
  const std::string text = fmt::format(
      "gradients: identical on all ranks to the bit under every strategy, "
      "and equal to the mean of the ranks' own gradients (the largest "
      "difference is {:.2f} of what rounding allows)\n",
      worst);
  return text + exceptions_text(validation);
}

std::string label_of(const ValidatedStep& step) {
  Training training = step.measured.training;
  for (const Setting& setting : step.settings)
    if (setting.key == "training.comm_hook") training.comm_hook = {};  // in the user's words
  const std::string label = strategy_label(training);
  std::vector<Setting> untold;
  for (const Setting& setting : step.settings)
    if (!is_in_label(setting.key, training)) untold.push_back(setting);
  return untold.empty() ? label : fmt::format("{}, {}", label, short_label(untold));
}

std::vector<std::string> doubts_of(const Validation& validation) {
  return machine_doubts(validation.stolen, validation.left_by_others);
}

namespace {

/// That measured steps are shorter than the one without communication: noise, and how large it is.
/// "" if none is.
std::string shorter_than_none(const Validation& validation) {
  constexpr Duration shown = std::chrono::microseconds{5};  // half of the last digit of the table
  const Duration none = none_of(validation).measured.metrics.step;
  const ValidatedStep* worst = nullptr;
  std::size_t shorter = 0, others = 0;
  for (const ValidatedStep& step : validation.steps) {
    if (&step == &none_of(validation)) continue;
    ++others;
    const Duration length = step.measured.metrics.step;
    if (none - length < shown) continue;
    ++shorter;
    if (worst == nullptr || length < worst->measured.metrics.step) worst = &step;
  }
  if (worst == nullptr) return "";
  const Duration least = worst->measured.metrics.step;
  return fmt::format(
      "negative exposed times are noise: {} of {} strategies measured shorter than `none`, which "
      "does less than any of them; {} by {} ms ({:.1f} % of the step), so exposed times are that "
      "uncertain at least: measure on a quiet machine (ddpsim doctor), or take more --steps",
      shorter, others, label_of(*worst), ms_text(none - least),
      100 * in_seconds(none - least) / in_seconds(none));
}

/// That fewer steps were measured than were wanted. "" if all were.
std::string cut_short_text(const Validation& validation) {
  if (!validation.cut_short) return "";
  const auto& [measured, wanted, within] = *validation.cut_short;
  return fmt::format(
      "{} steps of each strategy were measured instead of {}, and all else as often as there was "
      "time for in about {} (--within): a longer time makes more, and --steps {} all of them",
      measured, wanted, to_string(within), wanted);
}

}  // namespace

std::vector<std::string> validation_notes(const Validation& validation) {
  std::vector<std::string> notes;
  for (std::string note : {shorter_than_none(validation), cut_short_text(validation)})
    if (!note.empty()) notes.push_back(std::move(note));
  return notes;
}

Table validation_rows(const Validation& validation) {
  Table table{{fields::validated_label, fields::validated_prediction, fields::validated_measurement,
               fields::validated_error, fields::step_low_ms, fields::step_high_ms}};
  for (const ValidatedStep& step : validation.steps) {
    const Duration predicted = step.predicted.metrics.step, measured = step.measured.metrics.step;
    table.add({label_of(step), in_ms(predicted), in_ms(measured),
               relative_error(predicted, measured), in_ms(step.spread.low),
               in_ms(step.spread.high)});
  }
  return table;
}

Page validation_page(const Validation& validation) {
  Page page;
  std::string head = fmt::format("{}: {}\n{}\ncalibrated {} on {}\n", validation.scenario.name,
                                 validation.mode, cluster_text(validation.scenario),
                                 validation.calibration.date, validation.calibration.cpu);
  if (validation.busy_kernels)
    head +=
        "the shapes of this workload's kernels are not known: busy work that "
        "takes the profile's times is run in their place\n";
  for (const std::string& doubt : doubts_of(validation)) head += doubt + "\n";
  page.add(Paragraph{head});
  page.add(steps_table(validation));
  page.add(Paragraph{fmt::format(
      "Pairs are predicted | measured; measured times are medians over steps "
      "and {}; ! marks repeats that differ by more than 10 %.",
      validation.scenario.cluster.exceptions.empty() ? "ranks"
                                                     : "the ranks that are no exception")});
  page.add(overlap_table(validation));
  const bool different = !validation.scenario.cluster.exceptions.empty();
  page.add(Paragraph{
      fmt::format("compute to launch: by how many ms each part of {} step is predicted longer (+) "
                  "or shorter (-) than it was measured",
                  different ? "a typical rank's" : "rank 0's")});
  if (Table late = late_ranks_table(validation); !late.rows.empty()) page.add(std::move(late));
  const ValidatedStep* shown = nullptr;
  for (const ValidatedStep& step : validation.steps) {
    if (step.measured.training.strategy != Strategy::bucketed) continue;
    page.add(bucket_table(step));
    shown = &step;
  }
  if (shown != nullptr) {
    page.add(Paragraph{"timeline of " + label_of(*shown)});
    page.add(Drawing{[shown](PageWidth width) {
      return timeline_chart({{"predicted", &shown->predicted}, {"measured", &shown->measured}},
                            width);
    }});
  }
  page.add(Paragraph{schedules_text(validation)});
  page.add(Paragraph{gradients_text(validation) + overflows_text(validation)});
  return page;
}

}  // namespace ddpsim
