#include "python/bindings/questions.hpp"

#include <chrono>

#include <fmt/format.h>

#include "scenarios/reader/format/yaml.hpp"
#include "scenarios/reader/scenario/scenario_reader.hpp"
#include "scenarios/reader/scenario/scenario_settings.hpp"
#include "sim/tune/parallel.hpp"
#include "tools/kineto/trace.hpp"
#include "tools/plan/plan_report.hpp"
#include "tools/report/pages/run_section.hpp"
#include "tools/report/reports/best.hpp"
#include "tools/report/reports/cluster_notes.hpp"
#include "tools/report/reports/drawn_report.hpp"
#include "tools/report/reports/hooks_log.hpp"
#include "tools/report/reports/listing.hpp"
#include "tools/report/reports/results.hpp"
#include "tools/report/reports/said_notes.hpp"
#include "tools/report/reports/schedule_report.hpp"
#include "tools/report/reports/score_report.hpp"
#include "tools/report/reports/shard_report.hpp"
#include "tools/report/reports/tune_report.hpp"
#include "tools/report/reports/vary_report.hpp"
#include "tools/report/writers/json_writer.hpp"
#include "tools/report/writers/output.hpp"
#include "tools/report/writers/text_writer.hpp"
#include "tools/study/names.hpp"
#include "tools/study/settings.hpp"
#include "tools/study/wrapping.hpp"
#include "tools/study/zero_code.hpp"
#include "tools/sweep/point_threads.hpp"
#include "tools/sweep/sweep_notes.hpp"
#include "tools/sweep/sweep_results.hpp"

namespace ddpsim {
namespace {

using Json = nlohmann::ordered_json;
using Notes = std::vector<std::string>;

constexpr std::size_t page_columns = 100;

/// The beginning of a page, to the end of its first table.
Page beginning_of(const Page& page) {
  Page beginning;
  for (const auto& block : page.blocks) {
    beginning.blocks.push_back(block);
    if (std::holds_alternative<Table>(block)) break;
  }
  return beginning;
}

Json answer(Json record, Json rows, const Page& page, const Notes& notes = {}) {
  return {{"record", with_version(std::move(record))},
          {"rows", std::move(rows)},
          {"text", text_of(page, page_columns)},
          {"summary", text_of(beginning_of(page), page_columns)},
          {"notes", notes}};
}

/// A cap as DistributedDataParallel's arguments have it, in MiB.
double in_mib(const RoundCap& cap) {
  const bool exact = cap.mib.find('/') != std::string::npos;
  return exact ? static_cast<double>(cap.bytes.count) / static_cast<double>(MiB.count)
               : std::stod(cap.mib);
}

/// The arguments by their names, with what else `training` asks of DistributedDataParallel.
Json arguments_of(const DdpArguments& made, const Training& training) {
  Json arguments = Json::object();
  if (made.cap) arguments["bucket_cap_mb"] = in_mib(*made.cap);
  for (const RoundCap& cap : made.caps) arguments["bucket_cap_mb_list"].push_back(in_mib(cap));
  const auto add = [&](const char* name, bool asked) {
    if (asked) arguments[name] = true;
  };
  add("find_unused_parameters", training.find_unused_parameters);
  add("skip_all_reduce_unused_params", training.skip_all_reduce_unused_params);
  add("static_graph", training.static_graph);
  add("gradient_as_bucket_view", training.gradient_as_bucket_view);
  add("batched_grad_copy", training.batched_grad_copy);
  return arguments;
}

/// The arguments of fully_shard on so many ranks, and the Python that calls it.
Json wrapping_of(const FsdpSettings& sharding, int ranks, const std::string& code) {
  Json policy = Json::object();
  if (sharding.mp_policy.param_dtype)
    policy["param_dtype"] = name_of(*sharding.mp_policy.param_dtype);
  if (sharding.mp_policy.reduce_dtype)
    policy["reduce_dtype"] = name_of(*sharding.mp_policy.reduce_dtype);
  const auto& reshard = sharding.reshard_after_forward;
  return {{"code", code},
          {"reshard_after_forward", !reshard             ? Json()
                                    : reshard->ranks > 0 ? Json(reshard->ranks)
                                                         : Json(reshard->frees)},
          {"offloads", sharding.offload_policy.has_value()},
          {"mp_policy", std::move(policy)},
          {"replicate", sharding.replicate},
          {"shard", ranks / sharding.replicate}};
}

/// The figure that rows are sorted by; "": none.
std::optional<Field> sorting(const std::string& best) {
  return best.empty() ? std::nullopt : std::optional(best_field(best));
}

Json hooks_of(const Comparison& run) {
  std::vector<LoggedStep> logged;
  for (const Step& step : run.compared)
    logged.push_back({strategy_label(step.training), "predicted", &step});
  return Json::parse(hooks_log(run.scenario, logged, true)).at("hooks");
}

Page with_calibration(Page page, const std::optional<Fit>& fit) {
  if (fit) page.add(Paragraph{describe_calibration(*fit)});
  return page;
}

/// Adds a sentence on how far such predictions were off, where that is known.
Page with_accuracy(Page page, const Knowledge& knowledge) {
  if (knowledge.accuracy) page.add(Paragraph{sentence(*knowledge.accuracy)});
  return page;
}

Json tree_of(const Yaml& yaml) {
  if (yaml.is_map()) {
    Json object = Json::object();
    const YamlMap map(yaml);
    for (const auto& [key, value] : map.entries()) object[key] = tree_of(value);
    return object;
  }
  if (yaml.is_list()) {
    Json array = Json::array();
    for (const Yaml& each : yaml.list("a list")) array.push_back(tree_of(each));
    return array;
  }
  const std::string& text = yaml.scalar();
  if (text.empty()) return nullptr;
  const Json plain = Json::parse(text, nullptr, false);
  const bool same = (plain.is_number() || plain.is_boolean()) && plain.dump() == text;
  return same ? plain : Json(text);
}

}  // namespace

Scenario read(const Question& question) {
  return is_workload_profile(question.file) ? read_profile_as_scenario(question.file, question.set)
                                            : read_scenario(question.file, question.set);
}

std::string run_answer(const Question& question, const RunRequest& request, const RunExtras& extras,
                       const Tell& tell) {
  check(request);
  const Comparison run(read(question), question.laws_only);
  const MoreOfSteps more = more_of(run, request, [&](int done) {
    if (tell) tell(seeds_done(done, *request.seeds), static_cast<double>(done) / *request.seeds);
  });
  Table rows{csv_columns(more.request)};
  for (const Record& row : csv_rows(run, more)) rows.add(row);
  const Notes notes = run_notes(run, question.file, question.set, more.curves);
  Json found =
      answer(json_of(run_record(run, more, notes)), json_of(rows), run_page(run, more), notes);
  if (extras.trace) found["trace"] = chrome_trace(run.scenario, run.named());
  if (extras.hooks) found["hooks"] = hooks_of(run);
  if (extras.page)
    found["page"] = html_of(
        "Predicted training steps",
        {run_section(run, more, "timeline-0", {{}, question.laws_only, question.set}, notes)});
  return one_line(found);
}

std::string vary_answer(const Question& question, const std::vector<std::string>& axes,
                        const std::string& best) {
  const std::optional<Field> sorted_by = sorting(best);
  const Grid grid(axes_of(axes));
  const Variants variants = run_variants(question.file, question.set, grid, question.laws_only);
  check_best(variants, sorted_by);
  Notes notes = notes_on_all(variants, question.file, question.set, sorted_by);
  if (!variants.refused.empty())
    notes.push_back(fmt::format(
        "{} of {} points are refused; the first, {}: {}", variants.refused.size(), grid.points(),
        short_label(variants.refused.front().settings), variants.refused.front().problem));
  return one_line(answer(json_of(varied_records(variants, question.set)),
                         json_of(varied_table(variants, sorted_by)),
                         varied_page(variants, sorted_by), notes));
}

std::string schedule_answer(const Question& question, bool tasks, std::optional<int> steps) {
  const Scenario scenario = read(question);
  const CalibratedModel priced = price_calibrated(scenario, question.laws_only);
  const ConsecutiveSteps found = scheduled_steps(priced.model, scenario.training, steps);
  const Json record = json_of(schedule_record(scenario, found, steps));
  const Page page = with_calibration(
      schedule_page(scenario, found, steps, tasks, knowledge_of(scenario, priced)), priced.fit);
  Notes notes = cluster_notes(scenario, {});
  add_each_once(notes, fit_notes(priced));
  return one_line(answer(record, record.value("buckets", Json::array()), page, notes));
}

namespace {

/// The same of a sharded step.
std::string tune_sharded_answer(const Question& question, const Scenario& scenario,
                                const TuneRequest& request, const Tell& tell) {
  ShardOptions options = shard_options(request, scenario.training.strategy);
  options.progress = tell;
  const CalibratedModel priced = price_calibrated(scenario, question.laws_only);
  const ShardTuning tuning = tune_shards(scenario, priced.model, options);
  const Notes notes = shard_notes(scenario, priced, tuning, question.file, question.set);
  const Page page = with_calibration(
      shards_page(scenario, tuning, options, knowledge_of(scenario, priced)), priced.fit);
  Json found = answer(json_of(shards_record(scenario, tuning, notes)),
                      json_of(shards_table(scenario, tuning)), page, notes);
  if (scenario.training.strategy != Strategy::fsdp) {
    found["code"] = zero_code(tuning.advised_one().training);
    return one_line(found);
  }
  const Training& advised = tuning.advised_one().training;
  found["units"] = unit_modules(scenario.workload, advised);
  found["wrapping"] = wrapping_of(advised, scenario.cluster.ranks(),
                                  fully_shard_code(sharded_as(scenario, tuning.advised_one())));
  return one_line(found);
}

}  // namespace

std::string tune_answer(const Question& question, const TuneRequest& request, const Tell& tell) {
  Scenario scenario = read(question);
  if (shards(scenario.training.strategy))
    return tune_sharded_answer(question, scenario, request, tell);
  const CalibratedModel priced = price_calibrated(scenario, question.laws_only);
  const Notes taken = take_as_tuned(scenario.training);
  TuneOptions options = tune_options(request, scenario);
  options.progress = tell;
  const Tuning tuning = tune(priced.model, scenario.training, options);
  Notes notes = tune_notes(scenario, priced, tuning, question.file, question.set);
  add_each_once(notes, taken);
  const Knowledge knowledge = knowledge_of(scenario, priced);
  const Page page = with_accuracy(
      with_calibration(tune_page(scenario, tuning, options, knowledge), priced.fit), knowledge);
  Json found = answer(json_of(tune_record(scenario, tuning, knowledge, notes)),
                      json_of(caps_table(tuning)), page, notes);
  if (scenario.training.bucket_rule == BucketRule::torch) {
    const DdpArguments made = ddp_arguments(tuning, options, scenario.training, scenario.workload);
    found["ddp"] = arguments_of(made, scenario.training);
    found["ddp_step_ms"] = in_ms(made.step);
  }
  return one_line(found);
}

std::string plan_answer(const Question& question, const PlanWords& words, const Tell& tell) {
  const PlanRequest request = plan_request(question.file, question.set, question.laws_only, words);
  const std::size_t most = most_planned_rows(words);
  // The threads that plan hold a lock while one of them tells.
  const TrainingPlan plan = make_plan(request, [&](double done) { tell("combinations", done); });
  Notes notes = plan.notes;
  if (const std::string nothing = nothing_fits_text(plan); !nothing.empty())
    notes.push_back(nothing);
  Json found =
      answer(json_of(plan_record(plan)), json_of(plan_table(plan)), plan_page(plan, most), notes);
  found["units"] = unit_modules(plan.scenario.workload, plan.scenario.training);
  found["wrapping"] = found["code"] = Json::array();
  for (const PlanCandidate& each : plan.candidates) {
    found["wrapping"].push_back(
        each.code.empty() ? Json()
                          : wrapping_of(each.sharding, plan.sizes[each.size].ranks, each.code));
    found["code"].push_back(each.code.empty() ? each.options : each.code);
  }
  return one_line(found);
}

std::string score_answer(const std::vector<std::string>& files, const std::vector<Setting>& set,
                         const std::string& calibrate_on, bool laws_only, const Tell& tell) {
  ScoreSettings settings{fitted_strategies(calibrate_on), laws_only, set};
  std::vector<FileScore> scores;
  std::vector<std::string> left_out;
  for (const std::string& file : files) {
    const std::size_t done = scores.size() + left_out.size();
    tell(fmt::format("{} of {} files", done, files.size()),
         static_cast<double>(done) / static_cast<double>(files.size()));
    if (auto score = score_file(file, settings))
      scores.push_back(std::move(*score));
    else
      left_out.push_back(file);
  }
  if (scores.empty())
    throw InputError(
        fmt::format("--calibrate-on {}: none of the files has a row of each", calibrate_on));
  const ScoreSummary summary = summarise(scores);
  return one_line(answer(json_of(score_record(scores, left_out, summary)),
                         json_of(score_table(scores)), score_page(scores, summary)));
}

std::string sweep_answer(const Question& question, const std::vector<std::string>& axes, int jobs,
                         const std::string& best, const Tell& tell) {
  check_best(best);  // before anything is computed
  const Sweep sweep =
      plan_sweep(question.file, question.set, question.laws_only, Grid(axes_of(axes)));
  PointResults results(sweep.grid.points());
  PointThreads threads(jobs > 0 ? jobs : allowed_cores(),
                       [&](std::size_t point) { return compute_point(sweep, point); });
  std::vector<std::size_t> points(results.size());
  for (std::size_t point = 0; point < points.size(); ++point) points[point] = point;
  threads.add(points);
  constexpr std::chrono::milliseconds patience{50};
  for (std::size_t done = 0; done < results.size();) {
    tell(fmt::format("{} of {} points", done, results.size()),
         static_cast<double>(done) / static_cast<double>(results.size()));
    for (ComputedPoint& computed : threads.take(patience)) {
      results[computed.first] = std::move(computed.second);
      ++done;
    }
  }
  return answer_of(sweep, results, best);
}

std::string answer_of(const Sweep& sweep, const PointResults& results, const std::string& best,
                      Notes notes) {
  const Notes of_sweep = sweep_notes(sweep, results, sorting(best));
  Json record = Json::parse(sweep_json(sweep, results, of_sweep));
  add_each_once(notes, of_sweep);
  Json rows = record.value("rows", Json::array());
  return one_line(
      answer(std::move(record), std::move(rows), sweep_page(sweep, results, sorting(best)), notes));
}

void check_best(const std::string& best) {
  sorting(best);
}

std::vector<Axis> axes_of(const std::vector<std::string>& texts) {
  std::vector<Axis> axes;
  for (const std::string& text : texts) axes.push_back(parse_axis(text));
  return axes;
}

std::string list_answer(const std::string& kind) {
  const std::optional<Listing> listing = listing_of(kind);
  if (!listing) throw InputError(fmt::format("unknown list \"{}\"", kind));
  if (!listing->left_out.empty()) throw InputError(listing->left_out.front());
  Json rows = json_of(listing->table);
  for (Json& row : json_of(listing->more)) rows.push_back(std::move(row));
  return one_line(answer(rows, rows, listing->page()));
}

std::string load_answer(const std::string& file, const std::vector<Setting>& set) {
  Yaml root = Yaml::load(file);
  apply_settings(root, set);
  return one_line(tree_of(root));
}

}  // namespace ddpsim
