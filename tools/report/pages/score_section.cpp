#include "tools/report/pages/score_section.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/format.h>

#include "tools/picture/plot.hpp"
#include "tools/report/pages/measured_picture.hpp"
#include "tools/report/reports/score_report.hpp"

namespace ddpsim {
namespace {

/// Errors in percent, without signs, as shares of the rows that are within them.
Curve shares_of(std::string name, std::vector<double> errors) {
  std::sort(errors.begin(), errors.end());
  Curve curve{std::move(name), {{0, 0}}, false, true, {}};
  for (std::size_t i = 0; i < errors.size(); ++i)
    curve.points.emplace_back(
        errors[i], 100 * static_cast<double>(i + 1) / static_cast<double>(errors.size()));
  return curve;
}

}  // namespace

ReportSection score_section(const std::vector<FileScore>& files, const ScoreSummary& summary) {
  ReportSection section;
  section.title = fmt::format("{} file{}", files.size(), files.size() == 1 ? "" : "s");
  section.verdict =
      summary.predicted_rows == 0
          ? "No row is predicted: something is fitted to each."
          : fmt::format(
                "{} measured rows were predicted: half within {:.1f} %, nine in ten within {:.1f} "
                "%, the worst is {:.1f} % off.",
                summary.predicted_rows, 100 * summary.median_error,
                100 * summary.ninth_decile_error, 100 * summary.worst_error);
  std::vector<double> all;
  std::map<std::string, std::vector<double>> by_link;
  for (const FileScore& file : files)
    for (const ScoreRow& row : file.rows)
      if (!row.calibration) {
        all.push_back(100 * std::abs(row.error()));
        by_link[row.link].push_back(all.back());
      }
  std::optional<Picture> shares;
  if (!all.empty()) {
    Plot plot;
    plot.title = "Rows within an error";
    plot.description = "The share of the predicted rows whose step is within an error.";
    plot.x_label = "error of the step without its sign, %";
    plot.y_label = "% of rows";
    plot.from_zero = true;
    plot.curves.push_back(shares_of("all", all));
    if (by_link.size() > 1)
      for (const auto& [link, errors] : by_link)
        plot.curves.push_back(shares_of(
            fmt::format("{} ({})", link.empty() ? "one rank" : link, errors.size()), errors));
    plot.levels.push_back({90, "nine in ten"});
    shares = Picture{plot.title, plot_picture(plot), "", "Rows that were fitted are not counted."};
  }
  if (auto picture = measured_picture(files)) section.page.add(std::move(*picture));
  if (shares) section.page.add(std::move(*shares));
  section.add_or_fold("The measured rows in figures", score_page(files, summary));
  return section;
}

}  // namespace ddpsim
