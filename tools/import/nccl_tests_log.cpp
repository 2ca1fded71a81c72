#include "tools/import/nccl_tests_log.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <fstream>
#include <limits>
#include <map>
#include <set>
#include <string_view>

#include <fmt/format.h>

#include "scenarios/reader/text/input_error.hpp"
#include "scenarios/reader/text/quantity_text.hpp"
#include "tools/import/nccl_tests_json.hpp"
#include "tools/import/nccl_tests_line.hpp"
#include "tools/import/rccl_tests_file.hpp"

namespace ddpsim {
namespace {

/// The least that several ranks have: two that gather or scatter, (n - 1) / n.
constexpr double least_ratio_of_ranks = 0.45;

/// A row of which not all pieces have been read: NCCL printed something in between.
struct BrokenRow {
  NcclTestsRow row;
  bool wrong = false;
  int contradicting = 0;         ///< pieces whose time and bandwidths contradict each other
  std::vector<bool> placements;  ///< [piece that is still to come] is it in place?
};

class LogReader {
 public:
  explicit LogReader(std::string name) : name_(std::move(name)) {}

  void take(std::string_view given) {
    ++number_;
    const std::optional<std::string> within = line_in_json(given);
    const std::string line = bare_line(within ? std::string_view(*within) : given);
    const LineWords words = words_of(line);
    if (words.empty()) return;
    const auto row = row_in(words, layout_);
    if (broken_ && !row && take_pieces(words, 0)) return;
    take_head(words, line);
    if (const auto size = find_words(words, {"size", "count", "type"})) {
      if (const auto layout = layout_of(words, *size, only_in_place_)) take_header(*layout);
      return;
    }
    if (row) {
      leave_broken();
      take_row(LineWords(words.begin() + static_cast<std::ptrdiff_t>(*row), words.end()), *row > 0);
    } else if (layout_ && std::all_of(words[0].begin(), words[0].end(),
                                      [](unsigned char c) { return std::isdigit(c) != 0; })) {
      leave_out(line);  // a row that breaks off, or of a size beyond all numbers
    }
  }

  std::vector<NcclTestsRun> finish() {
    leave_broken();
    std::erase_if(runs_,
                  [](const NcclTestsRun& each) { return each.rows.empty() && each.wrong == 0; });
    return std::move(runs_);
  }

  /// A line that began like a row and was left out; "" if there was none.
  const std::string& left_out() const { return left_out_; }

 private:
  [[noreturn]] void refuse(std::string_view problem) const {
    throw InputError(fmt::format("{}:{}:1: {}", name_, number_, problem));
  }

  NcclTestsRun& run() {
    if (runs_.empty()) runs_.emplace_back();
    return runs_.back();
  }
  /// What follows belongs to another run, if this one has rows already; else it begins anew, as
  /// where a program failed before its first row.
  void begin_run() {
    group_ranks_.clear();
    hosts_.clear();
    if (run().rows.empty()) {
      run().ranks = run().programs = run().nodes = 0;
      run().ranks_of_nodes.clear();
      return;
    }
    runs_.emplace_back();
    layout_.reset();
    only_in_place_ = false;
  }

  void take_header(const Layout& layout) {
    leave_broken();
    // Two beginnings, and then two headers, are of two programs at once.
    const bool other_program = begun_ == 0 && begun_before_ > 1;
    begun_before_ = begun_;
    begun_ = 0;
    if (!run().rows.empty()) begin_run();
    if (other_program) run().programs = 2;
    layout_ = layout;
  }

  void take_head(const LineWords& words, std::string_view line) {
    const auto behind = [&](const LineWords& wanted) -> std::optional<std::string_view> {
      const auto at = find_words(words, wanted);
      if (!at || *at + wanted.size() >= words.size()) return std::nullopt;
      return words[*at + wanted.size()];
    };
    const auto operation = behind({"Collective", "test", "starting:"});
    const auto version = behind({"nccl-tests", "version"});
    if (behind({"nThread"})) ++begun_;
    if (behind({"nThread"}) ||
        (words.back() == "devices" && find_words(words, {"Using", "devices"})) || operation ||
        version) {
      leave_broken();
      begin_run();
    }
    for (const LineWords& before : {LineWords{"maxBytes"}, LineWords{"Reducing", "maxBytes", "to"}})
      if (const auto most = behind(before))
        if (const auto bytes = parse_integer(*most)) run().most_bytes = *bytes;
    if (const auto together = behind({"agg", "iters:"}))
      run().issued_together = parse_integer(*together).value_or(1);
    if (operation) run().operation = operation_named(*operation);
    if (version) run().version = version->substr(0, 40);
    if (const auto rank = behind({"Rank"}); rank && find_words(words, {"Pid"}))
      if (const auto number = parse_integer(*rank)) take_device(words, *number, line);
    if (line.find("out-of-place") != std::string_view::npos)
      only_in_place_ = false;
    else if (words.back() == "in-place")
      only_in_place_ = true;
  }

  void take_device(const LineWords& words, std::int64_t rank, std::string_view line) {
    ++run().ranks;
    if (rank == 0) ++run().programs;
    if (const auto group = find_words(words, {"Group"}); group && *group + 1 < words.size())
      if (const auto number = parse_integer(words[*group + 1]);
          number && (group_ranks_.size() < most_groups || group_ranks_.contains(*number)))
        ++group_ranks_[*number];
    // With several groups (NCCL_TESTS_SPLIT) each reduces for itself.
    if (group_ranks_.size() > 1) run().ranks = group_ranks_.begin()->second;
    take_host(words);
    const std::size_t bus = line.rfind(']');
    if (run().device.empty() && bus != std::string_view::npos) {
      const LineWords name = words_of(line.substr(bus + 1));
      for (const std::string_view word : name)
        run().device += fmt::format("{}{}", run().device.empty() ? "" : " ", word.substr(0, 60));
    }
  }

  /// "... on node-1 device 0 [0x04] ...". Hosts of one name whose devices are listed twice, as
  /// containers may be, are not told apart.
  void take_host(const LineWords& words) {
    const auto on = find_words(words, {"on"});
    if (on && *on + 3 < words.size() && words[*on + 2] == "device" && hosts_.size() < most_hosts)
      hosts_[std::string(words[*on + 1].substr(0, 100))].insert(
          std::string(words[*on + 3].substr(0, 20)));
    std::size_t devices = 0;
    for (const auto& [host, of_host] : hosts_) devices += of_host.size();
    const bool told_apart = group_ranks_.size() < 2 && run().ranks == static_cast<int>(devices);
    run().nodes = told_apart ? static_cast<int>(hosts_.size()) : 0;
    run().ranks_of_nodes.clear();
    if (told_apart)
      for (const auto& [host, of_host] : hosts_)
        run().ranks_of_nodes.push_back(static_cast<int>(of_host.size()));
  }

  /// `prefixed`: other words stood before it.
  void take_row(const LineWords& words, bool prefixed) {
    if (run().programs > 1)
      throw InputError(fmt::format("{}: {}", name_, programs_alone(run().programs)));
    const std::optional<Layout> layout =
        layout_ ? layout_ : layout_without_header(words.size(), only_in_place_);
    if (!layout && prefixed) return leave_out(text_of(words));
    if (!layout) refuse("a row of nccl-tests, but what its columns are is not said above it");
    const auto size = parse_integer(words[0]);
    constexpr std::int64_t largest = std::int64_t{1} << 50;
    const std::size_t left = layout->left();
    // A time stamp (-S) stands after the last column.
    const std::size_t beyond = words.size() - std::min(layout->columns, words.size());
    const bool whole = words.size() >= layout->columns && (beyond == 0 || beyond == 2);
    const bool numbers =
        std::all_of(words.begin() + static_cast<std::ptrdiff_t>(std::min(left, words.size())),
                    words.end(), is_number);
    if (!whole && words.size() < left && prefixed) return leave_out(text_of(words));
    if (!whole && (words.size() < left || (numbers && words.size() > left)))
      refuse(fmt::format("expected {} columns as in the header above, got {}: is the log cut off?",
                         layout->columns, words.size()));
    if (!size || *size < 0 || *size > largest) refuse("expected a size in bytes");
    if (*size == 0) return;  // all-gather and reduce-scatter round small sizes down to it
    if (++rows_ > 1'000'000) refuse("more than a million rows");
    auto [broken, joined] = left_half(words, *layout, Bytes{*size});
    if (!whole || joined || !numbers_or_stamp(words, *layout)) {
      broken_ = std::move(broken);
      take_pieces(words, left);
      return;
    }
    for (const bool in_place : broken.placements)
      take_piece(words,
                 static_cast<std::size_t>(in_place ? layout->in_place : layout->out_of_place),
                 *layout, in_place, broken);
    keep(broken);
  }

  /// What a row says before its times, and whether something is joined with the end of that.
  Ended<BrokenRow> left_half(const LineWords& words, const Layout& layout, Bytes size) const {
    Ended<BrokenRow> half;
    NcclTestsRow& row = half.value.row;
    row.size = size;
    row.type = words[2].substr(0, 20);
    const auto word = [&](int column) { return words[static_cast<std::size_t>(column)]; };
    if (layout.reduction >= 0) {
      const Ended<std::string> reduction = reduction_in(word(layout.reduction));
      row.reduction = reduction.value;
      half.joined = reduction.joined;
    }
    if (layout.root >= 0) {
      const auto root = root_in(word(layout.root));
      if (!root) refuse("expected a rank, or -1, as root");
      row.root = root->value;
      half.joined = root->joined;
    }
    for (const bool in_place : {false, true})
      if ((in_place ? layout.in_place : layout.out_of_place) >= 0)
        half.value.placements.push_back(in_place);
    return half;
  }

  /// Is what stands in the columns of the times what may stand there, and nothing joined with it?
  static bool numbers_or_stamp(const LineWords& words, const Layout& layout) {
    for (std::size_t i = layout.left(); i + 1 < layout.columns; ++i)
      if (words[i].find_first_of("[<:") != std::string_view::npos) return false;
    return words[layout.columns - 1].find_first_of("[<:") == std::string_view::npos;
  }

  /// Pieces of the row under way, from this word on; false if there is none of them.
  bool take_pieces(const LineWords& words, std::size_t from) {
    const std::optional<Layout> layout = layout_;
    bool taken = false;
    while (broken_ && layout) {
      const auto at = piece_in(words, from, *layout, broken_->row.size);
      if (!at) break;
      const bool in_place = broken_->placements.front();
      take_piece(words, *at, *layout, in_place, *broken_);
      broken_->placements.erase(broken_->placements.begin());
      from = *at + layout->width();
      taken = true;
      if (!broken_->placements.empty()) continue;
      keep(*broken_);
      broken_.reset();
    }
    return taken;
  }

  /// The time and the check of one placement, whose time is the word `at`.
  void take_piece(const LineWords& words, std::size_t at, const Layout& layout, bool in_place,
                  BrokenRow& into) const {
    if (layout.width() > 3 && says_wrong(words[at + 3])) {
      into.wrong = true;
      return;
    }
    const std::optional<Duration> taken = time(words[at]);
    const Printed algorithm = printed_number(words[at + 1]), bus = printed_number(words[at + 2]);
    if (taken && layout.of_device && algorithm.value > 0 &&
        !agree(into.row.size, printed_number(words[at]), algorithm, bus)) {
      ++into.contradicting;
      return;
    }
    (in_place ? into.row.in_place : into.row.out_of_place) = taken;
    note_ratio(into.row, algorithm, bus);
  }

  void keep(BrokenRow& whole) {
    const bool kept = whole.row.out_of_place || whole.row.in_place;
    if (whole.wrong) ++run().wrong;
    if (whole.wrong && kept) ++run().wrong_half;
    run().contradicting += whole.contradicting;
    if (kept)
      run().rows.push_back(std::move(whole.row));
    else if (!whole.wrong && whole.contradicting == 0)
      ++run().unread;
  }

  void leave_broken() {
    if (!broken_) return;
    broken_.reset();
    ++run().unread;
  }

  void leave_out(const std::string& line) {
    ++run().unread;
    if (left_out_.empty()) left_out_ = fmt::format("line {}: {}", number_, line.substr(0, 100));
  }

  static std::string text_of(const LineWords& words) {
    std::string text;
    for (const std::string_view word : words)
      if (text.size() < 100) text += fmt::format("{}{}", text.empty() ? "" : " ", word);
    return text;
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

  static constexpr std::size_t most_groups = 10'000, most_hosts = 10'000;
  std::string name_;
  std::vector<NcclTestsRun> runs_;
  std::optional<Layout> layout_;
  std::optional<BrokenRow> broken_;
  std::map<std::int64_t, int> group_ranks_;
  std::map<std::string, std::set<std::string>>
      hosts_;  ///< with the devices of each that are listed
  std::string left_out_;
  int begun_ = 0, begun_before_ = 0;  ///< "nThread" since the last header, and before that
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

/// Is the first line with anything on it the header of rccl-tests' CSV?
bool begins_with_rccl_header(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  std::array<char, 1024> line{};
  while (stream.getline(line.data(), line.size()))
    if (!words_of(line.data()).empty()) return is_rccl_header(line.data());
  return stream.gcount() > 0 && stream.eof() && is_rccl_header(line.data());
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
  std::string left_out;
  if (is_nccl_tests_json(file)) {
    runs = read_nccl_tests_json(file);
  } else if (begins_with_rccl_header(file)) {
    runs = read_rccl_csv(file);
  } else {
    std::ifstream stream(file, std::ios::binary);
    LogReader reader(name);
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
    left_out = reader.left_out();
  }
  if (runs.empty())
    throw InputError(fmt::format(
        "{}: no rows of nccl-tests in it: expected what all_reduce_perf prints, or the file of its "
        "-J{}",
        name, left_out.empty() ? "" : fmt::format("; not read as a row: {}", left_out)));
  return runs;
}

void note_ratio(NcclTestsRow& row, Printed algorithm, Printed bus) {
  if (algorithm.value <= 2 * algorithm.margin) return;
  const double least = std::max(0.0, bus.value - bus.margin) / (algorithm.value + algorithm.margin);
  const double most = (bus.value + bus.margin) / (algorithm.value - algorithm.margin);
  // A bus bandwidth that rounds to 0 tells something where the other one is large: one rank.
  if (bus.value <= bus.margin && most >= least_ratio_of_ranks) return;
  const bool first = row.most_ratio == 0;
  row.least_ratio = first ? least : std::max(row.least_ratio, least);
  row.most_ratio = first ? most : std::min(row.most_ratio, most);
}

std::string programs_alone(int programs) {
  return fmt::format(
      "{} programs ran side by side, each alone, with a rank 0 of its own: nothing crossed a link "
      "between them; build nccl-tests with MPI=1",
      programs);
}

bool contradicts_ranks(const NcclTestsRun& run) {
  const Ratio ratio = ratio_of(run);
  const double n = run.ranks;
  return run.ranks > 0 && ratio.known && !ratio.holds(2 * (n - 1) / n);
}

int ranks_of(const NcclTestsRun& run) {
  if (run.ranks > 0) return run.ranks;
  const Ratio ratio = ratio_of(run);
  if (ratio.known && ratio.most < least_ratio_of_ranks) return 1;
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
