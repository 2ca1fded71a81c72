#include "tools/report/run_ahead_report.hpp"

#include <stdexcept>

#include <fmt/format.h>

#include "model/ddp/iteration.hpp"
#include "scenarios/reader/input_error.hpp"
#include "tools/report/table.hpp"

namespace ddpsim {
namespace {

constexpr std::size_t most_rows = 20;

std::string ms(double milliseconds) {
  return fmt::format("{:.3f}", milliseconds);
}

/// How much shorter the steps are together than one after the other, as a part of that.
double gain(const ConsecutiveSteps& steps, const RunAhead& joined) {
  const double apart = steps.total_seconds();
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
      apart += in_ms(kind_of(steps, i).metrics.step);
      together += in_ms(joined.periods[i]);
      waited += in_ms(waits[i]);
    }
    const auto number = static_cast<double>(end - begin);
    table.add(
        {name, which, phase, ms(apart / number), ms(together / number), ms(waited), ms(together)});
  };
  const auto range = [](std::size_t begin, std::size_t end) {
    return end == begin + 1 ? fmt::format("{}", end) : fmt::format("{}-{}", begin + 1, end);
  };
  std::size_t rows = 0;
  for (std::size_t begin = 0, end = 0; begin < count; begin = end) {
    const bool rest = ++rows > most_rows;
    end = begin + 1;
    while (end < count && (rest || alike(begin, end))) ++end;
    row(range(begin, end), begin, end,
        rest ? "the rest" : phase_label(kind_of(steps, begin).training));
  }
  row("all", 0, count, "");
}

}  // namespace

std::vector<RunAhead> joined_runs(const Comparison& run,
                                  const std::vector<ConsecutiveSteps>& steps) {
  std::vector<RunAhead> joined;
  try {
    for (const ConsecutiveSteps& each : steps) joined.push_back(run_ahead(run.priced.costs, each));
  } catch (const std::invalid_argument& problem) {
    throw InputError(fmt::format("{}: {}", run.scenario.file, problem.what()));
  }
  return joined;
}

std::string run_ahead_text(const Comparison& run, const std::vector<ConsecutiveSteps>& steps,
                           const std::vector<RunAhead>& joined) {
  std::string text =
      fmt::format("{} steps in which the host runs ahead\n", joined.front().periods.size());
  Table table({"strategy", "steps", "phase", "alone ms", "period ms", "host waited ms", "sum ms"});
  std::string gains;
  for (std::size_t s = 0; s < joined.size(); ++s) {
    const std::string name = strategy_label(run.compared[s].training);
    add_rows(table, name, steps[s], joined[s]);
    gains += fmt::format(
        "{}: {:.3f} ms against {:.3f} ms one after the other: {:.2f} % less; the host waited for "
        "timers {} times\n",
        name, in_ms(joined[s].total()), 1e3 * steps[s].total_seconds(),
        100 * gain(steps[s], joined[s]), joined[s].waits.size());
  }
  return text + table.text() +
         "\nalone: begun when the one before has ended; period: from that end to its own; host "
         "waited: at "
         "its forward, for timers of\na sampled iteration\n" +
         gains;
}

nlohmann::ordered_json run_ahead_json(const ConsecutiveSteps& steps, const RunAhead& joined) {
  nlohmann::ordered_json json;
  json["count"] = joined.periods.size();
  json["total_ms"] = in_ms(joined.total());
  json["mean_period_ms"] = in_ms(joined.total()) / static_cast<double>(joined.periods.size());
  json["one_after_the_other_ms"] = 1e3 * steps.total_seconds();
  json["gain"] = gain(steps, joined);
  json["host_waited_ms"] = in_ms(joined.waited());
  json["host_waits"] = nlohmann::ordered_json::array();
  for (const RunAhead::HostWait& wait : joined.waits)
    json["host_waits"].push_back({{"step", wait.step + 1}, {"ms", in_ms(wait.time)}});
  json["periods_ms"] = nlohmann::ordered_json::array();
  for (const Duration period : joined.periods) json["periods_ms"].push_back(in_ms(period));
  return json;
}

}  // namespace ddpsim
