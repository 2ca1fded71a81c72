// Steps that wait for batches: training.input with the time of a core for one.

#include <algorithm>
#include <sstream>

#include <catch2/catch.hpp>

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

/// What it prints, with its lines joined, for a page breaks them where it likes.
std::string printed_words(const Words& more, const Words& input) {
  std::istringstream words(run_first(more, input).out);
  std::string line;
  for (std::string word; words >> word;) line += (line.empty() ? "" : " ") + word;
  return line;
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

}  // namespace ddpsim
