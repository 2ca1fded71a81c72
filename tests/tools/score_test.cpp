#include <algorithm>
#include <cmath>
#include <numeric>

#include <catch2/catch.hpp>
#include <fmt/format.h>

#include "model/parallel/strategy.hpp"
#include "tests/tools/program.hpp"

namespace ddpsim {
namespace {

using Words = std::vector<std::string>;

const std::string seed = shipped("seeds/cs336-xl-2xh100.yaml");
const std::string capped =
    shipped("measured/brandon-snider-2xh100.yaml");  // naive, flat, overlap, four caps

Json score_json(Words arguments) {
  arguments.insert(arguments.begin(), {"score", "--json", "-"});
  const Outcome outcome = ddpsim(arguments);
  INFO(outcome.err);
  REQUIRE(outcome.code == 0);
  return outcome.json();
}

Json row_of(const Json& score, const std::string& strategy) {
  for (const Json& row : score["rows"])
    if (row["strategy"] == strategy) return row;
  FAIL("no row of " + strategy);
  return {};
}

TEST_CASE("score --json has the fields of ddpsim.score/1", "[tools][score]") {
  const Json score = score_json({capped});
  CHECK(score["format"] == "ddpsim.score/1");
  for (const char* key : {"median_error", "worst_error", "median_exposed_error"})
    CHECK(score[key].is_number());
  REQUIRE(score["rows"].size() == 7);
  for (const Json& row : score["rows"]) {
    CHECK(row["file"] == capped);
    CHECK(row["strategy"].is_string());
    CHECK(row["bucket_cap_bytes"].is_null() == (row["strategy"] != "bucketed"));
    CHECK(row["calibration"].is_boolean());
    const double measured = row["measured_step_ms"], predicted = row["predicted_step_ms"];
    CHECK(row["error"].get<double>() == Approx(predicted / measured - 1).margin(1e-12));
  }
  CHECK(row_of(score, "naive")["measured_step_ms"] == 531.74);
  CHECK(row_of(score, "bucketed")["bucket_cap_bytes"] == 1024 * 1024);
}

TEST_CASE("a file's calibrate_on says which rows calibrate: the first of each kind",
          "[tools][score]") {
  const Json by_file = score_json({capped}),
             asked = score_json({capped, "--calibrate-on", "naive,overlap"});
  REQUIRE(by_file["rows"].size() == 7);
  for (const Json& row : by_file["rows"]) CHECK(row["calibration"] == (row["strategy"] == "naive"));
  for (const Json& row : asked["rows"])
    CHECK(row["calibration"] == (row["strategy"] == "naive" || row["strategy"] == "overlap"));
}

TEST_CASE("score --laws-only fits nothing, and every row is predicted", "[tools][score]") {
  const Json laws = score_json({capped, "--laws-only"}), fitted = score_json({capped});
  CHECK(laws["predicted_rows"] == 7);
  CHECK(fitted["predicted_rows"] == 6);
  for (const Json& row : laws["rows"]) CHECK(row["calibration"] == false);
  CHECK(row_of(laws, "naive")["error"].get<double>() != 0);
  CHECK(std::abs(row_of(fitted, "naive")["error"].get<double>()) <
        std::abs(row_of(laws, "naive")["error"].get<double>()));
  const std::string text = ddpsim({"score", capped, "--laws-only"}).out;
  CHECK_THAT(text, Catch::Contains("note: the file's own measured rows are not used"));
  CHECK_THAT(text, !Catch::Contains("no row to calibrate on"));
  const Outcome both = ddpsim({"score", capped, "--laws-only", "--calibrate-on", "naive"});
  CHECK(both.code == 2);
  CHECK(both.err == "ddpsim: --laws-only fits nothing: take it or --calibrate-on out\n");
}

TEST_CASE("score --set changes every row's scenario, but not what a row itself says",
          "[tools][score]") {
  const std::string file = shipped("measured/pytorch-resnet50-v100.yaml");
  const Json even = score_json({file, "--set", "cluster.skew=0 %"}),
             uneven = score_json({file, "--set", "cluster.skew=5 %"});
  REQUIRE(even["rows"].size() == uneven["rows"].size());
  int later = 0;
  for (std::size_t i = 0; i < even["rows"].size(); ++i) {
    const Json &a = even["rows"][i], &b = uneven["rows"][i];
    const bool alone = a["label"].get<std::string>().find("ranks_per_node 1") != std::string::npos;
    CHECK((b["predicted_step_ms"].get<double>() > a["predicted_step_ms"].get<double>() + 1) ==
          !alone);
    if (!alone) ++later;
  }
  CHECK(later == 8);
}

TEST_CASE("what an H200 measured in loopback comes out of its calibration", "[tools][score]") {
  const std::string folder = std::string(DDPSIM_TEST_DATA) + "/../gpu/h200/measured-";
  const Json score = score_json({folder + "bf16.yaml", folder + "fp32.yaml", "--laws-only"});
  CHECK(score["predicted_rows"] == 18);
  CHECK(score["median_error"].get<double>() < 0.015);
  CHECK(score["worst_error"].get<double>() < 0.03);
}

TEST_CASE("steps of four A40 over the host's memory come out as a public run had them",
          "[tools][score]") {
  const std::string file = std::string(DDPSIM_TEST_DATA) + "/four_a40.yaml";
  const Json score = score_json({file}),
             peers = score_json({file, "--set", "cluster.device={base: a40, peer_to_peer: true}"});
  double shortest = 0;
  int predicted = 0;
  for (std::size_t i = 0; i < score["rows"].size(); ++i) {
    const Json& row = score["rows"][i];
    if (row["calibration"] == true) continue;
    ++predicted;
    CAPTURE(row["label"].get<std::string>());
    CHECK(std::abs(row["error"].get<double>()) < 0.09);
    // The law of GPUs that copy to each other is more than twice as far off.
    CHECK(std::abs(peers["rows"][i]["error"].get<double>()) >
          2 * std::abs(row["error"].get<double>()));
    // As measured, larger buckets make longer steps.
    CHECK(row["predicted_step_ms"].get<double>() > shortest);
    shortest = row["predicted_step_ms"];
  }
  CHECK(predicted == 4);
  const std::string said = "through the host's memory";
  CHECK(ddpsim({"run", file}).out.find(said) != std::string::npos);
  CHECK(ddpsim({"run", shipped("measured/enzoding-b2.yaml")}).out.find(said) == std::string::npos);
}

TEST_CASE("score gives its figures by number of ranks and kind of link", "[tools][score]") {
  const Json score = score_json({capped, shipped("measured/pytorch-resnet50-v100.yaml")});
  std::vector<double> errors, of_two;
  for (const Json& row : score["rows"]) {
    if (row["calibration"] == true) continue;
    errors.push_back(row["error"]);
    const std::string label = row["label"];
    const bool two = row["file"] == capped || label.find("ranks_per_node 2") != std::string::npos;
    if (two) of_two.push_back(row["error"]);
  }
  const auto mean = [](const std::vector<double>& all) {
    return std::accumulate(all.begin(), all.end(), 0.0) / static_cast<double>(all.size());
  };
  CHECK(score["bias"].get<double>() == Approx(mean(errors)));
  std::vector<std::string> groups;
  for (const Json& group : score["groups"]) {
    groups.push_back(group["of"]);
    if (group["of"] != "2 ranks") continue;
    CHECK(group["predicted_rows"] == of_two.size());
    CHECK(group["bias"].get<double>() == Approx(mean(of_two)));
  }
  CHECK(groups == std::vector<std::string>{"1 rank", "2 ranks", "4 ranks", "8 ranks", "16 ranks",
                                           "infiniband", "nvlink"});
}

TEST_CASE("a calibration row is met, and its error counts nowhere", "[tools][score]") {
  const Json score = score_json({capped, "--calibrate-on", "naive,overlap"});
  CHECK(std::abs(row_of(score, "naive")["error"].get<double>()) < 1e-3);
  CHECK(std::abs(row_of(score, "overlap")["error"].get<double>()) < 1e-3);
  std::vector<double> errors;
  for (const Json& row : score["rows"])
    if (!row["calibration"].get<bool>()) errors.push_back(std::abs(row["error"].get<double>()));
  std::sort(errors.begin(), errors.end());
  REQUIRE(errors.size() == 5);
  CHECK(score["median_error"].get<double>() == Approx(errors[2]));
  CHECK(score["worst_error"].get<double>() == Approx(errors[4]));
}

TEST_CASE("the exposed error is the step's error over the measured naive communication",
          "[tools][score]") {
  const Json score = score_json({seed});
  const Json flat = row_of(score, "flat");
  const double error =
      std::abs(flat["predicted_step_ms"].get<double>() - flat["measured_step_ms"].get<double>());
  CHECK(score["median_exposed_error"].get<double>() == Approx(error / 105));  // 105 ms in the file
}

TEST_CASE("the CS336 XL seed: from its naive row, the flat step is within 3 %", "[tools][score]") {
  const Json score = score_json({seed, "--calibrate-on", "naive"});
  CHECK(row_of(score, "naive")["calibration"] == true);
  CHECK(row_of(score, "flat")["calibration"] == false);
  CHECK(row_of(score, "flat")["predicted_step_ms"].get<double>() == Approx(1010.45).epsilon(0.03));
}

TEST_CASE("a file without a row to calibrate on as asked is left out, and said to be",
          "[tools][score]") {
  const Outcome outcome =
      ddpsim({"score", seed, capped, "--calibrate-on", "naive,overlap", "--json", "-"});
  REQUIRE(outcome.code == 0);
  const Json score = outcome.json();
  CHECK(score["left_out"] == Json({seed}));
  for (const Json& row : score["rows"]) CHECK(row["file"] == capped);
  CHECK(lines_of(outcome.err).size() == 1);
}

TEST_CASE("a median error past the tolerance is exit code 3 and one line", "[tools][score]") {
  // The seed's one predicted row is about 2 % off.
  for (const char* tight : {"0.1%", "0.1 %", "0.001"}) {
    const Outcome outcome = ddpsim({"score", seed, "--quiet", "--tolerance", tight});
    CHECK(outcome.code == 3);
    CHECK(outcome.out.empty());
    CHECK(lines_of(outcome.err).size() == 1);
    CHECK_THAT(outcome.err, Catch::Contains("beyond the tolerance of 0.1 %"));
  }
  // The tolerance as it was given, and enough of the error to tell that it is larger.
  const double error =
      ddpsim({"score", seed, "--json", "-"}).json()["median_error"].get<double>() * 100;
  for (const char* tight : {"0.01", "0.025"})
    CHECK_THAT(ddpsim({"score", seed, "-q", "--tolerance", tight + std::string("%")}).err,
               Catch::Contains(fmt::format("beyond the tolerance of {} %", tight)));
  const std::string near = fmt::format("{:.4f}", error - 0.001);
  const std::string said = ddpsim({"score", seed, "-q", "--tolerance", near + "%"}).err;
  const std::string begin = "ddpsim: the median error of ";
  REQUIRE_THAT(said, Catch::StartsWith(begin));
  CHECK(std::stod(said.substr(begin.size())) > std::stod(near));
  for (const char* wide : {"10%", "10 %", "0.1"})
    CHECK(ddpsim({"score", seed, "--quiet", "--tolerance", wide}).code == 0);
}

TEST_CASE("results are written although they are past the tolerance", "[tools][score]") {
  const Scratch scratch;
  const std::string file = scratch.path("s.json").string();
  CHECK(ddpsim({"score", seed, "--quiet", "--tolerance", "0.1%", "--json", file}).code == 3);
  CHECK(Json::parse(content_of(file))["rows"].size() == 2);
}

TEST_CASE("a tolerance that is no share is refused", "[tools][score]") {
  for (const char* text :
       {"lots", "-5%", "5 percent", "1", "1.5", "nan", "inf", "nan%", "%", "1e999", "5%%"}) {
    const Outcome outcome = ddpsim({"score", seed, std::string("--tolerance=") + text});
    CAPTURE(text);
    CHECK(outcome.code == 2);
    CHECK(outcome.out.empty());
    CHECK(outcome.err ==
          std::string("ddpsim: --tolerance ") + text + ": expected a share such as 5% or 0.05\n");
  }
}

TEST_CASE("a strategy whose rows fit nothing is not calibrated on", "[tools][score]") {
  for (const StrategyFacts& facts : strategy_facts) {
    const std::string name(facts.name);
    CAPTURE(name);
    const Outcome outcome = ddpsim({"score", seed, "--calibrate-on", name});
    const bool is_refused =
        outcome.err == "ddpsim: --calibrate-on " + name + ": a row of " + name +
                           " fits nothing: name none or naive or zero1 or zero2 "
                           "or zero3 or fsdp (computation), or overlap "
                           "(interference)\n";
    CHECK(is_refused == (facts.fits == Fits::nothing));
    if (is_refused) CHECK(outcome.code == 2);
  }
}

TEST_CASE("a strategy to calibrate on that is none is refused", "[tools][score]") {
  const auto refused = [](const std::string& list, const std::string& name) {
    const Outcome outcome = ddpsim({"score", seed, "--calibrate-on", list});
    CAPTURE(list);
    CHECK(outcome.code == 2);
    CHECK(outcome.out.empty());
    CHECK(outcome.err ==
          "ddpsim: --calibrate-on " + list + ": unknown strategy \"" + name +
              "\"; known: none, naive, flat, overlap, bucketed, zero1, zero2, zero3, fsdp\n");
  };
  refused("naiv", "naiv");
  refused("naive,overlapp", "overlapp");
  refused("naive,,flat", "");
  refused(",", "");
  refused("naive, overlap", " overlap");
}

TEST_CASE("a file without measured rows is refused", "[tools][score]") {
  const std::string file = shipped("examples/first.yaml");
  const Outcome outcome = ddpsim({"score", file});
  CHECK(outcome.code == 2);
  CHECK(outcome.out.empty());
  CHECK(outcome.err ==
        "ddpsim: " + file +
            ":1:1: missing key \"measured\": score needs rows such as {strategy: naive, "
            "step: 531.7 ms}\n");
}

TEST_CASE("score prints a table a file, and CSV a line a row", "[tools][score]") {
  const Outcome table = ddpsim({"score", seed, capped});
  CHECK(table.code == 0);
  CHECK_THAT(table.out, Catch::StartsWith(seed + "\n") && Catch::Contains("\n" + capped + "\n"));
  CHECK_THAT(table.out, Catch::Contains("7 predicted rows in 2 files: median error "));
  const Outcome csv = ddpsim({"score", capped, "--csv", "-"});
  REQUIRE(csv.code == 0);
  const Words lines = lines_of(csv.out);
  REQUIRE(lines.size() == 8);
  CHECK(lines[0] ==
        "file,strategy,bucket_cap_bytes,measured_step_ms,predicted_step_ms,error,calibration");
  CHECK_THAT(lines[1], Catch::StartsWith(capped + ",naive,,531.74,"));
}

/// Two RTX 4090 over 25 Gbit/s Ethernet, whose rows are as `measured` says.
std::string measured_gpt(const Scratch& scratch, const std::string& measured) {
  return scratch
      .write("measured.yaml",
             "name: measured\n"
             "workload:\n"
             "  model: {family: gpt2, layers: 24, d_model: 1024, d_ff: 4096, heads: 16,\n"
             "          vocabulary: 50257, positions: 1024}\n"
             "  batch: 8\n"
             "  sequence: 512\n"
             "  dtype: fp32\n"
             "  compute: bf16\n"
             "  optimizer: adamw\n"
             "cluster: {device: rtx4090, nodes: 2, ranks_per_node: 1, inter_node: ethernet-25g}\n"
             "compare: [naive, bucketed]\n"
             "measured:\n" +
                 measured)
      .string();
}

TEST_CASE("where nobody says, computation is fitted to a row of none if there is one",
          "[tools][score]") {
  const Scratch scratch;
  const auto fitted = [&](const std::string& rows) {
    std::vector<std::string> strategies;
    const auto file = measured_gpt(scratch, "  rows: [" + rows + "]\n");
    const Json score = score_json({file});
    for (const Json& row : score["rows"])
      if (row["calibration"].get<bool>()) strategies.push_back(row["strategy"].get<std::string>());
    return strategies;
  };
  const std::string none = "{strategy: none, step: 312 ms}",
                    naive = "{strategy: naive, step: 1350 ms}",
                    both = "{strategy: naive, step: 1350 ms, communication: 1040 ms}",
                    overlap = "{strategy: overlap, step: 1200 ms}",
                    bucketed = "{strategy: bucketed, step: 1100 ms}";
  CHECK(fitted(none + ", " + bucketed) == Words{"none"});
  CHECK(fitted(naive + ", " + bucketed) == Words{"naive"});
  CHECK(fitted(naive + ", " + none) == Words{"none"});
  CHECK(fitted(both + ", " + none) == Words{"naive", "none"});
  CHECK(fitted(overlap + ", " + bucketed).empty());
  CHECK_THAT(ddpsim({"explain", "measured.calibrate_on"}).out,
             Catch::Contains("[none]` where there is a row of none") ||
                 Catch::Contains("[none] where there is a row of none"));
  // The row of none is there: it has to be named alone.
  const auto file = measured_gpt(
      scratch, "  calibrate_on: [naive]\n  rows: [" + none + ", {strategy: naive, step: 5 s}]\n");
  CHECK_THAT(ddpsim({"score", file}).out,
             Catch::Contains("the file's row of none, if `calibrate_on` has it"));
}

TEST_CASE("a measured row that is far from what is predicted for it is noted", "[tools][score]") {
  const Scratch scratch;
  const auto run = [&](const std::string& command, const std::string& rows,
                       const std::vector<std::string>& more = {}) {
    std::vector<std::string> words{command, measured_gpt(scratch, "  rows: [" + rows + "]\n")};
    words.insert(words.end(), more.begin(), more.end());
    return ddpsim(words).err;
  };
  const auto predicted = [&](const std::string& rows) {
    const Json score = score_json({measured_gpt(scratch, "  rows: [" + rows + "]\n")});
    return row_of(score, "bucketed")["predicted_step_ms"].get<double>();
  };
  const auto with = [](double milliseconds) {
    return "{strategy: none, step: 312 ms}, {strategy: bucketed, step: " +
           std::to_string(milliseconds) + " ms}";
  };
  const double right = predicted(with(1000));
  const std::string note = "the file's measured bucketed";
  CHECK_THAT(run("run", with(1.02 * right)), !Catch::Contains(note));
  for (const char* command : {"run", "tune"}) {
    const std::string said = run(command, with(3 * right));
    CHECK_THAT(said, Catch::Contains(note) && Catch::Contains(" ms are predicted for it: calibrate "
                                                              "on a naive row with its "
                                                              "`communication: TIME`"));
  }
  // The row is of another step; of strategies that are not predicted; or not used.
  CHECK_THAT(run("run", with(3 * right), {"--set", "workload.batch=2"}), !Catch::Contains(note));
  CHECK_THAT(run("run", with(3 * right), {"--set", "compare=[naive]"}), !Catch::Contains(note));
  CHECK_THAT(run("run", with(3 * right), {"--laws-only"}), !Catch::Contains(note));
}

TEST_CASE("a naive row that nothing is fitted to counts as predicted, with a note",
          "[tools][score]") {
  const Scratch scratch;
  const auto rows = [&](const std::string& naive) {
    return measured_gpt(scratch,
                        "  calibrate_on: [none, naive]\n"
                        "  rows:\n"
                        "    - {strategy: none, step: 312 ms}\n"
                        "    - {strategy: naive, " +
                            naive + "}\n");
  };
  const std::string unused = "nothing is fitted to the naive row, which is predicted";
  std::string file = rows("step: 1350 ms");
  const Json score = score_json({file});
  CHECK(row_of(score, "none")["calibration"] == true);
  CHECK(row_of(score, "naive")["calibration"] == false);
  CHECK(score["predicted_rows"] == 1);
  CHECK(score["worst_error"].get<double>() > 0.2);
  CHECK_THAT(ddpsim({"score", file}).out, Catch::Contains(unused));
  CHECK_THAT(ddpsim({"run", file}).out, Catch::Contains(unused));
  file = rows("step: 1350 ms, communication: 1040 ms");
  CHECK(row_of(score_json({file}), "naive")["calibration"] == true);
  const Outcome used = ddpsim({"score", file});
  CHECK_THAT(used.out, !Catch::Contains(unused));
  CHECK_THAT(used.out, Catch::Contains("no row is predicted: something is fitted to each"));
  CHECK_THAT(used.out, !Catch::Contains("0 predicted rows"));
  // No row is predicted, so there is no error, and none is within a tolerance.
  for (const char* key : {"median_error", "worst_error", "bias"})
    CHECK(score_json({file})[key].is_null());
  const Outcome held = ddpsim({"score", file, "--tolerance", "50%"});
  CHECK(held.code == 2);
  CHECK_THAT(held.err, Catch::Contains("--tolerance: something is fitted to each row"));
}

TEST_CASE("a link that carries less than it says is told from a time per collective",
          "[tools][score]") {
  const Scratch scratch;
  const auto notes = [&](const std::string& communication) {
    return ddpsim({"score", measured_gpt(scratch,
                                         "  calibrate_on: [naive]\n"
                                         "  rows: [{strategy: naive, step: 1350 ms, "
                                         "communication: " +
                                             communication + "}]\n")})
        .out;
  };
  // The law has all-reduces of 1.4 GB take 0.5 s.
  for (const char* slow : {"1040 ms", "620 ms"})
    CHECK_THAT(notes(slow), Catch::Contains("times as long as the link's law has it, taken as +") &&
                                Catch::Contains("write what it `carries`"));
  CHECK_THAT(notes("540 ms"), !Catch::Contains("times as long as the link's law"));
  CHECK_THAT(notes("100 ms"), Catch::Contains("below what the link's bandwidth allows") &&
                                  Catch::Contains("write what it `carries`"));
}

TEST_CASE("a fit that has computation take three times as long is noted", "[tools][score]") {
  const Scratch scratch;
  const std::string file =
      measured_gpt(scratch, "  calibrate_on: [none]\n  rows: [{strategy: none, step: 900 ms}]\n");
  const Outcome outcome = ddpsim({"score", file});
  CHECK_THAT(outcome.out, Catch::Contains("wants compute") &&
                              Catch::Contains("times as long as the laws have it"));
}

TEST_CASE("a row that communicates and is shorter than the one that does not is noted",
          "[tools][score]") {
  const Scratch scratch;
  const auto scored = [&](const std::string& bucketed) {
    const std::string file =
        measured_gpt(scratch,
                     "  calibrate_on: [none]\n  rows: [{strategy: none, step: 300 ms}, {strategy: "
                     "bucketed, step: " +
                         bucketed + "}]\n");
    return ddpsim({"score", file, "--wide"}).out;
  };
  // 258 / 300 = 0.86; measurements of one step differ by some percent.
  CHECK_THAT(scored("258 ms"),
             Catch::Contains("note: the bucketed row's step of 258.0 ms is 14 % shorter than the "
                             "none row's of 300.0 ms, and a step with communication cannot be: "));
  CHECK_THAT(scored("258 ms, set: {cluster.nodes: 4}"), Catch::Contains("is 14 % shorter than"));
  for (const char* plausible : {"291 ms", "340 ms", "258 ms, set: {workload.batch: 1}"})
    CHECK_THAT(scored(plausible), !Catch::Contains("shorter than"));
}

TEST_CASE("a row's passes are those of its whole step, with all its micro-batches",
          "[tools][score]") {
  const Scratch scratch;
  const auto score = [&](const std::string& row, const char* more) {
    const std::string file =
        measured_gpt(scratch, "  calibrate_on: [none, naive]\n  rows: [" + row + "]\n");
    return ddpsim({"score", file, "--set", "training.micro_batches=4", "--set",
                   "training.no_sync=true", more, "-"});
  };
  const auto predicted = [&](const std::string& row) {
    return score(row, "--json").json()["rows"][0]["predicted_step_ms"].get<double>();
  };
  const auto said = [&](const std::string& row) { return score(row, "--markdown").out; };
  const std::string odd = "are they of the whole step, with all its micro-batches?";
  const std::string whole =
      "{strategy: none, step: 1250 ms, forward: 400 ms, backward: 800 ms, optimizer: 40 ms}";
  CHECK(predicted(whole) == Approx(1250).epsilon(0.02));
  CHECK_THAT(said(whole), !Catch::Contains(odd));
  const std::string quarter =
      "{strategy: none, step: 1250 ms, forward: 100 ms, backward: 200 ms, optimizer: 40 ms}";
  CHECK(predicted(quarter) < 400);
  CHECK_THAT(said(quarter), Catch::Contains(odd));
  // A naive row's leave something for its communication.
  CHECK_THAT(said("{strategy: naive, step: 1250 ms, forward: 500 ms, backward: 800 ms, "
                  "communication: 9 ms}"),
             Catch::Contains(odd) && !Catch::Contains("the step is met"));
}

}  // namespace
}  // namespace ddpsim
