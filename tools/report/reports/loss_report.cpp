#include "tools/report/reports/loss_report.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "tools/report/records/loss_fields.hpp"
#include "tools/report/records/step_fields.hpp"
#include "tools/report/reports/band_report.hpp"
#include "tools/report/reports/cluster_report.hpp"
#include "tools/report/reports/rank_exceptions.hpp"
#include "tools/report/reports/unit_report.hpp"

namespace ddpsim {

std::vector<StepLoss> losses_of(const Comparison& run) {
  std::vector<StepLoss> losses;
  for (const Step& step : run.compared) losses.push_back(step_loss(run.priced.model, step));
  return losses;
}

Record loss_record(const StepLoss& loss) {
  const auto part = [&](Loss each) { return in_ms(loss.by(each)); };
  return Record()
      .add(fields::one_rank_ms, in_ms(loss.one_rank))
      .add(fields::lost_slowest_rank_ms, part(Loss::slowest_rank))
      .add(fields::lost_interference_ms, part(Loss::interference))
      .add(fields::lost_transfer_ms, part(Loss::transfer))
      .add(fields::lost_latency_ms, part(Loss::latency))
      .add(fields::lost_copies_ms, part(Loss::copies))
      .add(fields::lost_launches_ms, part(Loss::launches))
      .add(fields::lost_input_ms, part(Loss::input))
      .add(fields::lost_rest_ms, part(Loss::rest));
}

Table loss_table(const Comparison& run, const std::vector<StepLoss>& losses) {
  static constexpr Field step = fields::step_ms.labelled("step").with(fields::thousandths);
  Table table{{fields::strategy_in_words, step}};
  const bool input = least_step(run.scenario) > Duration::zero();
  for (const Field* field : fields::of_loss)
    if (input || field != &fields::lost_input_ms) table.columns.push_back(*field);
  table.title =
      "what each step loses (ms): the step is that of one rank by itself and all parts behind it";
  const auto add = [&](const Step& each, const StepLoss& loss) {
    table.add(loss_record(loss)
                  .add(fields::strategy_in_words, strategy_label(each.training))
                  .add(step, in_ms(each.metrics.step)));
  };
  const bool has_none = std::any_of(run.compared.begin(), run.compared.end(), [](const Step& each) {
    return each.training.strategy == Strategy::none;
  });
  if (!has_none) add(run.none, step_loss(run.priced.model, run.none));
  for (std::size_t i = 0; i < run.compared.size(); ++i) add(run.compared[i], losses[i]);
  table.notes =
      "interference: kernels and collectives slow each other; transfer and latency: of "
      "collectives, "
      "where no computation hides them;\ncopies: " +
      std::string(word_for_groups(run.named()) == "unit"
                      ? "into and out of what is gathered and reduce-scattered, casts, divisions"
                      : "into and out of buckets, divisions, a comm hook's kernels") +
      "; launches: the host's time for these and for hooks;\nrest: the host's waits; "
      "negative where a strategy computes less\nwhat either of two causes would take away counts "
      "half for each, so that a change below may save more or less than the part here\n";
  if (input) table.notes += "input: the wait for batches, which a node makes for all its ranks\n";
  if (const std::string slowest = slowest_rank_text(run.scenario); !slowest.empty())
    table.notes += "slowest rank: " + slowest + "\n";
  if (const std::string ranks = slow_ranks_text(run.scenario.cluster); !ranks.empty())
    table.notes += "slowest rank: " + ranks + "\n";
  if (const std::string nics = slow_nics_text(run.scenario.cluster); !nics.empty())
    table.notes += "transfer: " + nics + "\n";
  if (const std::string slowing = interference_text(run.scenario, run.knowledge); !slowing.empty())
    table.notes += "interference: " + slowing + "\n";
  return table;
}

}  // namespace ddpsim
