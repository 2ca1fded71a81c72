#include "tools/report/varied_pictures.hpp"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <functional>
#include <limits>

#include <fmt/format.h>

#include "tools/picture/plot.hpp"
#include "tools/report/step_fields.hpp"
#include "tools/report/throughput_fields.hpp"

namespace ddpsim {
namespace {

constexpr std::size_t most_values = 40;  ///< of a key: more are no picture any more

/// A figure that is drawn.
struct Drawn {
  std::string title;  ///< "Step"
  std::string unit;   ///< "ms"; "" of what has none
  std::function<std::optional<double>(const VariedFigures&)> value;
  bool low_is_good = true;
};

std::vector<std::string> strategies_in(const std::vector<VariedFigures>& figures) {
  std::vector<std::string> names;
  for (const VariedFigures& each : figures)
    if (std::find(names.begin(), names.end(), each.strategy) == names.end())
      names.push_back(each.strategy);
  return names;
}

bool averages(const VariedFigures& figures) {
  return figures.strategy != "none";
}

/// Are the values of all rows that `wanted` takes the same, but for rounding?
template <typename Wanted, typename Value>
bool all_alike(const std::vector<VariedFigures>& figures, const Wanted& wanted,
               const Value& value) {
  constexpr double close = 1e-6;
  std::optional<double> first;
  for (const VariedFigures& each : figures) {
    if (!wanted(each)) continue;
    const std::optional<double> now = value(each);
    if (!now) continue;
    if (!first) first = now;
    if (std::abs(*now - *first) > close * std::abs(*first)) return false;
  }
  return true;
}

std::optional<double> rate_of(const VariedFigures& figures) {
  return figures.tokens_per_second ? figures.tokens_per_second : figures.samples_per_second;
}

/// Are steps of different work compared? Then the shortest step says little.
bool work_varies(const std::vector<VariedFigures>& figures) {
  return !all_alike(
      figures, [](const VariedFigures&) { return true; },
      [](const VariedFigures& each) -> std::optional<double> {
        const std::optional<double> rate = rate_of(each);
        return rate ? std::optional(*rate * each.step_ms) : std::nullopt;
      });
}

/// "166.5 million", "1234"
std::string rate_text(double rate) {
  if (rate >= 1e6) return fmt::format("{:.4g} million", rate / 1e6);
  return rate >= 1e3 ? fmt::format("{:.0f}", rate) : fmt::format("{:.1f}", rate);
}

std::string rate_name(const std::vector<VariedFigures>& figures) {
  const bool tokens = std::any_of(figures.begin(), figures.end(), [](const VariedFigures& each) {
    return each.tokens_per_second.has_value();
  });
  return tokens ? "Tokens per second" : "Samples per second";
}

std::vector<Drawn> drawn_figures(const std::vector<VariedFigures>& figures,
                                 const std::optional<Field>& best) {
  std::vector<Drawn> all{
      {"Step", "ms", [](const VariedFigures& each) { return std::optional(each.step_ms); }}};
  if (best && best->name != fields::avg_step_time_ms.name && best->name != fields::step_ms.name)
    all.push_back({std::string(best->label), std::string(best->unit),
                   [](const VariedFigures& each) { return each.best; },
                   best->better != Better::high});
  const bool is_best = best && (best->name == fields::tokens_per_second.name ||
                                best->name == fields::samples_per_second.name);
  if (work_varies(figures) && !is_best) all.push_back({rate_name(figures), "", rate_of, false});
  return all;
}

Picture curves_of(const Axis& axis, const std::vector<VariedFigures>& figures, const Drawn& drawn,
                  bool half) {
  Plot plot;
  plot.title = fmt::format("{} over {}", drawn.title, axis.key);
  plot.description = fmt::format("{} of each strategy at each value of {}.", drawn.title, axis.key);
  plot.x_label = axis.key;
  plot.y_label = drawn.unit.empty() ? drawn.title : fmt::format("{}, {}", drawn.title, drawn.unit);
  plot.y_label.front() =
      static_cast<char>(std::tolower(static_cast<unsigned char>(plot.y_label.front())));
  plot.half = half;
  plot.x_text = [&axis](double at) { return axis.values[static_cast<std::size_t>(at + 0.5)]; };
  for (std::size_t i = 0; i < axis.values.size(); ++i)
    plot.x_ticks.push_back(static_cast<double>(i));
  double low = std::numeric_limits<double>::infinity(), high = 0;
  for (const std::string& name : strategies_in(figures)) {
    Curve curve{name, {}, name == "none", false, {}, ink_of_strategy(name)};
    for (const VariedFigures& each : figures) {
      if (each.strategy != name) continue;
      const std::optional<double> value = drawn.value(each);
      if (!value) continue;
      curve.points.emplace_back(static_cast<double>(each.point), *value);
      low = std::min(low, *value);
      high = std::max(high, *value);
    }
    plot.curves.push_back(std::move(curve));
  }
  constexpr double far_apart = 10;
  plot.log_y = low > 0 && high > far_apart * low;
  return {plot.title, plot_picture(plot), "",
          plot.log_y ? "Values stand at equal distances; the scale is logarithmic."
                     : "Values stand at equal distances.",
          half};
}

Picture map_of(const Grid& grid, const std::vector<VariedFigures>& figures, const Drawn& drawn,
               const std::string& strategy) {
  const Axis &down = grid.axes()[0], &across = grid.axes()[1];
  HeatMap map;
  map.title = fmt::format("{} under {}", drawn.title, strategy);
  map.description =
      fmt::format("{} under {}, by {} and {}.", drawn.title, strategy, down.key, across.key);
  map.x_label = across.key;
  map.y_label = down.key;
  map.x = across.values;
  map.y = down.values;
  map.low_is_good = drawn.low_is_good;
  map.values.assign(
      down.values.size(),
      std::vector<double>(across.values.size(), std::numeric_limits<double>::quiet_NaN()));
  std::size_t missing = grid.points();
  for (const VariedFigures& each : figures) {
    if (each.strategy != strategy) continue;
    --missing;
    const std::vector<std::size_t> at = grid.indices(each.point);
    if (const std::optional<double> value = drawn.value(each)) map.values[at[0]][at[1]] = *value;
  }
  return {map.title, heat_picture(map), "",
          fmt::format("{}; the stronger the colour, the {}. The {} is bold{}.",
                      drawn.unit.empty() ? drawn.title : "In " + drawn.unit,
                      drawn.low_is_good ? "less" : "more", drawn.low_is_good ? "least" : "most",
                      missing > 0 ? "; - is a point that was refused" : ""),
          is_half(map)};
}

}  // namespace

std::optional<VariedFigures> varied_figures(std::size_t point, const std::vector<Field>& columns,
                                            const TableRow& row, const std::optional<Field>& best) {
  const auto value = [&](const Field& field) -> const FieldValue* {
    const auto found = std::find_if(columns.begin(), columns.end(),
                                    [&](const Field& each) { return each.name == field.name; });
    return found == columns.end() ? nullptr
                                  : &row[static_cast<std::size_t>(found - columns.begin())];
  };
  const auto number = [&](const Field& field) -> std::optional<double> {
    const FieldValue* found = value(field);
    return found != nullptr ? found->number() : std::nullopt;
  };
  const FieldValue* strategy = value(fields::strategy);
  const std::optional<double> step = number(fields::avg_step_time_ms);
  if (!step || strategy == nullptr || strategy->text() == nullptr) return std::nullopt;
  return VariedFigures{point,
                       *strategy->text(),
                       *step,
                       number(fields::samples_per_second),
                       number(fields::tokens_per_second),
                       best ? number(*best) : std::nullopt};
}

std::optional<std::size_t> shortest_point(const std::vector<VariedFigures>& figures) {
  const VariedFigures* best = nullptr;
  for (const VariedFigures& each : figures)
    if (averages(each) && (best == nullptr || each.step_ms < best->step_ms)) best = &each;
  return best != nullptr ? std::optional(best->point) : std::nullopt;
}

std::string varied_verdict(const Grid& grid, const std::vector<VariedFigures>& figures) {
  const VariedFigures *best = nullptr, *bucketed = nullptr, *most = nullptr;
  for (const VariedFigures& each : figures) {
    if (!averages(each)) continue;
    if (best == nullptr || each.step_ms < best->step_ms) best = &each;
    if (each.strategy == "bucketed" && (bucketed == nullptr || each.step_ms < bucketed->step_ms))
      bucketed = &each;
    if (rate_of(each) && (most == nullptr || *rate_of(each) > *rate_of(*most))) most = &each;
  }
  if (best == nullptr) return "";
  const auto where = [&](const VariedFigures& of) {
    const bool everywhere = all_alike(
        figures, [&](const VariedFigures& each) { return each.strategy == of.strategy; },
        [](const VariedFigures& each) { return std::optional(each.step_ms); });
    if (everywhere && grid.points() > 1) return std::string("at every point");
    return "at " + describe_point(grid, of.point);
  };
  std::string text = fmt::format("The shortest step is {:.2f} ms, under {} {}.", best->step_ms,
                                 best->strategy, where(*best));
  if (bucketed != nullptr && bucketed != best)
    text +=
        fmt::format(" Under bucketed it is {:.2f} ms, {}.", bucketed->step_ms, where(*bucketed));
  if (most != nullptr && work_varies(figures))
    text += fmt::format(" The most {} are {} per second, under {} at {}.",
                        most->tokens_per_second ? "tokens" : "samples", rate_text(*rate_of(*most)),
                        most->strategy, describe_point(grid, most->point));
  return text;
}

void add_varied_pictures(Page& page, const Grid& grid, const std::vector<VariedFigures>& figures,
                         const std::optional<Field>& best) {
  const std::vector<Axis>& axes = grid.axes();
  const bool small = std::all_of(
      axes.begin(), axes.end(), [](const Axis& axis) { return axis.values.size() <= most_values; });
  if (!small || figures.empty() || axes.size() > 2) return;
  const std::vector<Drawn> drawn = drawn_figures(figures, best);
  for (const Drawn& each : drawn) {
    if (axes.size() == 1)
      page.add(curves_of(axes[0], figures, each, drawn.size() > 1));
    else
      for (const std::string& strategy : strategies_in(figures))
        page.add(map_of(grid, figures, each, strategy));
  }
}

}  // namespace ddpsim
