#include "tools/report/reports/hooks_log.hpp"

#include <map>

#include <catch2/catch.hpp>
#include <fmt/format.h>

#include "sim/predict/predict.hpp"
#include "tests/model/parallel/schedule_story.hpp"
#include "tests/sim/predict/models.hpp"
#include "tests/tools/jobs.hpp"
#include "tools/report/writers/csv.hpp"

namespace ddpsim {
namespace {

/// `small_mlp` (0, 2, 4, weights only or with biases) and what its training has besides.
std::string small_with(const std::string& hooks) {
  std::string text = small_mlp;
  const std::string end = "first_bucket_cap: 4 KiB}";
  return text.replace(text.find(end), end.size(), "first_bucket_cap: 4 KiB, hooks: " + hooks + "}");
}

using Row = std::map<std::string, std::string>;

std::vector<Row> rows_of(const std::string& csv) {
  CsvReader reader(csv);
  CsvRecord record;
  REQUIRE(reader.next(record));
  const std::vector<std::string> header = record.fields;
  std::vector<Row> rows;
  while (reader.next(record)) {
    REQUIRE(record.fields.size() == header.size());
    Row& row = rows.emplace_back();
    for (std::size_t c = 0; c < header.size(); ++c) row[header[c]] = record.fields[c];
  }
  REQUIRE(reader.complete());
  return rows;
}

std::vector<Row> of_strategy(const std::vector<Row>& rows, const std::string& strategy,
                             const std::string& source = "predicted") {
  std::vector<Row> found;
  for (const Row& row : rows)
    if (row.at("strategy").rfind(strategy, 0) == 0 && row.at("source") == source)
      found.push_back(row);
  return found;
}

/// A short run of the shipped example on two processes.
std::vector<std::string> validate_plugin(const Scratch& scratch) {
  const std::string scenario =
      scratch.write("plugin.yaml", content_of(shipped("examples/plugin/plugin.yaml"))).string();
  std::vector<std::string> arguments{"validate",  scenario, "--plugin",  DDPSIM_PLUGIN_EXAMPLE,
                                     "--backend", "gloo",   "--ranks",   "2",
                                     "--steps",   "2",      "--warm-up", "1"};
  for (const std::string& flag : quickly_calibrated(scenario)) arguments.push_back(flag);
  return arguments;
}

std::string word(const Row& row) {
  return row.at("hook") + " " +
         (row.at("parameter").empty() ? row.at("layer") : row.at("parameter"));
}

}  // namespace

TEST_CASE("the hooks log holds every hook in firing order, with its times and bucket",
          "[tools][hooks_log]") {
  const Scratch scratch;
  const auto file = scratch.write(
      "s.yaml", small_with("[{scale: {parameter: 4.weight, factor: 0.5}}, {record: {parameter: "
                           "\"*\"}}, {chunks: {layer: \"2\", count: 3}}]"));
  const auto run = ddpsim({"run", file.string(), "--hooks-log", "-"});
  REQUIRE(run.code == 0);
  const std::vector<Row> rows = rows_of(run.out);
  const Json schedule = ddpsim({"schedule", file.string(), "--json", "-"}).json();
  for (const std::string strategy : {"naive", "flat", "overlap", "bucketed"}) {
    CAPTURE(strategy);
    const auto mine = of_strategy(rows, strategy);
    REQUIRE(!mine.empty());
    CHECK(word(mine[0]) == "chunks 2");
    CHECK(mine[0].at("parameter").empty());
    CHECK(mine[0].at("bucket").empty());
    std::vector<std::string> recorded, ddp;
    double host = 0;
    for (std::size_t i = 0; i < mine.size(); ++i) {
      CHECK(mine[i].at("position") == std::to_string(i));
      CHECK(mine[i].at("micro_batch") == "0");
      CHECK(std::stod(mine[i].at("host_ms")) >= host);
      host = std::stod(mine[i].at("host_ms"));
      // Kernels run on the host thread: what a hook is fired for is there.
      CHECK(std::stod(mine[i].at("device_ready_ms")) <= host);
      if (mine[i].at("hook") == "record") recorded.push_back(mine[i].at("parameter"));
      if (mine[i].at("hook") != "ddp") continue;
      ddp.push_back(mine[i].at("parameter"));
      CHECK(word(mine[i - 1]) == "record " + ddp.back());
      if (ddp.back() == "4.weight") CHECK(word(mine[i - 2]) == "scale 4.weight");
    }
    if (strategy == "overlap" || strategy == "bucketed") {
      CHECK(ddp == recorded);
    } else {
      CHECK(ddp.empty());
    }
    if (strategy != "bucketed") continue;
    REQUIRE(schedule["hooks"].size() == ddp.size());
    std::size_t h = 0;
    for (const Row& row : mine) {
      if (row.at("hook") != "ddp") continue;
      CHECK(schedule["hooks"][h]["parameter"] == row.at("parameter"));
      CHECK(std::to_string(schedule["hooks"][h]["bucket"].get<int>()) == row.at("bucket"));
      CHECK(schedule["hooks"][h]["host_ms"].get<double>() ==
            Approx(std::stod(row.at("host_ms"))).margin(1e-5));
      ++h;
    }
  }
}

TEST_CASE("the log is JSON where its file is named so", "[tools][hooks_log]") {
  const Scratch scratch;
  const auto file = scratch.write("s.yaml", small_with("[{record: {parameter: \"*\"}}]"));
  const std::string csv = scratch.path("log.csv").string(),
                    json = scratch.path("log.json").string();
  REQUIRE(ddpsim({"run", file.string(), "-q", "--hooks-log", csv}).code == 0);
  REQUIRE(ddpsim({"run", file.string(), "-q", "--hooks-log", json}).code == 0);
  const Json log = Json::parse(content_of(json));
  CHECK(log["format"] == "ddpsim.hooks/1");
  const auto rows = rows_of(content_of(csv));
  REQUIRE(log["hooks"].size() == rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    CHECK(log["hooks"][i]["parameter"] == rows[i].at("parameter"));
    CHECK(log["hooks"][i]["strategy"] == rows[i].at("strategy"));
  }
}

TEST_CASE("every micro-batch's hooks are logged", "[tools][hooks_log]") {
  const Scratch scratch;
  const auto file = scratch.write("s.yaml", small_with("[{record: {parameter: 0.weight}}]"));
  const auto run = ddpsim({"run", file.string(), "--hooks-log", "-", "--set",
                           "training.micro_batches=3", "--set", "training.no_sync=true"});
  REQUIRE(run.code == 0);
  std::vector<std::string> recorded, ddp;
  for (const Row& row : of_strategy(rows_of(run.out), "bucketed"))
    (row.at("hook") == "ddp" ? ddp : recorded).push_back(row.at("micro_batch"));
  CHECK(recorded == std::vector<std::string>{"0", "1", "2"});
  CHECK(!ddp.empty());
  CHECK(std::count(ddp.begin(), ddp.end(), "2") == static_cast<long>(ddp.size()));
}

TEST_CASE("a costly hook on one gradient does not make another one late", "[tools][hooks_log]") {
  // Forward ends at 2 ms; one kernel makes the gradients of c and b until 4 ms, and c's hooks come
  // first.
  using namespace std::chrono_literals;
  Scenario scenario;
  scenario.workload = timed::two_layers();
  const StepModel model =
      timed::model_of(scenario.workload, timed::ring(2, 1ms, gigabytes_per_second(1)));
  UserHook record, slow;
  record.groups = {{1}, {2}};
  slow.kind = UserHookKind::plugin;
  slow.plugin = "slow";
  slow.passes = 1e9;  // of 40 bytes at 1 TB/s: 40 ms
  slow.groups = {{2}};
  const auto ready_ms = [&](std::vector<UserHook> hooks) {
    Training training = timed::training_of(Strategy::bucketed);
    training.micro_batches = 2;
    training.hooks = std::move(hooks);
    const Step step = predict(model, training);
    std::map<std::string, std::vector<double>> ready;  // of each micro-batch
    for (const Row& row : rows_of(hooks_log(scenario, {{"bucketed", "predicted", &step}}, false)))
      ready[word(row)].push_back(std::stod(row.at("device_ready_ms")));
    return ready;
  };
  auto without = ready_ms({record}), with = ready_ms({slow, record});
  CHECK(without["record b"][0] == 4);
  CHECK(without["ddp b"][0] == 4);
  CHECK(with["record b"][0] == 4);
  CHECK(with["ddp b"][0] == 4);
  CHECK(with["plugin slow c"][0] == 4);
  CHECK(with["record c"][0] > 40);
  CHECK(with["ddp c"][0] == with["record c"][0]);
  // Nor does what was done to it in one micro-batch say when it is there in the next.
  REQUIRE(with["plugin slow c"].size() == 2);
  CHECK(with["plugin slow c"][1] > with["record c"][0] + 4);
}

TEST_CASE("validate logs hooks as predicted and as measured, a plugin's among them",
          "[tools][validate][hooks_log]") {
  const Scratch scratch;
  const std::string log = scratch.path("hooks.csv").string();
  std::vector<std::string> arguments = validate_plugin(scratch);
  arguments.insert(arguments.end(), {"-q", "--hooks-log", log});
  const auto run = ddpsim(arguments);
  CAPTURE(run.err);
  REQUIRE(run.code == 0);  // gradients were right under every strategy
  const auto rows = rows_of(content_of(log));
  for (const std::string strategy : {"none", "naive", "overlap", "bucketed"}) {
    const auto predicted = of_strategy(rows, strategy);
    const auto measured = of_strategy(rows, strategy, "measured");
    REQUIRE(predicted.size() == measured.size());
    REQUIRE(!predicted.empty());
    bool centralized = false;
    for (std::size_t i = 0; i < predicted.size(); ++i) {
      CHECK(word(predicted[i]) == word(measured[i]));
      centralized = centralized || predicted[i].at("hook") == "plugin centralize";
    }
    CHECK(centralized);
  }
}

TEST_CASE("a plugin's comm hook runs for real, with half the bytes",
          "[tools][validate][hooks_log]") {
  const Scratch scratch;
  const std::string hook = "training.comm_hook={plugin: {name: cut_bf16, payload: bf16}}";
  std::vector<std::string> arguments = validate_plugin(scratch);
  arguments.insert(arguments.end(), {"--json", "-"});
  const auto of_bucketed = [](const Json& json) {
    for (const Json& row : json["results"])
      if (row["strategy"] == "bucketed") return row;
    return Json{};
  };
  const auto plain = ddpsim(arguments);
  REQUIRE(plain.code == 0);
  arguments.insert(arguments.end(), {"--set", hook});
  const auto cut = ddpsim(arguments);
  CAPTURE(cut.err);
  REQUIRE(cut.code == 0);
  for (const char* side : {"predicted", "measured"}) {
    const auto bytes = [&](const Json& json) {
      return of_bucketed(json)[side]["wire_bytes"].get<std::int64_t>();
    };
    CHECK(2 * bytes(cut.json()) == bytes(plain.json()));
    CHECK(bytes(cut.json()) > 0);
  }
  const auto wrong =
      ddpsim({"run", shipped("examples/plugin/plugin.yaml"), "--plugin", DDPSIM_PLUGIN_EXAMPLE,
              "--set", "training.comm_hook={plugin: cut_bf16}"});
  CHECK(wrong.code == 2);
  CHECK(wrong.err.find("sends bf16, and the scenario says fp32") != std::string::npos);
}

TEST_CASE("plugins that are missing or cannot be used are told in one line", "[tools][hooks_log]") {
  const Scratch scratch;
  const std::string example = shipped("examples/plugin/plugin.yaml");
  const auto refused = [&](std::vector<std::string> arguments, const std::string& what) {
    const auto run = ddpsim(std::move(arguments));
    CAPTURE(run.err, what);
    CHECK(run.code == 2);
    CHECK(lines_of(run.err).size() == 1);
    CHECK(run.err.find(what) != std::string::npos);
  };
  refused({"validate", example, "--ranks", "2"},
          "the gradient hook \"centralize\" is a plugin's: say --plugin LIBRARY");
  refused({"run", example, "--plugin", "no/such.so"}, "--plugin no/such.so: no such file");
  refused({"schedule", example, "--plugin", example}, "--plugin " + example + ": ");
  std::string text = content_of(example);
  text.replace(text.find("centralize,"), 11, "centralise,");
  refused({"run", scratch.write("s.yaml", text).string(), "--plugin", DDPSIM_PLUGIN_EXAMPLE},
          "no plugin has a gradient hook \"centralise\"; there are: balance, centralize");
  refused({"run", example, "--hooks-log", "-", "--json", "-"},
          "two results cannot both be written to stdout");
  // A prediction needs no code: what the hook costs is in the scenario.
  CHECK(ddpsim({"run", example, "-q"}).code == 0);
  CHECK(ddpsim({"schedule", example, "-q", "--plugin", DDPSIM_PLUGIN_EXAMPLE}).code == 0);
}

TEST_CASE("list shows the hooks of a training", "[tools][hooks_log]") {
  const auto list = ddpsim({"list", "hooks"});
  for (const UserHookKind kind : all_user_hooks)
    CHECK(list.out.find(fmt::format("\n{} ", name_of(kind))) != std::string::npos);
}

}  // namespace ddpsim
