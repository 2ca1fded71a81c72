#include "scenarios/reader/text/to_import.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <initializer_list>
#include <sstream>
#include <utility>

#include <fmt/format.h>

namespace ddpsim {
namespace {

std::string command(std::string_view kind, const std::string& file, std::string_view made) {
  return fmt::format("ddpsim import {} {} -o {}", kind, file, made);
}

std::string of_nccl_tests(std::string_view what, const std::string& file) {
  return fmt::format("this is {} of nccl-tests; make a link of it: {}", what,
                     command("nccl-tests", file, "link.yaml"));
}

bool has_all(std::string_view text, std::initializer_list<std::string_view> words) {
  return std::ranges::all_of(
      words, [&](std::string_view word) { return text.find(word) != std::string_view::npos; });
}

bool is_whole_number(const std::string& word) {
  return !word.empty() &&
         std::ranges::all_of(word, [](unsigned char c) { return std::isdigit(c) != 0; });
}

/// A row says bytes, elements and the name of a type, behind what a launcher puts before it.
bool is_row_of_nccl_tests(const std::string& line) {
  constexpr std::array<std::string_view, 12> types{"float", "half",   "double", "bfloat16",
                                                   "int8",  "uint8",  "int32",  "uint32",
                                                   "int64", "uint64", "f8e4m3", "f8e5m2"};
  std::istringstream words(line);
  std::string before, last;
  for (std::string word; words >> word; before = std::exchange(last, word))
    if (is_whole_number(before) && is_whole_number(last) &&
        std::ranges::find(types, word) != types.end())
      return true;
  return false;
}

/// The header of the CSV of rccl-tests.
bool is_header_of_csv(std::string line) {
  std::ranges::transform(line, line.begin(), [](unsigned char c) { return std::tolower(c); });
  return has_all(line, {",", "algbw", "busbw"});
}

}  // namespace

std::string json_to_import(const std::string& file, std::string_view text) {
  const std::string trace = command("torch-trace", file, "profile.yaml");
  if (text.starts_with("\x1f\x8b"))
    return "this is compressed; if it is a trace of PyTorch's profiler, make a workload profile of "
           "it: " +
           trace;
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos || (text[first] != '{' && text[first] != '[')) return "";
  if (has_all(text, {"\"traceEvents\""}) ||
      has_all(text, {"\"schemaVersion\"", "\"deviceProperties\""}))
    return "this is a trace of PyTorch's profiler; make a workload profile of it: " + trace;
  if (has_all(text, {"\"results\"", "\"out_of_place\""}) || has_all(text, {"\"inPlace\"", "busBw"}))
    return of_nccl_tests("the JSON", file);
  return "";
}

std::string log_to_import(const std::string& file, std::string_view text) {
  bool of_nccl = false;
  std::istringstream lines{std::string(text)};
  for (std::string line; std::getline(lines, line);) {
    const std::size_t first = line.find_first_not_of(" \t");
    if (first == std::string::npos || line[first] == '#') continue;
    if (is_row_of_nccl_tests(line) || is_header_of_csv(line)) return of_nccl_tests("a log", file);
    of_nccl = of_nccl || has_all(line, {" NCCL INFO "});
  }
  if (!of_nccl) return "";
  return "this is what NCCL prints with NCCL_DEBUG=INFO; make a cluster of it: " +
         command("nccl-log", file, "cluster.yaml");
}

}  // namespace ddpsim
