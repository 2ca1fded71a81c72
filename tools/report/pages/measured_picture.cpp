#include "tools/report/pages/measured_picture.hpp"

#include <algorithm>
#include <cmath>
#include <functional>

#include <fmt/format.h>

#include "tools/picture/pairs.hpp"

namespace ddpsim {
namespace {

constexpr std::size_t most_results = 40;

/// The smallest error that is drawn: where there are too many rows, that of the last that fits.
double least_error(const std::vector<FileScore>& files, std::size_t rows) {
  if (rows <= most_results) return 0;
  std::vector<double> errors;
  for (const FileScore& file : files)
    for (const ScoreRow& row : file.rows) errors.push_back(std::abs(row.error()));
  std::nth_element(errors.begin(), errors.begin() + most_results, errors.end(), std::greater<>());
  return std::nextafter(errors[most_results], INFINITY);
}

/// "some-site", of the path of its file.
std::string short_name(const std::string& file) {
  std::string name = file.substr(file.rfind('/') + 1);
  if (name.ends_with(".yaml")) name.erase(name.size() - 5);
  return name;
}

}  // namespace

std::optional<Picture> measured_picture(const std::vector<FileScore>& files) {
  std::size_t rows = 0;
  for (const FileScore& file : files) rows += file.rows.size();
  if (rows == 0) return std::nullopt;
  const double least = least_error(files, rows);
  PairPicture pairs;
  pairs.title = "Predicted above measured";
  pairs.description = "The step of each measured row, and what was predicted for it.";
  pairs.unit = "ms";
  std::size_t drawn = 0;
  for (const FileScore& file : files) {
    std::vector<PairPicture::Row> of_file;
    for (const ScoreRow& row : file.rows)
      if (std::abs(row.error()) >= least)
        of_file.push_back({row.label, in_ms(row.predicted), in_ms(row.measured),
                           row.calibration ? "fitted" : ""});
    if (of_file.empty()) continue;
    drawn += of_file.size();
    if (files.size() > 1) pairs.rows.push_back({short_name(file.file), 0, 0, "", true});
    pairs.rows.insert(pairs.rows.end(), of_file.begin(), of_file.end());
  }
  std::string caption = "Each step with its error.";
  if (std::any_of(pairs.rows.begin(), pairs.rows.end(),
                  [](const PairPicture::Row& row) { return !row.remark.empty(); }))
    caption += " A row that is fitted says nothing of the prediction.";
  if (drawn < rows)
    caption +=
        fmt::format(" The {} of {} rows that are most off; the tables have all.", drawn, rows);
  return Picture{pairs.title, pair_picture(pairs), "", caption};
}

}  // namespace ddpsim
