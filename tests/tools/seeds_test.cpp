// Every seed says in its header which figures it should print.
#include <fstream>
#include <regex>
#include <set>

#include <catch2/catch.hpp>
#include <fmt/format.h>

#include "tests/tools/program.hpp"

namespace ddpsim {
namespace {

struct Figure {
  std::string file, strategy;
  std::vector<std::string> set;
  double step_ms = 0;
};

/// "# Figure: --set KEY=VALUE: STRATEGY step 12.34 ms"
std::vector<Figure> figures_of(const std::string& file) {
  static const std::regex line_form(R"(# Figure: (?:--set (\S+?=.*): )?(\w+) step ([0-9.]+) ms)");
  std::vector<Figure> figures;
  std::ifstream text(file);
  for (std::string line; std::getline(text, line);) {
    std::smatch match;
    if (!std::regex_match(line, match, line_form)) continue;
    Figure figure{file, match[2], {}, std::stod(match[3])};
    if (match[1].matched) figure.set = {"--set", match[1]};
    figures.push_back(figure);
  }
  return figures;
}

TEST_CASE("seeds print the figures their headers promise", "[tools][seeds]") {
  std::size_t checked = 0;
  for (const std::string& file : shipped_files("seeds"))
    for (const Figure& figure : figures_of(file)) {
      CAPTURE(file, figure.strategy, figure.set);
      std::vector<std::string> arguments{"run", file, "--json", "-"};
      arguments.insert(arguments.end(), figure.set.begin(), figure.set.end());
      const Outcome outcome = ddpsim(arguments);
      REQUIRE(outcome.code == 0);
      const Json run = outcome.json();
      bool found = false;
      for (const Json& result : run["results"]) {
        if (result["strategy"] != figure.strategy) continue;
        found = true;
        CHECK(result["step_ms"].get<double>() == Approx(figure.step_ms).margin(0.006));
      }
      CHECK(found);
      ++checked;
    }
  CHECK(checked >= 46);
}

TEST_CASE("every comm hook has its figure on both links", "[tools][seeds]") {
  for (const char* seed : {"seeds/comm-hooks-slow-link.yaml", "seeds/comm-hooks-fast-link.yaml"}) {
    std::set<std::vector<std::string>> hooks;
    for (const Figure& figure : figures_of(shipped(seed))) hooks.insert(figure.set);
    CHECK(hooks.size() == 13);
  }
}

TEST_CASE("one command says whether compression pays", "[tools][seeds]") {
  const auto steps = [](const std::string& seed) {
    const Outcome outcome =
        ddpsim({"run", seed, "--json", "-", "--vary",
                "training.comm_hook=allreduce,fp16_compress,{powersgd: {rank: 4}}"});
    REQUIRE(outcome.code == 0);
    std::vector<double> all;
    for (const Json& run : outcome.json()) {
      CHECK(run["set"].contains("training.comm_hook"));
      CHECK(run["results"][0]["comm_hook_ms"] > 0);  // its kernels are in
      all.push_back(run["results"][0]["step_ms"]);
    }
    REQUIRE(all.size() == 3);
    return all;
  };
  const std::string folder = std::string(DDPSIM_SCENARIOS) + "/seeds/";
  const auto slow = steps(folder + "comm-hooks-slow-link.yaml");
  CHECK(slow[1] < 0.7 * slow[0]);
  CHECK(slow[2] < 0.5 * slow[0]);
  const auto fast = steps(folder + "comm-hooks-fast-link.yaml");
  CHECK(fast[1] > 0.99 * fast[0]);
  CHECK(fast[2] > fast[0]);
}

TEST_CASE("post-local SGD is judged with the models it averages", "[tools][vary]") {
  const std::string seed = shipped("seeds/comm-hooks-slow-link.yaml");
  const Outcome table =
      ddpsim({"run", seed, "--vary", "training.comm_hook={powersgd: {rank: 4}},post_local_sgd"});
  REQUIRE(table.code == 0);
  CHECK_THAT(table.out, Catch::Contains("shortest: comm_hook: {powersgd: {rank: 4}}") &&
                            Catch::Contains("means over a period"));
  const auto step = [&](const std::string& iteration) {
    return ddpsim({"run", seed, "--json", "-", "--set", "training.comm_hook=post_local_sgd",
                   "--set", "training.iteration=" + iteration})
        .json()["results"][0]["step_ms"]
        .get<double>();
  };
  // Of four steps one averages: the 1001st, for they begin behind the 1000th.
  const double mean = (step("1001") + step("1002") + step("1003") + step("1004")) / 4;
  CHECK_THAT(table.out, Catch::Contains(fmt::format("{:.2f}", mean)));
}

TEST_CASE("run --vary shows every strategy of every combination", "[tools][vary]") {
  const Outcome table = ddpsim({"run", shipped("examples/mlp-2ranks.yaml"), "--vary",
                                "compare=[bucketed],[naive, overlap]"});
  REQUIRE(table.code == 0);
  CHECK_THAT(table.out, Catch::Contains("overlap ") && Catch::Contains("naive "));
  CHECK_THAT(table.out, Catch::Contains("shortest: compare: [naive, overlap], overlap"));
}

TEST_CASE("run --vary compares combinations and refuses what it cannot", "[tools][vary]") {
  const std::string seed = std::string(DDPSIM_SCENARIOS) + "/seeds/accumulation-4.yaml";
  const Outcome table = ddpsim({"run", seed, "--vary", "training.no_sync=false,true", "--vary",
                                "training.bucket_cap=10MiB,25MiB"});
  CHECK(table.code == 0);
  CHECK_THAT(table.out, Catch::Contains("no_sync: true, bucket_cap: 10MiB") &&
                            Catch::Contains("shortest: no_sync: true"));
  const Outcome csv = ddpsim({"run", seed, "--vary", "training.no_sync=false,true", "--csv", "-"});
  CHECK_THAT(csv.out, Catch::Contains("bound,peak_memory_bytes,set\n") &&
                          Catch::Contains("training.no_sync=true"));
  const auto refused = [&](std::vector<std::string> more, const std::string& why) {
    more.insert(more.begin(), {"run", seed});
    const Outcome outcome = ddpsim(more);
    CHECK(outcome.code == 2);
    CHECK_THAT(outcome.err, Catch::Contains(why));
  };
  refused({"--vary", "training.no_sync=maybe"}, "training.no_sync");
  refused({"--vary", "training.bucket_cap=1MiB..1100MiB"}, "at most 1000");
  refused({"--vary", "training.no_sync=false", "--why"}, "--why takes no --vary");
}

}  // namespace
}  // namespace ddpsim
