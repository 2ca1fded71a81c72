#include "tools/report/pages/varied_pictures.hpp"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <functional>
#include <limits>
#include <tuple>

#include <fmt/format.h>

#include "tools/picture/plot.hpp"
#include "tools/report/records/step_fields.hpp"
#include "tools/report/records/throughput_fields.hpp"
#include "tools/report/reports/best.hpp"
#include "tools/report/writers/text_writer.hpp"

namespace ddpsim {
namespace {

constexpr std::size_t most_values = 40;  ///< of a key: more are no picture any more
constexpr std::size_t most_maps = 400, most_cells = 20'000;  ///< for a page that opens quickly

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

/// Is it known to take more memory than its device has?
bool is_unfit(const VariedFigures& figures) {
  return figures.outcome.fits == std::optional(false);
}

/// The best of those that `wanted` takes, one that fits before all that do not; null: there is
/// none.
template <typename Wanted, typename Better>
const VariedFigures* best_of(const std::vector<VariedFigures>& figures, Wanted wanted,
                             Better better) {
  const VariedFigures* best = nullptr;
  for (const VariedFigures& each : figures) {
    if (!averages(each) || !wanted(each)) continue;
    if (best == nullptr || is_unfit(each) < is_unfit(*best) ||
        (is_unfit(each) == is_unfit(*best) && better(each, *best)))
      best = &each;
  }
  return best;
}

bool is_shorter(const VariedFigures& one, const VariedFigures& other) {
  return one.step_ms < other.step_ms;
}

bool is_any(const VariedFigures&) {
  return true;
}

std::optional<double> rate_of(const VariedFigures& figures) {
  return figures.outcome.rate();
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
    return each.outcome.tokens_per_second.has_value();
  });
  return tokens ? "Tokens per second" : "Samples per second";
}

std::vector<Drawn> drawn_figures(const std::vector<VariedFigures>& figures,
                                 const std::optional<Field>& best) {
  std::vector<Drawn> all{
      {"Step", "ms", [](const VariedFigures& each) { return std::optional(each.step_ms); }}};
  if (best && best->name != fields::step_ms.name)
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

/// The least and the most that is drawn: all maps of a figure have one scale.
std::pair<double, double> range_of(const std::vector<VariedFigures>& figures, const Drawn& drawn) {
  double least = std::numeric_limits<double>::infinity(), most = -least;
  for (const VariedFigures& each : figures)
    if (const std::optional<double> value = drawn.value(each)) {
      least = std::min(least, *value);
      most = std::max(most, *value);
    }
  return {least, most};
}

/// Which map is meant: what it shows, of which strategy, and which values the keys take that are
/// not its axes, all keys from the third on.
struct MapPlace {
  std::string strategy;
  std::vector<std::size_t> others;  ///< [axis - 2]
};

/// A map of the first two keys.
Picture map_of(const Grid& grid, const std::vector<VariedFigures>& figures, const Drawn& drawn,
               const MapPlace& place) {
  const std::string& strategy = place.strategy;
  const Axis &down = grid.axes()[0], &across = grid.axes()[1];
  HeatMap map;
  Picture picture;
  map.title = fmt::format("{} under {}", drawn.title, strategy);
  if (!place.others.empty()) picture.choices = {{"figure", drawn.title}, {"strategy", strategy}};
  for (std::size_t a = 0; a < place.others.size(); ++a) {
    const Axis& axis = grid.axes()[a + 2];
    const std::string& value = axis.values[place.others[a]];
    map.title += fmt::format(", {}={}", axis.key, value);
    picture.choices.emplace_back(axis.key, value);
  }
  map.description = fmt::format("{}, by {} and {}.", map.title, down.key, across.key);
  map.x_label = across.key;
  map.y_label = down.key;
  map.x = across.values;
  map.y = down.values;
  map.low_is_good = drawn.low_is_good;
  std::tie(map.least, map.most) = range_of(figures, drawn);
  map.values.assign(
      down.values.size(),
      std::vector<double>(across.values.size(), std::numeric_limits<double>::quiet_NaN()));
  std::size_t missing = down.values.size() * across.values.size();
  for (const VariedFigures& each : figures) {
    if (each.strategy != strategy) continue;
    const std::vector<std::size_t> at = grid.indices(each.point);
    if (!std::equal(at.begin() + 2, at.end(), place.others.begin())) continue;
    --missing;
    if (const std::optional<double> value = drawn.value(each)) map.values[at[0]][at[1]] = *value;
  }
  picture.title = map.title;
  picture.svg = heat_picture(map);
  picture.caption = fmt::format(
      "{}. A stronger colour is a {} value, on one scale for all maps of this figure; the {} value "
      "of this map is bold{}.",
      drawn.unit.empty() ? drawn.title : fmt::format("{} in {}", drawn.title, drawn.unit),
      drawn.low_is_good ? "lower" : "higher", drawn.low_is_good ? "lowest" : "highest",
      missing > 0 ? "; - marks a point that was refused" : "");
  picture.half = is_half(map);
  return picture;
}

/// Which values the keys from the third on may take together; one empty choice for two keys.
std::vector<std::vector<std::size_t>> other_values(const Grid& grid) {
  std::vector<std::vector<std::size_t>> all{{}};
  for (std::size_t a = 2; a < grid.axes().size(); ++a) {
    std::vector<std::vector<std::size_t>> longer;
    for (const std::vector<std::size_t>& before : all)
      for (std::size_t value = 0; value < grid.axes()[a].values.size(); ++value) {
        longer.push_back(before);
        longer.back().push_back(value);
      }
    all = std::move(longer);
  }
  return all;
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
  const std::optional<double> step = number(fields::step_ms);
  if (!step || strategy == nullptr || strategy->text() == nullptr) return std::nullopt;
  return VariedFigures{point, *strategy->text(), *step, outcome_of(columns, row),
                       best ? number(*best) : std::nullopt};
}

std::optional<std::size_t> shortest_point(const std::vector<VariedFigures>& figures) {
  const VariedFigures* best = best_of(figures, is_any, is_shorter);
  return best != nullptr ? std::optional(best->point) : std::nullopt;
}

Headline varied_headline(const Grid& grid, const std::vector<VariedFigures>& figures,
                         const std::optional<Field>& best) {
  const bool by_rate = work_varies(figures);
  const auto better = [&](const VariedFigures& one, const VariedFigures& other) {
    if (best) return goes_before(*best, one.best, other.best);
    return by_rate ? rate_of(one) > rate_of(other) : one.step_ms < other.step_ms;
  };
  const bool has_bucketed = std::any_of(
      figures.begin(), figures.end(), [](const auto& each) { return each.strategy == "bucketed"; });
  const VariedFigures* chief = best_of(
      figures,
      [&](const VariedFigures& each) { return !has_bucketed || each.strategy == "bucketed"; },
      better);
  if (chief == nullptr) return {};
  return headline_of(chief->outcome,
                     fmt::format("{} at {}", chief->strategy, describe_point(grid, chief->point)));
}

std::string varied_verdict(const Grid& grid, const std::vector<VariedFigures>& figures,
                           const std::optional<Field>& best) {
  const VariedFigures* shortest = best_of(figures, is_any, is_shorter);
  const VariedFigures* bucketed = best_of(
      figures, [](const VariedFigures& each) { return each.strategy == "bucketed"; }, is_shorter);
  const VariedFigures* most = best_of(
      figures, [](const VariedFigures& each) { return rate_of(each).has_value(); },
      [](const VariedFigures& one, const VariedFigures& other) {
        return *rate_of(one) > *rate_of(other);
      });
  const VariedFigures* first = best_of(
      figures, [&](const VariedFigures& each) { return best && each.best.has_value(); },
      [&](const VariedFigures& one, const VariedFigures& other) {
        return goes_before(*best, one.best, other.best);
      });
  if (shortest == nullptr) return "";
  const auto where = [&](const VariedFigures& of) {
    const bool everywhere = all_alike(
        figures, [&](const VariedFigures& each) { return each.strategy == of.strategy; },
        [](const VariedFigures& each) { return std::optional(each.step_ms); });
    if (everywhere && grid.points() > 1) return std::string("at every point");
    return "at " + describe_point(grid, of.point);
  };
  std::string text;
  if (first != nullptr && best->name != fields::step_ms.name)
    text = fmt::format("By {} the best is {}, under {} at {}. ", best->name,
                       cell_text(*best, first->best), first->strategy,
                       describe_point(grid, first->point));
  const bool none_fits = is_unfit(*shortest);
  const bool some_do_not = std::any_of(figures.begin(), figures.end(), is_unfit);
  text += fmt::format("The shortest step{} is {:.2f} ms, under {} {}.",
                      some_do_not && !none_fits ? " that fits its device's memory" : "",
                      shortest->step_ms, shortest->strategy, where(*shortest));
  if (none_fits)
    text += " No step here fits its device's memory: what follows is of steps that cannot run.";
  if (bucketed != nullptr && bucketed != shortest)
    text +=
        fmt::format(" Under bucketed it is {:.2f} ms, {}.", bucketed->step_ms, where(*bucketed));
  if (most != nullptr && work_varies(figures))
    text +=
        fmt::format(" The most {} are {} per second, under {} at {}.",
                    most->outcome.tokens_per_second ? "tokens" : "samples",
                    rate_text(*rate_of(*most)), most->strategy, describe_point(grid, most->point));
  return text;
}

void add_varied_pictures(Page& page, const Grid& grid, const std::vector<VariedFigures>& figures,
                         const std::optional<Field>& best) {
  const std::vector<Axis>& axes = grid.axes();
  const bool small = std::all_of(
      axes.begin(), axes.end(), [](const Axis& axis) { return axis.values.size() <= most_values; });
  if (!small || figures.empty()) return;
  const std::vector<Drawn> drawn = drawn_figures(figures, best);
  const std::size_t lines = drawn.size() * strategies_in(figures).size();
  if (axes.size() > 1 && lines * grid.points() > most_cells) return;
  if (axes.size() > 2 &&
      lines * grid.points() / axes[0].values.size() / axes[1].values.size() > most_maps)
    return;
  for (const Drawn& each : drawn) {
    if (axes.size() == 1)
      page.add(curves_of(axes[0], figures, each, drawn.size() > 1));
    else
      for (const std::string& strategy : strategies_in(figures))
        for (const std::vector<std::size_t>& others : other_values(grid))
          page.add(map_of(grid, figures, each, {strategy, others}));
  }
}

}  // namespace ddpsim
