#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/report/reports/headline.hpp"
#include "tools/report/writers/page.hpp"
#include "tools/study/grid.hpp"

namespace ddpsim {

/// The figures of one strategy at one point of a grid that are drawn.
struct VariedFigures {
  std::size_t point = 0;
  std::string strategy;
  double step_ms = 0;
  Outcome outcome;
  std::optional<double> best;  ///< the figure that the table is sorted by
};
/// The figures that a row with these columns holds; none if the row has no step.
std::optional<VariedFigures> varied_figures(std::size_t point, const std::vector<Field>& columns,
                                            const TableRow& row, const std::optional<Field>& best);

// The best and the shortest steps are among those that fit their device's memory, where some do.

/// The best step by `best` and the shortest in a sentence each, and where what is trained in a step
/// varies the most tokens (or samples) per second.
std::string varied_verdict(const Grid& grid, const std::vector<VariedFigures>& figures,
                           const std::optional<Field>& best);

/// What whoever pays gets at the best point: by `best`, else the one of the most tokens (or
/// samples) per second where what is trained in a step varies, else the one of the shortest step;
/// of `bucketed`, where that is among the strategies.
Headline varied_headline(const Grid& grid, const std::vector<VariedFigures>& figures,
                         const std::optional<Field>& best);

/// The point of the shortest step that averages gradients; none: there is no such step.
std::optional<std::size_t> shortest_point(const std::vector<VariedFigures>& figures);

/// Curves by strategy where one key varies, a map for each strategy where two do: of the step, of
/// `best`, and of the tokens (or samples) per second where what is trained in a step varies. Where
/// more keys vary there is such a map for all values of the others, from which the page lets its
/// reader choose. Nothing where a key takes more than 40 values, or where there were more than 400
/// maps or 20000 cells.
void add_varied_pictures(Page& page, const Grid& grid, const std::vector<VariedFigures>& figures,
                         const std::optional<Field>& best);

}  // namespace ddpsim
