#include "tools/report/reports/tune_report.hpp"

#include <algorithm>
#include <cmath>
#include <memory>

#include <fmt/format.h>

#include "model/cost/collective.hpp"
#include "sim/predict/planned_step.hpp"
#include "tools/report/records/memory_fields.hpp"
#include "tools/report/records/ms_text.hpp"
#include "tools/report/records/throughput_fields.hpp"
#include "tools/report/records/tune_fields.hpp"
#include "tools/report/reports/band_report.hpp"
#include "tools/report/reports/cluster_report.hpp"
#include "tools/report/reports/described_report.hpp"
#include "tools/report/reports/memory_record.hpp"
#include "tools/report/reports/results.hpp"
#include "tools/study/settings.hpp"

namespace ddpsim {

std::string cap_text(Bytes low, Bytes high) {
  if (low == no_cap) return "none";
  const RoundCap cap = round_cap(low, high);
  return cap.mib.find('/') == std::string::npos ? cap.mib + " MiB" : to_string(cap.bytes);
}

namespace {

/// "+1.2 %"
std::string share(Duration part, Duration whole) {
  return fmt::format("{:+.2f} %", 100 * (in_seconds(part) / in_seconds(whole) - 1));
}

std::string caps_text(const Choice& choice) {
  if (choice.cap == Bytes{}) return "-";
  const std::string cap = cap_text(choice.cap, choice.highest_cap);
  return choice.first_cap
             ? fmt::format("{}, {}", cap_text(*choice.first_cap, choice.highest_first), cap)
             : cap;
}

/// `step` over `whole`, less 1.
double over(Duration step, Duration whole) {
  return in_seconds(step) / in_seconds(whole) - 1;
}

Table choices_table(const Tuning& tuning) {
  Table table{{fields::buckets_in_words, fields::caps_in_words, fields::number_of_buckets,
               fields::largest_bucket_bytes, fields::choice_step_ms, fields::choice_exposed_ms,
               fields::over_default, fields::over_bound}};
  for (Field& column : table.columns) column.look.absent = "";
  const auto add = [&](const std::string& name, const Choice& choice) {
    table.add({name, caps_text(choice), choice.buckets.size(), choice.largest.count,
               in_ms(choice.step), in_ms(tuning.exposed(choice)),
               over(choice.step, tuning.standard.step), over(choice.step, tuning.lower_bound)});
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
      tuning.advice.choice.buckets != given.buckets &&
      tuning.advice.choice.buckets != tuning.standard.buckets)
    add("recommended cap", tuning.advice.choice);
  if (tuning.best_cap.first_cap) add("best cap, first bucket too", tuning.best_even_cap);
  if (tuning.best_pair) add("best pair of caps", *tuning.best_pair);
  if (tuning.best_partition)
    add(tuning.partition_proven ? "best partition (proven)" : "best partition found",
        *tuning.best_partition);
  table.add({"lower bound", FieldValue(), FieldValue(), FieldValue(), in_ms(tuning.lower_bound),
             in_ms(tuning.exposed(tuning.lower_bound, tuning.lower_bound_wait)),
             over(tuning.lower_bound, tuning.standard.step), FieldValue()});
  return table;
}

/// The step against the cap: powers of two of a MiB, and the best.
Table caps_chart(const Tuning& tuning) {
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
  Table table{{fields::caps_in_words.labelled("cap"), fields::number_of_buckets.labelled("buckets"),
               fields::choice_step_ms, fields::above_shortest}};
  for (const auto& [cap, choice] : rows) {
    const double part = longest > shortest
                            ? in_seconds(choice->step - shortest) / in_seconds(longest - shortest)
                            : 0;
    List bar{part};
    if (choice->cap == tuning.best_cap.cap) bar.emplace_back(" <- best");
    table.add({cap, choice->buckets.size(), in_ms(choice->step), std::move(bar)});
  }
  return table;
}

Table corners_table(const Tuning& tuning) {
  Table table{{fields::link_factor, fields::compute_factor, fields::default_step_ms,
               fields::recommended_step_ms, fields::best_cap_step_ms, fields::corner_gain,
               fields::corner_regret}};
  for (const Corner& corner : tuning.advice.corners)
    table.add({corner.link, corner.compute, in_ms(corner.standard), in_ms(corner.recommended),
               in_ms(corner.best), 1 - in_seconds(corner.recommended) / in_seconds(corner.standard),
               over(corner.recommended, corner.best)});
  return table;
}

/// What ways to make buckets that no single cap gives would save, if that is more than noise, of
/// the buckets that are settled; and what of it the errors allowed for can take away.
std::string beyond_caps(const Tuning& tuning, const TuneOptions& options, const char* lead) {
  const Duration settled_step = settled(tuning, options).step;
  std::string kept, lost;
  const auto add = [&](const char* name, const std::optional<Choice>& choice) {
    const double gain = choice ? -over(choice->step, settled_step) : 0;
    if (gain <= options.noise) return;
    std::string& text = gains_with_errors(tuning, options, *choice) ? kept : lost;
    text += fmt::format("{} {} would save {:.1f} %", text.empty() ? "" : ",", name, 100 * gain);
  };
  add("the best pair of caps", tuning.best_pair);
  add("the best partition", tuning.best_partition);
  if (!kept.empty()) kept = lead + kept + ": below is how\n";
  if (!lost.empty()) lost = "less than the errors allowed for can take away:" + lost + "\n";
  return kept + lost;
}

/// What the scenario's user has, in a sentence.
std::string given_text(const Tuning& tuning) {
  const Choice& given = tuning.given;
  if (!tuning.other_rule && !has_own_buckets(tuning)) return "DDP's default";
  return "this scenario's " + (given.cap > Bytes{} ? caps_text(given) : "own buckets");
}

/// What the advice saves of the scenario's own step.
double saved(const Tuning& tuning) {
  return -over(tuning.advice.choice.step, tuning.given.step);
}

/// "saves 3.6 % of the step (186.34 -> 179.63 ms)"
std::string saves_text(const Tuning& tuning) {
  return fmt::format("saves {:.1f} % of the step ({} -> {} ms)", 100 * saved(tuning),
                     ms_text(tuning.given.step), ms_text(tuning.advice.choice.step));
}

/// The verdict where changing what the scenario has saves no more than noise.
std::string verdict_to_keep(const Tuning& tuning, const TuneOptions& options) {
  const bool own = keeps_given(tuning, options);
  const double best = -over(tuning.best_cap.step, settled(tuning, options).step);
  constexpr double shown = 0.0005;  // of the step
  const std::string by = best > 0 ? " by more than 0.05 %" : "";
  const std::string kept = own || tuning.other_rule ? given_text(tuning) : "the default";
  const std::string cap =
      best < shown ? fmt::format("no single cap beats {}{}", kept, by)
                   : fmt::format("the best cap would save {:.1f} %, {}", 100 * best,
                                 best > options.noise
                                     ? "which is less than the errors allowed for can take away"
                                     : "within noise");
  return fmt::format("verdict: tuning does not pay: {}: keep {}\n{}", cap,
                     own || tuning.other_rule ? given_text(tuning) : "25 MiB",
                     beyond_caps(tuning, options, "but"));
}

/// The verdict where no cap takes less memory than what the advice is weighed against.
std::string verdict_on_memory(const Tuning& tuning, const TuneOptions& options) {
  const std::string why = fmt::format(
      "no cap within {:.3g} % of the shortest step makes a largest bucket below the {} of {}",
      100 * options.within, to_string(tuning.compared().largest),
      tuning.other_rule ? given_text(tuning) : "DDP's default");
  if (tuning.other_rule || !has_own_buckets(tuning))
    return fmt::format("verdict: {}: keep {}\n", why,
                       tuning.other_rule ? given_text(tuning) : "25 MiB");
  return fmt::format("verdict: 1+25 MiB (DDP's default) instead of {}: {}\n", given_text(tuning),
                     why);
}

/// Why the cap with the shortest step is not the one that is recommended; "" where it is, or where
/// another objective says why.
std::string why_not_the_best(const Tuning& tuning, const TuneOptions& options) {
  const Advice& advice = tuning.advice;
  if (advice.choice.buckets == tuning.best_cap.buckets || options.objective != Objective::step)
    return "";
  if (advice.corners.empty())
    return ";\nof the caps within 0.1 % of the best cap it makes the fewest buckets";
  const std::string best = cap_text(tuning.best_cap.cap, tuning.best_cap.highest_cap);
  constexpr double shown = 0.0001;
  const double less = advice.regret_of_shortest - advice.regret;
  if (less >= shown)
    return fmt::format(
        ";\nin the worst of these cases it takes {:.2f} % longer than the cap that is best there, "
        "and {} {:.2f} %",
        100 * advice.regret, best, 100 * advice.regret_of_shortest);
  const bool fewer = advice.choice.buckets.size() < tuning.best_cap.buckets.size();
  if (!fewer && less > -shown)
    return fmt::format(";\nin the worst of these cases it is as good as {}", best);
  return fmt::format(";\nin the worst of these cases it is within 0.1 % of {}, and {}", best,
                     fewer ? "makes fewer buckets" : "saves something in each");
}

std::string verdict(const Tuning& tuning, const TuneOptions& options) {
  if (keeps_given(tuning, options)) return verdict_to_keep(tuning, options);
  const std::string standard = tuning.other_rule ? given_text(tuning) : "DDP's default";
  if (has_own_buckets(tuning) && options.largest_bucket &&
      tuning.given.largest > *options.largest_bucket)
    return fmt::format(
        "verdict: {} has a bucket of {}, more than allowed; {} keeps within {}, for {} of its "
        "step\n",
        given_text(tuning), to_string(tuning.given.largest), caps_text(tuning.advice.choice),
        to_string(tuning.advice.choice.largest),
        share(tuning.advice.choice.step, tuning.given.step));
  if (tuning.advice.pays) {
    std::string text =
        fmt::format("verdict: {} instead of {} {}",
                    cap_text(tuning.advice.choice.cap, tuning.advice.choice.highest_cap),
                    given_text(tuning), saves_text(tuning));
    if (has_own_buckets(tuning))
      text += fmt::format(", and {:.1f} % of that of DDP's default", 100 * tuning.gain());
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
          100 * most, std::ceil(1000 * tuning.advice.regret) / 10);
    }
    return text + why_not_the_best(tuning, options) + "\n";
  }
  if (!tuning.standard_allowed)
    return fmt::format(
        "verdict: {} has a bucket of {}, more than allowed; {} keeps within {}, for {} of its "
        "step\n",
        standard, to_string(tuning.compared().largest),
        cap_text(tuning.advice.choice.cap, tuning.advice.choice.highest_cap),
        to_string(tuning.advice.choice.largest),
        share(tuning.advice.choice.step, tuning.compared().step));
  if (options.objective == Objective::memory) {
    if (tuning.advice.choice.buckets == tuning.compared().buckets)
      return verdict_on_memory(tuning, options);
    const double cost =
        in_seconds(tuning.advice.choice.step) / in_seconds(tuning.compared().step) - 1;
    return fmt::format("verdict: buckets of at most {} {} {:.2f} % of the step of {}\n",
                       to_string(tuning.advice.choice.largest), cost < 0 ? "save" : "cost",
                       100 * std::abs(cost), standard);
  }
  if (!has_own_buckets(tuning)) return verdict_to_keep(tuning, options);
  return fmt::format("verdict: 1+25 MiB (DDP's default) instead of {} {}\n{}", given_text(tuning),
                     saves_text(tuning), beyond_caps(tuning, options, "beyond that"));
}

/// Nothing where no cap, or any, makes the buckets.
FieldValue cap_or_nothing(Bytes cap) {
  return cap > Bytes{} && cap < no_cap ? FieldValue(cap.count) : FieldValue();
}

Record choice_record(const Choice& choice) {
  Record record;
  record
      .add(fields::first_cap_bytes,
           choice.first_cap ? FieldValue(choice.first_cap->count) : FieldValue())
      .add(fields::cap_bytes, cap_or_nothing(choice.cap))
      .add(fields::choice_step_ms, in_ms(choice.step))
      .add(fields::number_of_buckets, choice.buckets.size())
      .add(fields::largest_bucket_bytes, choice.largest.count);
  return record;
}

FieldValue choice_or_nothing(const std::optional<Choice>& choice) {
  return choice ? FieldValue(choice_record(*choice)) : FieldValue();
}

FieldValue highest_cap_of(const Choice& choice) {
  return choice.highest_cap < no_cap ? FieldValue(choice.highest_cap.count) : FieldValue();
}

/// A cap that people would write, among those that make the same buckets; nothing where none does.
FieldValue deployed(const Choice& choice) {
  if (choice.cap == Bytes{}) return {};
  return choice.cap == no_cap ? no_cap.count
                              : round_cap(choice.cap, choice.highest_cap).bytes.count;
}

List partition_names(const Scenario& scenario, const Choice& partition) {
  List buckets;
  for (const auto& bucket : partition.buckets) {
    List names;
    for (const int index : bucket)
      names.emplace_back(scenario.workload.parameters[static_cast<std::size_t>(index)].name);
    buckets.emplace_back(std::move(names));
  }
  return buckets;
}

/// The step of the buckets that are recommended; it is not simulated again.
Step recommended_step(const Scenario& scenario, const Tuning& tuning) {
  Training training = scenario.training;
  training.strategy = Strategy::bucketed;
  training.bucket_caps.clear();
  training.parameter_groups = 0;
  training.buckets = tuning.advice.choice.buckets;
  const StepWorks works(scenario.workload, scenario.cluster, scenario.optimizer);
  return {.training = training,
          .planned = std::make_shared<const PlannedStep>(plan_step(works, training))};
}

/// Its length, how much of that is a wait for batches, and for how long it communicates: as if all
/// gradients went at once.
StepMetrics recommended_metrics(const Scenario& scenario, const Tuning& tuning) {
  const Training& training = scenario.training;
  StepMetrics metrics;
  metrics.communication =
      (training.no_sync ? 1 : training.micro_batches) *
      CollectiveLaw(scenario.cluster).all_reduce(scenario.workload.gradient_size()).time();
  metrics.step = tuning.advice.choice.step;
  metrics.input_wait = tuning.advice.choice.input_wait;
  return metrics;
}

StepMemory recommended_memory(const Scenario& scenario, const Tuning& tuning) {
  return memory_of(scenario, recommended_step(scenario, tuning));
}

std::vector<Bytes> bucket_sizes(const Scenario& scenario, const Choice& choice) {
  std::vector<Bytes> sizes;
  for (const auto& bucket : choice.buckets) {
    Bytes& size = sizes.emplace_back();
    for (const int index : bucket)
      size += scenario.workload.parameters[static_cast<std::size_t>(index)].size();
  }
  return sizes;
}

/// Says, before the verdict, that the buckets it speaks of are far from the sizes that were
/// measured; "" if they are not.
std::string outside_table(const Scenario& scenario, const Tuning& tuning) {
  const CalibratedCluster& cluster = scenario.cluster;
  const std::optional<SizeSpan> covered = covered_sizes(cluster);
  if (!covered) return "";
  Bytes least = no_cap, most;
  for (const Choice* choice : {&tuning.standard, &tuning.advice.choice})
    for (const Bytes size : bucket_sizes(scenario, *choice)) {
      least = std::min(least, size);
      most = std::max(most, size);
    }
  constexpr int near = 2;  // a line through the last points holds so far
  if (near * least >= covered->least && most <= near * covered->most) return "";
  return fmt::format(
      "extrapolated: the link's table covers all-reduces of {} to {}, and the buckets below are of "
      "{} to {}:\nmeasure those sizes before you rely on what follows\n",
      to_string(covered->least), to_string(covered->most), to_string(least), to_string(most));
}

/// Says, before the verdict, that the buckets it compares are run by other algorithms, for where
/// NCCL takes an NVLS tree is not where one is quickest; "" if they are not.
std::string by_nvls_trees(const Scenario& scenario, const Tuning& tuning) {
  const std::optional<NvlsTreeSizes> trees = CollectiveLaw(scenario.cluster).nvls_tree_sizes();
  if (!trees || trees->to <= trees->from) return "";
  if (scenario.training.comm_hook.kind != CommHookKind::none) return "";  // it sends other bytes
  const auto of = [&](const Choice& choice) {
    const std::vector<Bytes> sizes = bucket_sizes(scenario, choice);
    const auto count = std::ranges::count_if(
        sizes, [&](Bytes size) { return trees->contain(static_cast<double>(size.count)); });
    return std::pair(count, sizes.size());
  };
  const auto [recommended, all] = of(tuning.advice.choice);
  const auto [standard, all_standard] = of(tuning.standard);
  if ((recommended > 0) == (standard > 0)) return "";
  return fmt::format(
      "NCCL is taken to run all-reduces of {} to {} here as NVLS trees: {} of {} recommended "
      "buckets, and {} of {} of the default's.\nThe saving rests on that choice of NCCL's, which "
      "another release or NCCL_ALGO makes otherwise (cluster.collectives)\n",
      to_string(Bytes{static_cast<std::int64_t>(trees->from)}),
      to_string(Bytes{static_cast<std::int64_t>(trees->to)}), recommended, all, standard,
      all_standard);
}

}  // namespace

std::string assumed_before_verdict(const Scenario& scenario, const Knowledge& knowledge) {
  if (knowledge.fitted_over_nics) return "";
  const std::string assumed = interference_text(scenario, knowledge);
  if (assumed.empty()) return "";
  return fmt::format(
      "The verdict rests on an assumption: {}; --set cluster.interference={{}} says what pays "
      "without it.",
      assumed);
}

std::string unfit_before_verdict(const Scenario& scenario, const Tuning& tuning) {
  const Bytes device = scenario.cluster.device.memory;
  const Bytes peak = recommended_memory(scenario, tuning).peak;
  if (device <= Bytes{} || fits(peak, device)) return "";
  constexpr auto gib = static_cast<double>(GiB.count);
  return fmt::format(
      "The step {} in memory: with the recommended buckets a rank takes {:.3g} GiB, and {} has "
      "{:.3g} GiB. What follows holds only where it fits.",
      peak <= device ? "may not fit" : "does not fit", static_cast<double>(peak.count) / gib,
      shown_name(scenario.cluster.device.name, "device"), static_cast<double>(device.count) / gib);
}

std::vector<std::string> tune_warnings(const Scenario& scenario, const Tuning& tuning) {
  const std::string warning = memory_warning(scenario, "bucketed as recommended",
                                             recommended_memory(scenario, tuning).peak);
  return warning.empty() ? std::vector<std::string>{} : std::vector{warning};
}

Page tune_page(const Scenario& scenario, const Tuning& tuning, const TuneOptions& options,
               const Knowledge& knowledge) {
  Page page;
  page.add(Paragraph{fmt::format(
      "{}\n{}: {} gradients, {}\n{}", scenario.name, shown_name(scenario.workload.name, "model"),
      scenario.workload.parameters.size(), to_string(scenario.workload.gradient_size()),
      cluster_text(scenario, knowledge))});
  page.add(Paragraph{described_modes_text(scenario)});
  page.add(Paragraph{code_text(scenario)});
  if (const std::string unfit = unfit_before_verdict(scenario, tuning); !unfit.empty())
    page.add(Paragraph{unfit});
  page.add(choices_table(tuning));
  page.add(Paragraph{fmt::format(
      "A step without communication takes {} ms{}. All {} distinct caps{} were "
      "searched ({} steps simulated){};\nno partition into contiguous buckets "
      "is faster than the lower bound{}{}",
      ms_text(tuning.without),
      tuning.without_wait > Duration::zero()
          ? fmt::format(
                ", {:.2f} of it the wait for batches, which exposed leaves out of all steps",
                in_ms(tuning.without_wait))
          : "",
      tuning.caps.size(), tuning.best_pair ? " and all pairs of caps" : ", but no pairs of them,",
      tuning.evaluated, tuning.why_no_pair.empty() ? "" : ": " + tuning.why_no_pair,
      tuning.bound_of_passes
          ? ", which here is the step's passes alone: no collective is in it, so how far a step is "
            "over it does not say how much is to be gained"
          : "",
      tuning.best_partition
          ? ""
          : "; free partitions are not searched where gradients are of several types or sparse")});
  page.add(caps_chart(tuning));
  if (!tuning.advice.corners.empty()) page.add(corners_table(tuning));
  if (const std::string assumed = assumed_before_verdict(scenario, knowledge); !assumed.empty())
    page.add(Paragraph{assumed});
  const bool changes = saved(tuning) > 0 && !keeps_given(tuning, options) &&
                       (tuning.advice.pays || has_own_buckets(tuning));
  page.add(Paragraph{outside_table(scenario, tuning) +
                     (changes ? by_nvls_trees(scenario, tuning) : std::string()) +
                     verdict(tuning, options) +
                     (changes ? saving_text(knowledge, saved(tuning)) : std::string())});
  page.add(Verbatim{settings_to_paste(tuning, options, scenario.training, scenario.workload)});
  return page;
}

Record tune_record(const Scenario& scenario, const Tuning& tuning, const Knowledge& knowledge,
                   const std::vector<std::string>& notes) {
  const auto& partition = tuning.best_partition;
  const Step step = recommended_step(scenario, tuning);
  const StepMemory memory = memory_of(scenario, step);
  List caps, corners;
  for (const Choice& choice : tuning.caps)
    caps.emplace_back(choice_record(choice).add(fields::highest_cap_bytes, highest_cap_of(choice)));
  for (const Corner& corner : tuning.advice.corners)
    corners.emplace_back(Record()
                             .add(fields::link_factor, corner.link)
                             .add(fields::compute_factor, corner.compute)
                             .add(fields::default_step_ms, in_ms(corner.standard))
                             .add(fields::recommended_step_ms, in_ms(corner.recommended))
                             .add(fields::best_cap_step_ms, in_ms(corner.best)));
  Record record;
  record.add(fields::format, "ddpsim.tune/1")
      .add(fields::scenario, scenario.name)
      .add(fields::cluster, cluster_record(scenario))
      .add(described_entry(scenario))
      .add(fields::notes, list_of(notes))
      .add(fields::best_cap_bytes, deployed(tuning.best_cap))
      .add(fields::best_cap_step_ms, in_ms(tuning.best_cap.step))
      .add(fields::default_step_ms, in_ms(tuning.standard.step))
      .add(fields::best_partition, partition ? partition_names(scenario, *partition) : List{})
      .add(fields::best_partition_step_ms,
           partition ? FieldValue(in_ms(partition->step)) : FieldValue())
      .add(fields::lower_bound_ms, in_ms(tuning.lower_bound))
      .add(fields::evaluated, tuning.evaluated)
      .add(fields::without_communication_ms, in_ms(tuning.without))
      .add(fields::recommended_cap_bytes, deployed(tuning.advice.choice))
      .add(fields::recommended_step_ms, in_ms(tuning.advice.choice.step))
      .add(band_record(knowledge, Strategy::bucketed, recommended_metrics(scenario, tuning),
                       tuning.without - tuning.without_wait, least_step(scenario)))
      .add(fields::pays, tuning.advice.pays)
      .add(fields::partition_proven, tuning.partition_proven)
      .add(fields::best_pair, choice_or_nothing(tuning.best_pair))
      .add(fields::best_even_cap, choice_record(tuning.best_even_cap))
      .add(fields::best_overflow_cap, choice_record(tuning.best_overflow_cap))
      .add(fields::given, choice_record(tuning.given))
      .add(fields::one_bucket, choice_record(tuning.one_bucket))
      .add(fields::per_parameter, choice_record(tuning.per_parameter))
      .add(fields::mg_wfbp, choice_or_nothing(tuning.merged))
      .add(fields::caps, std::move(caps))
      .add(fields::regret, tuning.advice.regret)
      .add(fields::corners, std::move(corners))
      .add(fields::fits_device, fits_value(scenario, memory))
      .add(fields::memory, memory_record(scenario, step, memory));
  return record;
}

Table caps_table(const Tuning& tuning) {
  Table table{{fields::cap_bytes, fields::highest_cap_bytes, fields::number_of_buckets,
               fields::largest_bucket_bytes, fields::choice_step_ms}};
  for (const Choice& choice : tuning.caps)
    table.add({choice.cap.count, highest_cap_of(choice), choice.buckets.size(),
               choice.largest.count, in_ms(choice.step)});
  return table;
}

}  // namespace ddpsim
