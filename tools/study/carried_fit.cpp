// A fit to measured rows is a factor on the laws' times. The rows say how far the laws are off on
// one device, for one model in one number format; of another nobody knows. A setting of the command
// line changes the scenario and leaves its rows as they are: they are read from the file alone.

#include "tools/study/carried_fit.hpp"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "model/cluster/deciding_link.hpp"
#include "model/cost/interference.hpp"
#include "scenarios/reader/scenario/scenario_reader.hpp"
#include "tools/study/names.hpp"

namespace ddpsim {
namespace {

/// Something a step was measured of. Two are alike if their keys are.
struct Fact {
  std::string what;
  std::string text;  ///< for people; "": not known, or there is none
  std::string key;
};

/// What the reader calls an entry that a scenario writes out instead of naming it.
bool is_unnamed(const std::string& name) {
  return name.empty() || name == "inline";
}

Fact device_fact(const Device& device) {
  std::string key = fmt::format("{} {} {}", device.name, device.memory_bandwidth.bytes_per_second,
                                device.memory_efficiency);
  for (const DType type : all_dtypes)
    key += fmt::format(" {} {}", device.peak_of(type).flops_per_second, device.efficiency_of(type));
  return {"device", is_unnamed(device.name) ? "of the scenario" : device.name, std::move(key)};
}

Fact model_fact(const Workload& workload) {
  const std::int64_t parameters = workload.elements();
  const std::string text =
      is_unnamed(workload.name)
          ? fmt::format("of {:.1f} M parameters", static_cast<double>(parameters) / 1e6)
          : workload.name;
  return {"model", text, fmt::format("{} {}", workload.name, parameters)};
}

Fact plain_fact(std::string what, const std::string& value) {
  return {std::move(what), value, value};
}

Fact number_fact(std::string what, int number) {
  return plain_fact(std::move(what), number > 0 ? fmt::format("{}", number) : "");
}

Fact dtype_fact(const Workload& workload) {
  std::set<std::string> types;
  for (const Parameter& parameter : workload.parameters) types.emplace(name_of(parameter.dtype));
  return plain_fact("dtype", enumerated({types.begin(), types.end()}));
}

/// Of forward and backward: what else of a model may be set, such as the side of its pictures.
Fact work_fact(const Workload& workload) {
  double flops = 0, bytes = 0;
  for (const Layer& layer : workload.layers)
    for (const auto* pass : {&layer.forward, &layer.backward})
      for (const Kernel& kernel : *pass) {
        if (kernel.gemm) flops += kernel.gemm->flops();
        bytes += static_cast<double>(kernel.traffic.count);
      }
  const std::string text =
      fmt::format("{:.4g} TFLOP and {:.4g} GB a step", flops / 1e12, bytes / 1e9);
  return {"kernels of", text, fmt::format("{} {}", flops, bytes)};
}

/// What the computation of a step depends on, but for the work itself.
std::vector<Fact> compute_facts(const Scenario& scenario) {
  const std::optional<DType> compute = main_format(scenario.workload);
  return {device_fact(scenario.cluster.device),
          model_fact(scenario.workload),
          plain_fact("compute", compute ? std::string(name_of(*compute)) : ""),
          dtype_fact(scenario.workload),
          number_fact("batch", scenario.batch),
          number_fact("sequence", scenario.sequence),
          plain_fact("optimizer", std::string(name_of(scenario.optimizer)))};
}

/// How collectives run, where the scenario says so.
std::string key_of(const Cluster& cluster) {
  const auto number = [](const auto& value) { return value ? static_cast<int>(*value) : -1; };
  return fmt::format("{} {} {} {}", static_cast<int>(cluster.collectives),
                     number(cluster.forced.algorithm), number(cluster.forced.protocol),
                     number(cluster.forced.channels));
}

std::vector<Fact> communication_facts(const CalibratedCluster& cluster) {
  const int nodes = cluster.nodes;
  std::string ranks = fmt::format("{}", cluster.ranks());
  if (nodes > 1) ranks += fmt::format(" on {} nodes", nodes);
  const Link& link = deciding_link(cluster);
  const std::string name = is_unnamed(link.name) ? "of the scenario" : link.name;
  return {{"ranks", ranks, fmt::format("{} {}", nodes, to_string(cluster.ranks_per_node))},
          {"link", cluster.ranks() > 1 ? name : "",
           fmt::format("{} {} {} {} {}", link.name, link.bandwidth.bytes_per_second,
                       link.latency.count(), link.carries, link.nics)},
          {"collectives", "of the file", key_of(cluster)}};
}

/// The rows that a scenario's fit is made of: the first of each strategy that calibrates.
std::vector<const MeasuredRow*> calibrating_rows(const Measured& measured) {
  std::vector<const MeasuredRow*> rows;
  for (const Strategy strategy : measured.calibrate_on) {
    const auto first = std::ranges::find(measured.rows, strategy, &MeasuredRow::strategy);
    if (first != measured.rows.end()) rows.push_back(&*first);
  }
  return rows;
}

/// The file as it is, for rows with keys of their own; none: it is no scenario without settings.
std::optional<Scenario> unchanged(const Scenario& scenario) {
  try {
    return read_scenario(scenario.file);
  } catch (const InputError&) {
    return std::nullopt;
  }
}

Scenario measured_scenario(const Scenario& scenario, const MeasuredRow& row) {
  std::vector<Setting> settings;
  for (const auto& [key, value] : row.set) settings.emplace_back(key, value);
  return read_scenario(scenario.file, settings);
}

/// Collects differences, each thing once.
class Differences {
 public:
  /// Are all facts alike? A fact `here` may also be the file's own, where a row sets it otherwise.
  bool alike(const std::vector<Fact>& measured, const std::vector<Fact>& here,
             const std::vector<Fact>& in_file) {
    bool all_alike = true;
    for (std::size_t i = 0; i < here.size(); ++i) {
      const Fact &was = measured[i], &is = here[i];
      if (was.text.empty() || is.text.empty() || was.key == is.key) continue;
      if (!in_file.empty() && in_file[i].key == is.key) continue;
      all_alike = false;
      add(was, is);
    }
    return all_alike;
  }

  std::vector<OtherThanMeasured> found() && { return std::move(found_); }

 private:
  void add(const Fact& was, const Fact& is) {
    if (std::ranges::find(found_, was.what, &OtherThanMeasured::what) != found_.end()) return;
    const std::string here = is.text == was.text ? "with other figures" : is.text;
    found_.push_back(OtherThanMeasured{was.what, was.text, here});
  }

  std::vector<OtherThanMeasured> found_;
};

std::string note_of(const std::vector<std::string>& measured, std::string_view others) {
  return fmt::format(
      "the measured rows are of {}{}: what is fitted to them may not hold here, and how far such "
      "predictions usually are off is not quoted; --laws-only leaves the rows out",
      enumerated(measured), others);
}

}  // namespace

std::vector<OtherThanMeasured> other_than_measured(const Scenario& scenario) {
  if (!scenario.measured || !scenario.is_changed) return {};
  Differences differences;
  std::optional<Scenario> file;
  for (const MeasuredRow* row : calibrating_rows(*scenario.measured)) {
    const Scenario measured = measured_scenario(scenario, *row);
    if (!row->set.empty() && !file) file = unchanged(scenario);
    const auto compare = [&](const auto& facts_of) {
      return differences.alike(facts_of(measured), facts_of(scenario),
                               file ? facts_of(*file) : std::vector<Fact>{});
    };
    if (compare(compute_facts))
      compare([](const Scenario& of) { return std::vector<Fact>{work_fact(of.workload)}; });
    if (row->strategy != Strategy::none && measured.cluster.ranks() > 1)
      compare([](const Scenario& of) { return communication_facts(of.cluster); });
  }
  return std::move(differences).found();
}

int measured_ranks(const Scenario& scenario) {
  if (!scenario.measured) return scenario.cluster.ranks();
  const auto rows = calibrating_rows(*scenario.measured);
  const bool as_here = rows.empty() || (!scenario.is_changed && rows.front()->set.empty());
  return as_here ? scenario.cluster.ranks()
                 : measured_scenario(scenario, *rows.front()).cluster.ranks();
}

bool fits_interference_over_nics(const Scenario& scenario) {
  if (!scenario.measured) return false;
  const auto rows = calibrating_rows(*scenario.measured);
  const auto overlap = std::ranges::find(rows, Strategy::overlap, &MeasuredRow::strategy);
  if (overlap == rows.end()) return false;
  const bool as_here = !scenario.is_changed && (*overlap)->set.empty();
  return over_nics(as_here ? scenario.cluster : measured_scenario(scenario, **overlap).cluster);
}

std::string carried_fit_note(const std::vector<OtherThanMeasured>& others) {
  if (others.empty()) return "";
  std::vector<std::string> measured;
  for (const OtherThanMeasured& other : others)
    measured.push_back(fmt::format("{} {} (here {})", other.what, other.measured, other.here));
  return note_of(measured, "");
}

std::string carried_fit_note_at_point(const std::vector<OtherThanMeasured>& others) {
  if (others.empty()) return "";
  std::vector<std::string> measured;
  for (const OtherThanMeasured& other : others)
    measured.push_back(fmt::format("{} {}", other.what, other.measured));
  return note_of(measured, others.size() == 1 ? ", and here is another" : ", and here are others");
}

}  // namespace ddpsim
