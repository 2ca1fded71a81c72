// The file is of 200 lines and read by every `run`: lines are taken apart here, which takes a tenth
// of a millisecond; as YAML it takes ten.

#include "scenarios/reader/scenario/accuracy_reader.hpp"

#include <charconv>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string_view>

#include <fmt/format.h>

#include "scenarios/reader/catalogue/catalogue.hpp"
#include "scenarios/reader/format/yaml.hpp"
#include "scenarios/reader/text/input_error.hpp"

namespace ddpsim {
namespace {

constexpr std::string_view header = "fitted,steps,device,link,ranks,compute,errors,setup";
constexpr int most_ranks = 1 << 20;
/// The predicted step is some part of the measured one, so that there is a factor between them.
constexpr double least_error = -0.9999, most_error = 1e6;

/// What stands before the next `separator`, which goes too; all that is left where there is none.
std::string_view taken(std::string_view& text, char separator) {
  const std::size_t end = text.find(separator);
  const std::string_view field = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return field;
}

template <typename Number>
std::optional<Number> number_of(std::string_view text) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<FittedOn> fitted_named(std::string_view name) {
  for (const FittedOn fitted : all_fitted_on)
    if (name_of(fitted) == name) return fitted;
  return std::nullopt;
}

/// Reads a row of the table; none if the line does not have the form of a row.
std::optional<KnownErrors> known_errors(std::string_view line) {
  KnownErrors row;
  const auto fitted = fitted_named(taken(line, ','));
  const std::string_view steps = taken(line, ',');
  row.sharded = steps == "sharded";
  row.device = taken(line, ',');
  row.link = taken(line, ',');
  const auto ranks = number_of<int>(taken(line, ','));
  const std::string_view compute = taken(line, ',');
  row.compute = dtype_named(compute);
  std::string_view errors = taken(line, ',');
  row.setup = line;
  if (!fitted || (!row.sharded && steps != "replicated") || row.device.empty() || !ranks ||
      *ranks < 1 || *ranks > most_ranks || (!compute.empty() && !row.compute) || errors.empty() ||
      row.setup.empty())
    return std::nullopt;
  row.fitted = *fitted;
  row.ranks = *ranks;
  while (!errors.empty()) {
    const auto error = number_of<double>(taken(errors, ' '));
    if (!error || !(*error >= least_error && *error <= most_error)) return std::nullopt;
    row.errors.push_back(*error);
  }
  return row;
}

}  // namespace

static std::filesystem::path accuracy_file() {
  return catalogue_folder() / "accuracy.csv";
}

std::string why_no_known_errors() {
  const std::filesystem::path file = accuracy_file();
  if (const std::string why = unreadable(file); !why.empty()) return file.string() + ": " + why;
  return std::ifstream(file) ? "" : file.string() + ": cannot be read";
}

std::vector<KnownErrors> read_known_errors() {
  const std::filesystem::path file = accuracy_file();
  std::ifstream lines(file);
  std::vector<KnownErrors> rows;
  std::string line;
  int number = 0;
  while (std::getline(lines, line)) {
    ++number;
    if (line.empty() || line.front() == '#' || line == header) continue;
    const auto row = known_errors(line);
    if (!row)
      throw InputError(fmt::format(
          "{}:{}:1: expected {}, errors with blanks between them; tools/accuracy writes this file",
          file.string(), number, header));
    rows.push_back(*row);
  }
  return rows;
}

}  // namespace ddpsim
