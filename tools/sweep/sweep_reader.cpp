#include "tools/sweep/sweep_reader.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <unordered_map>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "model/base/printable.hpp"
#include "scenarios/reader/input_error.hpp"
#include "tools/report/csv.hpp"
#include "tools/report/json_writer.hpp"

namespace ddpsim {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::uintmax_t largest_file = std::uintmax_t{2} << 30;
constexpr std::size_t longest_quote = 60;

/// Takes the rows of a file one by one and finds their points.
class Collector {
 public:
  Collector(const Sweep& sweep, const std::string& path)
      : sweep_(sweep), path_(path), columns_(sweep_columns(sweep)), results_(sweep.grid.points()) {
    for (const Axis& axis : sweep.grid.axes()) {
      auto& index = index_.emplace_back();
      for (std::size_t v = 0; v < axis.values.size(); ++v) {
        index.emplace(axis.values[v], v);
        index.emplace(printable(axis.values[v], "\n\t"), v);  // as csv_field() writes it
      }
    }
  }

  const std::vector<Field>& columns() const { return columns_; }

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

  /// `row`: a value for each column.
  void add(const TableRow& row, const std::string& place) {
    const std::size_t point = point_of(row, place), axes = index_.size();
    const std::string error = text_of(row[row.size() - 2]);
    if (text_of(row.back()) != computed_from(sweep_, point))
      refuse(place,
             "the scenario, a file it names, a setting or the program is not what it was when "
             "this row was computed");
    const std::vector<Strategy>& strategies = strategies_of(sweep_, point);
    PointResult& result = results_[point];
    const std::size_t seen = result.rows.size();
    if (!result.error.empty() || (!error.empty() && seen > 0) || seen >= strategies.size() ||
        (error.empty() && text_of(row[axes]) != name_of(strategies[seen])))
      refuse(place, "this row is one too many for its point, or out of order");
    result.error = error;
    if (error.empty())
      result.rows.emplace_back(row.begin() + static_cast<std::ptrdiff_t>(axes), row.end() - 2);
  }

  /// What is there whole.
  PointResults finish() {
    for (std::size_t point = 0; point < results_.size(); ++point)
      if (PointResult& result = results_[point];
          result.error.empty() && result.rows.size() < strategies_of(sweep_, point).size())
        result.rows.clear();
    return std::move(results_);
  }

 private:
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
};

/// None: nothing was there.
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

void add_csv_record(Collector& collector, const CsvRecord& record) {
  const std::string place = fmt::format(":{}", record.line);
  const std::vector<Field>& columns = collector.columns();
  if (record.fields.size() != columns.size())
    collector.refuse(
        place, fmt::format("expected {} fields, got {}", columns.size(), record.fields.size()));
  TableRow row;
  for (std::size_t c = 0; c < columns.size(); ++c)
    row.push_back(collector.checked(place, c, value_from_csv(columns[c].kind, record.fields[c]),
                                    record.fields[c]));
  collector.add(row, place);
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
  if (row.size() != columns.size())
    collector.refuse(place, fmt::format("expected {} fields, got {}", columns.size(), row.size()));
  collector.add(row, place);
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

PointResults sweep_csv_points(const Sweep& sweep, const std::string& text,
                              const std::string& name) {
  Collector collector(sweep, name);
  CsvReader reader(text);
  CsvRecord record;
  if (!reader.next(record) || !reader.complete() ||
      !std::ranges::equal(record.fields, collector.columns(), {}, {}, &Field::name)) {
    collector.refuse(":1", "no result of this sweep: " + differing_column(collector, record));
  }
  while (reader.next(record))
    if (reader.complete())  // else it breaks off here, and its point is computed again
      add_csv_record(collector, record);
  return collector.finish();
}

PointResults read_sweep_csv(const Sweep& sweep, const std::string& path) {
  const auto content = content_of(path);
  return content ? sweep_csv_points(sweep, *content, path) : PointResults(sweep.grid.points());
}

PointResults read_sweep_json(const Sweep& sweep, const std::string& path) {
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
