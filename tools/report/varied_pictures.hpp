#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/report/page.hpp"
#include "tools/study/grid.hpp"

namespace ddpsim {

/// The figures of one strategy at one point of a grid that are drawn.
struct VariedFigures {
  std::size_t point = 0;
  std::string strategy;
  double step_ms = 0;
  std::optional<double> samples_per_second, tokens_per_second;
  std::optional<double> best;  ///< the figure that the table is sorted by
};
/// Those in a row of these columns; none: the row has no step.
std::optional<VariedFigures> varied_figures(std::size_t point, const std::vector<Field>& columns,
                                            const TableRow& row, const std::optional<Field>& best);

/// The shortest step in a sentence, and where what is trained in a step varies the most tokens (or
/// samples) per second.
std::string varied_verdict(const Grid& grid, const std::vector<VariedFigures>& figures);

/// The point of the shortest step that averages gradients; none: there is no such step.
std::optional<std::size_t> shortest_point(const std::vector<VariedFigures>& figures);

/// Curves by strategy where one key varies, a map for each strategy where two do: of the step, of
/// `best`, and of the tokens (or samples) per second where what is trained in a step varies.
/// Nothing where more keys vary or one takes more than 40 values.
void add_varied_pictures(Page& page, const Grid& grid, const std::vector<VariedFigures>& figures,
                         const std::optional<Field>& best);

}  // namespace ddpsim
