// What `run` says below its table of the hooks in a scenario.
#include <catch2/catch.hpp>
#include <fmt/format.h>

#include "model/base/quantity.hpp"
#include "tests/tools/program.hpp"

namespace ddpsim {
namespace {

Json results(const std::string& file, const std::vector<std::string>& set) {
  std::vector<std::string> arguments{"run", file, "--json", "-"};
  arguments.insert(arguments.end(), set.begin(), set.end());
  const Outcome outcome = ddpsim(arguments);
  INFO(outcome.err);
  REQUIRE(outcome.code == 0);
  return outcome.json()["results"];
}

TEST_CASE("run says how much longer hooks of your own make a step", "[tools][hooks_cost]") {
  const std::string seed = shipped("seeds/clip-scale-output-hooks.yaml");
  const std::string compare = "compare=[overlap,bucketed]", bare = "training.hooks=[]";
  const Json with = results(seed, {"--set", compare});
  const Json without = results(seed, {"--set", compare, "--set", bare});
  const Outcome text = ddpsim({"run", seed, "--set", compare});
  REQUIRE(text.code == 0);
  const std::vector<std::string> names{"overlap", "bucketed, 1+25 MiB"};
  for (std::size_t i = 0; i < names.size(); ++i) {
    const double hooked = with[i]["step_ms"], plain = without[i]["step_ms"];
    CHECK(hooked > plain);
    CHECK_THAT(text.out,
               Catch::Contains(fmt::format("\n{}: with your own hooks the step takes {:.2f} ms, "
                                           "without them {:.2f} ms ({:+.2f} ms)\n",
                                           names[i], hooked, plain, hooked - plain)));
  }
  CHECK_THAT(ddpsim({"run", seed, "--set", bare}).out, !Catch::Contains("hooks of your own"));
}

TEST_CASE("run says what a comm hook sends, computes and keeps", "[tools][hooks_cost]") {
  const std::string seed = shipped("seeds/comm-hooks-fast-link.yaml");
  const std::vector<std::string> set{"--set", "training.comm_hook=fp16_compress"};
  const Json result = results(seed, set)[0], plain = results(seed, {})[0];
  CHECK(2 * result["wire_bytes"].get<std::int64_t>() == plain["wire_bytes"]);
  const Outcome text = ddpsim({"run", seed, set[0], set[1]});
  REQUIRE(text.code == 0);
  const auto size = [&](const char* key) {
    return to_string(Bytes{result[key].get<std::int64_t>()});
  };
  CHECK_THAT(text.out, Catch::Contains(fmt::format(
                           "\nbucketed, 1+25 MiB, fp16_compress: the comm hook hands {} to {} "
                           "collectives; its own "
                           "kernels take {:.2f} ms, and {} of memory besides the buckets\n",
                           size("wire_bytes"), result["collectives"].get<int>(),
                           result["comm_hook_ms"].get<double>(), size("comm_hook_memory_bytes"))) &&
                           !Catch::Contains("acts under bucketed only"));
}

TEST_CASE("run says once that a comm hook acts under bucketed only", "[tools][hooks_cost]") {
  const Outcome text = ddpsim({"run", shipped("seeds/comm-hooks-fast-link.yaml"), "--set",
                               "compare=[naive,flat,bucketed]"});
  REQUIRE(text.code == 0);
  const std::vector<std::string> lines = lines_of(text.out);
  CHECK(std::count(lines.begin(), lines.end(), "comm_hook has an effect under bucketed only") == 1);
}

}  // namespace
}  // namespace ddpsim
