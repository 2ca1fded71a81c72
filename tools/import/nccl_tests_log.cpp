#include "tools/import/nccl_tests_log.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <fstream>
#include <limits>
#include <string_view>

#include <fmt/format.h>

#include "scenarios/reader/input_error.hpp"
#include "scenarios/reader/quantity_text.hpp"
#include "tools/import/nccl_tests_json.hpp"

namespace ddpsim {
namespace {

using Words = std::vector<std::string_view>;

Words words_of(std::string_view line) {
  Words words;
  for (std::size_t at = 0; at < line.size();) {
    const std::size_t begin = line.find_first_not_of(" \t\r", at);
    if (begin == std::string_view::npos) break;
    at = std::min(line.find_first_of(" \t\r", begin), line.size());
    words.push_back(line.substr(begin, at - begin));
  }
  return words;
}

/// Without what mpirun ("[1,0]<stdout>:") or srun (" 0: ") puts before a line, and without its '#'.
std::string_view bare(std::string_view line) {
  const auto trim = [&] {
    line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
  };
  trim();
  const std::size_t tag = line.find("<stdout>");
  if (line.starts_with('[') && tag != std::string_view::npos && tag < 32) {
    line.remove_prefix(tag + 8);
    if (line.starts_with(':')) line.remove_prefix(1);
    trim();
  }
  const std::size_t digits = line.find_first_not_of("0123456789");
  if (digits != std::string_view::npos && digits > 0 && line[digits] == ':') {
    line.remove_prefix(digits + 1);
    trim();
  }
  if (line.starts_with('#')) line.remove_prefix(1);
  trim();
  return line;
}

/// Where the columns of a log are.
struct Layout {
  std::size_t columns = 0;
  int reduction = -1, root = -1;
  /// Of each placement, where its time is; -1: not measured. The bandwidths follow, then the check.
  int out_of_place = -1, in_place = -1;
};

/// Of a header line such as "size count type redop root time algbw busbw #wrong time ...".
std::optional<Layout> layout_of(const Words& words, bool only_in_place) {
  if (words.size() < 6 || words[0] != "size" || words[1] != "count" || words[2] != "type")
    return std::nullopt;
  Layout layout;
  layout.columns = words.size();
  std::vector<int> times;
  for (std::size_t i = 3; i < words.size(); ++i) {
    const int column = static_cast<int>(i);
    if (words[i] == "redop") layout.reduction = column;
    if (words[i] == "root") layout.root = column;
    if (words[i] == "time" || words[i] == "cputime") times.push_back(column);
  }
  if (times.empty() || times.size() > 2 || times.back() + 2 >= static_cast<int>(words.size()))
    return std::nullopt;
  if (times.size() == 2) {
    layout.out_of_place = times[0];
    layout.in_place = times[1];
  } else {
    (only_in_place ? layout.in_place : layout.out_of_place) = times[0];
  }
  return layout;
}

/// Where the header is missing: 13 columns since 2.13, before that none for the root, and neither
/// for all-gather; the same with one placement.
std::optional<Layout> layout_without_header(std::size_t columns, bool only_in_place) {
  Words words{"size", "count", "type"};
  const bool both = columns >= 11;
  const std::size_t more = columns - (both ? 8 : 4);
  if (columns < 7 || more < 3 || more > 5) return std::nullopt;
  if (more >= 4) words.emplace_back("redop");
  if (more == 5) words.emplace_back("root");
  for (int placement = 0; placement < (both ? 2 : 1); ++placement)
    words.insert(words.end(), {"time", "algbw", "busbw", "#wrong"});
  return layout_of(words, only_in_place);
}

bool is_type(std::string_view word) {
  constexpr std::array<std::string_view, 8> beginnings{"float", "half", "double", "bfloat",
                                                       "int",   "uint", "f8",     "fp8"};
  return std::any_of(beginnings.begin(), beginnings.end(),
                     [&](std::string_view beginning) { return word.starts_with(beginning); });
}

/// A printed bandwidth and how far rounding may have moved it.
struct Printed {
  double value = 0, margin = 0;
};
Printed printed(std::string_view text) {
  const auto value = parse_number(text);
  if (!value || *value < 0) return {};
  const std::size_t point = text.find('.');
  const auto decimals =
      point == std::string_view::npos ? 0 : static_cast<double>(text.size() - point - 1);
  const bool exponent = text.find_first_of("eE") != std::string_view::npos;
  return {*value, exponent ? 0.05 * *value : 0.5 * std::pow(10.0, -std::min(decimals, 20.0))};
}

class Reader {
 public:
  explicit Reader(std::string name) : name_(std::move(name)) {}

  void take(std::string_view given) {
    ++number_;
    const std::string_view line = bare(given);
    const Words words = words_of(line);
    if (words.empty()) return;
    if (words[0] == "nThread" || line.starts_with("Using devices") ||
        line.starts_with("Collective test starting:") || line.starts_with("nccl-tests version"))
      begin_run();
    if (line.starts_with("Collective test starting:"))
      run().operation = operation_named(words.back());
    if (line.starts_with("nccl-tests version") && words.size() > 2) run().version = words[2];
    if (words.size() > 4 && words[0] == "Rank" && parse_integer(words[1]) &&
        std::find(words.begin(), words.end(), "Pid") != words.end())
      take_device(line);
    if (line.find("out-of-place") != std::string_view::npos)
      only_in_place_ = false;
    else if (words.size() == 1 && words[0] == "in-place")
      only_in_place_ = true;
    if (words[0] == "size") {
      if (const auto layout = layout_of(words, only_in_place_)) {
        if (!run().rows.empty()) begin_run();
        layout_ = layout;
      }
      return;
    }
    if (words.size() >= 3 && parse_integer(words[0]) && parse_integer(words[1]) &&
        is_type(words[2]))
      take_row(words);
    else if (layout_ && std::all_of(words[0].begin(), words[0].end(),
                                    [](unsigned char c) { return std::isdigit(c) != 0; }))
      ++run().unread;  // a row that breaks off, or of a size beyond all numbers
  }

  std::vector<NcclTestsRun> finish() {
    std::erase_if(runs_,
                  [](const NcclTestsRun& each) { return each.rows.empty() && each.wrong == 0; });
    return std::move(runs_);
  }

 private:
  [[noreturn]] void refuse(std::string_view problem) const {
    throw InputError(fmt::format("{}:{}:1: {}", name_, number_, problem));
  }

  NcclTestsRun& run() {
    if (runs_.empty()) runs_.emplace_back();
    return runs_.back();
  }
  /// What follows belongs to another run, if this one has rows already.
  void begin_run() {
    if (run().rows.empty()) return;
    runs_.emplace_back();
    layout_.reset();
    only_in_place_ = false;
  }

  void take_device(std::string_view line) {
    ++run().ranks;
    const std::size_t bus = line.find(']');
    if (run().device.empty() && bus != std::string_view::npos) {
      const Words name = words_of(line.substr(bus + 1));
      for (const std::string_view word : name)
        run().device += fmt::format("{}{}", run().device.empty() ? "" : " ", word.substr(0, 60));
    }
  }

  void take_row(const Words& words) {
    const std::optional<Layout> layout =
        layout_ ? layout_ : layout_without_header(words.size(), only_in_place_);
    if (!layout) refuse("a row of nccl-tests, but what its columns are is not said above it");
    // A time stamp (-S) stands after the last column.
    const std::size_t beyond = words.size() - std::min(layout->columns, words.size());
    if (words.size() < layout->columns || (beyond != 0 && beyond != 2))
      refuse(fmt::format("expected {} columns as in the header above, got {}: is the log cut off?",
                         layout->columns, words.size()));
    const auto size = parse_integer(words[0]);
    constexpr std::int64_t largest = std::int64_t{1} << 50;
    if (!size || *size < 0 || *size > largest) refuse("expected a size in bytes");
    if (*size == 0) return;  // all-gather and reduce-scatter round small sizes down to it
    if (++rows_ > 1'000'000) refuse("more than a million rows");
    NcclTestsRow row;
    row.size = Bytes{*size};
    row.type = words[2].substr(0, 20);
    const auto word = [&](int column) { return words[static_cast<std::size_t>(column)]; };
    if (layout->reduction >= 0) row.reduction = word(layout->reduction).substr(0, 20);
    if (layout->root >= 0) {
      const auto root = parse_integer(word(layout->root));
      if (!root || *root < -1 || *root > 10'000'000) refuse("expected a rank, or -1, as root");
      row.root = static_cast<int>(*root);
    }
    bool wrong = false;
    for (const bool in_place : {false, true}) {
      const int column = in_place ? layout->in_place : layout->out_of_place;
      if (column < 0) continue;
      const std::string_view check =
          column + 3 < static_cast<int>(layout->columns) ? word(column + 3) : "0";
      const auto errors = parse_integer(check);
      if (errors && *errors != 0) {
        wrong = true;
        continue;
      }
      (in_place ? row.in_place : row.out_of_place) = time(word(column));
      note_ratio(row, printed(word(column + 1)), printed(word(column + 2)));
    }
    if (wrong) ++run().wrong;
    if (row.out_of_place || row.in_place)
      run().rows.push_back(std::move(row));
    else if (!wrong)
      ++run().unread;
  }

  std::optional<Duration> time(std::string_view text) const {
    if (text == "N/A" || text == "nan" || text == "-nan") return std::nullopt;
    const auto microseconds = parse_number(text);
    constexpr double longest = 1e10;
    if (!microseconds || *microseconds < 0 || *microseconds > longest)
      refuse(fmt::format("expected a time in microseconds, got \"{}\"", text.substr(0, 60)));
    const Duration duration = from_seconds(*microseconds * 1e-6);
    if (duration <= Duration::zero()) return std::nullopt;
    return duration;
  }

  static void note_ratio(NcclTestsRow& row, Printed algorithm, Printed bus) {
    if (algorithm.value <= 2 * algorithm.margin || bus.value <= bus.margin) return;
    const double least = (bus.value - bus.margin) / (algorithm.value + algorithm.margin);
    const double most = (bus.value + bus.margin) / (algorithm.value - algorithm.margin);
    const bool first = row.most_ratio == 0;
    row.least_ratio = first ? least : std::max(row.least_ratio, least);
    row.most_ratio = first ? most : std::min(row.most_ratio, most);
  }

  std::string name_;
  std::vector<NcclTestsRun> runs_;
  std::optional<Layout> layout_;
  bool only_in_place_ = false;
  std::size_t number_ = 0, rows_ = 0;
};

/// What all rows leave for the ratio of the bandwidths.
struct Ratio {
  double least = 0, most = std::numeric_limits<double>::infinity();
  bool known = false;
  bool holds(double value) const {
    constexpr double slack = 1e-3;
    return known && value >= least * (1 - slack) && value <= most * (1 + slack);
  }
};
Ratio ratio_of(const NcclTestsRun& run) {
  // The row that is printed with most digits: of several that contradict each other none is better.
  Ratio ratio;
  for (const NcclTestsRow& row : run.rows) {
    if (row.most_ratio <= 0 || row.most_ratio < row.least_ratio) continue;
    if (ratio.known && row.most_ratio - row.least_ratio >= ratio.most - ratio.least) continue;
    ratio = {row.least_ratio, row.most_ratio, true};
  }
  return ratio;
}

}  // namespace

std::string operation_named(std::string_view program) {
  program = program.substr(std::min(program.find_last_of('/') + 1, program.size()));
  if (const std::size_t end = program.find("_perf"); end != std::string_view::npos)
    program = program.substr(0, end);
  return std::string(program.substr(0, 40));
}

std::vector<NcclTestsRun> read_nccl_tests(const std::filesystem::path& file) {
  const std::string name = file.string();
  std::error_code error;
  if (!std::filesystem::exists(file, error))
    throw InputError(fmt::format("{}: no such file", name));
  if (!std::filesystem::is_regular_file(file, error))
    throw InputError(fmt::format("{}: not a file", name));
  std::vector<NcclTestsRun> runs;
  if (is_nccl_tests_json(file)) {
    runs = read_nccl_tests_json(file);
  } else {
    std::ifstream stream(file, std::ios::binary);
    Reader reader(name);
    std::array<char, 65536> line{};
    while (stream.getline(line.data(), line.size()) || stream.gcount() > 0) {
      if (stream.fail() && !stream.eof()) {  // no row is that long
        stream.clear();
        stream.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
        reader.take("");
        continue;
      }
      reader.take(std::string_view(line.data()));
    }
    runs = reader.finish();
  }
  if (runs.empty())
    throw InputError(
        fmt::format("{}: no rows of nccl-tests in it: expected what all_reduce_perf prints, or the "
                    "file of its -J",
                    name));
  return runs;
}

int ranks_of(const NcclTestsRun& run) {
  if (run.ranks > 0) return run.ranks;
  const Ratio ratio = ratio_of(run);
  if (!ratio.known || ratio.least >= 2 || ratio.most < 1) return 0;
  const double least = 2 / (2 - ratio.least), most = ratio.most < 2 ? 2 / (2 - ratio.most) : 1e9;
  // One whole number in the range, or none that is not a hair outside of it.
  const double from = std::ceil(least - 1e-3), to = std::floor(most + 1e-3);
  return from == to && from >= 2 ? static_cast<int>(from) : 0;
}

std::string operation_of(const NcclTestsRun& run) {
  if (!run.operation.empty()) return run.operation;
  if (run.rows.empty()) return "";
  const NcclTestsRow& row = run.rows.front();
  const bool reduces = !row.reduction.empty() && row.reduction != "none";
  const bool rooted = row.root.value_or(-1) >= 0;
  const Ratio ratio = ratio_of(run);
  const double n = run.ranks;
  if (rooted) return reduces ? "reduce" : "broadcast";
  if (!reduces) return run.ranks > 2 && ratio.holds((n - 1) / n) ? "all_gather" : "";
  if (run.ranks == 1 || (run.ranks == 0 && !ratio.known)) return run.ranks == 1 ? "all_reduce" : "";
  if (run.ranks == 0) return ratio.least >= 1 - 1e-3 ? "all_reduce" : "reduce_scatter";
  if (!ratio.known || ratio.holds(2 * (n - 1) / n)) return "all_reduce";
  return ratio.holds((n - 1) / n) ? "reduce_scatter" : "";
}

}  // namespace ddpsim
