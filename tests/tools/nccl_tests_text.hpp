#pragma once

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace ddpsim {

/// A log of tests/data/nccl-tests: times as nccl-tests printed them, in us.
struct PublicLog {
  struct Row {
    std::int64_t bytes = 0;
    std::string time;
    std::optional<std::string> in_place;
  };
  std::string operation;  ///< "all_reduce"
  int ranks = 0;
  std::vector<Row> rows;
};

inline PublicLog public_log(const std::filesystem::path& file) {
  PublicLog log;
  std::ifstream stream(file);
  bool header = false;
  for (std::string line; std::getline(stream, line);) {
    for (const std::string begin : {"# Collective: ", "# Operation: "}) {
      if (line.rfind(begin, 0) != 0) continue;
      const std::string name = line.substr(begin.size());
      log.operation = name.substr(0, std::min(name.find_first_of(" ,"), name.find("_perf")));
      for (const auto& [text, ranks] : {std::pair{" ONE rank", 1},
                                        {" 2 ranks", 2},
                                        {" 3 ranks", 3},
                                        {" 4 ranks", 4},
                                        {" 8 ranks", 8},
                                        {" 16 ranks", 16}})
        if (line.find(text) != std::string::npos) log.ranks = ranks;
    }
    if (line.empty() || line[0] == '#') continue;
    if (!header) {
      header = true;
      continue;
    }
    std::istringstream fields(line);
    std::string bytes, time, second;
    std::getline(fields, bytes, ',');
    std::getline(fields, time, ',');
    PublicLog::Row row{std::stoll(bytes), time, std::nullopt};
    if (std::getline(fields, second, ',')) row.in_place = second;
    log.rows.push_back(row);
  }
  if (log.rows.empty()) throw std::runtime_error("no rows in " + file.string());
  return log;
}

/// How versions of nccl-tests print a log: reference, nccl-tests 2.10 to 2.19.
enum class NcclTestsStyle {
  old,    ///< before 2.13: no root for all-reduce, an error instead of a count of wrong values
  plain,  ///< 2.13 to 2.16
  named,  ///< since 2.17: the operation is named
  with_spread,  ///< with -I: four more columns for each placement
  with_time     ///< with -S: the time of day after each row
};
inline constexpr NcclTestsStyle all_nccl_tests_styles[]{
    NcclTestsStyle::old, NcclTestsStyle::plain, NcclTestsStyle::named, NcclTestsStyle::with_spread,
    NcclTestsStyle::with_time};

/// Bus over algorithm bandwidth (nccl-tests doc/PERFORMANCE.md).
inline double bus_factor(const PublicLog& log) {
  const double n = log.ranks;
  if (log.operation == "all_reduce") return 2 * (n - 1) / n;
  if (log.operation == "all_gather" || log.operation == "reduce_scatter") return (n - 1) / n;
  return 1;
}

struct NcclTestsOptions {
  NcclTestsStyle style = NcclTestsStyle::named;
  bool in_place = true;  ///< print both placements, where the log has both
  bool devices = true;   ///< list them
  std::string prefix;    ///< before each line, as launchers put it there
};

/// The log as nccl-tests prints it.
inline std::string nccl_tests_text(const PublicLog& log, const NcclTestsOptions& options) {
  using Style = NcclTestsStyle;
  const bool reduces = log.operation == "all_reduce";
  const bool old = options.style == Style::old;
  const bool spread = options.style == Style::with_spread;
  const bool both = options.in_place && log.rows.front().in_place.has_value();
  std::string text;
  const auto line = [&](const std::string& content) { text += options.prefix + content + "\n"; };
  if (!old && options.style != Style::plain) {
    line("# nccl-tests version 2.17.6 nccl-headers=22602 nccl-library=22602");
    line("# Collective test starting: " + log.operation + "_perf");
  }
  line(
      "# nThread 1 nGpus 1 minBytes 8 maxBytes 134217728 step: 2(factor) warmup iters: 5 iters: 20 "
      "agg iters: 1 validation: 1 graph: 0");
  line("#");
  if (options.devices) line("# Using devices");
  for (int rank = 0; options.devices && rank < log.ranks; ++rank)
    line(old ? fmt::format(
                   "#   Rank {:2} Pid {:6} on some-host device {:2} [0x1b] NVIDIA H100 80GB HBM3",
                   rank, 4000 + rank, rank)
             : fmt::format(
                   "#  Rank {:2} Group  0 Pid {:6} on  some-host device {:2} [0000:1b:00] NVIDIA "
                   "H100 80GB HBM3",
                   rank, 4000 + rank, rank));
  line("#");
  std::string head =
      old ? "#       size         count    type" : "#       size         count      type";
  if (reduces || !old) head += "   redop";
  if (!old || log.operation == "broadcast") head += "    root";
  for (int placement = 0; placement < (both ? 2 : 1); ++placement) {
    head += old ? "     time   algbw   busbw  error" : "     time   algbw   busbw  #wrong";
    if (spread) head += "    i_min    i_max    i_p99   i_cv%";
  }
  line(fmt::format("#{:62}{}", "",
                   both ? "out-of-place                       in-place" : "out-of-place"));
  line(head);
  line("#        (B)    (elements)                               (us)  (GB/s)  (GB/s)");
  for (const PublicLog::Row& row : log.rows) {
    std::string content = fmt::format("{:12}  {:12}  {:>8}", row.bytes, row.bytes / 4, "float");
    if (reduces || !old) content += fmt::format("  {:>6}", reduces ? "sum" : "none");
    if (!old || log.operation == "broadcast")
      content += fmt::format("  {:>6}", log.operation == "broadcast" ? 0 : -1);
    for (int placement = 0; placement < (both ? 2 : 1); ++placement) {
      const std::string& time = placement == 0 ? row.time : *row.in_place;
      const double rate = static_cast<double>(row.bytes) / std::stod(time) / 1e3;
      content += fmt::format("  {:>7}  {:6.2f}  {:6.2f}  {:>6}", time, rate, rate * bus_factor(log),
                             old                                             ? "2e-07"
                             : log.operation == "sendrecv" && placement == 1 ? "N/A"
                                                                             : "0");
      if (spread) content += fmt::format("  {:>7}  {:>7}  {:>7}  {:>7}", time, time, time, "0.12");
    }
    if (options.style == Style::with_time) content += "  2026-11-21 09:30:01";
    line(content);
    if (row.bytes % 4096 == 0) {  // what NCCL and launchers print in between
      text += "some-host:4000:4010 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM\n";
      text += "12 processes are still running\n";
    }
  }
  line("# Out of bounds values : 0 OK");
  line("# Avg bus bandwidth    : 34.9024");
  line("#");
  return text;
}

/// The log as `-J` writes it.
inline nlohmann::ordered_json nccl_tests_json(const PublicLog& log) {
  using Json = nlohmann::ordered_json;
  Json devices = Json::array();
  for (int rank = 0; rank < log.ranks; ++rank)
    devices.push_back({{"rank", rank}, {"group", 0}, {"device_info", "NVIDIA H100 80GB HBM3"}});
  Json json{{"version", 3},
            {"args", {"/opt/nccl-tests/build/" + log.operation + "_perf", "-b", "8"}},
            {"env", {"SECRET=not to be repeated"}},
            {"nccl_version", "22602"},
            {"config", {{"nthreads", 1}, {"ngpus", log.ranks}, {"blocking_collectives", "false"}}}};
  json["config"]["devices"] = devices;
  json["results"] = Json::array();
  for (const PublicLog::Row& row : log.rows) {
    const auto placement = [&](const std::string& text) {
      const double time = std::stod(text), rate = static_cast<double>(row.bytes) / time / 1e3;
      return Json{
          {"time", time}, {"alg_bw", rate}, {"bus_bw", rate * bus_factor(log)}, {"nwrong", 0}};
    };
    Json result{{"size", row.bytes}, {"count", row.bytes / 4},
                {"type", "float"},   {"redop", log.operation == "all_reduce" ? "sum" : "none"},
                {"root", "-1"},      {"out_of_place", placement(row.time)}};
    if (row.in_place) result["in_place"] = placement(*row.in_place);
    json["results"].push_back(result);
  }
  json["errors"] = Json::array();
  return json;
}

}  // namespace ddpsim
