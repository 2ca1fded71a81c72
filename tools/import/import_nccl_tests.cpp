#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "model/cost/calibration_fit.hpp"
#include "scenarios/reader/cluster/link_reader.hpp"
#include "scenarios/reader/text/input_error.hpp"
#include "tools/import/imported.hpp"
#include "tools/import/nccl_tests_log.hpp"
#include "tools/import/profile_file.hpp"
#include "tools/import/trace_tensors.hpp"
#include "tools/report/records/field_kinds.hpp"

namespace ddpsim {
namespace {

using Json = nlohmann::ordered_json;

/// What all runs of a file are together.
struct AllReduceLog {
  Link link;
  std::vector<std::string> notes;
  std::string remarks;                                ///< the fit, in words
  std::optional<std::pair<double, double>> residual;  ///< median and worst, of the ring law
};

[[noreturn]] void refuse_without_rows(const std::string& file) {
  throw InputError(fmt::format("{}: no row with a time and right results", file));
}

/// Refuses what is no all-reduce among several ranks; the ranks of all runs, 0 if not told.
int checked_ranks(const std::vector<NcclTestsRun>& runs, const std::string& file) {
  std::set<int> ranks;
  const bool all_wrong =
      std::ranges::all_of(runs, [](const NcclTestsRun& run) { return run.rows.empty(); });
  for (const NcclTestsRun& run : runs) {
    const std::string operation = operation_of(run);
    if (ranks_of(run) == 1)
      throw InputError(
          fmt::format("{}: a log of one rank: nothing crossed a link; where several programs were "
                      "started, each "
                      "ran alone: build {} with MPI=1",
                      file, run.program));
    // The operation is told from columns of rows with right results.
    if (operation.empty() && all_wrong) refuse_without_rows(file);
    if (operation.empty())
      throw InputError(
          fmt::format("{}: the log does not say which operation it is of, and its columns fit "
                      "several: expected "
                      "the output of all_reduce_perf",
                      file));
    if (operation != "all_reduce")
      throw InputError(fmt::format(
          "{}: a log of {}: a link profile is made from all-reduces, the output of all_reduce_perf",
          file, operation));
    if (contradicts_ranks(run))
      throw InputError(
          fmt::format("{}: the log is of {} ranks, but its bandwidths are not: expected a bus "
                      "bandwidth of {:.4g} times the algorithm bandwidth, 2 (n - 1) / n",
                      file, run.ranks, 2.0 * (run.ranks - 1) / run.ranks));
    ranks.insert(ranks_of(run));
  }
  if (ranks.size() > 1)
    throw InputError(fmt::format(
        "{}: runs of {} and of {} ranks in one file: a link profile is of one number of ranks",
        file, *ranks.begin(), *ranks.rbegin()));
  return *ranks.begin();
}

/// The nodes that all runs were on; 0 where that is not known or was not the same, and of one rank.
int nodes_of(const std::vector<NcclTestsRun>& runs) {
  const int nodes = runs.front().nodes;
  const bool alike = std::all_of(runs.begin(), runs.end(),
                                 [&](const NcclTestsRun& run) { return run.nodes == nodes; });
  return alike && runs.front().ranks != 1 ? nodes : 0;
}

/// The ranks of each node of a table that was measured on nodes of unequal size; none where they
/// are alike, or not the same in all runs.
std::vector<int> unequal_nodes_of(const std::vector<NcclTestsRun>& runs) {
  const std::vector<int>& ranks = runs.front().ranks_of_nodes;
  const bool same = std::ranges::all_of(
      runs, [&](const NcclTestsRun& run) { return run.ranks_of_nodes == ranks; });
  if (!same || ranks.empty() ||
      std::ranges::all_of(ranks, [&](int each) { return each == ranks.front(); }))
    return {};
  return ranks;
}

/// A doubt where a size takes far longer than a larger one.
void add_outlier(Link& link) {
  constexpr double far = 1.5;
  int found = 0;
  std::string first;
  for (std::size_t i = 0; i < link.all_reduce.size(); ++i) {
    const auto& [size, time] = link.all_reduce[i];
    const auto quickest = std::min_element(
        link.all_reduce.begin() + static_cast<std::ptrdiff_t>(i), link.all_reduce.end(),
        [](const auto& a, const auto& b) { return a.second < b.second; });
    if (in_seconds(time) <= far * in_seconds(quickest->second)) continue;
    if (found++ == 0)
      first = fmt::format("{} in {} and {} in {}", to_string(size), to_string(time),
                          to_string(quickest->first), to_string(quickest->second));
  }
  if (found > 0)
    link.doubts.push_back(
        fmt::format("{} size{} far longer than a larger one, the first: {}; predictions take no "
                    "longer for {} than for the larger one: measure again",
                    found, found == 1 ? " takes" : "s take", first, found == 1 ? "it" : "them"));
}

/// The median time of each size, out of place if that was measured.
void fill_table(const std::vector<NcclTestsRun>& runs, const std::string& file, AllReduceLog& log) {
  bool out_of_place = false, in_place = false;
  int wrong = 0, wrong_half = 0, contradicting = 0;
  for (const NcclTestsRun& run : runs) {
    wrong += run.wrong;
    wrong_half += run.wrong_half;
    contradicting += run.contradicting;
    for (const NcclTestsRow& row : run.rows) {
      out_of_place = out_of_place || row.out_of_place;
      in_place = in_place || row.in_place;
    }
  }
  std::map<Bytes, std::vector<Duration>> times;
  for (const NcclTestsRun& run : runs)
    for (const NcclTestsRow& row : run.rows)
      if (const auto& time = out_of_place ? row.out_of_place : row.in_place)
        times[row.size].push_back(*time);
  if (times.empty()) refuse_without_rows(file);
  std::size_t most = 0;
  for (const auto& [size, of_size] : times) {
    most = std::max(most, of_size.size());
    log.link.all_reduce.emplace_back(size, median(of_size));
  }
  if (const std::string why = why_no_link(log.link.all_reduce); !why.empty())
    throw InputError(fmt::format("{}: {}", file, why));
  if (wrong > wrong_half)
    log.notes.push_back(
        fmt::format("{} rows are left out: their results were wrong (#wrong)", wrong - wrong_half));
  if (wrong_half > 0)
    log.link.doubts.push_back(fmt::format(
        "of {} rows the results were wrong in one of the two placements (#wrong), whose "
        "times are left out",
        wrong_half));
  if (contradicting > 0)
    log.notes.push_back(
        fmt::format("results left out whose algbw and busbw are not those of their size and time: "
                    "{}",
                    contradicting));
  add_outlier(log.link);
  int unread = 0;
  std::set<std::string> types;
  for (const NcclTestsRun& run : runs) {
    unread += run.unread;
    for (const NcclTestsRow& row : run.rows) types.insert(row.type);
  }
  if (unread > 0)
    log.notes.push_back(
        fmt::format("lines left out that begin like rows but break off, or have no time or no "
                    "possible size: {}",
                    unread));
  for (const NcclTestsRun& run : runs) {
    const std::int64_t reached = run.rows.empty() ? 0 : run.rows.back().size.count;
    if (reached > 0 && run.most_bytes / 2 >= reached)  // sizes double, or go in smaller steps
      log.notes.push_back(fmt::format(
          "the log ends at {}, though it was to reach {}: it was cut off, and the table "
          "ends there too",
          to_string(Bytes{reached}), to_string(Bytes{run.most_bytes})));
  }
  const auto together = std::ranges::max_element(runs, {}, &NcclTestsRun::issued_together);
  if (together != runs.end() && together->issued_together > 1)
    log.notes.push_back(fmt::format(
        "{} operations were issued together (agg iters), and each takes its share of their time: "
        "one alone, as a step issues them, takes longer, most of all a small one; measure with -m "
        "1",
        together->issued_together));
  if (types.size() > 1)
    log.notes.push_back(
        fmt::format("rows of {} data types make one table, by their sizes in bytes", types.size()));
  if (times.size() < 3)
    log.notes.push_back(fmt::format(
        "{}: measure more sizes, such as from 1 KiB to 1 GiB",
        times.size() == 1
            ? "one point does not tell latency and bandwidth apart: no ring law is fitted, and "
              "predictions take the time of other sizes in proportion"
            : "two points are too little for a table and its fit"));
  if (!out_of_place)
    log.notes.emplace_back("the log has in-place times alone: they are used");
  else if (in_place)
    log.notes.emplace_back("out-of-place times are used, in-place times are not");
  if (most > 1)
    log.notes.push_back(
        fmt::format("{} run{}; where they measured a size more than once, the median is taken",
                    runs.size(), runs.size() == 1 ? "" : "s"));
}

/// The ring law, t = 2 (n - 1) (latency + size / (n bandwidth)), nearest to the table.
void fit_ring(AllReduceLog& log) {
  Link& link = log.link;
  if (link.all_reduce.size() == 1) return;  // fill_table notes it
  const double n = link.table_ranks;
  if (link.table_ranks == 0) {
    log.notes.emplace_back(
        "the log lists no devices, and rounding leaves several numbers of ranks: no ring law "
        "fitted");
    return;
  }
  std::vector<AllReduceCost> points;
  for (const auto& [size, time] : link.all_reduce) points.push_back({size, {time, time, time}});
  const auto law = fit_all_reduce(points);
  if (!law || !std::isfinite(law->bandwidth.bytes_per_second)) {
    log.notes.emplace_back("times do not grow with the size: no bandwidth can be told from these");
    return;
  }
  const double nanoseconds = std::round(in_seconds(law->constant) * 1e9 / (2 * (n - 1)));
  const double rate = 2 * (n - 1) / n * law->bandwidth.bytes_per_second;
  link.latency = from_seconds(nanoseconds * 1e-9);
  link.bandwidth = {std::max(1.0, std::round(rate / 1e6)) * 1e6};
  std::vector<double> errors;
  for (const auto& [size, time] : link.all_reduce) {
    const double predicted = 2 * (n - 1) *
                             (in_seconds(link.latency) + static_cast<double>(size.count) /
                                                             (n * link.bandwidth.bytes_per_second));
    errors.push_back(std::abs(predicted / in_seconds(time) - 1));
  }
  std::sort(errors.begin(), errors.end());
  const std::size_t middle = errors.size() / 2;
  log.residual = {
      errors.size() % 2 == 1 ? errors[middle] : (errors[middle - 1] + errors[middle]) / 2,
      errors.back()};
  log.remarks = fmt::format(
      "ring law 2 (n - 1) (latency + size / (n bandwidth)), n = {}: latency {}, bandwidth {}; off "
      "by "
      "{:.1f} % in the median, {:.1f} % at most",
      link.table_ranks, to_string(link.latency), to_string(link.bandwidth),
      100 * log.residual->first, 100 * log.residual->second);
}

std::string source_of(const std::vector<NcclTestsRun>& runs, const Link& link,
                      const std::string& file) {
  const NcclTestsRun& run = runs.front();
  std::string source =
      fmt::format("{}{}{}, all_reduce", run.program, run.version.empty() ? "" : " ", run.version);
  if (!run.rows.empty()) source += fmt::format(" {} {}", run.rows[0].type, run.rows[0].reduction);
  if (link.table_ranks > 0) source += fmt::format(", {} ranks", link.table_ranks);
  if (link.table_nodes > 1) source += fmt::format(" on {} nodes", link.table_nodes);
  if (!run.device.empty()) source += fmt::format(", {}", run.device);
  return source + fmt::format(", {}", std::filesystem::path(file).filename().string());
}

}  // namespace

Imported import_nccl_tests(const ImportRequest& request) {
  const std::vector<NcclTestsRun> runs = read_nccl_tests(request.file);
  AllReduceLog log;
  log.link.table_ranks = checked_ranks(runs, request.file);
  log.link.table_nodes = nodes_of(runs);
  fill_table(runs, request.file, log);
  const std::vector<int> unequal = unequal_nodes_of(runs);
  if (!unequal.empty()) {  // a link does not tell the ranks of each node
    log.link.table_smallest_node = *std::ranges::min_element(unequal);
    log.notes.push_back(
        fmt::format("measured on nodes of {} ranks: give --ranks-per-node {} beside this link",
                    fmt::join(unequal, " and "), fmt::join(unequal, ",")));
  }
  fit_ring(log);
  log.link.source = source_of(runs, log.link, request.file);

  Imported imported;
  constexpr Field size_field = fields::bytes_field("size", "size", "The message."),
                  bytes_of_it = size_field.labelled("bytes").with(Look{}),
                  time_us = fields::ratio_field("time_us", "time us", "Its all-reduce.",
                                                Better::low, fields::hundredths),
                  algbw = fields::ratio_field("algbw", "algbw GB/s",
                                              "The algorithm bandwidth: the message over its time.",
                                              Better::high, fields::thousandths),
                  busbw = fields::ratio_field(
                      "busbw", "busbw GB/s",
                      "The bus bandwidth: 2 (n - 1) / n times the algorithm bandwidth.",
                      Better::high, fields::thousandths);
  const int ranks = log.link.table_ranks;
  // Zero of unknown ranks: then there is no bus bandwidth either.
  const auto on_bus = [ranks](double rate) {
    return ranks > 0 ? std::optional(2.0 * (ranks - 1) / ranks * rate) : std::nullopt;
  };
  Table table{{size_field, bytes_of_it, time_us, algbw, busbw}};
  imported.json = {
      {"format", "ddpsim.import/1"}, {"kind", "nccl-tests"}, {"file", request.file},
      {"runs", runs.size()},         {"ranks", ranks},       {"nodes", log.link.table_nodes},
      {"all_reduce", Json::array()}};
  for (const auto& [size, time] : log.link.all_reduce) {
    const double rate = static_cast<double>(size.count) / in_seconds(time) / 1e9;
    Json of_size = {{"bytes", size.count}, {"time_us", in_us(time)}, {"algbw_gb_per_s", rate}};
    if (const auto bus = on_bus(rate)) of_size["busbw_gb_per_s"] = *bus;
    table.add({size.count, size.count, in_us(time), rate, on_bus(rate)});
    imported.json["all_reduce"].push_back(std::move(of_size));
  }
  drop_if_empty(table, table.index_of(busbw));
  if (log.residual) {
    imported.json["latency_us"] = in_us(log.link.latency);
    imported.json["bandwidth_gb_per_s"] = log.link.bandwidth.bytes_per_second / 1e9;
    imported.json["median_residual"] = log.residual->first;
    imported.json["worst_residual"] = log.residual->second;
  }
  for (const std::string& doubt : log.link.doubts)
    log.notes.push_back(fmt::format("the table is doubtful: {}", doubt));
  imported.json["notes"] = log.notes;
  std::string said;
  for (const std::string& note : log.notes) said += fmt::format("note: {}\n", note);
  if (log.remarks.empty()) table.notes = std::exchange(said, "");
  imported.page.add(Paragraph{fmt::format("{}: {}", request.file, log.link.source)});
  imported.page.add(std::move(table));
  if (!log.remarks.empty()) imported.page.add(Paragraph{log.remarks + "\n" + said});
  std::string remarks =
      "# A link profile from a log of nccl-tests, for --link, or for a scenario's intra_node or "
      "inter_node.\n";
  if (!log.remarks.empty()) remarks += fmt::format("# {}\n", log.remarks);
  for (const std::string& note : log.notes) remarks += fmt::format("# {}\n", note);
  imported.profile = link_profile_yaml(log.link, remarks);
  imported.next = next_with_link(log.link, unequal);
  return imported;
}

}  // namespace ddpsim
