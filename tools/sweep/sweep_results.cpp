#include "tools/sweep/sweep_results.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <stdexcept>

#include <fmt/format.h>

#include "backend/version.hpp"
#include "scenarios/reader/scenario/scenario_reader.hpp"
#include "scenarios/reader/text/seal.hpp"
#include "tools/report/records/step_fields.hpp"
#include "tools/report/records/sweep_fields.hpp"
#include "tools/report/records/throughput_fields.hpp"
#include "tools/report/reports/best.hpp"
#include "tools/report/reports/cluster_report.hpp"
#include "tools/report/reports/described_report.hpp"
#include "tools/report/reports/results.hpp"
#include "tools/report/reports/throughput_report.hpp"
#include "tools/report/writers/csv.hpp"
#include "tools/report/writers/json_writer.hpp"
#include "tools/study/memory_advice.hpp"
#include "tools/study/point_notes.hpp"

namespace ddpsim {
namespace {

constexpr std::size_t most_rows_shown = 100;

Field axis_field(const Axis& axis) {
  return fields::text_field(axis.key, axis.key, "A key of the scenario, as --vary gives it.")
      .with(Importance::most);
}

/// A line of the file. `figures`: none of a point that is refused.
TableRow file_row(const Sweep& sweep, const std::vector<Field>& columns, std::size_t point,
                  const TableRow* figures, const std::string& error) {
  TableRow row;
  for (const Setting& setting : sweep.grid.settings(point)) row.emplace_back(setting.value);
  if (figures == nullptr)
    row.resize(row.size() + figure_columns().size());
  else
    row.insert(row.end(), figures->begin(), figures->end());
  row.push_back(error.empty() ? FieldValue() : FieldValue(error));
  row.emplace_back(computed_from(sweep, point));
  row.emplace_back();
  row.back() = FieldValue(checksum_of(columns, row));
  return row;
}

/// Calls `function` with every line of the file, in order.
template <typename Function>
void for_each_row(const Sweep& sweep, const std::vector<Field>& columns,
                  const PointResults& results, Function function) {
  for (std::size_t point = 0; point < results.size(); ++point) {
    for (const TableRow& figures : results[point].rows)
      function(file_row(sweep, columns, point, &figures, ""));
    if (!results[point].error.empty())
      function(file_row(sweep, columns, point, nullptr, results[point].error));
  }
}

std::size_t figure(const Field& field) {
  const std::vector<Field>& columns = figure_columns();
  const auto found = std::find_if(columns.begin(), columns.end(),
                                  [&](const Field& each) { return each.name == field.name; });
  return static_cast<std::size_t>(found - columns.begin());
}

bool has_figure(const PointResults& results, const Field& field) {
  const std::size_t column = figure(field);
  return std::ranges::any_of(results, [&](const PointResult& point) {
    return std::ranges::any_of(point.rows,
                               [&](const TableRow& row) { return !row[column].is_nothing(); });
  });
}

/// Does its step take more memory than the device has?
bool is_unfit(const TableRow& row) {
  const bool* fits = std::get_if<bool>(&row[figure(fields::fits_device)].held);
  return fits != nullptr && !*fits;
}

/// [strategy] the point where its figure `by` is the best, of points that fit where some do.
struct Best {
  FieldValue value;
  std::size_t point = 0;
  bool unfit = false;
};
std::map<std::string, Best> best_points(const PointResults& results, const Field& by) {
  const std::size_t strategy = figure(fields::strategy), column = figure(by);
  std::map<std::string, Best> best;
  for (std::size_t point = 0; point < results.size(); ++point)
    for (const TableRow& row : results[point].rows) {
      const FieldValue& value = row[column];
      if (value.is_nothing()) continue;
      const Best here{value, point, is_unfit(row)};
      const auto [known, is_new] = best.try_emplace(*row[strategy].text(), here);
      Best& there = known->second;
      const bool better =
          here.unfit != there.unfit ? there.unfit : goes_before(by, value, there.value);
      if (!is_new && better) there = here;
    }
  return best;
}

/// Sorts the rows by the column of `best`.
void sort_by(Table& table, const Field& best) {
  const std::size_t column = table.index_of(best);
  std::stable_sort(table.rows.begin(), table.rows.end(), [&](const TableRow& a, const TableRow& b) {
    return goes_before(best, a[column], b[column]);
  });
  table.title = sorted_text(best);
}

/// Keeps the first rows where there are many.
void keep_first(Table& table) {
  if (table.rows.size() <= most_rows_shown) return;
  table.notes = fmt::format("the first {} of {} rows; --csv FILE holds all", most_rows_shown,
                            table.rows.size());
  table.rows.resize(most_rows_shown);
}

/// The currencies of the prices.
std::set<std::string> currencies_of(const PointResults& results) {
  std::set<std::string> currencies;
  const std::size_t column = figure(fields::currency);
  for (const PointResult& point : results)
    for (const TableRow& row : point.rows)
      if (const std::string* currency = row[column].text()) currencies.insert(*currency);
  return currencies;
}

std::vector<PricedPoint> priced_points(const Sweep& sweep, const PointResults& results) {
  std::vector<PricedPoint> points;
  const std::size_t column = figure(fields::currency);
  for (std::size_t point = 0; point < results.size(); ++point) {
    if (results[point].rows.empty()) continue;
    const std::string* currency = results[point].rows.front()[column].text();
    points.push_back({sweep.grid.settings(point), currency != nullptr ? *currency : ""});
  }
  return points;
}

/// A strategy's best row is the one of its shortest step, or that where `by` is the best; there is
/// none where rows cannot be ordered by that. `all`: also rows that are no strategy's best.
Table rows_table(const Sweep& sweep, const PointResults& results, bool all,
                 const std::optional<Field>& by) {
  const std::set<std::string> currencies = currencies_of(results);
  const std::string unordered = by ? why_none_is_best(sweep, results, *by) : "";
  const std::optional<Field> sorted_by = unordered.empty() ? by : std::nullopt;
  Table table{{fields::strategy, fields::step_ms}};
  if (!ranks_notes_of(sweep, results).empty()) table.columns.push_back(fields::world_size);
  // What a step amounts to, as the second table of `run` has it.
  const bool tokens = has_figure(results, fields::tokens_per_second);
  for (const Field& field : {tokens ? fields::tokens_per_second : fields::samples_per_second,
                             fields::mfu, fields::peak_memory_bytes, fields::fits_device})
    if (has_figure(results, field)) table.columns.push_back(field);
  table.columns.insert(table.columns.end(),
                       {fields::communication_ms, fields::exposed_ms, fields::overlap_ratio,
                        fields::speedup_vs_naive, fields::bound, fields::remark});
  if (sorted_by && std::none_of(table.columns.begin(), table.columns.end(),
                                [&](const Field& each) { return each.name == sorted_by->name; }))
    table.columns.insert(table.columns.end() - 1, sorted_by->with(Importance::most));
  for (const Field& cost : {fields::cost_per_billion_tokens, fields::cost_per_million_samples})
    if (has_figure(results, cost) && std::ranges::none_of(table.columns, [&](const Field& each) {
          return each.name == cost.name || each.name == fields::cost_per_billion_tokens.name;
        }))
      table.columns.insert(table.columns.end() - 1, cost);
  if (currencies.size() > 1) table.columns.insert(table.columns.end() - 1, fields::currency);
  for (const Field& end : {fields::band_low_ms, fields::band_high_ms})
    if (has_figure(results, end) && !(sorted_by && sorted_by->name == end.name))
      table.columns.insert(table.columns.end() - 1, end.with(Importance::little));
  const std::vector<Axis>& axes = sweep.grid.axes();
  for (std::size_t a = axes.size(); a-- > 0;)
    table.columns.insert(table.columns.begin(), axis_field(axes[a]));
  std::map<std::string, Best> best;
  if (unordered.empty()) best = best_points(results, sorted_by.value_or(fields::step_ms));
  const auto add = [&](std::size_t point, const TableRow& figures, const std::string& remark) {
    TableRow row;
    for (const Setting& setting : sweep.grid.settings(point)) row.emplace_back(setting.value);
    const bool communicates =
        !figures.empty() && figures[figure(fields::communication_ms)].number().value_or(0) > 0;
    for (std::size_t c = axes.size(); c + 1 < table.columns.size(); ++c) {
      const bool known =
          !figures.empty() && (communicates || table.columns[c].name != fields::overlap_ratio.name);
      row.push_back(known ? figures[figure(table.columns[c])] : FieldValue());
    }
    row.emplace_back(remark);
    table.add(std::move(row));
  };
  for (std::size_t point = 0; point < results.size(); ++point) {
    if (!results[point].error.empty() && all) add(point, {}, "refused");
    for (const TableRow& figures : results[point].rows) {
      const std::string& strategy = *figures[figure(fields::strategy)].text();
      const auto found = best.find(strategy);
      const bool is_best = found != best.end() && found->second.point == point;
      const char* unfit = is_best && found->second.unfit ? ", does not fit" : "";
      if (all || is_best) add(point, figures, is_best ? "best " + strategy + unfit : "");
    }
  }
  if (sorted_by) sort_by(table, *sorted_by);
  if (by) keep_first(table);
  for (const std::string& line :
       {unordered, currencies.size() == 1 ? "costs in " + *currencies.begin() : std::string()})
    if (!line.empty()) table.notes += (table.notes.empty() ? "" : "\n") + line;
  keep_what_does_not_fit(table);
  return table;
}

/// The point that takes the least memory, if no step of any point fits.
std::optional<std::size_t> least_of_unfit(const PointResults& results) {
  const std::size_t fits = figure(fields::fits_device), peak = figure(fields::peak_memory_bytes);
  std::optional<std::size_t> least;
  double bytes = 0;
  for (std::size_t point = 0; point < results.size(); ++point)
    for (const TableRow& row : results[point].rows) {
      const bool* told = std::get_if<bool>(&row[fits].held);
      if (told == nullptr || *told) return std::nullopt;
      const double takes = row[peak].number().value_or(0);
      if (least && takes >= bytes) continue;
      least = point;
      bytes = takes;
    }
  return least;
}

/// The scenario at a point; none where it refuses that point.
std::optional<Scenario> accepted_at(const Sweep& sweep, std::size_t point) {
  std::vector<Setting> settings = sweep.set;
  for (Setting& setting : sweep.grid.settings(point)) settings.push_back(std::move(setting));
  try {
    return read_scenario(sweep.file, settings);
  } catch (const InputError&) {
    return std::nullopt;
  }
}

/// What the steps of a scenario of the sweep are predicted from.
Knowledge knowledge_at(const Sweep& sweep, const Scenario& scenario) {
  try {
    return knowledge_of(scenario, price_calibrated(scenario, sweep.laws_only));
  } catch (const InputError&) {             // the point's row says so
  } catch (const std::invalid_argument&) {  // likewise, of a law
  }
  return {};
}

/// A line on the cluster of the first point.
std::string first_cluster(const Sweep& sweep, const Scenario& first) {
  const std::vector<Axis>& axes = sweep.grid.axes();
  const bool varies = std::any_of(axes.begin(), axes.end(), [](const Axis& axis) {
    return axis.key == "cluster" || axis.key.rfind("cluster.", 0) == 0;
  });
  return fmt::format("\n{}{}", varies ? "the first: " : "",
                     cluster_text(first, knowledge_at(sweep, first)));
}

bool says_model(const std::string& key) {
  return key == "workload" || key == "workload.model";
}

/// What descriptions of the points' models say of autocast and checkpoints. A model is read once;
/// of a large grid the first points tell.
std::string described_modes(const Sweep& sweep, const std::optional<Scenario>& first) {
  constexpr std::size_t most_looked_at = 10'000, most_refused = 64;
  const bool varies =
      std::ranges::any_of(sweep.grid.axes(), [](const Axis& axis) { return says_model(axis.key); });
  if (first && !varies) return described_modes_text(*first);
  std::size_t refused = 0;
  std::map<std::string, std::string> known;  // by what varies of the model
  std::vector<ModesAtPoint> looked_at;
  for (std::size_t point = 0; point < std::min(sweep.grid.points(), most_looked_at); ++point) {
    const std::vector<Setting> settings = sweep.grid.settings(point);
    std::string model;
    for (const Setting& setting : settings)
      if (says_model(setting.key)) model += setting.value + "\n";
    auto found = known.find(model);
    if (found == known.end()) {
      const std::optional<Scenario> scenario = accepted_at(sweep, point);
      if (!scenario && ++refused == most_refused) break;
      if (!scenario) continue;
      found = known.emplace(model, described_modes_text(*scenario)).first;
    }
    looked_at.push_back({settings, found->second});
  }
  return described_modes_text(looked_at, sweep.grid.points());
}

/// Do steps of some points average models now and then?
bool some_average_models(const Sweep& sweep, const std::optional<Scenario>& first) {
  const std::string name(name_of(CommHookKind::post_local_sgd));
  return (first && first->training.comm_hook.kind == CommHookKind::post_local_sgd) ||
         std::ranges::any_of(sweep.grid.axes(), [&](const Axis& axis) {
           return std::ranges::any_of(axis.values, [&](const std::string& value) {
             return value.find(name) != std::string::npos;
           });
         });
}

}  // namespace

std::vector<Field> sweep_columns(const Sweep& sweep) {
  std::vector<Field> columns;
  for (const Axis& axis : sweep.grid.axes()) columns.push_back(axis_field(axis));
  columns.insert(columns.end(), figure_columns().begin(), figure_columns().end());
  columns.push_back(fields::refusal);
  columns.push_back(fields::computed_from);
  columns.push_back(fields::row_crc32);
  return columns;
}

std::string checksum_of(const std::vector<Field>& columns, const TableRow& row) {
  const std::string line = csv_line(columns, row);
  return crc32_text(std::string_view(line).substr(0, line.rfind(',')));
}

std::string sweep_csv(const Sweep& sweep, const PointResults& results) {
  const std::vector<Field> columns = sweep_columns(sweep);
  std::string text = csv_header(columns);
  for_each_row(sweep, columns, results,
               [&](const TableRow& row) { text += csv_line(columns, row); });
  return text;
}

std::string sweep_json(const Sweep& sweep, const PointResults& results,
                       const std::vector<std::string>& notes) {
  const std::vector<Field> columns = sweep_columns(sweep);
  std::string text = fmt::format(
      "{{\n \"format\": \"ddpsim.sweep/1\",\n \"version\": \"{}\",\n \"scenario\": {},\n"
      " \"points\": {},\n \"notes\": {},\n \"rows\": [",
      version, one_line(sweep.file), sweep.grid.points(), one_line(notes));
  bool first = true;
  for_each_row(sweep, columns, results, [&](const TableRow& row) {
    text += fmt::format("{}\n  {}", first ? "" : ",", one_line(json_of(columns, row)));
    first = false;
  });
  return text + "\n ]\n}\n";
}

std::string why_none_is_best(const Sweep& sweep, const PointResults& results, const Field& best) {
  return why_no_best(best, priced_points(sweep, results));
}

std::vector<std::string> unpriced_notes(const Sweep& sweep, const PointResults& results,
                                        const Field& best) {
  return unpriced_notes(best, priced_points(sweep, results));
}

Page sweep_page(const Sweep& sweep, const PointResults& results, const std::optional<Field>& best) {
  std::size_t rows = 0, points = 0;
  for (const PointResult& each : results) {
    rows += each.rows.size() + (each.error.empty() ? 0 : 1);
    points += each.known() ? 1 : 0;
  }
  const bool all = best || rows <= most_rows_shown;
  const std::optional<Scenario> first = accepted_at(sweep, 0);
  Page page;
  page.add(Paragraph{
      fmt::format("{}: {} of {} points{}{}", sweep.file, points, sweep.grid.points(),
                  all ? "" : "; the shortest step of each strategy (--csv FILE holds all rows)",
                  first ? first_cluster(sweep, *first) : "")});
  page.add(Paragraph{described_modes(sweep, first)});
  page.add(rows_table(sweep, results, all, best));
  if (some_average_models(sweep, first)) page.add(Paragraph{in_the_long_run_text});
  return page;
}

std::vector<std::string> ranks_notes_of(const Sweep& sweep, const PointResults& results) {
  const std::size_t ranks = figure(fields::world_size);
  std::vector<std::pair<std::vector<Setting>, int>> points;
  for (std::size_t point = 0; point < results.size(); ++point)
    if (!results[point].rows.empty())
      if (const auto number = results[point].rows.front()[ranks].number())
        points.emplace_back(sweep.grid.settings(point), static_cast<int>(*number));
  return ranks_notes(points);
}

std::vector<std::string> memory_notes(const Sweep& sweep, const PointResults& results) {
  std::size_t count = 0, first = 0;
  for (std::size_t point = 0; point < results.size(); ++point)
    if (std::ranges::any_of(results[point].rows, is_unfit) && count++ == 0) first = point;
  if (count == 0) return {};
  std::vector<std::string> notes{
      fmt::format("{} of {} points do not fit their device's memory (fits_device in CSV and "
                  "JSON) and are predicted all the same; the first is {}",
                  count, results.size(), describe_point(sweep.grid, first))};
  if (const std::optional<std::size_t> least = least_of_unfit(results)) {
    std::vector<Setting> settings = sweep.set;
    for (Setting& setting : sweep.grid.settings(*least)) settings.push_back(std::move(setting));
    if (const std::string advice = memory_advice(sweep.file, settings); !advice.empty())
      notes.push_back(fmt::format("{}: {}", describe_point(sweep.grid, *least), advice));
  }
  return notes;
}

}  // namespace ddpsim
