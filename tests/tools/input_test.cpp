// Steps that wait for batches: training.input with the time of a core for one.

#include <algorithm>
#include <sstream>

#include <catch2/catch.hpp>
#include <fmt/format.h>

#include "tests/tools/program.hpp"

namespace ddpsim {
namespace {

using Words = std::vector<std::string>;

/// Eight ranks of one node, whose step takes about 130 ms: one core makes their batches in 8 x 48 =
/// 384 ms, and that of one rank in 48.
const Words late_batches{"--set", "training.input={time: 48 ms, cores: 1}"};
constexpr double node_ms = 384;

Outcome run_first(Words more, const Words& input) {
  more.insert(more.begin(), {"run", first_example, "--set", "compare=[none,naive,bucketed]"});
  more.insert(more.end(), input.begin(), input.end());
  Outcome outcome = ddpsim(more);
  CAPTURE(outcome.err);
  REQUIRE(outcome.code == 0);
  return outcome;
}

/// With its lines joined, for a page breaks them where it likes.
std::string joined_lines(const std::string& text) {
  std::istringstream words(text);
  std::string line;
  for (std::string word; words >> word;) line += (line.empty() ? "" : " ") + word;
  return line;
}

/// What it prints, joined.
std::string printed_words(const Words& more, const Words& input) {
  return joined_lines(run_first(more, input).out);
}

}  // namespace

TEST_CASE("one rank by itself has its node's cores to itself, in every table", "[tools][input]") {
  const Json ready = run_first({"--json", "-"}, {}).json();
  const Json waiting = run_first({"--scaling", "8", "--why", "--json", "-"}, late_batches).json();
  for (std::size_t i = 0; i < waiting["results"].size(); ++i) {
    const Json& result = waiting["results"][i];
    const Json &scaling = result["scaling"], &why = result["why"];
    CAPTURE(result["strategy"]);
    CHECK(result["step_ms"] == node_ms);
    const double one_rank = why["one_rank_ms"];
    CHECK(one_rank < node_ms / 2);
    CHECK(scaling.front()["step_ms"].get<double>() == Approx(one_rank));
    CHECK(result["scaling_efficiency"].get<double>() == Approx(one_rank / node_ms));
    CHECK(scaling.back()["scaling_efficiency"].get<double>() == Approx(one_rank / node_ms));
    // As where batches are ready: the step of one rank does not wait for its own 48 ms.
    const Json& without = ready["results"][i];
    CHECK(one_rank ==
          Approx(without["scaling_efficiency"].get<double>() * without["step_ms"].get<double>()));
    // All parts sum to the step; what is behind the last task is input.
    double sum = one_rank;
    for (const auto& item : why.items())
      if (item.key().starts_with("lost_")) sum += item.value().get<double>();
    CHECK(sum == Approx(node_ms).margin(1e-8));
    CHECK(why["lost_input_ms"].get<double>() ==
          Approx(node_ms - without["step_ms"].get<double>()).margin(1e-8));
  }
}

TEST_CASE("a wait for batches is the bound, and hides no communication", "[tools][input]") {
  const Json ready = run_first({"--json", "-"}, {}).json();
  const Outcome outcome = run_first({"--json", "-"}, late_batches);
  const Json waiting = outcome.json();
  for (std::size_t i = 0; i < waiting["results"].size(); ++i) {
    const Json &result = waiting["results"][i], &without = ready["results"][i];
    CAPTURE(result["strategy"]);
    CHECK(result["bound"] == "input");
    CHECK(without["bound"] != "input");
    CHECK(result["exposed_ms"].get<double>() == Approx(without["exposed_ms"].get<double>()));
    CHECK(result["overlap_ratio"].get<double>() == Approx(without["overlap_ratio"].get<double>()));
    CHECK(result["communication_share"] == 0);  // without communication it would wait as long
  }
  CHECK_THAT(waiting["notes"].dump(),
             Catch::Contains("exposed and overlap are of the step without that wait"));
  CHECK_THAT(printed_words({}, late_batches),
             Catch::Contains("A step without communication takes 384.00 ms, ") &&
                 Catch::Contains(" the wait for batches. Exposed is how much longer a step is than "
                                 "that, the wait for batches left out of both; "));
  CHECK_THAT(printed_words({}, {}), !Catch::Contains("wait for batches"));
}

TEST_CASE("a step that waits for nothing is held against one that does", "[tools][input]") {
  // 8 x 17 = 136 ms lie between the step without communication and the naive one.
  const Json ready = run_first({"--json", "-"}, {}).json();
  const Json some =
      run_first({"--json", "-"}, {"--set", "training.input={time: 17 ms, cores: 1}"}).json();
  CHECK(some["results"][0]["bound"] == "input");
  CHECK(some["results"][1]["bound"] != "input");
  CHECK(some["results"][1]["step_ms"] == ready["results"][1]["step_ms"]);
  for (const char* key : {"exposed_ms", "overlap_ratio"})
    CHECK(some["results"][1][key].get<double>() ==
          Approx(ready["results"][1][key].get<double>()).margin(1e-9));
}

TEST_CASE("a band is of the step without its wait for batches, and ends no sooner than that",
          "[tools][input][band]") {
  const Json waiting = run_first({"--json", "-"}, late_batches).json();
  for (const Json& result : waiting["results"])
    for (const char* end : {"step_low_ms", "step_high_ms"}) CHECK(result[end] == node_ms);
  CHECK_THAT(printed_words({}, late_batches),
             Catch::Contains("steps take: none 384.00 to 384.00 ms"));
  // 8 x 17 = 136 ms lie within the band of some steps.
  const Json ready = run_first({"--json", "-"}, {}).json();
  const Words near{"--set", "training.input={time: 17 ms, cores: 1}"};
  const Json some = run_first({"--json", "-"}, near).json();
  for (std::size_t i = 0; i < ready["results"].size(); ++i)
    for (const char* end : {"step_low_ms", "step_high_ms"})
      CHECK(some["results"][i][end].get<double>() ==
            Approx(std::max(136.0, ready["results"][i][end].get<double>())));
  const auto tuned = [](const Words& input) {
    Words words{"tune", first_example, "-q", "--json", "-"};
    words.insert(words.end(), input.begin(), input.end());
    return ddpsim(words).json();
  };
  CHECK(tuned(late_batches)["step_high_ms"] == node_ms);
  CHECK(tuned(near)["step_high_ms"].get<double>() ==
        Approx(std::max(136.0, tuned({})["step_high_ms"].get<double>())));
  const Json varied =
      run_first({"--vary", "training.bucket_cap=1MiB,25MiB", "--json", "-", "-q"}, late_batches)
          .json();
  for (const Json& point : varied)
    for (const char* end : {"step_low_ms", "step_high_ms"})
      CHECK(point["results"][0][end] == node_ms);
}

TEST_CASE("the table of losses has input only where batches take time", "[tools][input][why]") {
  CHECK_THAT(printed_words({"--why", "--wide"}, late_batches),
             Catch::Contains(" copies launches input rest ") &&
                 Catch::Contains(" input: the wait for batches, which a node makes for all "));
  CHECK_THAT(printed_words({"--why", "--wide"}, {}), Catch::Contains(" copies launches rest "));
}

TEST_CASE("the verdict of a page on steps that wait for batches is of that wait",
          "[tools][input][html]") {
  const auto page = [](const Words& input) {
    const Scratch scratch;
    const std::string file = scratch.path("r.html").string();
    run_first({"-q", "--report", file}, input);
    return content_of(file);
  };
  const Json ready = run_first({"--json", "-"}, {}).json();
  const double without_ms = ready["results"][2]["step_ms"];
  const std::string late = page(late_batches);
  CHECK_THAT(late,
             Catch::Contains(fmt::format(
                 "The shortest step on 8 ranks is 384 ms, under bucketed, 1+25 MiB. It waits "
                 "{:.1f} ms of that for its batches, of which a node makes those of its ranks "
                 "in 384 ms (training.input), and naive takes as long. Without communication "
                 "it would take as long (comm share 0.0 %). A quicker input, or more cores "
                 "for the input, makes the step shorter, down to {:.1f} ms.",
                 node_ms - without_ms, without_ms)));
  CHECK_THAT(late, !Catch::Contains(" of communication hides behind computation"));
  // Where the step without communication alone waits, its share is that of the table.
  const Words some{"--set", "training.input={time: 17 ms, cores: 1}"};
  const Json bucketed = run_first({"--json", "-"}, some).json()["results"][2];
  REQUIRE(bucketed["bound"] != "input");
  const double share = bucketed["communication_share"], exposed_ms = bucketed["exposed_ms"];
  REQUIRE(share < exposed_ms / bucketed["step_ms"].get<double>() / 2);
  CHECK_THAT(page(some),
             Catch::Contains(fmt::format(" is exposed, but without communication the step would be "
                                         "{:.1f} % shorter, as it would wait for its batches "
                                         "(training.input).",
                                         100 * share)));
  CHECK_THAT(page({}), Catch::Contains(" % of the step.") &&
                           !Catch::Contains("without communication the step would be"));
}

TEST_CASE("tune's exposed time is run's where steps wait for batches", "[tools][input][tune]") {
  const Scratch scratch;
  const std::string file =
      scratch.write("two.yaml",
                    "name: two\n"
                    "workload: {model: cs336-small, batch: 4, sequence: 256, dtype: fp32}\n"
                    "cluster: {device: t4, ranks_per_node: 2, intra_node: pcie3}\n"
                    "compare: [none, bucketed]\n");
  const auto results = [&](const Words& more) {
    Words words{"run", file, "--json", "-"};
    words.insert(words.end(), more.begin(), more.end());
    const Outcome outcome = ddpsim(words);
    REQUIRE(outcome.code == 0);
    return outcome.json()["results"];
  };
  const Json ready = results({});
  const double none_ms = ready[0]["step_ms"], default_ms = ready[1]["step_ms"];
  // Batches that only the step without communication waits for, and batches that all wait for.
  for (const double batch_ms : {(none_ms + default_ms) / 2, 2 * default_ms}) {
    const Words input{"--set",
                      fmt::format("training.input={{time: {:.3f} ms, cores: 2}}", batch_ms)};
    const Json waiting = results(input);
    REQUIRE(waiting[0]["bound"] == "input");
    const std::string tuned = joined_lines(ddpsim({"tune", file, input[0], input[1]}).out);
    CHECK_THAT(tuned, Catch::Contains(fmt::format(" {:.2f} {:.2f} +0.00 %",
                                                  waiting[1]["step_ms"].get<double>(),
                                                  waiting[1]["exposed_ms"].get<double>())));
    CHECK_THAT(tuned,
               Catch::Contains(fmt::format(" ms, {:.2f} of it the wait for batches, which exposed "
                                           "leaves out of all steps. ",
                                           batch_ms - none_ms)));
  }
  CHECK_THAT(ddpsim({"tune", file}).out, !Catch::Contains("batches"));
}

TEST_CASE("steps in which the host runs ahead wait for batches on neither side",
          "[tools][input][steps]") {
  const Words ahead{"--steps", "5", "--run-ahead"};
  Words json = ahead;
  json.insert(json.end(), {"--json", "-"});
  const Json ready = run_first(json, {}).json(), waiting = run_first(json, late_batches).json();
  for (std::size_t i = 0; i < waiting["results"].size(); ++i) {
    CHECK(waiting["results"][i]["run_ahead"] == ready["results"][i]["run_ahead"]);
    CHECK(waiting["results"][i]["steps"]["total_ms"] == Approx(5 * node_ms));
  }
  const std::string said =
      "Waits for batches (training.input) are left out of alone and period: with them 5 steps take "
      "no less than 1920.000 ms, as a node makes those of one step in 384.000 ms.";
  CHECK_THAT(printed_words(ahead, late_batches), Catch::Contains(said));
  CHECK_THAT(printed_words(ahead, {}), !Catch::Contains("Waits for batches"));
}

TEST_CASE("explain and the documents say comm share with its exception",
          "[tools][input][explain]") {
  CHECK_THAT(joined_lines(ddpsim({"explain", "comm share"}).out),
             Catch::Contains("exposed over step, unless the step or the one without communication "
                             "waits for batches"));
}

}  // namespace ddpsim
