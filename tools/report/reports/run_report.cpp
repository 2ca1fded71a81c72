#include "tools/report/reports/run_report.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "scenarios/reader/text/input_error.hpp"
#include "sim/predict/predict.hpp"
#include "tools/report/records/drawn_fields.hpp"
#include "tools/report/records/loss_fields.hpp"
#include "tools/report/records/steps_fields.hpp"
#include "tools/report/records/throughput_fields.hpp"
#include "tools/report/records/why_fields.hpp"
#include "tools/report/reports/band_report.hpp"
#include "tools/report/reports/cluster_report.hpp"
#include "tools/report/reports/drawn_report.hpp"
#include "tools/report/reports/loss_report.hpp"
#include "tools/report/reports/memory_record.hpp"
#include "tools/report/reports/results.hpp"
#include "tools/report/reports/step_report.hpp"
#include "tools/report/reports/throughput_report.hpp"
#include "tools/report/reports/why_report.hpp"
#include "tools/study/names.hpp"

namespace ddpsim {

namespace {

bool sends_buffers(const program::Job& job) {
  return std::ranges::any_of(job.works, [](const Work& work) {
    return is_collective(work.operation) && work.message == Message::buffers;
  });
}

std::string accuracy_text(const Comparison& run) {
  const std::string bands = bands_text(run);
  if (bands.empty()) return "";
  std::string text = accuracy_sentences(run);
  text += (text.empty() ? "" : "\n") + bands;
  if (run.scenario.measured && !run.priced.fit)
    text +=
        "\nThe file's own measured rows are not used: `ddpsim score FILE --laws-only` says how far "
        "from them these steps are.";
  return text;
}

}  // namespace

void check(const RunRequest& request) {
  if (request.steps && (*request.steps < 1 || *request.steps > most_steps))
    throw InputError(fmt::format("--steps: expected a whole number from 1 to {}, got {}",
                                 most_steps, *request.steps));
  if (request.run_ahead && !request.steps)
    throw InputError("--run-ahead is of consecutive steps: say how many, such as --steps 100");
}

MoreOfSteps more_of(const Comparison& run, const RunRequest& request,
                    const std::function<void(int done)>& watch) {
  MoreOfSteps more{request, {}, {}, {}};
  if (request.steps) more.steps = steps_of(run, *request.steps);
  if (request.scaling)
    more.curves =
        scaling_curves(run.scenario, run.scenario.compare, run.priced.fit, request.scaling);
  if (request.run_ahead) more.joined = joined_runs(run, more.steps);
  if (request.why) more.losses = losses_of(run);
  if (request.seeds) more.drawn = drawn_steps(run, *request.seeds, watch);
  return more;
}

std::vector<Field> csv_columns(const RunRequest& request) {
  std::vector<Field> columns = run_columns();
  if (request.why)
    for (const Field* field : fields::of_loss) columns.push_back(*field);
  if (request.seeds)
    for (const Field* field : fields::of_drawn_steps) columns.push_back(*field);
  return columns;
}

std::vector<Record> csv_rows(const Comparison& run, const MoreOfSteps& more) {
  std::vector<Record> rows;
  for (const Result& result : run.results()) rows.push_back(run_row(run, result));
  for (std::size_t i = 0; i < more.losses.size(); ++i) rows[i].add(loss_record(more.losses[i]));
  for (std::size_t i = 0; i < more.drawn.size(); ++i) rows[i].add(drawn_figures(more.drawn[i]));
  return rows;
}

Page run_page(const Comparison& run, const MoreOfSteps& more) {
  Page page = run_page(run.scenario, run.results(), run.knowledge);
  if (run.priced.fit) page.add(Paragraph{describe_calibration(*run.priced.fit)});
  page.add(Paragraph{accuracy_text(run)});
  page.add(Paragraph{hooks_text(run)});
  if (!more.curves.empty()) page.add(scaling_table(more.curves));
  if (!more.drawn.empty()) page.add(seeds_table(run, more.drawn));
  if (!more.steps.empty()) page.add(steps_table(run, more.steps));
  if (!more.joined.empty()) page.add(run_ahead_page(run, more.steps, more.joined));
  if (more.request.ddp_statistics) page.add(statistics_page(run, more.steps));
  if (more.request.why) page.add(why_page(run, more.losses));
  return page;
}

std::vector<std::string> run_warnings(const Comparison& run) {
  std::vector<std::string> warnings = memory_warnings(run);
  for (const Result& result : run.results()) {
    const Record figures = throughput_record(run.scenario, result);
    const FieldValue* hfu = figures.find(fields::hfu);
    if (hfu == nullptr || hfu->is_nothing() || *hfu->number() <= 1) continue;
    warnings.push_back(
        fmt::format("{}: {} has an HFU of {:.0f} %, more than {} can compute: were the given times "
                    "measured with this device, batch and data type?",
                    run.scenario.name, strategy_label(result.step->training), 100 * *hfu->number(),
                    shown_name(run.scenario.cluster.device.name, "device")));
  }
  for (const Result& result : run.results())
    if (result.step->metrics.input_wait > Duration::zero())
      warnings.push_back(fmt::format(
          "{}: a step of {} waits for its batches: a node makes those of its ranks in {:.3f} ms "
          "(training.input); exposed and overlap are of the step without that wait",
          run.scenario.name, strategy_label(result.step->training),
          in_ms(least_step(run.scenario))));
  return warnings;
}

std::vector<std::string> long_run_notes(const Comparison& run) {
  std::vector<std::string> notes;
  for (std::size_t s = 0; s < run.compared.size(); ++s) {
    const Step& step = run.compared[s];
    const std::optional<AveragedStep>& averaged = run.averaged[s];
    if (!averaged || averaged->mean == step.metrics.step) continue;
    notes.push_back(fmt::format(
        "{}: {}: the step and what follows from its length (exposed, throughput, MFU, cost) are "
        "of a step without post_local_sgd's averaging of models; {} averages and takes {:.2f} ms, "
        "and the mean is {:.2f} ms: --vary of any key prints the figures of the mean, --steps {} "
        "each kind of step",
        run.scenario.name, strategy_label(step.training),
        averaged->period == 1 ? "each" : fmt::format("one in {}", averaged->period),
        in_ms(averaged->averaging), in_ms(averaged->mean),
        step.training.comm_hook.post_local_sgd.start_iteration + averaged->period));
  }
  return notes;
}

std::vector<std::string> buffer_notes(const Comparison& run) {
  constexpr double least_share = 0.02;  // of the step
  std::vector<std::string> notes;
  for (const Step& step : run.compared) {
    if (!sends_buffers(step.job())) continue;
    Training without = step.training;
    without.broadcast_buffers = false;
    const Duration shorter = predict(run.priced.model, without).metrics.working(),
                   longer = step.metrics.working() - shorter;
    if (longer < scaled(step.metrics.working(), least_share)) continue;
    notes.push_back(
        fmt::format("{}: {}: {:.2f} of {:.2f} ms are the broadcast of rank 0's buffers (batch "
                    "norms) before the forward pass, mostly the launches of its copies; "
                    "training.broadcast_buffers: false does without, and each rank then keeps the "
                    "statistics of its own batches",
                    run.scenario.name, strategy_label(step.training), in_ms(longer),
                    in_ms(step.metrics.working())));
  }
  return notes;
}

Record run_record(const Comparison& run, const MoreOfSteps& more,
                  const std::vector<std::string>& notes) {
  const RunRequest& asked = more.request;
  const std::vector<Result> results = run.results();
  std::vector<Record> reasons =
      asked.why ? why_records(run, more.losses) : std::vector<Record>(results.size());
  const bool units = any_shards(results);
  List records;
  for (std::size_t i = 0; i < results.size(); ++i) {
    Record record = asked.buckets ? result_record(run.scenario, results[i])
                                  : record_without_buckets(run.scenario, results[i]);
    if (units) add_port_bytes(record, *results[i].step);
    record.add(throughput_record(run.scenario, results[i]))
        .add(band_record(run.knowledge, results[i].step->training.strategy,
                         results[i].step->metrics, results[i].none->working(),
                         least_step(run.scenario)));
    if (!more.curves.empty())
      record.add(fields::scaling, scaling_records(more.curves[i]))
          .add(fields::scaling_missing,
               more.curves[i].missing.empty() ? FieldValue() : FieldValue(more.curves[i].missing));
    if (!more.drawn.empty()) record.add(fields::seeds, seeds_record(more.drawn[i]));
    if (!more.steps.empty())
      record.add(fields::steps, steps_record(run, more.steps[i], results[i]));
    if (!more.joined.empty())
      record.add(fields::run_ahead, run_ahead_record(more.steps[i], more.joined[i]));
    if (asked.ddp_statistics)
      record.add(fields::ddp_statistics,
                 statistics_value(more.steps.empty() ? averages_of(*results[i].step)
                                                     : more.steps[i].logged));
    if (asked.why) record.add(fields::why, std::move(reasons[i]));
    records.emplace_back(std::move(record));
  }
  return run_record(run.scenario, notes, std::move(records));
}

}  // namespace ddpsim
