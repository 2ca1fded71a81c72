#include "tools/sweep/sweep_reader.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>
#include <span>
#include <sstream>
#include <unordered_map>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "model/base/printable.hpp"
#include "scenarios/reader/text/input_error.hpp"
#include "tools/report/writers/csv.hpp"
#include "tools/report/writers/json_writer.hpp"

namespace ddpsim {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::uintmax_t largest_file = std::uintmax_t{2} << 30;
constexpr std::size_t longest_quote = 60;

/// Takes the rows of a file one by one and finds their points.
class Collector {
 public:
  Collector(const Sweep& sweep, const std::string& path)
      : sweep_(sweep),
        path_(path),
        columns_(sweep_columns(sweep)),
        results_(sweep.grid.points()),
        next_(sweep.grid.points()) {
    for (const Axis& axis : sweep.grid.axes()) {
      auto& index = index_.emplace_back();
      for (std::size_t v = 0; v < axis.values.size(); ++v) {
        index.emplace(axis.values[v], v);
        index.emplace(printable(axis.values[v], "\n\t"), v);  // as csv_field() writes it
      }
    }
  }

  const std::vector<Field>& columns() const { return columns_; }
  /// How many columns a row of an earlier release has: all but the last, its checksum.
  std::size_t unsealed_columns() const { return columns_.size() - 1; }

  [[noreturn]] void refuse(const std::string& place, const std::string& problem) const {
    throw InputError(
        fmt::format("{}{}: {}; take another file, or remove this one", path_, place, problem));
  }

  /// `value` of a column, read from `text`.
  FieldValue checked(const std::string& place, std::size_t column,
                     const std::optional<FieldValue>& value, const std::string& text) const {
    const Field& field = columns_[column];
    if (!value)
      refuse(place, fmt::format("{}: expected a {}, got \"{}\"", field.name,
                                field.kind == ValueKind::text ? "text" : "number",
                                text.substr(0, longest_quote)));
    return *value;
  }

  /// `row`: a value for each column, or for each but the last.
  void add(TableRow row, const std::string& place) {
    check_sum(row, place);
    const std::size_t point = point_of(row, place), axes = index_.size();
    const auto figures_end = row.begin() + static_cast<std::ptrdiff_t>(row.size() - 3);
    const std::string error = text_of(figures_end[0]);
    if (text_of(figures_end[1]) != computed_from(sweep_, point))
      refuse(place,
             "the scenario, a file it names, a setting or the program is not what it was when "
             "this row was computed");
    const std::vector<Strategy>& strategies = strategies_of(sweep_, point);
    PointResult& result = results_[point];
    // Rows may be missing: their point is not whole then.
    const auto strategy =
        std::find_if(strategies.begin() + next_[point], strategies.end(),
                     [&](Strategy each) { return text_of(row[axes]) == name_of(each); });
    if (!result.error.empty() || (!error.empty() && next_[point] > 0) ||
        (error.empty() && strategy == strategies.end()))
      refuse(place, "this row is one too many for its point, or out of order");
    if (error.empty()) next_[point] = strategy - strategies.begin() + 1;
    result.error = error;
    if (error.empty())
      result.rows.emplace_back(row.begin() + static_cast<std::ptrdiff_t>(axes), figures_end);
  }

  /// The file is going to be written anew, without them.
  void note_comments(int lines) {
    note_ += fmt::format(
        "{}{}: {} of a comment {} read over, and not kept", note_.empty() ? "" : "; ", path_,
        lines == 1 ? "a line" : fmt::format("{} lines", lines), lines == 1 ? "is" : "are");
  }

  /// What is there whole.
  KnownPoints finish() {
    for (std::size_t point = 0; point < results_.size(); ++point)
      if (PointResult& result = results_[point];
          result.error.empty() && result.rows.size() < strategies_of(sweep_, point).size())
        result.rows.clear();
    return {std::move(results_), note_};
  }

 private:
  /// Leaves an empty checksum in a row that has none.
  void check_sum(TableRow& row, const std::string& place) {
    if (row.size() == unsealed_columns()) {
      note_ = fmt::format(
          "{} has rows without a checksum: an earlier release wrote them; damage would not be "
          "noticed",
          path_);
      row.emplace_back();
      return;
    }
    const std::string said = text_of(row.back()), holds = checksum_of(columns_, row);
    if (said != holds)
      throw InputError(fmt::format(
          "{}{}: this row is not as ddpsim wrote it: its {} says \"{}\", and what is here has "
          "\"{}\"; remove the row, and its point is computed again",
          path_, place, columns_.back().name, said.substr(0, longest_quote), holds));
  }

  static std::string text_of(const FieldValue& value) {
    return value.text() == nullptr ? std::string() : *value.text();
  }

  std::size_t point_of(const TableRow& row, const std::string& place) const {
    std::vector<std::size_t> indices;
    for (std::size_t a = 0; a < index_.size(); ++a) {
      const std::string value = text_of(row[a]);
      const auto found = index_[a].find(value);
      if (found == index_[a].end())
        refuse(place, fmt::format("{}={} is no point of this grid", columns_[a].name,
                                  value.substr(0, longest_quote)));
      indices.push_back(found->second);
    }
    return sweep_.grid.point_of(indices);
  }

  const Sweep& sweep_;
  const std::string& path_;
  std::vector<Field> columns_;
  std::vector<std::unordered_map<std::string, std::size_t>> index_;  ///< [axis] of a value
  PointResults results_;
  std::vector<std::ptrdiff_t> next_;  ///< [point] the strategies of which no row may come any more
  std::string note_;
};

/// The text of a file; none if there is no such file.
std::optional<std::string> content_of(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return std::nullopt;
  if (std::filesystem::file_size(path, error) > largest_file)
    throw InputError(fmt::format("{}: larger than 2 GiB: take another file", path));
  std::ifstream file(path, std::ios::binary);
  std::ostringstream content;
  content << file.rdbuf();
  if (!file) throw InputError(fmt::format("{}: cannot be read", path));
  return content.str().empty() ? std::nullopt : std::optional(content.str());
}

/// `expected`: the number of fields of the header.
void add_csv_record(Collector& collector, const CsvRecord& record, std::size_t expected) {
  const std::string place = fmt::format(":{}", record.line);
  const std::vector<Field>& columns = collector.columns();
  if (record.fields.size() != expected)
    collector.refuse(place,
                     fmt::format("expected {} fields, got {}", expected, record.fields.size()));
  TableRow row;
  for (std::size_t c = 0; c < expected; ++c)
    row.push_back(collector.checked(place, c, value_from_csv(columns[c].kind, record.fields[c]),
                                    record.fields[c]));
  collector.add(std::move(row), place);
}

void add_json_object(Collector& collector, const Json& object, const std::string& place) {
  const std::vector<Field>& columns = collector.columns();
  TableRow row;
  for (const auto& [key, value] : object.items()) {
    if (row.size() == columns.size() || key != columns[row.size()].name)
      collector.refuse(place, "no result of this sweep: other columns");
    row.push_back(collector.checked(
        place, row.size(), value_from_json(columns[row.size()].kind, value), one_line(value)));
  }
  if (row.size() < collector.unsealed_columns())
    collector.refuse(place, fmt::format("expected {} fields, got {}", columns.size(), row.size()));
  collector.add(std::move(row), place);
}

/// The names of all columns, or of all but the checksum.
bool is_header(const Collector& collector, const CsvRecord& record) {
  const std::vector<Field>& columns = collector.columns();
  const std::size_t fields = record.fields.size();
  return (fields == columns.size() || fields == collector.unsealed_columns()) &&
         std::ranges::equal(record.fields, std::span(columns).first(fields), {}, {}, &Field::name);
}

/// "column 2 is "cluster.nodes", where this sweep has "cluster.ranks""
std::string differing_column(const Collector& collector, const CsvRecord& header) {
  const std::vector<Field>& columns = collector.columns();
  for (std::size_t c = 0; c < columns.size(); ++c)
    if (c >= header.fields.size() || header.fields[c] != columns[c].name)
      return fmt::format("column {} is {}, where this sweep has \"{}\"", c + 1,
                         c < header.fields.size()
                             ? fmt::format("\"{}\"", printable(header.fields[c].substr(0, 40)))
                             : "missing",
                         columns[c].name);
  return fmt::format("it has {} columns, this sweep {}", header.fields.size(), columns.size());
}

}  // namespace

KnownPoints sweep_csv_points(const Sweep& sweep, const std::string& text, const std::string& name) {
  Collector collector(sweep, name);
  CsvReader reader(text);
  CsvRecord record;
  int comments = reader.skip_comments();
  if (!reader.next(record) || !reader.complete() || !is_header(collector, record))
    collector.refuse(fmt::format(":{}", record.line),
                     "no result of this sweep: " + differing_column(collector, record));
  const std::size_t expected = record.fields.size();
  while (comments += reader.skip_comments(), reader.next(record))
    if (reader.complete())  // else it breaks off here, and its point is computed again
      add_csv_record(collector, record, expected);
  if (comments > 0) collector.note_comments(comments);
  return collector.finish();
}

KnownPoints read_sweep_csv(const Sweep& sweep, const std::string& path) {
  const auto content = content_of(path);
  if (!content) return Collector(sweep, path).finish();
  return sweep_csv_points(sweep, *content, path);
}

KnownPoints read_sweep_json(const Sweep& sweep, const std::string& path) {
  Collector collector(sweep, path);
  const auto content = content_of(path);
  if (!content) return collector.finish();
  std::size_t row = 0;
  // Rows are taken as they come, so that a large file does not stand in memory as a tree.
  const auto take = [&](int depth, Json::parse_event_t event, Json& parsed) {
    if (depth != 2 || event != Json::parse_event_t::object_end) return true;
    add_json_object(collector, parsed, fmt::format(": row {}", ++row));
    return false;
  };
  try {
    const Json rest = Json::parse(*content, take);
    if (!rest.is_object() || !rest.contains("format") || rest["format"] != "ddpsim.sweep/1")
      collector.refuse("", "no result of this sweep: expected the format ddpsim.sweep/1");
  } catch (const Json::exception& problem) {
    collector.refuse("", "no result of this sweep: not JSON");
  }
  return collector.finish();
}

}  // namespace ddpsim
