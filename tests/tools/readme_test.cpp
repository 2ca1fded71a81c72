// The README's figures are this tree's: what it shows of `run` and `score` is what they compute.

#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include <catch2/catch.hpp>
#include <fmt/format.h>

#include "tests/tools/program.hpp"
#include "tools/command/score.hpp"

namespace ddpsim {
namespace {

namespace fs = std::filesystem;

std::string readme() {
  std::ifstream file(fs::path(DDPSIM_SCENARIOS).parent_path() / "README.md");
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::vector<FileScore> scores(const std::vector<Strategy>& calibrate_on) {
  std::vector<FileScore> files;
  for (const auto& entry : fs::directory_iterator(fs::path(DDPSIM_SCENARIOS) / "measured"))
    if (entry.path().extension() == ".yaml")
      if (auto score = score_file(entry.path().string(), calibrate_on)) files.push_back(*score);
  return files;
}

std::string summary_line(const std::vector<FileScore>& files) {
  const ScoreSummary all = summarise(files);
  return fmt::format(
      "**{} predicted rows in {} files: median error {:.1f} %, nine in ten within {:.1f} %, worst "
      "{:.1f} %; "
      "median exposed error {:.1f} %**",
      all.predicted_rows, files.size(), 100 * all.median_error, 100 * all.ninth_decile_error,
      100 * all.worst_error, 100 * all.median_exposed_error);
}

std::string cell(const ScoreRow& row) {
  return row.calibration ? "fitted" : fmt::format("{:+.1f} %", 100 * row.error());
}

TEST_CASE("the README's score table is what score computes", "[tools][readme]") {
  const std::string text = readme();
  const std::vector<FileScore> naive = scores({});
  const std::vector<FileScore> both = scores({Strategy::naive, Strategy::overlap});
  CHECK_THAT(text, Catch::Contains(summary_line(naive)));
  CHECK_THAT(text, Catch::Contains(summary_line(both)));
  CHECK_THAT(text, Catch::Contains(summary_line(scores({Strategy::naive}))));

  std::map<std::string, const FileScore*> second;
  for (const FileScore& file : both) second[file.file] = &file;
  for (const FileScore& file : naive) {
    const auto again = second.find(file.file);
    for (std::size_t i = 0; i < file.rows.size(); ++i) {
      const ScoreRow& row = file.rows[i];
      const std::string other = again == second.end() ? "" : cell(again->second->rows[i]);
      CHECK_THAT(text,
                 Catch::Contains(fmt::format(
                     "| {} | {} | {:.1f} | {:.1f} | {} | {} |", fs::path(file.file).stem().string(),
                     row.label, in_ms(row.measured), in_ms(row.predicted), cell(row), other)));
    }
  }
}

TEST_CASE("the README's first table is what run prints", "[tools][readme]") {
  const Outcome outcome = ddpsim({"run", "scenarios/seeds/cs336-xl-2xh100.yaml"},
                                 fs::path(DDPSIM_SCENARIOS).parent_path());
  REQUIRE(outcome.code == 0);
  CHECK_THAT(readme(), Catch::Contains(outcome.out));
}

TEST_CASE("the targets hold on the measured rows", "[tools][readme]") {
  const ScoreSummary naive = summarise(scores({}));
  CHECK(naive.predicted_rows >= 80);
  CHECK(naive.median_error <= 0.05);
  CHECK(naive.ninth_decile_error <= 0.15);
  const ScoreSummary both = summarise(scores({Strategy::naive, Strategy::overlap}));
  CHECK(both.median_error <= 0.025);
  CHECK(both.ninth_decile_error <= 0.07);
  CHECK(both.median_exposed_error <= 0.15);
}

}  // namespace
}  // namespace ddpsim
