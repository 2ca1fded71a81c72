#include "tools/report/tune_report.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "tools/command/settings.hpp"
#include "tools/report/table.hpp"

namespace ddpsim {
namespace {

std::string ms(Duration time) {
  return fmt::format("{:.2f}", in_ms(time));
}

/// "+1.2 %"
std::string share(Duration part, Duration whole) {
  return fmt::format("{:+.2f} %", 100 * (in_seconds(part) / in_seconds(whole) - 1));
}

std::string cap_text(Bytes low, Bytes high) {
  if (low == no_cap) return "none";
  const RoundCap cap = round_cap(low, high);
  return cap.mib.find('/') == std::string::npos ? cap.mib + " MiB" : to_string(cap.bytes);
}

std::string caps_text(const Choice& choice) {
  if (choice.cap == Bytes{}) return "-";
  const std::string cap = cap_text(choice.cap, choice.highest_cap);
  return choice.first_cap
             ? fmt::format("{}, {}", cap_text(*choice.first_cap, choice.highest_first), cap)
             : cap;
}

std::string choices_table(const Tuning& tuning) {
  Table table({"buckets", "caps", "number", "largest", "step ms", "exposed ms", "over default",
               "over bound"});
  const auto add = [&](const std::string& name, const Choice& choice) {
    table.add({name, caps_text(choice), fmt::format("{}", choice.buckets.size()),
               to_string(choice.largest), ms(choice.step), ms(choice.step - tuning.without),
               share(choice.step, tuning.standard.step), share(choice.step, tuning.lower_bound)});
  };
  const Choice& given = tuning.given;
  add("DDP default", tuning.standard);
  if (given.buckets != tuning.standard.buckets) add("this scenario", given);
  add("one bucket", tuning.one_bucket);
  Choice apart = tuning.per_parameter;
  apart.cap = Bytes{};  // whichever is small enough
  add("one per gradient", apart);
  if (tuning.merged) add("MG-WFBP's merge rule", *tuning.merged);
  add("best cap", tuning.best_cap);
  if (tuning.advice.choice.buckets != tuning.best_cap.buckets &&
      tuning.advice.choice.buckets != tuning.standard.buckets)
    add("recommended cap", tuning.advice.choice);
  if (tuning.best_cap.first_cap) add("best cap, first bucket too", tuning.best_even_cap);
  if (tuning.best_pair) add("best pair of caps", *tuning.best_pair);
  if (tuning.best_partition)
    add(tuning.partition_proven ? "best partition (proven)" : "best partition found",
        *tuning.best_partition);
  table.add({"lower bound", "", "", "", ms(tuning.lower_bound),
             ms(tuning.lower_bound - tuning.without),
             share(tuning.lower_bound, tuning.standard.step), ""});
  return table.text();
}

/// The step against the cap: powers of two of a MiB, and the best.
std::string caps_chart(const Tuning& tuning) {
  constexpr double width = 40;
  struct Row {
    std::string cap;
    const Choice* choice;
  };
  std::vector<Row> rows;
  const auto add = [&](const std::string& cap, const Choice& choice) {
    rows.push_back({cap, &choice});
  };
  Bytes power = MiB;
  for (const Choice& choice : tuning.caps) {
    const bool best = choice.cap == tuning.best_cap.cap;
    if (best && choice.highest_cap < power) add(cap_text(choice.cap, choice.highest_cap), choice);
    while (power <= choice.highest_cap &&
           (rows.empty() || rows.back().choice != &tuning.caps.back())) {
      add(to_string(power), choice);
      power = 2 * power;
    }
  }
  Duration longest{}, shortest = Duration::max();
  for (const Row& row : rows) {
    longest = std::max(longest, row.choice->step);
    shortest = std::min(shortest, row.choice->step);
  }
  Table table({"cap", "buckets", "step ms", "above the shortest"}, Table::Last::text);
  for (const auto& [cap, choice] : rows) {
    const double part = longest > shortest
                            ? in_seconds(choice->step - shortest) / in_seconds(longest - shortest)
                            : 0;
    table.add({cap, fmt::format("{}", choice->buckets.size()), ms(choice->step),
               std::string(static_cast<std::size_t>(part * width + 0.5), '#') +
                   (choice->cap == tuning.best_cap.cap ? " <- best" : "")});
  }
  return table.text();
}

std::string corners_text(const Tuning& tuning) {
  Table table({"link takes", "kernels take", "default ms", "recommended ms", "best cap ms", "gain",
               "regret"});
  for (const Corner& corner : tuning.advice.corners)
    table.add({fmt::format("x {:.2f}", corner.link), fmt::format("x {:.2f}", corner.compute),
               ms(corner.standard), ms(corner.recommended), ms(corner.best),
               fmt::format("{:.2f} %", 100 * (1 - in_seconds(corner.recommended) /
                                                      in_seconds(corner.standard))),
               fmt::format("{:.2f} %",
                           100 * (in_seconds(corner.recommended) / in_seconds(corner.best) - 1))});
  return table.text();
}

std::string verdict(const Tuning& tuning, const TuneOptions& options) {
  const double best = 1 - in_seconds(tuning.best_cap.step) / in_seconds(tuning.standard.step);
  if (tuning.advice.pays) {
    std::string text =
        fmt::format("verdict: {} instead of DDP's default saves {:.1f} % of the step ({} -> {} ms)",
                    cap_text(tuning.advice.choice.cap, tuning.advice.choice.highest_cap),
                    100 * tuning.gain(), ms(tuning.standard.step), ms(tuning.advice.choice.step));
    if (!tuning.advice.corners.empty()) {
      double least = 1, most = 0;
      for (const Corner& corner : tuning.advice.corners) {
        const double gain = 1 - in_seconds(corner.recommended) / in_seconds(corner.standard);
        least = std::min(least, gain);
        most = std::max(most, gain);
      }
      text += fmt::format(
          ";\nwith errors of {:.0f} % in the link and {:.0f} % in the kernels it is {:.1f} to "
          "{:.1f} %, "
          "and never more than {:.1f} % from the best cap",
          100 * options.link_uncertainty, 100 * options.compute_uncertainty, 100 * least,
          100 * most, 100 * tuning.advice.regret);
    }
    return text + "\n";
  }
  if (!tuning.standard_allowed)
    return fmt::format(
        "verdict: DDP's default has a bucket of {}, more than allowed; {} keeps within {}, for {} "
        "of the "
        "default step\n",
        to_string(tuning.standard.largest),
        cap_text(tuning.advice.choice.cap, tuning.advice.choice.highest_cap),
        to_string(tuning.advice.choice.largest),
        share(tuning.advice.choice.step, tuning.standard.step));
  if (options.objective == Objective::memory)
    return fmt::format("verdict: buckets of at most {} cost {} of the default step\n",
                       to_string(tuning.advice.choice.largest),
                       share(tuning.advice.choice.step, tuning.standard.step));
  const bool certain = best > options.noise;
  return fmt::format(
      "verdict: tuning does not pay: the best cap would save {:.1f} %, {}: keep 25 MiB\n",
      100 * best, certain ? "less than the errors allowed for can take away" : "within noise");
}

nlohmann::ordered_json choice_json(const Choice& choice) {
  nlohmann::ordered_json json;
  if (choice.first_cap)
    json["first_cap_bytes"] = choice.first_cap->count;
  else
    json["first_cap_bytes"] = nullptr;
  const bool capped = choice.cap > Bytes{} && choice.cap < no_cap;
  json["cap_bytes"] = capped ? nlohmann::ordered_json(choice.cap.count) : nullptr;
  json["step_ms"] = in_ms(choice.step);
  json["buckets"] = choice.buckets.size();
  json["largest_bucket_bytes"] = choice.largest.count;
  return json;
}

/// A cap that people would write, among those that make the same buckets.
std::int64_t deployed(const Choice& choice) {
  return choice.cap == no_cap ? no_cap.count
                              : round_cap(choice.cap, choice.highest_cap).bytes.count;
}

}  // namespace

std::string tune_text(const Scenario& scenario, const StepCosts& costs, const Tuning& tuning,
                      const TuneOptions& options) {
  std::string text =
      fmt::format("{}\n{}: {} gradients, {}; {} x {}, all-reduce law: {}\n\n{}\n", scenario.name,
                  scenario.workload.name, scenario.workload.parameters.size(),
                  to_string(scenario.workload.gradient_size()), costs.ranks,
                  scenario.cluster.device.name, costs.collective.name(), choices_table(tuning));
  text += fmt::format(
      "without communication: {} ms; all {} distinct caps{} were searched ({} steps simulated);\n"
      "no contiguous partition is faster than the lower bound{}\n\n",
      ms(tuning.without), tuning.caps.size(),
      tuning.best_pair ? " and all pairs of caps" : ", but not pairs: too many gradients,",
      tuning.evaluated,
      tuning.best_partition
          ? ""
          : "; free partitions are not searched where gradients are of several types or sparse");
  text += caps_chart(tuning) + "\n";
  if (!tuning.advice.corners.empty()) text += corners_text(tuning) + "\n";
  text += verdict(tuning, options) + "\n";
  return text + settings_to_paste(tuning, scenario.training, scenario.workload);
}

nlohmann::ordered_json tune_json(const Scenario& scenario, const Tuning& tuning) {
  nlohmann::ordered_json json;
  json["format"] = "ddpsim.tune/1";
  json["scenario"] = scenario.name;
  json["best_cap_bytes"] = deployed(tuning.best_cap);
  json["best_cap_step_ms"] = in_ms(tuning.best_cap.step);
  json["default_step_ms"] = in_ms(tuning.standard.step);
  json["best_partition"] = nlohmann::ordered_json::array();
  if (tuning.best_partition) {
    for (const auto& bucket : tuning.best_partition->buckets) {
      nlohmann::ordered_json names = nlohmann::ordered_json::array();
      for (const int index : bucket)
        names.push_back(scenario.workload.parameters[static_cast<std::size_t>(index)].name);
      json["best_partition"].push_back(names);
    }
    json["best_partition_step_ms"] = in_ms(tuning.best_partition->step);
  } else {
    json["best_partition_step_ms"] = nullptr;
  }
  json["lower_bound_ms"] = in_ms(tuning.lower_bound);
  json["evaluated"] = tuning.evaluated;
  json["without_communication_ms"] = in_ms(tuning.without);
  json["recommended_cap_bytes"] = deployed(tuning.advice.choice);
  json["recommended_step_ms"] = in_ms(tuning.advice.choice.step);
  json["pays"] = tuning.advice.pays;
  json["partition_proven"] = tuning.partition_proven;
  json["best_pair"] = tuning.best_pair ? choice_json(*tuning.best_pair) : nullptr;
  json["best_even_cap"] = choice_json(tuning.best_even_cap);
  json["best_overflow_cap"] = choice_json(tuning.best_overflow_cap);
  json["given"] = choice_json(tuning.given);
  json["one_bucket"] = choice_json(tuning.one_bucket);
  json["per_parameter"] = choice_json(tuning.per_parameter);
  json["mg_wfbp"] = tuning.merged ? choice_json(*tuning.merged) : nullptr;
  json["caps"] = nlohmann::ordered_json::array();
  for (const Choice& choice : tuning.caps) {
    nlohmann::ordered_json entry = choice_json(choice);
    entry["highest_cap_bytes"] =
        choice.highest_cap < no_cap ? nlohmann::ordered_json(choice.highest_cap.count) : nullptr;
    json["caps"].push_back(entry);
  }
  json["regret"] = tuning.advice.regret;
  json["corners"] = nlohmann::ordered_json::array();
  for (const Corner& corner : tuning.advice.corners)
    json["corners"].push_back({{"link", corner.link},
                               {"compute", corner.compute},
                               {"default_step_ms", in_ms(corner.standard)},
                               {"recommended_step_ms", in_ms(corner.recommended)},
                               {"best_cap_step_ms", in_ms(corner.best)}});
  return json;
}

std::string tune_csv(const Tuning& tuning) {
  std::string text = "cap_bytes,highest_cap_bytes,buckets,largest_bucket_bytes,step_ms\n";
  for (const Choice& choice : tuning.caps)
    text +=
        fmt::format("{},{},{},{},{:.6f}\n", choice.cap.count,
                    choice.highest_cap < no_cap ? fmt::format("{}", choice.highest_cap.count) : "",
                    choice.buckets.size(), choice.largest.count, in_ms(choice.step));
  return text;
}

}  // namespace ddpsim
