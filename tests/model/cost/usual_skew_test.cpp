#include <cmath>
#include <fstream>
#include <sstream>
#include <string>

#include <catch2/catch.hpp>

#include "model/base/statistics.hpp"
#include "model/cluster/cluster.hpp"

using namespace ddpsim;

TEST_CASE(
    "the usual skews are what eight public GPUs lose, ready and decoded, to a quarter of a "
    "per cent",
    "[model][cost_model]") {
  // Of eight times one GPU's rate. Ready: at the batch of 64, where exchanging gradients costs
  // least. Decoded: what decoding adds, as a spread beside the other.
  std::ifstream file(DDPSIM_TEST_DATA "/input_pipelines.csv");
  REQUIRE(file);
  double ready = 0, added = 0;
  int of_ready = 0, of_added = 0;
  for (std::string line; std::getline(file, line);) {
    if (line.front() == '#' || line.starts_with("model")) continue;
    std::istringstream fields(line.substr(line.find(',') + 1));
    double batch = 0, synthetic = 0, decoded = 0;
    char comma = 0;
    REQUIRE(fields >> batch >> comma >> synthetic >> comma >> decoded);
    added += (synthetic / decoded - 1) / expected_largest(8);
    ++of_added;
    if (batch < 64) continue;
    ready += (1 / synthetic - 1) / expected_largest(8);
    ++of_ready;
  }
  REQUIRE(of_ready == 2);
  REQUIRE(of_added == 4);
  ready /= of_ready;
  added /= of_added;
  CHECK(usual_skew == Approx(std::round(ready * 400) / 400));
  CHECK(usual_skew_of_decoded_input == Approx(std::round(std::hypot(ready, added) * 400) / 400));
}
