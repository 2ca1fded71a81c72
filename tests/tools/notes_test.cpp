// The sentences on stderr are in the JSON too.

#include <catch2/catch.hpp>
#include <fmt/format.h>

#include "tests/tools/program.hpp"

namespace ddpsim {
namespace {

using Words = std::vector<std::string>;

/// What stderr notes, without "note: ".
Json noted(const std::string& err) {
  const std::string begin = "note: ";
  Json notes = Json::array();
  for (const std::string& line : lines_of(err))
    if (line.starts_with(begin)) notes.push_back(line.substr(begin.size()));
  return notes;
}

Words with(Words words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

/// The JSON of a command, the same bytes with and without --quiet.
Json json_of_both(const Words& words) {
  const Scratch scratch;
  const Outcome loud = ddpsim(with(words, {"--json", scratch.path("loud.json").string()})),
                quiet = ddpsim(with(words, {"-q", "--json", scratch.path("quiet.json").string()}));
  CAPTURE(words, loud.err);
  REQUIRE(loud.code == 0);
  REQUIRE(quiet.code == 0);
  CHECK(quiet.err.empty());
  const std::string text = content_of(scratch.path("loud.json"));
  CHECK(content_of(scratch.path("quiet.json")) == text);
  Json json = Json::parse(text);
  if (json.is_object()) CHECK(json["notes"] == noted(loud.err));
  return json;
}

const std::string idle = "inter_node has no effect: there is one node";
const Words with_idle{"--set", "cluster.inter_node=ib-hdr"};

TEST_CASE("what the broadcast of buffers costs is said, with the key that does without",
          "[tools][notes]") {
  const Scratch scratch;
  const std::string file = scratch
                               .write("s.yaml",
                                      "workload: {model: resnet50, batch: 32}\n"
                                      "cluster: {system: dgx-h100, nodes: 4}\n"
                                      "compare: [flat, bucketed]\n")
                               .string();
  const Json with_buffers = json_of_both({"run", file});
  const Json without = json_of_both({"run", file, "--set", "training.broadcast_buffers=false"});
  REQUIRE(with_buffers["notes"].size() == 1);
  CHECK(without["notes"].empty());
  const Json &broadcasts = with_buffers["results"][1], &quiet = without["results"][1];
  const double longer = broadcasts["step_ms"].get<double>() - quiet["step_ms"].get<double>();
  CHECK_THAT(
      with_buffers["notes"][0].get<std::string>(),
      Catch::Contains(fmt::format("{:.2f} of {:.2f} ms are the broadcast of rank 0's buffers",
                                  longer, broadcasts["step_ms"].get<double>())) &&
          Catch::Contains("training.broadcast_buffers: false does without"));
  // Two broadcasts, of statistics and of counters, which are communication.
  CHECK(broadcasts["collectives"] == quiet["collectives"].get<int>() + 2);
  CHECK(broadcasts["communication_ms"] > quiet["communication_ms"]);
  CHECK(with_buffers["results"][0] == without["results"][0]);  // flat sends none
}

TEST_CASE("what run, tune and sweep note is in their JSON, also with --quiet", "[tools][notes]") {
  CHECK(json_of_both({"run", first_example})["notes"] == Json::array());
  for (const Words& command : {Words{"run", first_example},
                               {"tune", first_example},
                               {"sweep", first_example, "--vary", "training.bucket_cap=1MiB"}}) {
    CAPTURE(command);
    CHECK(json_of_both(with(command, with_idle))["notes"] == Json::array({idle}));
  }
  // Several, in order, the last of them on what would fit.
  const Json notes = json_of_both(
      with({"run", first_example, "--set", "workload.batch=4096"}, with_idle))["notes"];
  REQUIRE(notes.size() > 2);
  CHECK(notes.front() == idle);
  CHECK_THAT(notes.back().get<std::string>(), Catch::Contains("what fits: "));
  const Json tuned =
      json_of_both(with({"tune", first_example, "--set", "workload.batch=4096"}, with_idle));
  REQUIRE(tuned["notes"].size() == 3);
  CHECK(tuned["notes"].front() == idle);
}

TEST_CASE("measured rows that calibrate nothing leave a profile's passes, not the laws",
          "[tools][notes]") {
  const Scratch scratch;
  const std::string rest =
      "cluster: {device: generic-cpu, ranks_per_node: 2, intra_node: ethernet-10g}\n"
      "measured: {source: here, rows: [{strategy: bucketed, step: 2 s}]}\n";
  const auto notes = [&](const std::string& workload) {
    const Outcome outcome =
        execute({DDPSIM_PROGRAM, "run",
                 scratch.write("s.yaml", "workload: {" + workload + "}\n" + rest).string()},
                scratch.folder());
    INFO(outcome.err);
    REQUIRE(outcome.code == 0);
    return outcome.out + outcome.err;
  };
  const std::string laws = "predictions come from the laws alone";
  CHECK_THAT(notes("model: " + shipped("examples/profiles/torch-model.yaml")),
             !Catch::Contains(laws));
  CHECK_THAT(notes("model: resnet50, batch: 8, optimizer: sgd"), Catch::Contains(laws));
}

TEST_CASE("a strategy of --set is noted where `compare` says what is predicted, and not varied",
          "[tools][notes]") {
  const Words one{"--set", "training.strategy=flat"};
  for (const Words& command : {Words{"run", first_example},
                               {"sweep", first_example, "--vary", "training.bucket_cap=1MiB"}}) {
    CAPTURE(command);
    CHECK(json_of_both(with(command, one))["notes"] ==
          Json::array({"training.strategy: flat changes nothing here: `compare` says which "
                       "strategies are predicted (--set compare=[flat])"}));
    CHECK(json_of_both(with(command, with(one, {"--set", "compare=[flat]"})))["notes"].empty());
  }
  for (const char* command : {"run", "sweep"}) {
    const Outcome varied =
        ddpsim({command, first_example, "--vary", "training.strategy=flat,none"});
    CHECK(varied.code == 2);
    CHECK(varied.out.empty());
    CHECK(varied.err ==
          "ddpsim: --vary training.strategy: it varies nothing, for `compare` says which "
          "strategies are predicted: write --set compare=[flat,none] in its place\n");
  }
}

TEST_CASE("of several scenarios and of --vary each result has its own notes", "[tools][notes]") {
  const Scratch scratch;
  const std::string other =
      scratch
          .write("other.yaml",
                 "workload: {model: resnet18, batch: 8}\ncluster: {device: a100-80, "
                 "ranks_per_node: 2, intra_node: nvlink3}\ntraining: {no_sync: true, "
                 "broadcast_buffers: false}\n")
          .string();
  const Json several = json_of_both({"run", first_example, other});
  REQUIRE(several.size() == 2);
  CHECK(several[0]["notes"] == Json::array());
  REQUIRE(several[1]["notes"].size() == 1);
  CHECK_THAT(several[1]["notes"][0].get<std::string>(),
             Catch::StartsWith("training.no_sync: there is one micro-batch"));

  // One price for two devices is of all, a key that does nothing of half of them.
  const Json varied = json_of_both({"run", first_example, "--set", "cluster.price=2 USD/h", "--set",
                                    "compare=[flat]", "--vary", "cluster.device=a100-40,a100-80",
                                    "--vary", "training.no_sync=false,true"});
  REQUIRE(varied.size() == 4);
  for (const Json& each : varied) {
    const bool idle_key = each["set"]["training.no_sync"] == "true";
    REQUIRE(each["notes"].size() == (idle_key ? 2 : 1));
    CHECK_THAT(each["notes"][0].get<std::string>(), Catch::StartsWith("cluster.price, 2 USD"));
  }
}

TEST_CASE("a sweep that goes on from its JSON ends with the same file", "[tools][notes]") {
  const Scratch scratch;
  const Words command =
      with({"sweep", first_example, "--set", "compare=[flat]", "--vary", "workload.batch=1,2"},
           with_idle);
  const auto swept = [&](const std::string& name) {
    const Outcome outcome = ddpsim(with(command, {"--json", scratch.path(name).string()}));
    CAPTURE(outcome.err);
    REQUIRE(outcome.code == 0);
    return content_of(scratch.path(name));
  };
  const std::string whole = swept("a.json");
  CHECK(Json::parse(whole)["notes"] ==
        Json::array({idle + " (at 2 of 2 points, the first workload.batch=1)"}));
  CHECK(swept("a.json") == whole);
  CHECK(swept("b.json") == whole);
}

}  // namespace
}  // namespace ddpsim
