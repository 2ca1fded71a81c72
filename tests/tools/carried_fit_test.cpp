// A fit to measured rows, where settings make the scenario another than what was measured.

#include "tools/study/carried_fit.hpp"

#include <sstream>

#include <catch2/catch.hpp>
#include <fmt/format.h>

#include "scenarios/reader/scenario/scenario_reader.hpp"
#include "tests/tools/program.hpp"

namespace ddpsim {
namespace {

using Words = std::vector<std::string>;

/// Two H100 by NVLink, of whose steps one row was measured.
std::string scenario_with(const std::string& measured) {
  return "workload: {model: gpt2, batch: 8, sequence: 512, dtype: fp32, compute: bf16, optimizer: "
         "adamw}\n"
         "cluster: {device: h100-sxm, ranks_per_node: 2, intra_node: nvlink4}\n"
         "compare: [none, bucketed]\n"
         "measured: {" +
         measured + "}\n";
}

const std::string of_none = "calibrate_on: [none], rows: [{strategy: none, step: 70 ms}]";
const std::string of_naive = "calibrate_on: [naive], rows: [{strategy: naive, step: 95 ms}]";
/// What follows the second row is open.
const std::string of_both =
    "calibrate_on: [naive, overlap], rows: [{strategy: naive, step: 95 ms}, {strategy: overlap, "
    "step: 85 ms";
const Words of_two_nodes{"--nodes", "2", "--set", "cluster.inter_node=ib-ndr"};
const std::string of_one_rank =
    "calibrate_on: [none], rows: [{strategy: none, step: 50 ms, set: {workload.batch: 4, "
    "cluster.ranks_per_node: 1}}]";

class Fitted {
 public:
  explicit Fitted(const std::string& measured)
      : file_(scratch_.write("s.yaml", scenario_with(measured)).string()) {}

  const std::string& file() const { return file_; }
  std::string json_file() const { return scratch_.path("s.json").string(); }

  /// "device h100-sxm a100-80; batch 8 16", for these settings.
  std::string differences(const std::vector<Setting>& settings) const {
    std::string text;
    for (const OtherThanMeasured& other : other_than_measured(read_scenario(file_, settings)))
      text += (text.empty() ? "" : "; ") + other.what + ' ' + other.measured + ' ' + other.here;
    return text;
  }

  Outcome run(Words more) const {
    more.insert(more.begin(), {"run", file_});
    Outcome outcome = ddpsim(more);
    CAPTURE(outcome.err);
    REQUIRE(outcome.code == 0);
    return outcome;
  }

 private:
  Scratch scratch_;
  std::string file_;
};

constexpr const char* usual_errors = "off in the median";
constexpr const char* fit_line = "calibrated on the measured rows: ";
constexpr const char* carried = "the measured rows are of ";

/// The text with its lines joined, for a page breaks them where it likes.
std::string words_of_page(const std::string& text) {
  std::istringstream words(text);
  std::string line;
  for (std::string word; words >> word;) line += (line.empty() ? "" : " ") + word;
  return line;
}

}  // namespace

TEST_CASE("what rows were measured of is the scenario's file without settings",
          "[tools][carried_fit]") {
  const Fitted none(of_none), naive(of_naive);
  for (const Fitted* each : {&none, &naive}) {
    CHECK(each->differences({}).empty());
    CHECK(each->differences({{"training.bucket_cap", "1 MiB"}, {"compare", "[naive]"}}).empty());
    CHECK(each->differences({{"workload.batch", "8"}}).empty());
    CHECK(each->differences({{"workload.batch", "16"}}) == "batch 8 16");
    CHECK(each->differences({{"workload.compute", "fp32"}}) == "compute bf16 fp32");
    CHECK(each->differences({{"workload.sequence", "256"}}) == "sequence 512 256");
    CHECK(each->differences({{"workload.optimizer", "sgd"}}) == "optimizer adamw sgd");
    CHECK(each->differences({{"workload.model", "gpt2-xl"}}) == "model gpt2 gpt2-xl");
    CHECK(each->differences({{"cluster.device", "h100-pcie"}}) == "device h100-sxm h100-pcie");
    CHECK(each->differences({{"workload.batch", "4"}, {"workload.compute", "fp32"}}) ==
          "compute bf16 fp32; batch 8 4");
  }
  // Ranks and links change nothing in steps that do not communicate.
  const std::vector<Setting> wider{{"cluster.ranks_per_node", "8"}};
  CHECK(none.differences(wider).empty());
  CHECK(naive.differences(wider) == "ranks 2 8");
  CHECK(none.differences({{"cluster.intra_node", "pcie5"}}).empty());
  CHECK(naive.differences({{"cluster.intra_node", "pcie5"}}) == "link nvlink4 pcie5");
  const std::vector<Setting> nodes{{"cluster.nodes", "2"}, {"cluster.inter_node", "ib-ndr"}};
  CHECK(none.differences(nodes).empty());
  CHECK(naive.differences(nodes) == "ranks 2 4 on 2 nodes; link nvlink4 ib-ndr");
}

TEST_CASE("a row with keys of its own was measured as it says", "[tools][carried_fit]") {
  const Fitted one(of_one_rank);
  CHECK(one.differences({}) == "batch 4 8");
  CHECK(one.differences({{"workload.batch", "4"}}).empty());
  CHECK(one.differences({{"workload.batch", "2"}}) == "batch 4 2");
  const Fitted several(
      "calibrate_on: [naive], rows: [{strategy: naive, step: 95 ms, set: {workload.sequence: 256, "
      "workload.optimizer: sgd, cluster.device: h100-pcie, cluster.ranks_per_node: 4}}]");
  CHECK(several.differences({}) ==
        "device h100-pcie h100-sxm; sequence 256 512; optimizer sgd adamw; ranks 4 2");
  // What says no more than the file does is no difference.
  const Fitted same(
      "calibrate_on: [naive], rows: [{strategy: naive, step: 95 ms, set: {workload.batch: 8, "
      "training.average: all_reduce}}]");
  CHECK(same.differences({}).empty());
}

TEST_CASE("a row of another batch than the scenario's is noted without any flag",
          "[tools][carried_fit]") {
  const Fitted other(
      "calibrate_on: [none], rows: [{strategy: none, step: 30 ms, set: {workload.batch: 4}}]");
  const std::string said = std::string("note: ") + carried + "batch 4 (here 8): what is fitted to";
  for (const char* command : {"run", "tune"}) {
    const Outcome outcome = ddpsim({command, other.file()});
    CAPTURE(command, outcome.err);
    REQUIRE(outcome.code == 0);
    CHECK_THAT(outcome.err, Catch::Contains(said));
    CHECK_THAT(words_of_page(outcome.out), !Catch::Contains(usual_errors));
    const Outcome same = ddpsim({command, other.file(), "--set", "workload.batch=4"});
    CHECK_THAT(same.err, !Catch::Contains(carried));
    CHECK_THAT(words_of_page(same.out), Catch::Contains(usual_errors));
  }
  const Outcome swept = ddpsim({"sweep", other.file(), "--vary", "workload.batch=4,8"});
  CHECK_THAT(swept.err, Catch::Contains("batch 4, and here is another") &&
                            Catch::Contains("at 1 of 2 points, the first workload.batch=8"));
}

TEST_CASE("the side of pictures is part of what was measured", "[tools][carried_fit]") {
  const Scratch scratch;
  const std::string file =
      scratch
          .write("s.yaml",
                 "workload: {model: resnet50, batch: 8, dtype: fp32, optimizer: sgd}\n"
                 "cluster: {device: v100, ranks_per_node: 1}\ncompare: [none]\n"
                 "measured: {calibrate_on: [none], rows: [{strategy: none, step: 70 ms}]}\n")
          .string();
  CHECK(other_than_measured(read_scenario(file)).empty());
  const auto others = other_than_measured(read_scenario(file, {{"workload.image", "448"}}));
  REQUIRE(others.size() == 1);
  CHECK(others[0].what == "kernels of");
  CHECK(others[0].measured != others[0].here);
}

TEST_CASE("run says what its measured rows are of, and quotes no accuracy of theirs then",
          "[tools][carried_fit]") {
  const Fitted none(of_none);
  const Outcome same = none.run({});
  CHECK_THAT(words_of_page(same.out), Catch::Contains(fit_line) && Catch::Contains(usual_errors));
  CHECK_THAT(same.err, !Catch::Contains(carried));
  const Words fp32{"--set", "workload.compute=fp32"};
  const Outcome other = none.run(fp32);
  CHECK_THAT(words_of_page(other.out), Catch::Contains(fit_line) &&
                                           !Catch::Contains(usual_errors) &&
                                           !Catch::Contains("In proportion, steps take"));
  const std::string said = std::string(carried) +
                           "compute bf16 (here fp32): what is fitted to them may not hold here, "
                           "and how far such predictions usually are off is not quoted; "
                           "--laws-only leaves the rows out";
  CHECK_THAT(other.err, Catch::Contains("note: " + said + "\n"));
  const Json json = none.run({fp32[0], fp32[1], "-q", "--json", "-"}).json();
  CHECK(json["notes"] == Json::array({said}));
  CHECK(json["results"][0]["step_low_ms"].is_null());
  CHECK(json["results"][0]["step_high_ms"].is_null());
  // Without the fit nothing is carried.
  const Outcome laws = none.run({fp32[0], fp32[1], "--laws-only"});
  CHECK_THAT(laws.err, !Catch::Contains(carried));
  CHECK_THAT(words_of_page(laws.out), Catch::Contains(usual_errors));
}

TEST_CASE("a scaling curve says how many ranks its rows were measured on",
          "[tools][carried_fit][scaling]") {
  const Fitted none(of_none), one(of_one_rank);
  const Words four{"--nodes", "2", "--set", "cluster.inter_node=ib-ndr", "--scaling", "4"};
  CHECK_THAT(none.run(four).err,
             Catch::Contains("--scaling: what was fitted to rows measured on 2 ranks is taken at"));
  CHECK_THAT(none.run({"--scaling", "2"}).err, !Catch::Contains("--scaling"));
  CHECK_THAT(one.run({"--scaling", "2"}).err,
             Catch::Contains("--scaling: what was fitted to rows measured on 1 rank is taken at"));
}

TEST_CASE("a fit of two H100 is not quoted for a node of eight A100", "[tools][carried_fit]") {
  const std::string seed = shipped("seeds/cs336-xl-2xh100.yaml");
  for (const char* command : {"run", "schedule"}) {
    const Outcome outcome =
        ddpsim({command, seed, "--cluster", "dgx-a100", "--set", "compare=[bucketed]"});
    CAPTURE(command, outcome.err);
    REQUIRE(outcome.code == 0);
    CHECK_THAT(outcome.err,
               Catch::Contains(std::string("note: ") + carried +
                               "device h100-sxm (here a100-80), ranks 2 (here 8) and link nvlink4 "
                               "(here nvlink3): "));
    CHECK_THAT(words_of_page(outcome.out),
               Catch::Contains(fit_line) && !Catch::Contains(usual_errors));
  }
  CHECK_THAT(ddpsim({"run", seed}).err, !Catch::Contains(carried));
  const Fitted naive(of_naive);
  const Outcome tuned =
      ddpsim({"tune", naive.file(), "--cluster", "dgx-a100", "--json", naive.json_file()});
  REQUIRE(tuned.code == 0);
  CHECK_THAT(tuned.err, Catch::Contains("device h100-sxm (here a100-80), ranks 2 (here 8) and "));
  CHECK_THAT(words_of_page(tuned.out), Catch::Contains(fit_line) && !Catch::Contains(usual_errors));
  const Json json = Json::parse(content_of(naive.json_file()));
  CHECK_THAT(json["notes"].dump(), Catch::Contains(carried));
  CHECK(json["step_low_ms"].is_null());
}

TEST_CASE("a verdict over NICs rests on the assumption unless the overlap row went over NICs",
          "[tools][carried_fit][tune]") {
  const auto tuned = [&](const Fitted& fitted, Words words) {
    words.insert(words.begin(), {"tune", fitted.file()});
    words.insert(words.end(), of_two_nodes.begin(), of_two_nodes.end());
    const Outcome outcome = ddpsim(words);
    CAPTURE(outcome.err);
    REQUIRE(outcome.code == 0);
    return words_of_page(outcome.out);
  };
  const std::string assumed =
      "The verdict rests on an assumption: an all-reduce over NICs is assumed to lose 45 % of its "
      "bandwidth beside kernels, as over PCIe (cluster.interference is not given); ";
  const std::string carried_strength = "fitted to a row that did not go over NICs; --set ";
  const Fitted inside(of_both + "}]");
  CHECK_THAT(tuned(inside, {}),
             Catch::Contains(assumed + "interference is ") && Catch::Contains(carried_strength));
  CHECK_THAT(tuned(inside, {"--laws-only"}),
             Catch::Contains(assumed + "--set cluster.interference={}"));
  CHECK_THAT(tuned(inside, {"--set", "cluster.interference={}"}), !Catch::Contains("assumption"));
  // The row's own keys say where it was measured.
  const Fitted between(of_both + ", set: {cluster.nodes: 2, cluster.inter_node: ib-ndr}}]");
  CHECK_THAT(tuned(between, {}), !Catch::Contains("assumption"));
  const Scratch scratch;
  const std::string page = scratch.path("t.html").string();
  tuned(inside, {"-q", "--report", page});
  CHECK_THAT(content_of(page), Catch::Contains(assumed));
}

TEST_CASE("the head of a page says what interference was fitted to", "[tools][carried_fit]") {
  const auto page = [&](const Fitted& fitted, Words words) {
    words.insert(words.begin() + 1, fitted.file());
    words.insert(words.end(), of_two_nodes.begin(), of_two_nodes.end());
    const Outcome outcome = ddpsim(words);
    CAPTURE(outcome.err);
    REQUIRE(outcome.code == 0);
    return words_of_page(outcome.out);
  };
  const std::string assumed =
      "an all-reduce over NICs is assumed to lose 45 % of its bandwidth beside kernels, as over "
      "PCIe (cluster.interference is not given)";
  const std::string loses = "an all-reduce over NICs loses ";
  const Fitted inside(of_both + "}]"),
      between(of_both + ", set: {cluster.nodes: 2, cluster.inter_node: ib-ndr}}]");
  for (const Words& words : std::vector<Words>{{"run"},
                                               {"run", "--vary", "workload.batch=8,4"},
                                               {"tune"},
                                               {"schedule"},
                                               {"sweep", "--vary", "workload.batch=8,4"}}) {
    CAPTURE(words);
    CHECK_THAT(page(between, words), Catch::Contains(loses) && !Catch::Contains(assumed) &&
                                         Catch::Contains("as fitted to the overlap row"));
    CHECK_THAT(page(inside, words),
               Catch::Contains(assumed + "; interference is ") &&
                   Catch::Contains("fitted to a row that did not go over NICs") &&
                   !Catch::Contains(loses));
    Words laws = words;
    laws.push_back("--laws-only");
    CHECK_THAT(page(between, laws), Catch::Contains(assumed) && !Catch::Contains(loses));
  }
  // An all-reduce that takes 1 / (1 - 0.45) as long beside kernels takes 1 + s (that - 1) so at the
  // strength s.
  const std::string run = page(between, {"run"});
  const std::string strength_text = "interference x ";
  const double strength = std::stod(run.substr(run.find(strength_text) + strength_text.size()));
  const double lost = 1 - 1 / (1 + strength * (1 / 0.55 - 1));
  CHECK_THAT(run, Catch::Contains(fmt::format("{}{:.0f} %", loses, 100 * lost)));
}

TEST_CASE("score says what its fit was measured of, where rows are of something else",
          "[tools][carried_fit][score]") {
  const auto scored = [](const Fitted& fitted, Words words) {
    words.insert(words.begin(), {"score", fitted.file()});
    const Outcome outcome = ddpsim(words);
    CAPTURE(outcome.err);
    REQUIRE(outcome.code == 0);
    return words_of_page(outcome.out);
  };
  const std::string said = std::string("note: ") + carried +
                           "device h100-sxm (here a100-80): what is fitted to them may not hold";
  const std::string rows =
      "calibrate_on: [none], rows: [{strategy: none, step: 70 ms}, {strategy: bucketed, step: ";
  const Fitted same(rows + "75 ms}]"),
      other(rows + "75 ms}, {strategy: bucketed, step: 130 ms, set: {cluster.device: a100-80}}]");
  const Words a100{"--set", "cluster.device=a100-80"};
  CHECK_THAT(scored(same, {}), !Catch::Contains(carried));
  CHECK_THAT(scored(same, a100), !Catch::Contains(carried));
  CHECK_THAT(scored(same, {a100[0], a100[1], "--laws-only"}), !Catch::Contains(carried));
  CHECK_THAT(scored(other, {}), Catch::Contains(said));
  const Fitted batches(rows +
                       "40 ms, set: {workload.batch: 4}}, {strategy: bucketed, step: 140 "
                       "ms, set: {workload.batch: 16}}]");
  CHECK_THAT(scored(batches, {}), Catch::Contains("batch 8 (here 4 and 16): what is fitted to"));
  // All rows are of one batch, whatever the scenario itself is of.
  const Fitted alike(
      "calibrate_on: [none], rows: [{strategy: none, step: 40 ms, set: {workload.batch: 4}}, "
      "{strategy: bucketed, step: 45 ms, set: {workload.batch: 4}}]");
  CHECK_THAT(scored(alike, {}), !Catch::Contains(carried));
}

TEST_CASE("score takes rows as measured with its settings, and says so where these change a step",
          "[tools][carried_fit][score]") {
  const Scratch scratch;
  const std::string rows =
      "calibrate_on: [none], rows: [{strategy: none, step: 70 ms}, {strategy: bucketed, step: 75 "
      "ms}, {strategy: bucketed, step: 90 ms, set: {cluster.ranks_per_node: 4}}]";
  const Fitted changed(rows);
  const auto score = [&](const Words& more) {
    Words words{"score", changed.file()};
    words.insert(words.end(), more.begin(), more.end());
    const Outcome outcome = ddpsim(words);
    CAPTURE(outcome.err);
    REQUIRE(outcome.code == 0);
    return words_of_page(outcome.out);
  };
  const std::string link =
      scratch
          .write(
              "ring.yaml",
              "format: ddpsim.link/1\nsource: a test\nlatency: 1 us\nbandwidth: 180 GB/s\n"
              "ranks: 2\nall_reduce: [{bytes: 1 MiB, time: 20 us}, {bytes: 1 GiB, time: 6 ms}]\n")
          .string();
  const std::string taken = "note: the rows are taken as measured with ",
                    as_file = "; run and tune with the same settings take them as the file says",
                    scaled =
                        "note: all-reduces were measured with 2 ranks: for 4 they are scaled by "
                        "the law of a ring, which nobody measured here";
  const std::string other_link = score({"--set", "cluster.intra_node=" + link});
  CHECK_THAT(other_link, Catch::Contains(taken + "link ring (the file says nvlink4)" + as_file) &&
                             Catch::Contains(scaled) && !Catch::Contains(carried));
  CHECK_THAT(
      score({"--set", "workload.batch=16"}),
      Catch::Contains(taken + "batch 16 (the file says 8)" + as_file) && !Catch::Contains(carried));
  for (const Words& more : {Words{}, Words{"--set", "cluster.interference={}"}})
    CHECK_THAT(score(more), !Catch::Contains(taken) && !Catch::Contains(scaled));
}

TEST_CASE("rows of which none is fitted leave the laws their band", "[tools][carried_fit][band]") {
  const Fitted ddp("rows: [{strategy: bucketed, step: 75 ms}]");
  const Outcome outcome = ddp.run({"--set", "compare=[bucketed]", "--json", "-"});
  const Json laws = ddp.run({"--set", "compare=[bucketed]", "--laws-only", "--json", "-"}).json(),
             run = outcome.json();
  CHECK(run["results"][0]["known_from"] == "laws");
  CHECK_FALSE(run["results"][0]["step_low_ms"].is_null());
  for (const char* key : {"step_ms", "step_low_ms", "step_high_ms"})
    CHECK(run["results"][0][key] == laws["results"][0][key]);
  CHECK_THAT(words_of_page(ddp.run({"--set", "compare=[bucketed]"}).out),
             Catch::Contains(usual_errors) &&
                 Catch::Contains("no row to calibrate on, so predictions come from the laws alone: "
                                 "a row of naive, or of none (DistributedDataParallel under "
                                 "no_sync()), can be fitted"));
}

TEST_CASE("pages for a browser hold the notes", "[tools][carried_fit][notes]") {
  const Fitted none(of_none);
  const Scratch scratch;
  const std::string page = scratch.path("page.html").string();
  const auto report = [&](Words words) {
    words.insert(words.begin() + 1, none.file());
    words.insert(words.end(), {"-q", "--report", page});
    const Outcome outcome = ddpsim(words);
    CAPTURE(outcome.err);
    REQUIRE(outcome.code == 0);
    CHECK(outcome.err.empty());
    return content_of(page);
  };
  const std::string noted = std::string("note: ") + carried,
                    format = noted + "compute bf16 (here fp32): what is fitted to them may not";
  const Words fp32{"--set", "workload.compute=fp32"};
  CHECK_THAT(report({"run", fp32[0], fp32[1]}), Catch::Contains(format));
  CHECK_THAT(report({"tune", fp32[0], fp32[1]}), Catch::Contains(format));
  for (const char* command : {"run", "sweep"})
    CHECK_THAT(report({command, "--vary", "workload.batch=8,4"}),
               Catch::Contains(noted + "batch 8, and here is another: what is fitted to them"));
  CHECK_THAT(report({"tune"}), Catch::Contains(fit_line) && !Catch::Contains(carried));
}

TEST_CASE("tables of what varies name the first point to which a fit is carried",
          "[tools][carried_fit][vary]") {
  const Fitted none(of_none);
  const std::string said = std::string("note: ") + carried +
                           "batch 8, and here is another: what is fitted to them may not hold "
                           "here, and how far such predictions usually are off is not quoted; "
                           "--laws-only leaves the rows out (at 2 of 3 points, the first "
                           "workload.batch=4)\n";
  const Outcome varied = none.run({"--vary", "workload.batch=8,4,16"});
  CHECK_THAT(varied.err, Catch::Contains(said));
  const Outcome swept =
      ddpsim({"sweep", none.file(), "--vary", "workload.batch=8,4,16", "--json", "-"});
  CHECK_THAT(swept.err, Catch::Contains(said));
  for (const Json& row : swept.json()["rows"])
    CHECK(row["step_low_ms"].is_null() == (row["workload.batch"] != "8"));
  CHECK_THAT(none.run({"--vary", "workload.batch=8,4,16", "--laws-only"}).err,
             !Catch::Contains(carried));
  const Json points = none.run({"--vary", "workload.batch=8,4,16", "-q", "--json", "-"}).json();
  REQUIRE(points.size() == 3);
  CHECK(points[0]["notes"] == Json::array());
  CHECK_FALSE(points[0]["results"][0]["step_low_ms"].is_null());
  CHECK_THAT(points[2]["notes"].dump(), Catch::Contains("batch 8 (here 16): "));
  CHECK(points[2]["results"][0]["step_low_ms"].is_null());
}

}  // namespace ddpsim
