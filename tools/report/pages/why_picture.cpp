#include "tools/report/pages/why_picture.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "model/timeline/why.hpp"
#include "tools/picture/bars.hpp"
#include "tools/report/reports/unit_report.hpp"
#include "tools/report/reports/why_report.hpp"

namespace ddpsim {
namespace {

constexpr std::size_t most_buckets = 8;  ///< of a strategy

std::string_view paint_of(Cause cause) {
  switch (cause) {
    case Cause::gradients:
      return "collective";
    case Cause::turn:
      return "copy";
    case Cause::previous:
      return "backward";
    case Cause::launch:
      return "launch";
    case Cause::slowest_rank:
      return "hook";
    case Cause::host_copies:
      return "forward";
    case Cause::hook:
    case Cause::copy_out:
      return "optimizer";
    case Cause::input_buffer:  // of units, which have no turn
      return "copy";
    case Cause::kernels_wait:
    case Cause::one_queue:
      return "forward";
    case Cause::itself:
      return "fill";
  }
  return "line";
}

BarPicture::Row row_of(std::string label, const std::vector<ExposedBucket>& buckets) {
  BarPicture::Row row{std::move(label), std::vector<double>(all_causes.size())};
  for (const ExposedBucket& bucket : buckets)
    for (const Cause cause : all_causes)
      row.lengths[static_cast<std::size_t>(cause)] += in_ms(bucket.by(cause));
  return row;
}

void add_rows(BarPicture& bars, const Scenario& scenario, const NamedStep& named) {
  const Step& step = *named.step;
  const bool units = has_units(step);
  std::vector<ExposedBucket> buckets = exposed_groups(step);
  if (buckets.empty()) return;
  std::stable_sort(buckets.begin(), buckets.end(),
                   [](const ExposedBucket& a, const ExposedBucket& b) {
                     return a.times.exposed > b.times.exposed;
                   });
  bars.rows.push_back({named.name});
  // A row that says "2 more" is no shorter than the two.
  const std::size_t shown = buckets.size() <= most_buckets + 1 ? buckets.size() : most_buckets;
  for (std::size_t i = 0; i < shown; ++i)
    bars.rows.push_back(row_of(units ? name_of_group(step.job(), buckets[i].bucket)
                                     : bucket_label(scenario, step.job(), buckets[i].bucket),
                               {buckets[i]}));
  if (shown < buckets.size())
    bars.rows.push_back(
        row_of(fmt::format("{} more, together", buckets.size() - shown),
               {buckets.begin() + static_cast<std::ptrdiff_t>(shown), buckets.end()}));
}

bool has(const BarPicture& bars, Cause cause) {
  return std::ranges::any_of(bars.rows, [cause](const BarPicture::Row& row) {
    return !row.lengths.empty() && row.lengths[static_cast<std::size_t>(cause)] > 0;
  });
}

/// Takes a cause out of bars and legend. Later causes go first, as each is at its own index.
void drop(BarPicture& bars, Cause cause) {
  const auto index = static_cast<std::ptrdiff_t>(cause);
  bars.parts.erase(bars.parts.begin() + index);
  for (BarPicture::Row& row : bars.rows)
    if (!row.lengths.empty()) row.lengths.erase(row.lengths.begin() + index);
}

}  // namespace

std::optional<Picture> why_picture(const Scenario& scenario, const std::vector<NamedStep>& steps) {
  BarPicture bars;
  const std::string word = word_for_groups(steps);
  bars.title = "What exposes each " + word;
  bars.description = fmt::format(
      "How long each {}'s collectives are exposed, and how much of that each cause accounts for.",
      word);
  bars.unit = "ms";
  for (const Cause cause : all_causes)
    bars.parts.push_back({std::string(name_of(cause)), std::string(paint_of(cause))});
  for (const NamedStep& named : steps) add_rows(bars, scenario, named);
  const bool hooks = has(bars, Cause::hook), copies = has(bars, Cause::host_copies);
  const bool waiting = has(bars, Cause::kernels_wait), queue = has(bars, Cause::one_queue);
  for (const Cause cause :
       {Cause::one_queue, Cause::itself, Cause::input_buffer, Cause::copy_out, Cause::kernels_wait})
    if (!has(bars, cause)) drop(bars, cause);
  if (!hooks) drop(bars, Cause::hook);
  if (!copies) drop(bars, Cause::host_copies);
  if (bars.rows.empty()) return std::nullopt;
  return Picture{
      bars.title, bar_picture(bars), "",
      fmt::format("The {} with the longest exposed time, by cause: their gradients "
                  "were ready too late to hide them, or they had to wait for their "
                  "turn, for the collective before them, for the host's launch, or for "
                  "the slowest rank",
                  word == "bucket or unit" ? "buckets and units" : word + "s") +
          std::string(word == "bucket" ? ""
                                       : ", or, as gathers and reduce-scatters of units, for the "
                                         "copy-out of the gather before or for the memory of an "
                                         "earlier input, or a gather was needed at once (itself)") +
          std::string(waiting ? ", or kernels that do not need them stood behind them" : "") +
          std::string(queue ? ", or all of a GPU's streams share one queue" : "") +
          std::string(copies ? ", or for their copies to the host and back" : "") +
          std::string(hooks ? ", or, as later collectives of a comm hook, for its steps "
                              "before them, such as an update."
                            : ".")};
}

}  // namespace ddpsim
