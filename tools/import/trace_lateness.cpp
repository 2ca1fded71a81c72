#include "tools/import/trace_lateness.hpp"

#include <algorithm>
#include <filesystem>
#include <numeric>

#include <fmt/format.h>

#include "tools/import/trace_tensors.hpp"
#include "tools/report/records/field_kinds.hpp"

namespace ddpsim {
namespace {

/// "rank 3", or where the trace does not say its file's name.
std::string name_of_rank(const RankTraces& traces, std::size_t rank) {
  const int number = traces.finding(rank).rank;
  return number >= 0 ? fmt::format("rank {}", number)
                     : std::filesystem::path(traces.file(rank)).filename().string();
}

/// The ranks, the one that others waited longest for first.
std::vector<std::size_t> by_waiting(const Lateness& lateness) {
  std::vector<std::size_t> order(lateness.ranks.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return lateness.ranks[a].waited > lateness.ranks[b].waited;
  });
  return order;
}

std::string sentence(const Lateness& lateness, const RankTraces& traces) {
  const std::size_t latest = by_waiting(lateness).front();
  const RankLateness& rank = lateness.ranks[latest];
  const std::size_t all = lateness.steps * lateness.all_reduces.size();
  std::size_t known = 0;
  for (const LastArrival& last : lateness.all_reduces) known += last.known;
  const std::string unknown =
      known == all ? ""
                   : fmt::format(
                         "; the other {} of {} overlapped with others, so that their own time is "
                         "not known",
                         all - known, all);
  if (known == 0) return "all-reduces overlapped with others, so that who came last is not known";
  if (rank.last == 0)
    return fmt::format("all ranks came to {} together{}",
                       known == all ? "every all-reduce" : fmt::format("{} all-reduces", known),
                       unknown);
  return fmt::format(
      "{} came last to {} of {} all-reduces, and others waited {:.3f} ms a step for it{}",
      name_of_rank(traces, latest), rank.last, known, in_ms(rank.waited), unknown);
}

Table ranks_table(const Lateness& lateness, const RankTraces& traces) {
  constexpr Field rank =
                      fields::text_field("rank", "rank", "Which rank.").with(Look{}.to_the_left()),
                  last = fields::count_field("last", "came last",
                                             "All-reduces that it was the last to come to."),
                  waited = fields::ms_field("waited_ms", "others waited ms",
                                            "How long others waited for it, a step.")
                               .with(fields::thousandths);
  Table table{{rank, last, waited}};
  table.title = fmt::format("{} ranks, {} all-reduces each", lateness.ranks.size(),
                            lateness.steps * lateness.all_reduces.size());
  for (const std::size_t r : by_waiting(lateness))
    table.add({name_of_rank(traces, r), lateness.ranks[r].last, in_ms(lateness.ranks[r].waited)});
  return table;
}

Table arrivals_table(const Lateness& lateness, const RankTraces& traces) {
  constexpr Field index =
                      fields::count_field("index", "all-reduce", "Which all-reduce of the step."),
                  rank = fields::text_field("rank", "mostly last", "Who came last most often.")
                             .with(Look{}.to_the_left()),
                  steps = fields::count_field("steps", "in steps", "In how many steps."),
                  waited = fields::ms_field("waited_ms", "others waited ms",
                                            "How long, in the median over steps.")
                               .with(fields::thousandths);
  Table table{{index, rank, steps, waited}};
  for (std::size_t b = 0; b < lateness.all_reduces.size(); ++b) {
    const LastArrival& last = lateness.all_reduces[b];
    if (last.known == 0)
      table.add({b, std::string("not known"), FieldValue(), FieldValue()});
    else
      table.add({b, last.steps == 0 ? std::string("nobody") : name_of_rank(traces, last.rank),
                 last.steps, in_ms(last.waited)});
  }
  return table;
}

}  // namespace

Lateness lateness_of(const std::vector<std::vector<TimesTaken>>& times) {
  const std::size_t ranks = times.front().size(), all_reduces = times.front().front().size();
  Lateness lateness{times.size(), std::vector<LastArrival>(all_reduces),
                    std::vector<RankLateness>(ranks)};
  for (std::size_t b = 0; b < all_reduces; ++b) {
    std::vector<std::size_t> last_in(ranks);
    std::vector<Duration> waited;
    for (const std::vector<TimesTaken>& of_step : times) {
      const auto shorter = [b](const TimesTaken& mine, const TimesTaken& theirs) {
        return mine[b] < theirs[b];  // what is not known is less than all that is
      };
      const auto [last, first] = std::minmax_element(of_step.begin(), of_step.end(), shorter);
      if (!(*last)[b]) continue;
      waited.push_back(*(*first)[b] - *(*last)[b]);
      if (waited.back() == Duration::zero()) continue;
      const auto rank = static_cast<std::size_t>(last - of_step.begin());
      ++last_in[rank];
      ++lateness.ranks[rank].last;
      lateness.ranks[rank].waited += waited.back();
    }
    const auto most = std::max_element(last_in.begin(), last_in.end());
    lateness.all_reduces[b] = {static_cast<std::size_t>(most - last_in.begin()), *most,
                               waited.size(), median(waited)};
  }
  for (RankLateness& rank : lateness.ranks)
    rank.waited /= static_cast<std::int64_t>(lateness.steps);
  return lateness;
}

void add_lateness(Page& page, const Lateness& lateness, const RankTraces& traces) {
  page.add(ranks_table(lateness, traces));
  page.add(arrivals_table(lateness, traces));
  page.add(Paragraph{sentence(lateness, traces)});
}

nlohmann::ordered_json lateness_json(const Lateness& lateness, const RankTraces& traces) {
  using Json = nlohmann::ordered_json;
  Json json{{"steps", lateness.steps}, {"ranks", Json::array()}, {"all_reduces", Json::array()}};
  for (std::size_t r = 0; r < lateness.ranks.size(); ++r)
    json["ranks"].push_back({{"rank", name_of_rank(traces, r)},
                             {"file", traces.file(r)},
                             {"last", lateness.ranks[r].last},
                             {"waited_ms", in_ms(lateness.ranks[r].waited)}});
  for (const LastArrival& last : lateness.all_reduces) {
    Json entry{{"steps", last.steps}, {"known", last.known}};
    if (last.known > 0) entry["waited_ms"] = in_ms(last.waited);
    if (last.steps > 0) entry["last"] = name_of_rank(traces, last.rank);
    json["all_reduces"].push_back(std::move(entry));
  }
  return json;
}

}  // namespace ddpsim
