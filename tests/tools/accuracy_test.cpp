// What predictions of the measured rows have to reach; docs/accuracy.md has the figures themselves.

#include <filesystem>
#include <vector>

#include <catch2/catch.hpp>

#include "tests/tools/program.hpp"
#include "tools/study/score.hpp"

namespace ddpsim {
namespace {

ScoreSummary score_of_measured(const std::vector<Strategy>& calibrate_on) {
  std::vector<FileScore> files;
  for (const std::string& file : shipped_files("measured"))
    if (const auto score = score_file(file, {calibrate_on, false, {}})) files.push_back(*score);
  return summarise(files);
}

TEST_CASE("the targets hold on the measured rows", "[tools][accuracy]") {
  const ScoreSummary naive = score_of_measured({});
  CHECK(naive.predicted_rows >= 80);
  CHECK(naive.median_error <= 0.05);
  CHECK(naive.ninth_decile_error <= 0.15);
  const ScoreSummary both = score_of_measured({Strategy::naive, Strategy::overlap});
  CHECK(both.median_error <= 0.025);
  CHECK(both.ninth_decile_error <= 0.07);
  REQUIRE(both.median_exposed_error);
  CHECK(*both.median_exposed_error <= 0.15);
}

}  // namespace
}  // namespace ddpsim
