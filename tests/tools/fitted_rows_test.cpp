// Which of several measured rows of a strategy are fitted.

#include <catch2/catch.hpp>

#include "tests/tools/program.hpp"

namespace ddpsim {
namespace {

/// A scenario of batch 8 whose rows are these, on which naive is fitted.
class NaiveRows {
 public:
  explicit NaiveRows(const std::string& rows)
      : file_(scratch_
                  .write("s.yaml",
                         "workload: {model: gpt2, batch: 8, sequence: 512, dtype: fp32, compute: "
                         "bf16, optimizer: adamw}\n"
                         "cluster: {device: h100-sxm, ranks_per_node: 2, intra_node: nvlink4}\n"
                         "compare: [naive]\n"
                         "measured: {calibrate_on: [naive], rows: [" +
                             rows + "]}\n")
                  .string()) {}

  Json json(const std::string& command, std::vector<std::string> more = {}) const {
    more.insert(more.begin(), {command, file_, "-q", "--json", "-"});
    const Outcome outcome = ddpsim(more);
    CAPTURE(outcome.err);
    REQUIRE(outcome.code == 0);
    return outcome.json();
  }

  /// Whether each row was fitted, in their order.
  std::vector<bool> fitted(const std::vector<std::string>& more = {}) const {
    std::vector<bool> fitted;
    const Json score = json("score", more);
    for (const Json& row : score["rows"]) fitted.push_back(row["calibration"].get<bool>());
    return fitted;
  }

 private:
  Scratch scratch_;
  std::string file_;
};

using Marks = std::vector<bool>;

}  // namespace

TEST_CASE("of several rows of a strategy the nearest to the scenario is fitted",
          "[tools][fitted_rows]") {
  const NaiveRows rows(
      "{strategy: naive, step: 38 ms, set: {workload.batch: 4}}, {strategy: naive, step: 45 ms}, "
      "{strategy: naive, step: 46 ms, set: {training.average: all_reduce}}");
  CHECK(rows.fitted() == Marks{false, true, false});
  const auto naive_step = [&](const std::vector<std::string>& more) {
    return rows.json("run", more)["results"][0]["step_ms"].get<double>();
  };
  CHECK(naive_step({}) == Approx(45).epsilon(0.001));
  // A flag makes another row the nearest.
  const std::vector<std::string> four{"--set", "workload.batch=4"};
  CHECK(naive_step(four) == Approx(38).epsilon(0.001));
  CHECK(rows.json("run", four)["notes"] == Json::array());
  CHECK_FALSE(rows.json("run", four)["results"][0]["step_low_ms"].is_null());
}

TEST_CASE("of rows as near a row that says its communication is fitted", "[tools][fitted_rows]") {
  const std::string silent = "{strategy: naive, step: 45 ms, set: {training.average: all_reduce}}";
  const std::string says =
      "{strategy: naive, step: 46 ms, communication: 5 ms, set: {training.first_bucket_cap: 2 "
      "MiB}}";
  CHECK(NaiveRows(silent + ", " + says).fitted() == Marks{false, true});
  CHECK(NaiveRows(says + ", " + silent).fitted() == Marks{true, false});
}

TEST_CASE("rows with the same keys in another order are repeats", "[tools][fitted_rows]") {
  const std::string begin = "{strategy: naive, step: 45 ms, set: {";
  const std::string average = "training.average: all_reduce",
                    cap = "training.first_bucket_cap: 2 MiB";
  CHECK(NaiveRows(begin + average + ", " + cap + "}}, " + begin + cap + ", " + average + "}}")
            .fitted() == Marks{true, true});
}

TEST_CASE("the mean of repeats is fitted, and none of them counts as predicted",
          "[tools][fitted_rows]") {
  // The second sets what the file says anyway.
  const NaiveRows rows(
      "{strategy: naive, step: 50 ms, communication: 12 ms}, "
      "{strategy: naive, step: 60 ms, communication: 18 ms, set: {workload.batch: 8}}, "
      "{strategy: naive, step: 58 ms, set: {}}, {strategy: bucketed, step: 45 ms}");
  const Json score = rows.json("score");
  CHECK(rows.fitted() == Marks{true, true, true, false});
  CHECK(score["predicted_rows"] == 1);
  // (50 + 60 + 58) / 3 = 56, and (12 + 18) / 2 = 15 ms of communication.
  const Json naive = rows.json("run")["results"][0];
  CHECK(naive["step_ms"].get<double>() == Approx(56).epsilon(0.001));
  CHECK(naive["communication_ms"].get<double>() == Approx(15).epsilon(0.001));
}

}  // namespace ddpsim
