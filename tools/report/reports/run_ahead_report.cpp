#include "tools/report/reports/run_ahead_report.hpp"

#include <stdexcept>

#include <fmt/format.h>

#include "model/parallel/policy/iteration.hpp"
#include "scenarios/reader/text/input_error.hpp"
#include "tools/report/records/steps_fields.hpp"
#include "tools/report/reports/band_report.hpp"

namespace ddpsim {
namespace {

constexpr std::size_t most_kinds = 20;

/// How much shorter the steps are together than one after the other, as a part of that, where none
/// waits for its batches.
double gain(const ConsecutiveSteps& steps, const RunAhead& joined) {
  const double apart = steps.working_seconds();
  return apart > 0 ? 1 - in_seconds(joined.total()) / apart : 0;
}

/// [step] how long the host waited for timers in it
std::vector<Duration> waits_of(const RunAhead& joined) {
  std::vector<Duration> waits(joined.periods.size());
  for (const RunAhead::HostWait& wait : joined.waits) waits[wait.step] += wait.time;
  return waits;
}

const Step& kind_of(const ConsecutiveSteps& steps, std::size_t step) {
  return steps.kinds[static_cast<std::size_t>(steps.sequence[step])];
}

void add_rows(Table& table, const std::string& name, const ConsecutiveSteps& steps,
              const RunAhead& joined) {
  const std::vector<Duration> waits = waits_of(joined);
  const std::size_t count = joined.periods.size();
  const auto alike = [&](std::size_t a, std::size_t b) {
    return steps.sequence[a] == steps.sequence[b] && joined.periods[a] == joined.periods[b] &&
           waits[a] == waits[b];
  };
  const auto row = [&](const std::string& which, std::size_t begin, std::size_t end,
                       const std::string& phase) {
    double apart = 0, together = 0, waited = 0;
    for (std::size_t i = begin; i < end; ++i) {
      apart += in_ms(kind_of(steps, i).metrics.working());
      together += in_ms(joined.periods[i]);
      waited += in_ms(waits[i]);
    }
    const auto number = static_cast<double>(end - begin);
    table.add({name, which, phase, apart / number, together / number, waited, together});
  };
  const auto range = [](std::size_t begin, std::size_t end) {
    return end == begin + 1 ? fmt::format("{}", end) : fmt::format("{}-{}", begin + 1, end);
  };
  std::size_t rows = 0;
  for (std::size_t begin = 0, end = 0; begin < count; begin = end) {
    const bool rest = ++rows > most_kinds;
    end = begin + 1;
    while (end < count && (rest || alike(begin, end))) ++end;
    row(range(begin, end), begin, end,
        rest ? "the rest" : phase_label(kind_of(steps, begin).training));
  }
  row("all", 0, count, "");
}

/// What the steps leave out where their batches take time to make; "" where they do not.
std::string input_text(const Comparison& run, std::size_t count) {
  const Duration least = least_step(run.scenario);
  if (least == Duration::zero()) return "";
  return fmt::format(
      "Waits for batches (training.input) are left out of alone and period: with them {} steps "
      "take no less than {:.3f} ms, as a node makes those of one step in {:.3f} ms.\n",
      count, static_cast<double>(count) * in_ms(least), in_ms(least));
}

}  // namespace

std::vector<RunAhead> joined_runs(const Comparison& run,
                                  const std::vector<ConsecutiveSteps>& steps) {
  std::vector<RunAhead> joined;
  try {
    for (const ConsecutiveSteps& each : steps) joined.push_back(run_ahead(run.priced.model, each));
  } catch (const std::invalid_argument& problem) {
    throw InputError(fmt::format("{}: {}", run.scenario.file, problem.what()));
  }
  return joined;
}

Page run_ahead_page(const Comparison& run, const std::vector<ConsecutiveSteps>& steps,
                    const std::vector<RunAhead>& joined) {
  Table table{{fields::strategy_in_words, fields::which_steps, fields::phase, fields::alone_ms,
               fields::period_ms, fields::host_waited_ms,
               fields::total_ms.with(fields::thousandths)}};
  table.title = fmt::format("{} steps in which the host runs ahead", joined.front().periods.size());
  std::string gains;
  for (std::size_t s = 0; s < joined.size(); ++s) {
    const std::string name = strategy_label(run.compared[s].training);
    add_rows(table, name, steps[s], joined[s]);
    gains += fmt::format(
        "{}: {:.3f} ms against {:.3f} ms one after the other: {:.2f} % less; the host waited for "
        "timers {} times\n",
        name, in_ms(joined[s].total()), 1e3 * steps[s].working_seconds(),
        100 * gain(steps[s], joined[s]), joined[s].waits.size());
  }
  Page page;
  page.add(std::move(table));
  page.add(
      Paragraph{"alone: the step if it begins once the step before has ended; period: "
                "from the end of the step before to its own end;\nhost waited: how "
                "long the host stood still at the forward pass, for the timers of an "
                "iteration that DDP's logger samples\n" +
                gains + input_text(run, joined.front().periods.size())});
  return page;
}

Record run_ahead_record(const ConsecutiveSteps& steps, const RunAhead& joined) {
  List waits, periods;
  for (const RunAhead::HostWait& wait : joined.waits)
    waits.emplace_back(
        Record().add(fields::wait_step, wait.step + 1).add(fields::wait_ms, in_ms(wait.time)));
  for (const Duration period : joined.periods) periods.emplace_back(in_ms(period));
  const auto count = static_cast<double>(joined.periods.size());
  Record record;
  record.add(fields::step_count, joined.periods.size())
      .add(fields::total_ms, in_ms(joined.total()))
      .add(fields::mean_period_ms, in_ms(joined.total()) / count)
      .add(fields::one_after_the_other_ms, 1e3 * steps.working_seconds())
      .add(fields::gain, gain(steps, joined))
      .add(fields::host_waited_ms, in_ms(joined.waited()))
      .add(fields::host_waits, std::move(waits))
      .add(fields::periods_ms, std::move(periods));
  return record;
}

}  // namespace ddpsim
