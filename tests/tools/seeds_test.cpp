// Every seed says in its header which figures it should print.
#include <algorithm>
#include <fstream>
#include <regex>
#include <set>
#include <string_view>

#include <catch2/catch.hpp>
#include <fmt/format.h>

#include "tests/tools/program.hpp"

namespace ddpsim {
namespace {

struct Figure {
  std::string file, strategy, key;  ///< "step_ms"
  std::vector<std::string> set;
  double ms = 0;
};

/// "# Figure: --set KEY=VALUE --set KEY=VALUE: STRATEGY step 12.34 ms"; "exposed" or
/// "communication" as well.
std::vector<Figure> figures_of(const std::string& file) {
  static const std::regex line_form(
      R"(# Figure: (?:--set (\S+?=.*): )?(\w+) (step|exposed|communication) ([0-9.]+) ms)");
  std::vector<Figure> figures;
  std::ifstream text(file);
  for (std::string line; std::getline(text, line);) {
    if (!line.starts_with("# Figure")) continue;
    CAPTURE(file, line);
    std::smatch match;
    REQUIRE(std::regex_match(line, match, line_form));
    Figure figure{file, match[2], match.str(3) + "_ms", {}, std::stod(match[4])};
    constexpr std::string_view and_set = " --set ";
    for (std::string rest = match[1]; !rest.empty();) {
      const std::size_t end = std::min(rest.find(and_set), rest.size());
      figure.set.insert(figure.set.end(), {"--set", rest.substr(0, end)});
      rest.erase(0, std::min(end + and_set.size(), rest.size()));
    }
    figures.push_back(figure);
  }
  return figures;
}

TEST_CASE("seeds and examples print the figures their headers promise", "[tools][seeds]") {
  std::size_t checked = 0;
  std::vector<std::string> files = shipped_files("seeds");
  for (const std::string& example : shipped_files("examples")) files.push_back(example);
  for (const std::string& file : files)
    for (const Figure& figure : figures_of(file)) {
      CAPTURE(file, figure.strategy, figure.key, figure.set);
      std::vector<std::string> arguments{"run", file, "--json", "-"};
      arguments.insert(arguments.end(), figure.set.begin(), figure.set.end());
      const Outcome outcome = ddpsim(arguments);
      REQUIRE(outcome.code == 0);
      const Json run = outcome.json();
      bool found = false;
      for (const Json& result : run["results"]) {
        if (result["strategy"] != figure.strategy) continue;
        found = true;
        CHECK(result[figure.key].get<double>() == Approx(figure.ms).epsilon(0).margin(0.006));
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

TEST_CASE("run says that post-local SGD's step is one without averaging, and what the mean is",
          "[tools][seeds]") {
  const std::string seed = shipped("seeds/comm-hooks-slow-link.yaml");
  const auto run = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {"run", seed, "--json", "-"});
    const Outcome outcome = ddpsim(more);
    CAPTURE(outcome.err);
    REQUIRE(outcome.code == 0);
    return outcome.json();
  };
  const Json alone = run({"--set", "training.comm_hook=post_local_sgd"}),
             varied = run({"--vary", "training.comm_hook=allreduce,post_local_sgd"});
  REQUIRE(alone["notes"].size() == 1);
  const std::string note = alone["notes"][0];
  CHECK_THAT(note, Catch::Contains("without post_local_sgd's averaging of models; one in 4 "
                                   "averages") &&
                       Catch::Contains("--steps 104 each kind"));
  // The mean is what --vary prints, whose figures are means: no note there.
  const double mean = varied[1]["results"][0]["step_ms"], step = alone["results"][0]["step_ms"];
  CHECK_THAT(note, Catch::Contains(fmt::format("the mean is {:.2f} ms", mean)));
  // Of four steps, three are like the one that is shown.
  CHECK_THAT(note, Catch::Contains(fmt::format("takes {:.2f} ms", 4 * mean - 3 * step)));
  CHECK(varied[1]["notes"].empty());
  // Without --json it is on stderr; a step of an iteration that is named is that one.
  CHECK_THAT(ddpsim({"run", seed, "--set", "training.comm_hook=post_local_sgd"}).err,
             Catch::Contains("note: " + note));
  for (const char* iteration : {"1001", "1002"})
    CHECK(run({"--set", "training.comm_hook=post_local_sgd", "--set",
               std::string("training.iteration=") + iteration})["notes"]
              .empty());
  CHECK(run({})["notes"].empty());
}

TEST_CASE("a row of post-local SGD is of one step, the mean over a period", "[tools][vary]") {
  const std::vector<std::string> words{shipped("seeds/comm-hooks-slow-link.yaml"),
                                       "--vary",
                                       "training.comm_hook=none,post_local_sgd",
                                       "--set",
                                       "compare=[bucketed]",
                                       "--set",
                                       "cluster.price=2 USD/h"};
  const auto rows = [&](const std::string& command) {
    std::vector<std::string> all = words;
    all.insert(all.begin(), command);
    all.insert(all.end(), {"--json", "-", "-q"});
    const Outcome outcome = ddpsim(all);
    CAPTURE(outcome.err);
    REQUIRE(outcome.code == 0);
    const Json json = outcome.json();
    return command == "run" ? std::vector<Json>{json[0]["results"][0], json[1]["results"][0]}
                            : std::vector<Json>{json["rows"][0], json["rows"][1]};
  };
  const std::vector<Json> varied = rows("run"), swept = rows("sweep");
  for (const char* key : {"step_ms", "exposed_ms", "tokens_per_second", "mfu", "step_low_ms",
                          "cost_per_billion_tokens", "device_hours_per_billion_tokens"}) {
    CAPTURE(key);
    CHECK(swept[1][key].get<double>() == Approx(varied[1][key].get<double>()));
  }
  // The tokens of a step are the same under any hook, and so is the step without communication.
  const auto product = [](const Json& row, const char* rate) {
    return row["step_ms"].get<double>() * row[rate].get<double>();
  };
  for (const char* rate : {"tokens_per_second", "mfu"})
    CHECK(product(varied[1], rate) == Approx(product(varied[0], rate)));
  const auto without = [](const Json& row) {
    return row["step_ms"].get<double>() - row["exposed_ms"].get<double>();
  };
  CHECK(without(varied[1]) == Approx(without(varied[0])));
  CHECK(varied[1]["cost_per_billion_tokens"].get<double>() *
            varied[1]["tokens_per_second"].get<double>() ==
        Approx(varied[0]["cost_per_billion_tokens"].get<double>() *
               varied[0]["tokens_per_second"].get<double>()));
  // It is the mean, not the step without averaging that `run` shows.
  const Json alone = ddpsim({"run", words[0], "--json", "-", "-q", "--set", "compare=[bucketed]",
                             "--set", "training.comm_hook=post_local_sgd"})
                         .json();
  CHECK(swept[1]["step_ms"].get<double>() > alone["results"][0]["step_ms"].get<double>());
  for (const char* command : {"run", "sweep"}) {
    std::vector<std::string> all = words;
    all.insert(all.begin(), command);
    CHECK_THAT(ddpsim(all).out, Catch::Contains("means over a period"));
  }
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
  CHECK_THAT(table.out, Catch::Contains("\nno_sync  bucket_cap  strategy ") &&
                            Catch::Contains("\ntrue          10MiB  bucketed ") &&
                            Catch::Contains("shortest: no_sync: true"));
  CHECK_THAT(table.out, !Catch::Contains("most samples a second"));  // all have as many
  CHECK_THAT(ddpsim({"run", seed, "--vary", "training.micro_batches=2,8"}).out,
             Catch::Contains("shortest: micro_batches: 2") &&
                 Catch::Contains("most samples a second: micro_batches: 8, "));
  const Outcome csv = ddpsim({"run", seed, "--vary", "training.no_sync=false,true", "--csv", "-"});
  CHECK_THAT(csv.out,
             Catch::Contains(",currency,step_low_ms,step_high_ms,known_from,set,error\n") &&
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

TEST_CASE("run --vary has a row with the error of a point that is refused", "[tools][vary]") {
  const std::vector<std::string> words{"run",    first_example,
                                       "--vary", "training.bucket_cap=1 MiB..4 MiB*4,5",
                                       "--set",  "compare=[bucketed]"};
  const auto with = [&](const std::vector<std::string>& more) {
    std::vector<std::string> all = words;
    all.insert(all.end(), more.begin(), more.end());
    return ddpsim(all);
  };
  const std::string why = "--vary training.bucket_cap=5: expected a size with its unit";
  const Outcome table = with({});
  CHECK(table.code == 2);
  CHECK(lines_of(table.err).size() == 1);
  CHECK_THAT(table.err, Catch::StartsWith("ddpsim: 1 of 3 points are refused; the first, ") &&
                            Catch::Contains(why));
  CHECK_THAT(table.out, Catch::Contains("\n4MiB ") && Catch::Contains("\n5 "));
  const Outcome csv = with({"--csv", "-"});
  CHECK(csv.code == 2);
  const std::vector<std::string> lines = lines_of(csv.out);
  REQUIRE(lines.size() >= 4);
  CHECK_THAT(lines[3], Catch::StartsWith(",,,,") && Catch::Contains(why));
  const Outcome json = with({"--json", "-"});
  const Json runs = json.json();
  REQUIRE(runs.size() == 3);
  CHECK(runs[2]["set"]["training.bucket_cap"] == "5");
  CHECK(runs[2]["results"].empty());
  CHECK_THAT(runs[2]["error"].get<std::string>(), Catch::StartsWith(why));
}

TEST_CASE("the flag --best sorts run --vary by any figure, the better first", "[tools][vary]") {
  const auto order = [](const std::string& figure, const std::string& column) {
    const Outcome outcome =
        ddpsim({"run", first_example, "--vary", "cluster.ranks=1..8*2", "--set",
                "compare=[bucketed, naive]", "--best", figure, "--csv", "-", "-q"});
    CAPTURE(outcome.err);
    REQUIRE(outcome.code == 0);
    const std::vector<std::string> lines = lines_of(outcome.out);
    const auto cells = [](const std::string& line) {
      std::istringstream stream(line);
      std::vector<std::string> fields;
      for (std::string field; std::getline(stream, field, ',');) fields.push_back(field);
      return fields;
    };
    const std::vector<std::string> header = cells(lines[0]);
    const auto at =
        static_cast<std::size_t>(std::find(header.begin(), header.end(), column) - header.begin());
    std::vector<double> values;
    for (std::size_t i = 1; i <= 8; ++i) values.push_back(std::stod(cells(lines[i])[at]));
    return values;
  };
  const std::vector<double> steps = order("step", "step_ms");
  CHECK(std::is_sorted(steps.begin(), steps.end()));
  const std::vector<double> rates = order("tokens_per_second", "tokens_per_second");
  CHECK(std::is_sorted(rates.rbegin(), rates.rend()));
  const std::vector<double> exposed = order("exposed", "exposed_ms");
  CHECK(std::is_sorted(exposed.begin(), exposed.end()));
  for (const char* command : {"run", "sweep"})
    for (const char* wrong : {"speed", "bound", "strategy", "world_size"}) {
      const Outcome refused =
          ddpsim({command, first_example, "--vary", "cluster.ranks=1..8*2", "--best", wrong});
      CAPTURE(command, wrong, refused.err);
      CHECK(refused.code == 2);
      CHECK(lines_of(refused.err).size() == 1);
      CHECK_THAT(refused.err, Catch::Contains("known: step_ms, ") && Catch::Contains("mfu"));
    }
  CHECK(ddpsim({"run", first_example, "--best", "step"}).code == 2);
}

TEST_CASE("run --vary names the best by --best, and shows rows once that a key does not change",
          "[tools][vary]") {
  const auto table = [](std::vector<std::string> words) {
    words.insert(words.begin(), {"run", first_example});
    const Outcome outcome = ddpsim(words);
    CAPTURE(outcome.err);
    REQUIRE(outcome.code == 0);
    return outcome.out;
  };
  const std::string best = table({"--vary", "workload.batch=2,16", "--best", "tokens_per_second",
                                  "--set", "compare=[bucketed]"});
  CHECK_THAT(best, Catch::Contains("best by tokens_per_second: batch: 16, bucketed, 1+25 MiB: ") &&
                       Catch::Contains("shortest: batch: 2, "));
  CHECK_THAT(table({"--vary", "workload.batch=2,16", "--best", "step"}),
             !Catch::Contains("best by"));
  // Of two hooks and two caps: bucketed has four rows, naive and flat one each.
  const std::vector<std::string> hooks{"--vary", "training.comm_hook=none,fp16_compress",
                                       "--vary", "training.bucket_cap=1MiB,25MiB",
                                       "--set",  "compare=[naive, flat, bucketed]"};
  const std::string once = table(hooks);
  const auto rows = [&](const std::string& strategy) {
    std::vector<std::string> found;
    for (const std::string& line : lines_of(once))
      if (line.find("  " + strategy + "  ") != std::string::npos) found.push_back(line);
    return found;
  };
  for (const std::string strategy : {"naive", "flat"}) {
    CAPTURE(strategy, once);
    REQUIRE(rows(strategy).size() == 1);
    CHECK_THAT(rows(strategy)[0], Catch::StartsWith("any") && Catch::Contains("  any  "));
  }
  CHECK(rows("bucketed").size() == 4);
  CHECK_THAT(once, Catch::Contains("any: the key changes nothing under that strategy"));
  // Files keep all.
  std::vector<std::string> words{"run", first_example, "--csv", "-", "-q"};
  words.insert(words.end(), hooks.begin(), hooks.end());
  CHECK(lines_of(ddpsim(words).out).size() == 1 + 4 * 3);
}

TEST_CASE("where clusters have prices, tables say what each costs", "[tools][vary]") {
  for (const char* command : {"run", "sweep"}) {
    const std::vector<std::string> words{
        command,  first_example,
        "--set",  "compare=[bucketed]",
        "--vary", "cluster={system: dgx-a100, price: 2 USD/h},{system: dgx-h100, price: 4 USD/h}"};
    const Outcome outcome = ddpsim(words);
    CAPTURE(command, outcome.err);
    REQUIRE(outcome.code == 0);
    CHECK_THAT(outcome.out, Catch::Contains("cost/1e9 tokens"));
    std::vector<std::string> json = words;
    json.insert(json.end(), {"--json", "-", "-q"});
    const Json found = ddpsim(json).json();
    for (std::size_t i = 0; i < 2; ++i) {
      const Json& row = command[0] == 'r' ? found[i]["results"][0] : found["rows"][i];
      const double cost = row["cost_per_billion_tokens"],
                   hours = row["device_hours_per_billion_tokens"];
      CHECK(cost == Approx((i == 0 ? 2 : 4) * hours));
      CHECK_THAT(outcome.out, Catch::Contains(fmt::format("{:.2f}", cost)));
    }
  }
  CHECK_THAT(ddpsim({"run", first_example, "--vary", "cluster=dgx-a100,dgx-h100"}).out,
             !Catch::Contains("cost"));
}

}  // namespace
}  // namespace ddpsim
