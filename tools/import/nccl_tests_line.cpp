#include "tools/import/nccl_tests_line.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "scenarios/reader/text/quantity_text.hpp"

namespace ddpsim {
namespace {

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

bool is_type(std::string_view word) {
  constexpr std::array<std::string_view, 8> beginnings{"float", "half", "double", "bfloat",
                                                       "int",   "uint", "f8",     "fp8"};
  return std::any_of(beginnings.begin(), beginnings.end(),
                     [&](std::string_view beginning) { return word.starts_with(beginning); });
}

/// The reductions as nccl-tests prints them; of two names that begin alike the longer one comes
/// first.
constexpr std::array<std::string_view, 7> reductions{"sum", "prod",   "max", "min",
                                                     "avg", "mulsum", "none"};

bool begins_with_reduction(std::string_view word) {
  return std::any_of(reductions.begin(), reductions.end(),
                     [&](std::string_view name) { return word.starts_with(name); });
}

/// Without the escape sequences that colour a terminal: ESC [ numbers m.
std::string without_colours(std::string_view line) {
  std::string text;
  for (std::size_t at = 0; at < line.size();) {
    const std::size_t end = line.substr(at, 2) == "\x1b["
                                ? line.find_first_not_of("0123456789;", at + 2)
                                : std::string_view::npos;
    if (end != std::string_view::npos && line[end] == 'm')
      at = end + 1;
    else
      text += line[at++];
  }
  return text;
}

}  // namespace

LineWords words_of(std::string_view line) {
  LineWords words;
  for (std::size_t at = 0; at < line.size();) {
    const std::size_t begin = line.find_first_not_of(" \t\r\n", at);
    if (begin == std::string_view::npos) break;
    at = std::min(line.find_first_of(" \t\r\n", begin), line.size());
    words.push_back(line.substr(begin, at - begin));
  }
  return words;
}

std::optional<std::size_t> find_words(const LineWords& words, const LineWords& wanted) {
  const auto found = std::search(words.begin(), words.end(), wanted.begin(), wanted.end());
  if (found == words.end()) return std::nullopt;
  return static_cast<std::size_t>(found - words.begin());
}

std::string bare_line(std::string_view given) {
  const std::string coloured =
      given.find('\x1b') == std::string_view::npos ? "" : without_colours(given);
  std::string_view line = coloured.empty() ? given : std::string_view(coloured);
  const auto trim = [&] {
    line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
  };
  trim();
  const std::size_t tag = line.find(']');
  if (line.starts_with('[') && tag != std::string_view::npos && tag < 32) {
    line.remove_prefix(tag + 1);
    if (line.starts_with("<std")) line.remove_prefix(std::min(line.find('>'), line.size() - 1) + 1);
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
  return std::string(line);
}

std::size_t Layout::left() const {
  return static_cast<std::size_t>(out_of_place >= 0 ? out_of_place : in_place);
}

std::size_t Layout::width() const {
  if (out_of_place >= 0 && in_place >= 0) return static_cast<std::size_t>(in_place - out_of_place);
  return columns - left();
}

std::optional<Layout> layout_of(const LineWords& words, std::size_t from, bool only_in_place) {
  const auto count = static_cast<int>(words.size() - from);
  if (count < 6) return std::nullopt;
  Layout layout;
  layout.columns = static_cast<std::size_t>(count);
  std::vector<int> times;
  for (int column = 3; column < count; ++column) {
    const std::string_view word = words[from + static_cast<std::size_t>(column)];
    if (word == "redop") layout.reduction = column;
    if (word == "root") layout.root = column;
    if (word == "time" || word == "cputime") times.push_back(column);
    if (word == "cputime") layout.of_device = false;
  }
  if (times.empty() || times.size() > 2 || times.back() + 2 >= count) return std::nullopt;
  // What tells what was measured stands before the times.
  if (layout.reduction > times[0] || layout.root > times[0]) return std::nullopt;
  if (times.size() == 2) {
    layout.out_of_place = times[0];
    layout.in_place = times[1];
  } else {
    (only_in_place ? layout.in_place : layout.out_of_place) = times[0];
  }
  const auto width = static_cast<int>(layout.width());
  return width >= 3 && times.back() + width <= count ? std::optional(layout) : std::nullopt;
}

std::optional<Layout> layout_without_header(std::size_t columns, bool only_in_place) {
  LineWords words{"size", "count", "type"};
  const bool both = columns >= 11;
  const std::size_t more = columns - (both ? 8 : 4);
  if (columns < 7 || more < 3 || more > 5) return std::nullopt;
  if (more >= 4) words.emplace_back("redop");
  if (more == 5) words.emplace_back("root");
  for (int placement = 0; placement < (both ? 2 : 1); ++placement)
    words.insert(words.end(), {"time", "algbw", "busbw", "#wrong"});
  return layout_of(words, 0, only_in_place);
}

std::optional<std::size_t> row_in(const LineWords& words, const std::optional<Layout>& layout) {
  for (std::size_t i = 0; i + 2 < words.size(); ++i) {
    if (!is_type(words[i + 2]) || !parse_integer(words[i]) || !parse_integer(words[i + 1]))
      continue;
    const int column = layout ? layout->reduction : 3;  // as most versions have it
    const std::size_t reduction = i + static_cast<std::size_t>(std::max(column, 0));
    if (i == 0 || column < 0 ||
        (reduction < words.size() && begins_with_reduction(words[reduction])))
      return i;
  }
  return std::nullopt;
}

std::optional<Ended<int>> root_in(std::string_view word) {
  constexpr std::int64_t most = 10'000'000;
  const auto whole = parse_integer(word);
  if (whole && *whole >= -1 && *whole <= most) return Ended<int>{static_cast<int>(*whole), false};
  if (word.starts_with("-1")) return Ended<int>{-1, true};
  int rank = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), rank);
  if (error != std::errc{} || rank < 0 || rank > most || whole) return std::nullopt;
  return Ended<int>{rank, end != word.data() + word.size()};
}

Ended<std::string> reduction_in(std::string_view word) {
  for (const std::string_view name : reductions)
    if (word.starts_with(name)) return {std::string(name), word.size() > name.size()};
  return {std::string(word.substr(0, 20)), false};
}

Printed printed_number(std::string_view text) {
  const auto value = parse_number(text);
  if (!value || *value < 0) return {};
  const std::size_t point = text.find('.');
  const auto decimals =
      point == std::string_view::npos ? 0 : static_cast<double>(text.size() - point - 1);
  const bool exponent = text.find_first_of("eE") != std::string_view::npos;
  return {*value, exponent ? 0.05 * *value : 0.5 * std::pow(10.0, -std::min(decimals, 20.0))};
}

bool agree(Bytes size, Printed time, Printed algorithm, Printed bus) {
  const auto bytes = static_cast<double>(size.count);
  constexpr double slack = 1.01;  // bandwidths are of the time before it was rounded
  const double least = bytes / (time.value + time.margin) / 1e3 / slack,
               most = bytes / std::max(time.value - time.margin, 1e-9) / 1e3 * slack;
  return time.value > 0 && algorithm.value + algorithm.margin >= least &&
         algorithm.value - algorithm.margin <= most &&
         bus.value - bus.margin <= 2 * (algorithm.value + algorithm.margin);
}

bool is_number(std::string_view word) {
  return word == "N/A" || word == "nan" || word == "-nan" || parse_number(word).has_value();
}

std::optional<std::size_t> piece_in(const LineWords& words, std::size_t from, const Layout& layout,
                                    Bytes size) {
  const std::size_t width = layout.width();
  if (!layout.of_device) return std::nullopt;
  for (std::size_t i = from; i + width <= words.size(); ++i) {
    bool numbers = true;
    for (std::size_t k = 0; k + 1 < width && numbers; ++k) numbers = is_number(words[i + k]);
    const std::string_view last = words[i + width - 1];
    if (numbers && (is_digit(last[0]) || last.starts_with("N/A")) &&
        agree(size, printed_number(words[i]), printed_number(words[i + 1]),
              width > 3 ? printed_number(words[i + 2]) : Printed{}))
      return i;
  }
  return std::nullopt;
}

bool says_wrong(std::string_view word) {
  if (const auto whole = parse_integer(word)) return *whole != 0;
  // Joined with another word, "0node-1:4978": a number that begins with 0 is 0.
  if (parse_number(word) || word.empty() || !is_digit(word[0]) || word[0] == '0') return false;
  double number = 1;
  const char* const end = std::from_chars(word.data(), word.data() + word.size(), number).ptr;
  const std::string_view text(word.data(), static_cast<std::size_t>(end - word.data()));
  return text.find_first_of(".eE") == std::string_view::npos;
}

}  // namespace ddpsim
