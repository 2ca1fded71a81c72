#include "tools/sweep/sweep_results.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <unordered_map>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "scenarios/reader/input_error.hpp"
#include "scenarios/reader/quantity_text.hpp"
#include "tools/report/csv.hpp"
#include "tools/report/output.hpp"
#include "tools/report/table.hpp"

namespace ddpsim {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::uintmax_t largest_file = std::uintmax_t{2} << 30;
constexpr std::size_t most_rows_shown = 100;

/// Columns that are text whatever stands in them; besides them, the keys are.
bool is_text(const Sweep& sweep, const std::vector<std::string>& columns, std::size_t column) {
  constexpr std::array<std::string_view, 7> texts{
      "strategy", "implementation", "model_size", "scenario", "bound", "error", "computed_from"};
  return column < sweep.grid.axes().size() ||
         std::find(texts.begin(), texts.end(), columns[column]) != texts.end();
}

std::size_t index_of(const std::vector<std::string>& columns, std::string_view name) {
  return static_cast<std::size_t>(std::find(columns.rbegin(), columns.rend(), name).base() -
                                  columns.begin() - 1);
}

std::string joined(const std::vector<std::string>& fields) {
  std::string line;
  for (const std::string& field : fields) {
    if (&field != &fields.front()) line += ',';
    line += csv_field(field);
  }
  return line;
}

/// Takes the rows of a file one by one and finds their points.
class Collector {
 public:
  Collector(const Sweep& sweep, const std::string& path)
      : sweep_(sweep),
        path_(path),
        columns_(sweep_columns(sweep)),
        strategy_(index_of(columns_, "strategy")),
        error_(index_of(columns_, "error")),
        origin_(index_of(columns_, "computed_from")),
        rows_(sweep.grid.points()),
        seen_(sweep.grid.points()) {
    for (const Axis& axis : sweep.grid.axes()) {
      auto& index = index_.emplace_back();
      for (std::size_t v = 0; v < axis.values.size(); ++v) index.emplace(axis.values[v], v);
    }
  }

  const std::vector<std::string>& columns() const { return columns_; }

  [[noreturn]] void refuse(const std::string& place, const std::string& problem) const {
    throw InputError(
        fmt::format("{}{}: {}; take another file, or remove this one", path_, place, problem));
  }

  void add(const std::vector<std::string>& fields, const std::string& place) {
    if (fields.size() != columns_.size())
      refuse(place, fmt::format("expected {} fields, got {}", columns_.size(), fields.size()));
    std::vector<std::size_t> indices;
    for (std::size_t a = 0; a < index_.size(); ++a) {
      const auto found = index_[a].find(fields[a]);
      if (found == index_[a].end())
        refuse(place,
               fmt::format("{}={} is no point of this grid", columns_[a], fields[a].substr(0, 60)));
      indices.push_back(found->second);
    }
    const std::size_t point = sweep_.grid.point_of(indices);
    if (fields[origin_] != computed_from(sweep_, point))
      refuse(place,
             "the scenario, a file it names, a setting or the program is not what it was when "
             "this row was computed");
    const std::vector<Strategy>& strategies = strategies_of(sweep_, point);
    const bool refused = !fields[error_].empty();
    std::uint8_t& seen = seen_[point];
    if (seen >= (refused ? 1 : strategies.size()) ||
        (!refused && fields[strategy_] != name_of(strategies[seen])))
      refuse(place, "this row is one too many for its point, or out of order");
    for (std::size_t c = 0; c < columns_.size(); ++c)
      if (!is_text(sweep_, columns_, c) && !fields[c].empty() && !parse_number(fields[c]))
        refuse(place, fmt::format("{}: expected a number, got \"{}\"", columns_[c],
                                  fields[c].substr(0, 60)));
    seen = refused ? refused_point : static_cast<std::uint8_t>(seen + 1);
    rows_[point] += joined(fields) + "\n";
  }

  PointRows finish() {
    for (std::size_t point = 0; point < rows_.size(); ++point)
      if (seen_[point] != refused_point && seen_[point] < strategies_of(sweep_, point).size())
        rows_[point].clear();
    return std::move(rows_);
  }

 private:
  static constexpr std::uint8_t refused_point = 255;

  const Sweep& sweep_;
  const std::string& path_;
  std::vector<std::string> columns_;
  std::size_t strategy_, error_, origin_;
  std::vector<std::unordered_map<std::string, std::size_t>> index_;  ///< [axis] of a value
  PointRows rows_;
  std::vector<std::uint8_t> seen_;  ///< [point] its rows so far
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

/// The rows, each as fields.
template <typename Function>
void for_each_row(const PointRows& rows, Function function) {
  CsvRecord record;
  for (std::size_t point = 0; point < rows.size(); ++point)
    for (CsvReader reader(rows[point]); reader.next(record);) function(point, record.fields);
}

}  // namespace

std::string sweep_csv(const Sweep& sweep, const PointRows& rows) {
  std::string text = joined(sweep_columns(sweep)) + "\n";
  for (const std::string& lines : rows) text += lines;
  return text;
}

std::string sweep_json(const Sweep& sweep, const PointRows& rows) {
  const std::vector<std::string> columns = sweep_columns(sweep);
  const auto dump = [](const Json& json) {
    return json.dump(-1, ' ', false, Json::error_handler_t::replace);
  };
  std::string text =
      fmt::format("{{\n \"format\": \"ddpsim.sweep/1\",\n \"scenario\": {},\n", dump(sweep.file));
  text += fmt::format(" \"points\": {},\n \"rows\": [", sweep.grid.points());
  bool first = true;
  for_each_row(rows, [&](std::size_t, const std::vector<std::string>& fields) {
    Json row = Json::object();
    for (std::size_t c = 0; c < columns.size(); ++c) {
      const auto number = is_text(sweep, columns, c) ? std::nullopt : parse_number(fields[c]);
      const auto whole = number ? parse_integer(fields[c]) : std::nullopt;
      if (whole)
        row[columns[c]] = *whole;
      else if (number)
        row[columns[c]] = *number;
      else if (fields[c].empty())
        row[columns[c]] = nullptr;
      else
        row[columns[c]] = fields[c];
    }
    text += fmt::format("{}\n  {}", first ? "" : ",", dump(row));
    first = false;
  });
  return text + "\n ]\n}\n";
}

std::string sweep_table(const Sweep& sweep, const PointRows& rows) {
  const std::vector<std::string> columns = sweep_columns(sweep);
  const std::size_t axes = sweep.grid.axes().size();
  const std::size_t strategy = index_of(columns, "strategy"), error = index_of(columns, "error"),
                    step = index_of(columns, "avg_step_time_ms");
  const std::array<std::size_t, 3> times{step, index_of(columns, "communication_ms"),
                                         index_of(columns, "exposed_ms")};
  const std::size_t overlap = index_of(columns, "overlap_ratio"),
                    speedup = index_of(columns, "speedup_vs_naive"),
                    bound = index_of(columns, "bound");
  struct Best {
    std::string strategy;
    double step = 0;
    std::size_t point = 0;
  };
  std::vector<Best> best;
  std::size_t count = 0, points = 0;
  for (const std::string& lines : rows) points += lines.empty() ? 0 : 1;
  for_each_row(rows, [&](std::size_t point, const std::vector<std::string>& fields) {
    ++count;
    if (!fields[error].empty()) return;
    const double value = parse_number(fields[step]).value_or(0);
    const auto known = std::find_if(best.begin(), best.end(), [&](const Best& each) {
      return each.strategy == fields[strategy];
    });
    if (known == best.end())
      best.push_back({fields[strategy], value, point});
    else if (value < known->step)
      *known = {fields[strategy], value, point};
  });

  std::vector<std::string> header;
  for (const Axis& axis : sweep.grid.axes()) header.push_back(axis.key);
  for (const char* name :
       {"strategy", "step ms", "comm ms", "exposed ms", "overlap", "speedup", "bound", ""})
    header.emplace_back(name);
  Table table(header, Table::Last::text);
  const bool all = count <= most_rows_shown;
  for_each_row(rows, [&](std::size_t point, const std::vector<std::string>& fields) {
    std::vector<std::string> cells(fields.begin(),
                                   fields.begin() + static_cast<std::ptrdiff_t>(axes));
    if (!fields[error].empty()) {
      if (!all) return;
      cells.insert(cells.end(), {"-", "-", "-", "-", "-", "-", "-", "refused"});
      return table.add(cells);
    }
    const bool is_best = std::any_of(best.begin(), best.end(), [&](const Best& each) {
      return each.strategy == fields[strategy] && each.point == point;
    });
    if (!all && !is_best) return;
    const auto number = [&](std::size_t column) {
      return parse_number(fields[column]).value_or(0);
    };
    cells.push_back(fields[strategy]);
    for (const std::size_t column : times) cells.push_back(fmt::format("{:.2f}", number(column)));
    cells.push_back(fmt::format("{:.0f} %", 100 * number(overlap)));
    cells.push_back(fmt::format("{:.3f}x", number(speedup)));
    cells.push_back(fields[bound]);
    cells.push_back(is_best ? fmt::format("best {}", fields[strategy]) : "");
    table.add(cells);
  });
  return fmt::format("{}: {} of {} points{}\n\n{}", sweep.file, points, sweep.grid.points(),
                     all ? "" : "; the shortest step of each strategy (--csv FILE holds all rows)",
                     table.text());
}

PointRows read_sweep_csv(const Sweep& sweep, const std::string& path) {
  Collector collector(sweep, path);
  const auto content = content_of(path);
  if (!content) return collector.finish();
  CsvReader reader(*content);
  CsvRecord record;
  if (!reader.next(record) || record.fields != collector.columns() || !reader.complete())
    collector.refuse(":1", fmt::format("no result of this sweep: expected the columns {}",
                                       joined(collector.columns())));
  while (reader.next(record))
    if (reader.complete())  // else it breaks off here, and its point is computed again
      collector.add(record.fields, fmt::format(":{}", record.line));
  return collector.finish();
}

PointRows read_sweep_json(const Sweep& sweep, const std::string& path) {
  Collector collector(sweep, path);
  const auto content = content_of(path);
  if (!content) return collector.finish();
  const std::vector<std::string>& columns = collector.columns();
  std::size_t row = 0;
  // Rows are taken as they come, so that a large file does not stand in memory as a tree.
  const auto take = [&](int depth, Json::parse_event_t event, Json& parsed) {
    if (depth != 2 || event != Json::parse_event_t::object_end) return true;
    const std::string place = fmt::format(": row {}", ++row);
    std::vector<std::string> fields;
    std::size_t c = 0;
    for (const auto& [key, value] : parsed.items()) {
      if (c == columns.size() || key != columns[c] || value.is_structured() || value.is_boolean())
        collector.refuse(place, "no result of this sweep: other columns");
      fields.push_back(value.is_null()     ? ""
                       : value.is_string() ? value.get<std::string>()
                                           : value.dump());
      ++c;
    }
    collector.add(fields, place);
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

std::string error_of(const Sweep& sweep, const std::string& rows) {
  CsvRecord record;
  if (!CsvReader(rows).next(record)) return "";
  return record.fields.at(index_of(sweep_columns(sweep), "error"));
}

}  // namespace ddpsim
