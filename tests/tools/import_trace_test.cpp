// Traces of PyTorch's profiler: made up with times known to the microsecond (kineto_trace.hpp), in
// the variants that versions of PyTorch, NCCL and RCCL write.

#include <map>
#include <regex>
#include <tuple>

#include <catch2/catch.hpp>
#include <fmt/format.h>

#include "scenarios/reader/scenario/scenario_reader.hpp"
#include "tests/not_run.hpp"
#include "tests/tools/kineto_trace.hpp"
#include "tests/tools/next_command.hpp"
#include "tests/tools/program.hpp"

namespace ddpsim {
namespace {

/// Imports a trace; the findings, and the profile in p.yaml.
Json imported(const Scratch& scratch, const std::string& trace,
              const std::vector<std::string>& more = {}) {
  scratch.write("t.json", trace);
  std::vector<std::string> words{"import", "torch-trace", "t.json", "-o", "p.yaml", "--json", "-"};
  words.insert(words.end(), more.begin(), more.end());
  const Outcome outcome = ddpsim(words, scratch.folder());
  CAPTURE(outcome.err);
  REQUIRE(outcome.code == 0);
  return outcome.json();
}

std::string refused_trace(const Scratch& scratch, const std::string& trace) {
  scratch.write("t.json", trace);
  const Outcome outcome =
      ddpsim({"import", "torch-trace", "t.json", "-o", "p.yaml"}, scratch.folder());
  CHECK(outcome.code == 2);
  CHECK(outcome.out.empty());
  CHECK(lines_of(outcome.err).size() == 1);
  CHECK(!std::filesystem::exists(scratch.path("p.yaml")));
  return outcome.err;
}

Scenario scenario_on_profile(const Scratch& scratch, const std::string& more = "") {
  return read_scenario(
      scratch.write("s.yaml",
                    "workload: {model: p.yaml}\n"
                    "cluster: {device: h100-sxm, ranks_per_node: 2, intra_node: nvlink4}\n" +
                        more));
}

void check_buckets(const Json& found) {
  REQUIRE(found["buckets"].size() == 5);
  for (std::size_t b = 0; b < 5; ++b) {
    CHECK(found["buckets"][b]["elements"] == KinetoTrace::elements()[b]);
    CHECK(found["buckets"][b]["tensors"] == KinetoTrace::tensors()[b]);
  }
}

/// Phases, overlap and buckets of every step, as kineto_trace.hpp derives them.
void check_times(const Json& found, std::size_t steps) {
  REQUIRE(found["steps"].size() == steps);
  for (const Json& step : found["steps"]) {
    CHECK(step["step_ms"].get<double>() == Approx(100));
    CHECK(step["forward_ms"].get<double>() == Approx(30));
    CHECK(step["backward_ms"].get<double>() == Approx(45.08));
    CHECK(step["optimizer_ms"].get<double>() == Approx(10));
    CHECK(step["collectives_ms"].get<double>() == Approx(5.02));
    CHECK(step["overlapped_ms"].get<double>() == Approx(4));
    CHECK(step["exposed_ms"].get<double>() == Approx(1.02));
  }
  // The hook of tensor n (from 0) fires 21.05 + 0.1 n ms after the step began and calls 0.02 ms
  // later; its copy into the bucket ends at 30 + 0.3 (n + 1) ms, when the all-reduce starts.
  int through = 0;
  for (std::size_t b = 0; b < 5; ++b) {
    through += KinetoTrace::tensors()[b];
    CHECK(found["buckets"][b]["launched_ms"].get<double>() == Approx(21.07 + 0.1 * (through - 1)));
    CHECK(found["buckets"][b]["start_ms"].get<double>() == Approx(30 + 0.3 * through));
    CHECK(found["buckets"][b]["took_ms"].get<double>() == Approx(1));
  }
}

TEST_CASE("a trace's steps, buckets and overlap are those it was made with",
          "[tools][import_trace]") {
  const Scratch scratch;
  const Json found = imported(scratch, KinetoTrace({}).text());
  CHECK(keys_of(found) == std::vector<std::string>{"format", "version", "kind", "file", "events",
                                                   "strategy", "steps", "parts", "accounted_share",
                                                   "buckets", "others", "notes", "could_not_tell"});
  check_times(found, 3);
  check_buckets(found);
  CHECK(found["steps"][0]["name"] == "step 7");
  CHECK(found["strategy"] == "bucketed");
  REQUIRE(found["others"].size() == 1);
  CHECK(found["others"][0]["collective"] == "broadcast");
  CHECK(found["others"][0]["elements"] == 53'120);
  CHECK(found["others"][0]["count"] == 3);
  CHECK(found["notes"].empty());
  REQUIRE(found["could_not_tell"].size() == 1);
  CHECK_THAT(found["could_not_tell"][0].get<std::string>(), Catch::StartsWith("names"));
}

TEST_CASE("the row of medians has the median of each column", "[tools][import_trace]") {
  // Of an all-reduce beside kernels and copies of 280 + c of every 300 us the first four are hidden
  // so far, and the last one, and 20 us of a broadcast, are exposed:
  //    900 us, c = 10: 4.52 ms, 4 x 870 us = 3.48 ms hidden, 1.04 exposed
  //   1000 us, c = 20: 5.02 ms, 4.00 hidden, 1.02 exposed
  //   1000 us, c = 10: 5.02 ms, 4 x (870 + 100) us = 3.88 ms hidden, 1.14 exposed
  TraceOptions options;
  options.all_reduces = {900, 1000, 1000};
  options.copies_in = {10, 20, 10};
  const Scratch scratch;
  scratch.write("t.json", KinetoTrace(options).text());
  const Outcome outcome = ddpsim({"import", "torch-trace", "t.json"}, scratch.folder());
  CAPTURE(outcome.err, outcome.out);
  REQUIRE(outcome.code == 0);
  std::smatch row;
  REQUIRE(std::regex_search(outcome.out, row,
                            std::regex("\nmedian .* ([0-9.]+) +([0-9.]+) +([0-9.]+)[ ]*\n")));
  CHECK(row[1] == "5.020");
  CHECK(row[2] == "3.880");
  CHECK(row[3] == "1.040");  // not 5.020 - 3.880
}

TEST_CASE("a trace whose steps differ by much makes a doubtful profile", "[tools][import_trace]") {
  const auto made = [](const Scratch& scratch, std::vector<double> stretch) {
    TraceOptions options;
    options.steps = static_cast<int>(stretch.size());
    options.stretch = std::move(stretch);
    return imported(scratch, KinetoTrace(options).text());
  };
  const auto run = [](const Scratch& scratch) {
    const Scenario scenario = scenario_on_profile(scratch);
    const Outcome outcome = ddpsim({"run", "s.yaml"}, scratch.folder());
    CHECK(outcome.code == 0);
    return std::pair(scenario.workload.doubts, outcome);
  };
  const Scratch scratch;
  // 290, 320, 205, 190 and 130 ms: their median is 205, and they are 85, 115, 0, 15 and 75 from it,
  // in the median 75: 75 / 0.67449 / 205 = 54 %.
  const Json noisy = made(scratch, {2.9, 3.2, 2.05, 1.9, 1.3});
  const std::string doubt = "its steps take 130.00 to 320.00 ms (they differ by 54 %): ";
  CHECK_THAT(noisy["notes"].dump(), Catch::Contains(doubt));
  const auto [doubts, doubtful] = run(scratch);
  REQUIRE(doubts.size() == 1);
  CHECK_THAT(doubts.front(), Catch::StartsWith(doubt));
  CHECK_THAT(doubtful.err, Catch::Contains("is doubtful: " + doubt) &&
                               Catch::Contains("usually are off is not quoted"));
  CHECK_THAT(doubtful.out, !Catch::Contains("off in the median"));
  // One slow step of several moves no median: 5 of 105 ms is 7 %.
  const Json quiet = made(scratch, {3, 1, 1.05, 1.1, 1.05});
  CHECK(quiet["notes"].empty());
  CHECK(run(scratch).first.empty());
}

TEST_CASE("the profile of a trace has its gradients, times and measured step",
          "[tools][import_trace]") {
  const Scratch scratch;
  imported(scratch, KinetoTrace({}).text());
  const Scenario scenario = scenario_on_profile(scratch);
  const Workload& workload = scenario.workload;
  REQUIRE(workload.parameters.size() == 161);
  CHECK(workload.elements() == 25'557'032);  // ResNet-50
  CHECK(workload.parameters.back().name == "parameter.160");
  // The classifier's bias arrives first: 1000 elements.
  CHECK(workload.parameters.back().elements() == 1000);
  // One kernel of 280 us between any two gradients, and none after the last.
  REQUIRE(workload.layers.at(0).backward.size() == 161);
  for (const Kernel& kernel : workload.layers[0].backward)
    CHECK(in_us(*kernel.time) == Approx(280));
  CHECK(in_ms(*workload.layers[0].forward.at(0).time) == Approx(30));
  CHECK(in_ms(*workload.optimizer) == Approx(10));
  REQUIRE(scenario.measured);
  REQUIRE(scenario.measured->rows.size() == 1);
  const MeasuredRow& row = scenario.measured->rows[0];
  CHECK(row.strategy == Strategy::bucketed);
  CHECK(in_ms(row.step) == Approx(100));
  CHECK(in_ms(row.communication->time) == Approx(5));
  CHECK(in_ms(*row.times.backward) == Approx(45.08));
}

TEST_CASE("DistributedDataParallel's caps make the traced buckets of the imported profile",
          "[tools][import_trace]") {
  const Scratch scratch;
  imported(scratch, KinetoTrace({}).text());
  scenario_on_profile(scratch);
  const Json schedule = ddpsim({"schedule", "s.yaml", "--json", "-"}, scratch.folder()).json();
  REQUIRE(schedule["buckets"].size() == 5);
  for (std::size_t b = 0; b < 5; ++b) {
    CHECK(schedule["buckets"][b]["bytes"] == 4 * KinetoTrace::elements()[b]);
    CHECK(schedule["buckets"][b]["parameters"].size() ==
          static_cast<std::size_t>(KinetoTrace::tensors()[b]));
  }
  const Json run = ddpsim({"run", "s.yaml", "--json", "-"}, scratch.folder()).json();
  for (const Json& result : run["results"])
    CHECK(result["forward_ms"].get<double>() == Approx(30).epsilon(0.01));
  const Outcome score = ddpsim({"score", "s.yaml", "--json", "-"}, scratch.folder());
  CHECK(score.code == 0);
  CHECK(score.json()["rows"][0]["measured_step_ms"].get<double>() == Approx(100));
}

TEST_CASE("the parts of a step add up to it, and say where their time went",
          "[tools][import_trace]") {
  const Scratch scratch;
  TraceOptions options;
  for (const bool copies : {true, false}) {
    CAPTURE(copies);
    options.copies = copies;
    const Json found = imported(scratch, KinetoTrace(options).text());
    // Forward: its kernel runs from 1.1 to 30 ms, a broadcast for 0.02 ms before it. Backward: 161
    // times 0.3 ms without a break, to 78.3. The last all-reduce ends at 79.3, the copies out of
    // the buckets at 80.91, the optimizer at 90.91; then nothing.
    const double finished = copies ? 80.91 : 79.3;
    const struct {
      const char* part;
      double length, computing, collectives, idle;
    } expected[] = {{"forward", 30, 28.9, 0.02, 1.08},
                    {"backward", 48.3, 48.3, 0, 0},
                    {"finishing", finished - 78.3, finished - 79.3, 1, 0},
                    {"before the optimizer", 0, 0, 0, 0},
                    {"optimizer", 90.91 - finished, 10, 0, 80.91 - finished},
                    {"after the optimizer", 9.09, 0, 0, 9.09}};
    REQUIRE(found["parts"].size() == std::size(expected));
    double sum = 0;
    for (std::size_t i = 0; i < std::size(expected); ++i) {
      const Json& part = found["parts"][i];
      CAPTURE(expected[i].part);
      CHECK(part["part"] == expected[i].part);
      CHECK(part["ms"].get<double>() == Approx(expected[i].length).margin(0.001));
      CHECK(part["computing_ms"].get<double>() == Approx(expected[i].computing).margin(0.001));
      CHECK(part["collectives_ms"].get<double>() == Approx(expected[i].collectives).margin(0.001));
      CHECK(part["idle_ms"].get<double>() == Approx(expected[i].idle).margin(0.001));
      CHECK(part["other_streams_ms"].get<double>() == Approx(0).margin(0.001));
      sum += part["ms"].get<double>();
    }
    CHECK(sum == Approx(100).margin(0.001));
    // Without the 3.22 ms of copies into the buckets, which a schedule adds itself.
    CHECK(found["accounted_share"].get<double>() == Approx(1 - 0.0322).margin(0.0001));
    // Without copies the optimizer's kernel still waits for the last all-reduce: that is not its
    // own time.
    CHECK(found["steps"][0]["optimizer_ms"].get<double>() == Approx(90.91 - finished));
  }
}

TEST_CASE("the all-reduces of a trace are a link profile, and say from whose arrival",
          "[tools][import_trace]") {
  const Scratch scratch;
  TraceOptions options;
  const Json alone = imported(scratch, KinetoTrace(options).text(), {"--link-profile", "one.yaml"});
  CHECK_THAT(alone["notes"].dump(), Catch::Contains("from this rank's arrival"));
  options.all_reduce = 700;  // another rank came later, and waited for nobody
  scratch.write("other.json", KinetoTrace(options).text());
  const Json both =
      imported(scratch, KinetoTrace({}).text(), {"--link-profile", "both.yaml", "other.json"});
  CHECK_THAT(both["notes"].dump(), Catch::Contains("from the last arrival of 2 ranks"));
  for (const bool one : {true, false}) {
    scratch.write("s.yaml", fmt::format("workload: {{model: p.yaml}}\ncluster: {{device: h100-sxm, "
                                        "ranks_per_node: 2, intra_node: {}.yaml}}\n",
                                        one ? "one" : "both"));
    const Link link = read_scenario(scratch.path("s.yaml")).cluster.intra_node;
    CHECK(link.table_ranks == 2);
    REQUIRE(link.all_reduce.size() == 4);
    std::vector<std::int64_t> sizes;
    for (const auto& [size, time] : link.all_reduce) {
      sizes.push_back(size.count);
      CHECK(in_us(time) == Approx(one ? 1000 : 700));
    }
    // Two of the five sizes, 6,563,840 and 6,637,568 elements, are all but alike: one point.
    CHECK(sizes == std::vector<std::int64_t>{4 * 2'049'000, 4 * 2'431'040,
                                             2 * (6'563'840 + 6'637'568), 4 * 7'875'584});
  }
}

/// Imports t.json with `flags`: the next command is `expected`, and with `words` put in it runs.
void check_next(const Scratch& scratch, const std::vector<std::string>& flags,
                const std::string& expected,
                std::vector<std::pair<std::string, std::string>> words) {
  std::vector<std::string> command{"import", "torch-trace", "t.json"};
  command.insert(command.end(), flags.begin(), flags.end());
  const Outcome imported = ddpsim(command, scratch.folder());
  REQUIRE(imported.code == 0);
  CHECK(next_command(imported) == expected);
  words.insert(words.begin(), {{"SCENARIO", first_example}, {"DEVICE", "h100-sxm"}});
  const Outcome followed = follow(next_command(imported), scratch.folder(), words);
  CAPTURE(expected, followed.err);
  CHECK(followed.code == 0);
}

TEST_CASE("the next commands that are told of a trace run", "[tools][import_trace]") {
  const Scratch scratch;
  scratch.write("t.json", KinetoTrace({}).text());
  const std::string tune = "ddpsim tune p.yaml --device DEVICE --ranks N --link ";
  for (const auto& [files, expected] :
       std::vector<std::pair<std::vector<std::string>, std::string>>{
           {{"-o", "p.yaml"}, tune + "LINK"},
           {{"-o", "p.yaml", "--link-profile", "l.yaml"},
            tune + "l.yaml --set cluster.interference={}"},
           {{"--link-profile", "l.yaml"}, "ddpsim run SCENARIO --link l.yaml"}}) {
    check_next(scratch, files, expected, {{"--ranks N", "--ranks 2"}, {"LINK", "nvlink4"}});
  }
}

TEST_CASE("the next command of a trace has the nodes that its devices tell",
          "[tools][import_trace]") {
  const Scratch scratch;
  std::string text = KinetoTrace({}).text();
  const auto put = [&](const std::string& old, const std::string& by) {
    text.replace(text.find(old), old.size(), by);
  };
  // Four devices in each process's host, and eight ranks.
  const std::string device = R"({"id": 0, "name": "NVIDIA H100"})";
  put(device, fmt::format("{0}, {0}, {0}, {0}", device));
  put("\"world_size\": 2", "\"world_size\": 8");
  scratch.write("t.json", text);
  for (const auto& [files, expected] :
       std::vector<std::pair<std::vector<std::string>, std::string>>{
           {{"-o", "p.yaml"},
            "ddpsim tune p.yaml --device DEVICE --nodes 2 --ranks-per-node 4 --link INTRA_NODE "
            "--link LINK"},
           {{"-o", "p.yaml", "--link-profile", "l.yaml"},
            "ddpsim tune p.yaml --device DEVICE --nodes 2 --ranks-per-node 4 --link INTRA_NODE "
            "--link l.yaml --set cluster.interference={}"},
           {{"--link-profile", "l.yaml"}, "ddpsim run SCENARIO --nodes 2 --link l.yaml"}}) {
    check_next(scratch, files, expected, {{"INTRA_NODE", "nvlink4"}, {"LINK", "ib-ndr"}});
  }
}

TEST_CASE("traces of several ranks say who comes late, by how much, and to what",
          "[tools][import_trace]") {
  // Rank 0 takes 1000 us for each of the five all-reduces of a step, rank 1 takes 700 and rank 2
  // 900: rank 1 comes last, 300 us after rank 0. A step has 5 of these.
  const Scratch scratch;
  std::vector<std::string> others;
  for (const auto& [rank, us] : {std::pair(1, 700.0), std::pair(2, 900.0)}) {
    TraceOptions options;
    options.rank = rank;
    options.all_reduce = us;
    others.push_back(fmt::format("rank{}.json", rank));
    scratch.write(others.back(), KinetoTrace(options).text());
  }
  const Json found = imported(scratch, KinetoTrace({}).text(), others)["lateness"];
  CHECK(found["steps"] == 3);
  REQUIRE(found["ranks"].size() == 3);
  for (int rank = 0; rank < 3; ++rank) {
    CHECK(found["ranks"][rank]["rank"] == fmt::format("rank {}", rank));
    CHECK(found["ranks"][rank]["last"] == (rank == 1 ? 15 : 0));
    CHECK(found["ranks"][rank]["waited_ms"].get<double>() == Approx(rank == 1 ? 1.5 : 0));
  }
  REQUIRE(found["all_reduces"].size() == 5);
  for (const Json& each : found["all_reduces"]) {
    CHECK(each["last"] == "rank 1");
    CHECK(each["steps"] == 3);
    CHECK(each["waited_ms"].get<double>() == Approx(0.3));
  }
  const Outcome shown =
      ddpsim({"import", "torch-trace", "t.json", others[0], others[1]}, scratch.folder());
  CHECK_THAT(shown.out, Catch::Contains("rank 1 came last to 15 of 15 all-reduces, and others "
                                        "waited 1.500 ms a step for it"));
}

TEST_CASE("ranks that come together are nobody's delay", "[tools][import_trace]") {
  const Scratch scratch;
  scratch.write("same.json", KinetoTrace({}).text());
  const Json found = imported(scratch, KinetoTrace({}).text(), {"same.json"})["lateness"];
  for (const Json& each : found["all_reduces"]) {
    CHECK(each["steps"] == 0);
    CHECK(!each.contains("last"));
  }
  CHECK_THAT(ddpsim({"import", "torch-trace", "t.json", "same.json"}, scratch.folder()).out,
             Catch::Contains("all ranks came to every all-reduce together"));
}

TEST_CASE("traces of ddpsim's own steps tell no lateness, and the import says so",
          "[tools][import_trace]") {
  // Rank 5 computes 1.3 times as long; an all-reduce begins when it has come.
  const Scratch scratch;
  const Outcome traced = ddpsim({"run", shipped("examples/straggler.yaml"), "--set",
                                 "compare=[bucketed]", "--quiet", "--trace", "t/"},
                                scratch.folder());
  REQUIRE(traced.code == 0);
  const std::string folder = "t/bucketed-1+25-MiB/";
  const Outcome outcome = ddpsim(
      {"import", "torch-trace", folder + "rank0.json.gz", folder + "rank5.json.gz", "--json", "-"},
      scratch.folder());
  CAPTURE(outcome.err);
  REQUIRE(outcome.code == 0);
  const Json found = outcome.json();
  CHECK(!found.contains("lateness"));
  CHECK_THAT(found["notes"].dump(),
             Catch::Contains("these traces are of ddpsim: an all-reduce begins there when the last "
                             "rank has come, so lateness cannot be told from it"));
  const Outcome shown =
      ddpsim({"import", "torch-trace", folder + "rank0.json.gz", folder + "rank5.json.gz"},
             scratch.folder());
  CHECK_THAT(shown.out, Catch::Contains("these traces are of ddpsim") &&
                            !Catch::Contains("all ranks came to every all-reduce together") &&
                            !Catch::Contains("came last"));
}

TEST_CASE("an all-reduce beside an earlier one counts from the end of that",
          "[tools][import_trace]") {
  // Called 30.6, 35.1, 38.7, 54 and 78.3 ms into the step, when their buckets are full.
  const Scratch scratch;
  TraceOptions options;
  options.all_reduce = 6000;
  imported(scratch, KinetoTrace(options).text(), {"--link-profile", "l.yaml"});
  scratch.write("s.yaml",
                "workload: {model: p.yaml}\ncluster: {device: h100-sxm, ranks_per_node: 2, "
                "intra_node: l.yaml}\n");
  const std::map<std::int64_t, double> expected{{4 * 2'049'000, 6000},
                                                {4 * 7'875'584, 41'100 - 36'600},
                                                // 3600 and 6000 us, of sizes all but alike.
                                                {2 * (6'563'840 + 6'637'568), 4800},
                                                {4 * 2'431'040, 6000}};
  std::map<std::int64_t, double> found;
  const Link link = read_scenario(scratch.path("s.yaml")).cluster.intra_node;
  for (const auto& [size, time] : link.all_reduce) found[size.count] = in_us(time);
  REQUIRE(found.size() == expected.size());
  for (const auto& [size, us] : expected) CHECK(found[size] == Approx(us));
}

/// How long all-reduces take that begin 30.6, 35.1, 38.7, 54 and 78.3 ms into the step: the second
/// ends while the first still runs.
const std::vector<double> second_within_first{6000, 1000, 7000, 7000, 6500};

/// A link profile's table, in us.
std::map<std::int64_t, double> table_in(const Scratch& scratch, const std::string& file) {
  std::map<std::int64_t, double> table;
  scratch.write("of_link.yaml", fmt::format("workload: {{model: p.yaml}}\ncluster: {{device: "
                                            "h100-sxm, ranks_per_node: 2, intra_node: {}}}\n",
                                            file));
  const Link link = read_scenario(scratch.path("of_link.yaml")).cluster.intra_node;
  for (const auto& [size, time] : link.all_reduce) table[size.count] = in_us(time);
  return table;
}

TEST_CASE("an all-reduce that in every step ends before an earlier one has no row",
          "[tools][import_trace]") {
  const Scratch scratch;
  TraceOptions options;
  options.bucket_all_reduces = std::vector(3, second_within_first);
  const Json found = imported(scratch, KinetoTrace(options).text(), {"--link-profile", "l.yaml"});
  CHECK_THAT(found["notes"].dump(),
             Catch::Contains(fmt::format(
                 "left out of the link profile: all-reduces of {} (1 a step) overlapped with "
                 "others in every step, so that their own time is not known",
                 to_string(Bytes{4 * 7'875'584}))));
  CHECK_THAT(content_of(scratch.path("l.yaml")), !Catch::Contains(" ps"));
  const std::map<std::int64_t, double> table = table_in(scratch, "l.yaml");
  REQUIRE(table.size() == 3);
  CHECK(table.at(4 * 2'049'000) == Approx(6000));
  CHECK(table.at(4 * 2'431'040) == Approx(6500));
  CHECK(table.at(2 * (6'563'840 + 6'637'568)) == Approx(7000));
}

TEST_CASE("an all-reduce counts in the steps in which it ends behind the earlier ones",
          "[tools][import_trace]") {
  // In the second step it runs 35.1 - 40.1 ms and the first one 30.6 - 31.6 ms.
  const Scratch scratch;
  TraceOptions options;
  options.bucket_all_reduces = std::vector(3, second_within_first);
  options.bucket_all_reduces[1] = {1000, 5000, 7000, 7000, 6500};
  const Json found = imported(scratch, KinetoTrace(options).text(), {"--link-profile", "l.yaml"});
  CHECK_THAT(found["notes"].dump(), !Catch::Contains("left out of the link profile"));
  const std::map<std::int64_t, double> table = table_in(scratch, "l.yaml");
  REQUIRE(table.size() == 4);
  CHECK(table.at(4 * 7'875'584) == Approx(5000));
  CHECK(table.at(4 * 2'049'000) == Approx(6000));
}

TEST_CASE("who comes last to an all-reduce that ends before an earlier one is not known",
          "[tools][import_trace]") {
  // Rank 1 takes 300 us less for each of the other four, in each of the three steps.
  const Scratch scratch;
  TraceOptions options;
  options.rank = 1;
  options.bucket_all_reduces = std::vector(3, std::vector<double>{5700, 500, 6700, 6700, 6200});
  scratch.write("rank1.json", KinetoTrace(options).text());
  options.rank = 0;
  options.bucket_all_reduces = std::vector(3, second_within_first);
  const Json found = imported(scratch, KinetoTrace(options).text(),
                              {"rank1.json", "--link-profile", "l.yaml"})["lateness"];
  REQUIRE(found["all_reduces"].size() == 5);
  for (std::size_t b = 0; b < 5; ++b) {
    CAPTURE(b);
    const Json& each = found["all_reduces"][b];
    CHECK(each["known"] == (b == 1 ? 0 : 3));
    CHECK(each.contains("waited_ms") == (b != 1));
    CHECK(each.contains("last") == (b != 1));
  }
  CHECK(found["ranks"][1]["last"] == 12);
  CHECK(found["ranks"][1]["waited_ms"].get<double>() == Approx(1.2));
  CHECK(table_in(scratch, "l.yaml").at(4 * 2'049'000) == Approx(5700));
  const Outcome shown = ddpsim({"import", "torch-trace", "t.json", "rank1.json"}, scratch.folder());
  CHECK_THAT(shown.out,
             Catch::Contains("rank 1 came last to 12 of 12 all-reduces, and others waited 1.200 ms "
                             "a step for it; the other 3 of 15 overlapped with others, so that "
                             "their own time is not known") &&
                 Catch::Contains("not known"));
}

TEST_CASE(
    "all-reduces that are no times of a link make no link profile, and the next command "
    "does without",
    "[tools][import_trace]") {
  // 8.2 MB take 4 ms and 31.5 MB 1 ms: the reader of a link profile refuses such a table.
  const Scratch scratch;
  TraceOptions options;
  options.bucket_all_reduces = std::vector(3, std::vector<double>{4000, 1000, 1000, 1000, 1000});
  scratch.write("t.json", KinetoTrace(options).text());
  const std::string why = fmt::format(
      "no link profile is written: {} in 4 ms and {} in 1 ms: more bytes take less time, so these "
      "are no times of a link",
      to_string(Bytes{4 * 2'049'000}), to_string(Bytes{4 * 7'875'584}));
  const Outcome both =
      ddpsim({"import", "torch-trace", "t.json", "-o", "p.yaml", "--link-profile", "l.yaml"},
             scratch.folder());
  REQUIRE(both.code == 0);
  CHECK_THAT(both.out, Catch::Contains(why) && !Catch::Contains("a prediction takes the larger"));
  CHECK(!std::filesystem::exists(scratch.path("l.yaml")));
  CHECK(next_command(both) == "ddpsim tune p.yaml --device DEVICE --ranks N --link LINK");
  const Outcome followed =
      follow(next_command(both), scratch.folder(),
             {{"DEVICE", "h100-sxm"}, {"--ranks N", "--ranks 2"}, {"LINK", "nvlink4"}});
  CAPTURE(followed.err);
  CHECK(followed.code == 0);
  // Where the link profile is all that was asked for, nothing was done.
  const Outcome alone =
      ddpsim({"import", "torch-trace", "t.json", "--link-profile", "l.yaml"}, scratch.folder());
  CHECK(alone.code == 2);
  CHECK(lines_of(alone.err).size() == 1);
  CHECK_THAT(alone.err, Catch::Contains("t.json: " + why));
  CHECK(!std::filesystem::exists(scratch.path("l.yaml")));
}

TEST_CASE("traces that tell nothing of a link together are refused", "[tools][import_trace]") {
  const Scratch scratch;
  scratch.write("t.json", KinetoTrace({}).text());
  const auto refused = [&](const std::vector<std::string>& more) {
    std::vector<std::string> words{"import", "torch-trace", "t.json"};
    words.insert(words.end(), more.begin(), more.end());
    const Outcome outcome = ddpsim(words, scratch.folder());
    CHECK(outcome.code == 2);
    CHECK(lines_of(outcome.err).size() == 1);
    return outcome.err;
  };
  TraceOptions options;
  options.mark_steps = false;  // steps 1 to 3, and not 7 to 9
  scratch.write("other.json", KinetoTrace(options).text());
  CHECK_THAT(refused({"other.json", "--link-profile", "l.yaml"}),
             Catch::Contains("no whole step of it is in the traces of the other ranks"));
  CHECK(!std::filesystem::exists(scratch.path("l.yaml")));
  options = {};
  options.message_sizes = options.copies = false;
  scratch.write("t.json", KinetoTrace(options).text());
  CHECK_THAT(refused({"--link-profile", "l.yaml"}),
             Catch::Contains("does not say how large its all-reduces are"));
}

TEST_CASE("a step whose host falls behind predicts itself from its profile and its link",
          "[tools][import_trace]") {
  const Scratch scratch;
  TraceOptions options;
  options.host_behind = true;
  options.copy_in = 2;
  imported(scratch, KinetoTrace(options).text(), {"--link-profile", "l.yaml"});
  scratch.write("s.yaml",
                "workload: {model: p.yaml}\n"
                "cluster: {device: h100-sxm, ranks_per_node: 2, intra_node: l.yaml}\n");
  const Workload workload = read_scenario(scratch.path("s.yaml")).workload;
  // The device ends backward at 78.282 ms, the host its last copy at 79 + 16 + 0.04.
  REQUIRE(workload.copy_back);
  CHECK(in_us(*workload.copy_back) == Approx((95'040.0 - 78'282) / 161));
  CHECK(in_ms(*workload.optimizer) == Approx(3.5));             // 95.5 to 99
  CHECK(in_ms(workload.outside) == Approx(100 - 95.04 - 3.5));  // the rest
  const Json run = ddpsim({"run", "s.yaml", "--json", "-"}, scratch.folder()).json();
  double bucketed = 0, flat = 0;
  for (const Json& result : run["results"]) {
    if (result["strategy"] == "bucketed") bucketed = result["step_ms"].get<double>();
    if (result["strategy"] == "flat") flat = result["step_ms"].get<double>();
  }
  CHECK(bucketed == Approx(100).epsilon(0.03));
  CHECK(flat < bucketed - 10);  // what it copies back does not pass through DDP's host code
}

TEST_CASE("a step whose host runs ahead predicts itself from its own trace and its link",
          "[tools][import_trace]") {
  const Scratch scratch;
  const Outcome traced = ddpsim({"run", first_example, "--set", "compare=[bucketed]", "--quiet",
                                 "--json", "-", "--trace", "t/"},
                                scratch.folder());
  REQUIRE(traced.code == 0);
  const double step = traced.json()["results"][0]["step_ms"];
  REQUIRE(ddpsim({"import", "torch-trace", "t/bucketed-1+25-MiB/rank0.json.gz", "-o", "p.yaml",
                  "--link-profile", "link.yaml", "--quiet"},
                 scratch.folder())
              .code == 0);
  scratch.write("s.yaml",
                "workload: {model: p.yaml}\n"
                "cluster: {device: a100-40, ranks_per_node: 8, intra_node: link.yaml, skew: 0 %, "
                "interference: {}}\n"
                "compare: [bucketed]\n");
  const Outcome again = ddpsim({"run", "s.yaml", "--quiet", "--json", "-"}, scratch.folder());
  INFO(again.err);
  REQUIRE(again.code == 0);
  CHECK(again.json()["results"][0]["step_ms"].get<double>() == Approx(step).epsilon(0.03));
}

TEST_CASE("NCCL's and RCCL's names of the kernel are one to the import", "[tools][import_trace]") {
  const Scratch scratch;
  for (const char* kernel :
       {"ncclKernel_AllReduce_RING_LL_Sum_float(ncclDevComm*, unsigned long, ncclWork*)",
        "ncclKernel_AllReduce_TREE_LL128_Sum_half(ncclDevComm*, unsigned long, ncclWork*)",
        "ncclDevKernel_AllReduce_Sum_f32_TREE_LL(ncclDevComm*, unsigned long, ncclWork*)",
        "ncclSymkDevKernel_AllReduce_AGxLLMC_R_sum_f32",
        "ncclDevKernel_Generic_4(ncclDevKernelArgs)", "void ncclKernel_Generic<1>(ncclDevComm*)",
        "rcclGenericKernel(int)"}) {
    CAPTURE(kernel);
    TraceOptions options;
    options.all_reduce_kernel = kernel;
    const Json found = imported(scratch, KinetoTrace(options).text());
    check_times(found, 3);
    check_buckets(found);
  }
}

TEST_CASE("recorded shapes stand in for the sizes of messages", "[tools][import_trace]") {
  const Scratch scratch;
  TraceOptions options;
  options.message_sizes = false;
  options.shapes = true;
  for (const bool copies : {true, false}) {
    CAPTURE(copies);
    options.copies = copies;
    const Json found = imported(scratch, KinetoTrace(options).text());
    check_buckets(found);
    if (copies) check_times(found, 3);
    // Shapes, not only sizes: the first convolution is the last gradient.
    CHECK(scenario_on_profile(scratch).workload.parameters.front().shape ==
          std::vector<std::int64_t>{64, 3, 7, 7});
  }
}

TEST_CASE("the copies' bytes tell sizes that nothing else does", "[tools][import_trace]") {
  const Scratch scratch;
  TraceOptions options;
  options.message_sizes = false;
  const Json found = imported(scratch, KinetoTrace(options).text());
  check_buckets(found);
  CHECK_THAT(found["could_not_tell"].dump(), Catch::Contains("types of the gradients"));
}

TEST_CASE("where only messages have sizes a parameter stands for each bucket",
          "[tools][import_trace]") {
  const Scratch scratch;
  TraceOptions options;
  options.copies = false;
  const Json found = imported(scratch, KinetoTrace(options).text());
  check_buckets(found);
  CHECK_THAT(found["could_not_tell"].dump(), Catch::Contains("sizes of single gradients"));
  const Workload workload = scenario_on_profile(scratch).workload;
  REQUIRE(workload.parameters.size() == 5);
  for (std::size_t b = 0; b < 5; ++b) {
    const Parameter& parameter = workload.parameters[4 - b];
    CHECK(parameter.name == fmt::format("bucket.{}", b));
    CHECK(parameter.elements() == KinetoTrace::elements()[b]);
  }
  // The first bucket is full with the second gradient. Its hooks copy, though under no name.
  CHECK(in_us(*workload.layers[0].backward[0].time) == Approx(2 * 280));
}

TEST_CASE("without any sizes there are findings but no profile, unless the model is named",
          "[tools][import_trace]") {
  const Scratch scratch;
  TraceOptions options;
  options.message_sizes = options.copies = false;
  const std::string trace = KinetoTrace(options).text();
  CHECK_THAT(refused_trace(scratch, trace),
             Catch::Contains("does not say how large its gradients are"));
  const Outcome outcome = ddpsim({"import", "torch-trace", "t.json"}, scratch.folder());
  CHECK(outcome.code == 0);
  CHECK_THAT(outcome.out,
             Catch::Contains("3 whole steps") && Catch::Contains("sizes of the gradients"));
  const Json found = imported(scratch, trace, {"--model", "resnet50"});
  check_buckets(found);
  const Workload workload = scenario_on_profile(scratch).workload;
  CHECK(workload.parameters.front().name == "conv1.weight");
  CHECK(workload.parameters.back().name == "fc.bias");
}

TEST_CASE("a model that is not the traced one is refused", "[tools][import_trace]") {
  const Scratch scratch;
  scratch.write("t.json", KinetoTrace({}).text());
  const auto with = [&](const std::string& model) {
    const Outcome outcome =
        ddpsim({"import", "torch-trace", "t.json", "--model", model}, scratch.folder());
    CHECK(outcome.code == 2);
    CHECK(lines_of(outcome.err).size() == 1);
    return outcome.err;
  };
  CHECK_THAT(with("resnet18"),
             Catch::Contains("161 gradient hooks a step, but model resnet18 has 62 parameters"));
  CHECK_THAT(with("resnet5"), Catch::Contains("did you mean \"resnet50\"?"));
  // As many parameters, but other ones: 161 = 5 * 32 + 1 is no MLP's; a bottleneck network of 10
  // classes.
  scratch.write("m.yaml", "family: resnet\nblocks: [3, 4, 6, 3]\nbottleneck: true\nclasses: 10\n");
  CHECK_THAT(with("./m.yaml"),
             Catch::Contains("hook 0 has a gradient of 1000 elements, but fc.bias"));
}

TEST_CASE("without correlation ids kernels belong to calls in their order",
          "[tools][import_trace]") {
  const Scratch scratch;
  TraceOptions options;
  options.correlations = false;
  options.shapes = true;  // copies have no sizes without their launches
  const Json found = imported(scratch, KinetoTrace(options).text());
  check_buckets(found);
  for (const Json& bucket : found["buckets"]) CHECK(bucket["took_ms"].get<double>() == Approx(1));
}

TEST_CASE("collectives of other process groups are told apart", "[tools][import_trace]") {
  const Scratch scratch;
  TraceOptions options;
  options.tensor_parallel = true;
  const Json found = imported(scratch, KinetoTrace(options).text());
  check_buckets(found);
  REQUIRE(found["others"].size() == 2);
  CHECK(found["others"][0]["collective"] == "all-reduce");
  CHECK(found["others"][0]["process_group"] == "1");
  CHECK(found["others"][0]["count"] == 6);
}

TEST_CASE("steps that are cut off are left out and named", "[tools][import_trace]") {
  const Scratch scratch;
  TraceOptions options;
  // In the last backward pass, 13 ms of hooks after it began at 21 ms: past 130 of 161 hooks.
  options.cut = 2 * KinetoTrace::step_length + 34'000;
  const Json found = imported(scratch, KinetoTrace(options).text());
  check_times(found, 2);
  check_buckets(found);
  CHECK_THAT(found["notes"].dump(), Catch::Contains("step 9 is left out: ") &&
                                        Catch::Contains("gradient hooks instead of 161"));
}

TEST_CASE("steps that are not marked end with the optimizer", "[tools][import_trace]") {
  const Scratch scratch;
  TraceOptions options;
  options.mark_steps = false;
  const Json found = imported(scratch, KinetoTrace(options).text());
  REQUIRE(found["steps"].size() == 3);
  check_buckets(found);
  CHECK_THAT(found["notes"].dump(), Catch::Contains("the steps are not marked"));
  // From the end of the optimizer's call, when the device is at 90.91 ms of its step, to the same
  // place of the next.
  CHECK(found["steps"][1]["step_ms"].get<double>() == Approx(100));
  CHECK(found["steps"][1]["forward_ms"].get<double>() == Approx(30 + 9.09));
}

/// The trace of torch 2.0 in tests/data, with these texts put for those.
std::string trace_of_torch_2_0(const std::vector<std::pair<std::string, std::string>>& changes) {
  std::string text =
      content_of(std::filesystem::path(DDPSIM_TEST_DATA) / "traces" / "torch_2_0.json");
  for (const auto& [from, to] : changes) {
    REQUIRE(text.find(from) != std::string::npos);
    for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
      text.replace(at, from.size(), to);
  }
  return text;
}

TEST_CASE("lists of inputs tell sizes and types as torch 2.0 writes them, and no list is a type",
          "[tools][import_trace]") {
  const Scratch scratch;
  // Types of bytes for 4 and for 2: an element of each.
  for (const auto& [type, name, size] :
       {std::tuple{"float", "fp32", 4}, {"c10::BFloat16", "bf16", 2}, {"c10::Half", "fp16", 2}}) {
    CAPTURE(type);
    const Json found =
        imported(scratch, trace_of_torch_2_0({{"\"float\"", fmt::format("\"{}\"", type)}}),
                 {"--link-profile", "l.yaml"});
    REQUIRE(found["buckets"].size() == 2);
    // 10 + 10 * 1024 + 1024 + 1024 * 1024 elements, and 1024 + 1024 * 512.
    CHECK(found["buckets"][0]["elements"] == 1'059'850);
    CHECK(found["buckets"][1]["elements"] == 525'312);
    CHECK(found["buckets"][0]["bytes"] == size * 1'059'850);
    CHECK(found["buckets"][1]["bytes"] == size * 525'312);
    CHECK(found["could_not_tell"].size() == 1);  // names
    const Workload workload = scenario_on_profile(scratch).workload;
    REQUIRE(workload.parameters.size() == 6);
    CHECK(workload.parameters.back().shape == std::vector<std::int64_t>{10});
    for (const Parameter& parameter : workload.parameters) CHECK(name_of(parameter.dtype) == name);
    CHECK_THAT(content_of(scratch.path("l.yaml")),
               Catch::Contains(fmt::format("bytes: {}", size * 525'312)) ||
                   Catch::Contains(to_string(Bytes{size * 525'312})));
  }
}

TEST_CASE("a gradient of which no list says the shape has what the others leave of its bucket",
          "[tools][import_trace]") {
  const Scratch scratch;
  // As where autograd never defines it: nothing is copied, and zeros take its place.
  const std::string shape = "\"parameter\": \"4.bias\", \"Input Dims\": [[10]], ";
  const Json found =
      imported(scratch, trace_of_torch_2_0({{shape + "\"Input type\": [\"float\"]", ""}}));
  CHECK(found["buckets"][0]["elements"] == 1'059'850);
  CHECK(found["could_not_tell"].size() == 1);  // names
  const Workload workload = scenario_on_profile(scratch).workload;
  REQUIRE(workload.parameters.size() == 6);
  CHECK(workload.parameters.back().elements() == 10);
  CHECK(workload.parameters.back().dtype == DType::fp32);
}

TEST_CASE("gradients of types that ddpsim does not have are refused by their type",
          "[tools][import_trace]") {
  const Scratch scratch;
  for (const char* type : {"double", "c10::complex<float>", "c10::Float8_e4m3fn"})
    CHECK_THAT(
        refused_trace(scratch, trace_of_torch_2_0({{"\"float\"", fmt::format("\"{}\"", type)}})),
        Catch::Contains(fmt::format("gradients of type {}: expected", type)));
}

TEST_CASE("a packed trace and a bare list of events are traces too", "[tools][import_trace]") {
  const Scratch scratch;
  const std::string text = KinetoTrace({}).text();
  scratch.write("t.json", text);
  REQUIRE(execute({"gzip", "-k", "t.json"}, scratch.folder()).code == 0);
  const Outcome packed =
      ddpsim({"import", "torch-trace", "t.json.gz", "--json", "-"}, scratch.folder());
  REQUIRE(packed.code == 0);
  check_times(packed.json(), 3);
  const std::size_t begin = text.find("[\n", text.find("traceEvents"));
  const std::size_t end = text.rfind(']');
  check_times(imported(scratch, text.substr(begin, end - begin + 1)), 3);
}

TEST_CASE("steps that replay a CUDA graph are refused by name", "[tools][import_trace]") {
  const Scratch scratch;
  std::string events;
  for (int step = 0; step < 2; ++step) {
    events += fmt::format(
        R"({{"ph":"X","cat":"user_annotation","name":"ProfilerStep#{0}","pid":1,"tid":1,)"
        R"("ts":{1},"dur":900}},)"
        R"({{"ph":"X","cat":"cuda_runtime","name":"cudaGraphLaunch","pid":1,"tid":1,)"
        R"("ts":{1}.5,"dur":9,"args":{{"correlation":{2}}}}},)",
        step, 1000 * step, step + 1);
    for (int k = 0; k < 3; ++k)
      events += fmt::format(
          R"({{"ph":"X","cat":"kernel","name":"ncclDevKernel_AllReduce_Sum_f32_RING_LL","pid":0,)"
          R"("tid":7,"ts":{},"dur":50,"args":{{"correlation":{}}}}},)",
          1000 * step + 100 * k + 20, step + 1);
  }
  events.pop_back();
  CHECK_THAT(refused_trace(scratch, "{\"traceEvents\": [" + events + "]}"),
             Catch::Contains("no all-reduce of gradients found") && Catch::Contains("CUDA graph"));
}

TEST_CASE("traces of several ranks in one file are refused", "[tools][import_trace]") {
  const Scratch scratch;
  TraceOptions options;
  options.correlations = false;
  std::string text = KinetoTrace(options).text();
  options.process = 200;
  const std::string other = KinetoTrace(options).text();
  const std::size_t begin = other.find("[\n", other.find("traceEvents")) + 2;
  const std::size_t end = other.rfind("\n ]");
  text.insert(text.rfind("\n ]"), ",\n" + other.substr(begin, end - begin));
  CHECK_THAT(refused_trace(scratch, text), Catch::Contains("gradient hooks of 2 processes"));
}

TEST_CASE("a real trace, where one is given, is read as its kernels were counted by hand",
          "[tools][import_trace]") {
  // facebookresearch/HolisticTraceAnalysis, tests/data/nccl_parser_config/nccl_data.json.gz:
  // ResNet-50 on two A100. What its events add up to was counted apart from this program.
  const char* file = std::getenv("DDPSIM_RESNET50_TRACE");
  if (file == nullptr) {
    not_run("DDPSIM_RESNET50_TRACE names no trace");
    return;
  }
  const Scratch scratch;
  const Outcome outcome = ddpsim(
      {"import", "torch-trace", file, "-o", "p.yaml", "--link-profile", "l.yaml", "--json", "-"},
      scratch.folder());
  REQUIRE(outcome.code == 0);
  const Json found = outcome.json();
  check_buckets(found);
  CHECK(found["others"].size() == 2);
  REQUIRE(found["steps"].size() == 3);
  const double lengths[] = {222.442, 219.727, 224.936}, busy[] = {11.989, 12.300, 22.587},
               overlapped[] = {1.825, 1.760, 3.731};
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(found["steps"][i]["step_ms"].get<double>() == Approx(lengths[i]).margin(0.001));
    CHECK(found["steps"][i]["collectives_ms"].get<double>() == Approx(busy[i]).margin(0.001));
    CHECK(found["steps"][i]["overlapped_ms"].get<double>() == Approx(overlapped[i]).margin(0.001));
  }
  scenario_on_profile(scratch);
  const Json schedule = ddpsim({"schedule", "s.yaml", "--json", "-"}, scratch.folder()).json();
  REQUIRE(schedule["buckets"].size() == 5);
  for (std::size_t b = 0; b < 5; ++b)
    CHECK(schedule["buckets"][b]["bytes"] == 4 * KinetoTrace::elements()[b]);
  // The step predicts itself: 222.442 ms in the median.
  scratch.write("own.yaml",
                "workload: {model: p.yaml}\ncompare: [bucketed]\n"
                "cluster: {device: a100-80, ranks_per_node: 2, intra_node: l.yaml}\n");
  const Json run = ddpsim({"run", "own.yaml", "--json", "-"}, scratch.folder()).json();
  CHECK(run["results"][0]["step_ms"].get<double>() == Approx(222.442).epsilon(0.03));
  CHECK(found["accounted_share"].get<double>() == Approx(1).epsilon(0.03));
  double parts = 0;
  for (const Json& part : found["parts"]) parts += part["ms"].get<double>();
  CHECK(parts == Approx((222.442 + 219.727 + 224.936) / 3).margin(0.001));
}

}  // namespace
}  // namespace ddpsim
