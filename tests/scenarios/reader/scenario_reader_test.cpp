#include "scenarios/reader/scenario/scenario_reader.hpp"

#include <chrono>

#include <catch2/catch.hpp>

#include "scenarios/reader/format/yaml.hpp"
#include "tests/scenarios/reader/refusal.hpp"

namespace ddpsim {
namespace {

using namespace std::chrono_literals;
using Settings = std::vector<Setting>;

/// What two scenarios have to share to lead to the same predictions.
void check_alike(const Scenario& a, const Scenario& b) {
  CHECK(a.workload.parameters.size() == b.workload.parameters.size());
  CHECK(a.workload.elements() == b.workload.elements());
  CHECK(a.optimizer == b.optimizer);
  CHECK(a.cluster.ranks() == b.cluster.ranks());
  CHECK(a.cluster.device.memory_bandwidth == b.cluster.device.memory_bandwidth);
  CHECK(a.cluster.intra_node.bandwidth == b.cluster.intra_node.bandwidth);
  CHECK(a.training.bucket_cap == b.training.bucket_cap);
  CHECK(a.compare == b.compare);
}

TEST_CASE("a scenario needs a workload and a cluster, the rest has its defaults",
          "[scenarios][scenario_reader]") {
  const Scratch scratch;
  const Scenario scenario = read_scenario(
      scratch.write("tiny.yaml", "workload: {model: resnet18, batch: 1}\ncluster: {device: t4}\n"));
  CHECK(scenario.name == "tiny");
  CHECK(scenario.cluster.ranks() == 1);
  CHECK(scenario.compare ==
        std::vector{Strategy::naive, Strategy::flat, Strategy::overlap, Strategy::bucketed});
  CHECK(!scenario.measured);
}

TEST_CASE("the strategies to compare are known, and each is there once",
          "[scenarios][scenario_reader]") {
  const Scratch scratch;
  CHECK(refusal_at(scratch, 11, "compare: [naive, falt]") ==
        "s.yaml:11:18: compare: unknown name \"falt\"; did you mean \"flat\"?; known: none, naive, "
        "flat, "
        "overlap, bucketed, zero1, zero2, zero3, fsdp");
  CHECK(refusal_at(scratch, 11, "compare: [naive, flat, naive]") ==
        "s.yaml:11:24: compare: naive is in the list already");
  CHECK(refusal_at(scratch, 11, "compare: []") ==
        "s.yaml:11:10: compare: expected at least one strategy");
}

TEST_CASE("measured rows are read with what differs in each", "[scenarios][scenario_reader]") {
  const Scratch scratch;
  const Scenario scenario = read_scenario(scratch.write(
      "s.yaml",
      spoiled(12,
              "measured:\n"
              "  source: a test\n"
              "  calibrate_on: [none]\n"
              "  rows:\n"
              "    - {strategy: none, step: 97 ms, set: {cluster.ranks_per_node: 1}}\n"
              "    - {strategy: bucketed, bucket_cap: 1 MiB, step: 104 ms, forward: 30 ms,\n"
              "       communication: 9 ms, note: p75}")));
  REQUIRE(scenario.measured);
  CHECK(scenario.measured->source == "a test");
  CHECK(scenario.measured->calibrate_on == std::vector{Strategy::none});
  REQUIRE(scenario.measured->rows.size() == 2);
  CHECK(scenario.measured->rows[0].step == 97ms);
  using Set = decltype(MeasuredRow::set);
  CHECK(scenario.measured->rows[0].set == Set{{"cluster.ranks_per_node", "1"}});
  CHECK(scenario.measured->rows[1].bucket_cap == MiB);
  CHECK(scenario.measured->rows[1].times.forward == 30ms);
  CHECK(scenario.measured->rows[1].communication->time == 9ms);
  CHECK(scenario.measured->rows[1].note == "p75");
}

TEST_CASE("a row's communication may say what its timer covered", "[scenarios][scenario_reader]") {
  const Scratch scratch;
  const auto row = [&](const std::string& communication) {
    return "measured: {rows: [{strategy: naive, step: 90 ms, communication: " + communication +
           "}]}";
  };
  const Scenario scenario = read_scenario(
      scratch.write("s.yaml", spoiled(12, row("{time: 9 ms, covers: [all_reduce, divide]}"))));
  const MeasuredCommunication& timer = *scenario.measured->rows[0].communication;
  CHECK(timer.time == 9ms);
  CHECK(timer.covers == std::vector{Covered::all_reduce, Covered::divide});
  CHECK_THAT(refusal_at(scratch, 12, row("{time: 9 ms, covers: [divide]}")),
             Catch::Contains("a timer of communication covers all_reduce at least"));
  CHECK_THAT(refusal_at(scratch, 12, row("{time: 9 ms, covers: [all_gather]}")),
             Catch::Contains("unknown"));
  CHECK_THAT(refusal_at(scratch, 12, row("{time: 9 ms}")),
             Catch::Contains("missing key \"covers\""));
}

TEST_CASE("rows that fit nothing cannot be calibrated on", "[scenarios][scenario_reader]") {
  const Scratch scratch;
  const auto refused = [&](const std::string& strategy) {
    return refusal_at(scratch, 12,
                      "measured: {calibrate_on: [" + strategy + "], rows: [{strategy: " + strategy +
                          ", step: 90 ms}]}");
  };
  std::vector<std::string> fitted;
  for (const StrategyFacts& facts : strategy_facts) {
    const std::string strategy(facts.name);
    if (facts.fits != Fits::nothing) {
      CHECK(refused(strategy).empty());
      fitted.push_back(strategy);
      continue;
    }
    CHECK(refused(strategy) == "s.yaml:12:26: measured.calibrate_on: a row of " + strategy +
                                   " fits nothing: name none or naive or zero1 or zero2 or zero3 "
                                   "or fsdp (computation), or "
                                   "overlap (interference)");
  }
  CHECK(fitted ==
        std::vector<std::string>{"none", "naive", "overlap", "zero1", "zero2", "zero3", "fsdp"});
}

TEST_CASE("a measured row needs a strategy and a step", "[scenarios][scenario_reader]") {
  const Scratch scratch;
  const auto refused = [&](const std::string& row) {
    return refusal_at(scratch, 12, "measured: {rows: [" + row + "]}");
  };
  // The row begins in column 19.
  CHECK(refused("{step: 5 ms}") == "s.yaml:12:19: measured.rows: missing key \"strategy\"");
  CHECK(refused("{strategy: naive}") == "s.yaml:12:19: measured.rows: missing key \"step\"");
  CHECK_THAT(refused("{strategy: naive, step: 5 ms, communication: 6 ms}"),
             Catch::Contains("measured.rows.communication: 6 ms is longer than the row's step of 5 "
                             "ms, which it is a part of"));
  CHECK_THAT(refused("{strategy: naive, step: 5 ms, backward: 6 ms}"),
             Catch::Contains("measured.rows.backward: 6 ms is longer than"));
  CHECK_THAT(refused("{strategy: overlap, step: 5 ms, forward: 3 ms, backward: 3 ms}"),
             Catch::Contains("measured.rows: forward, backward and optimizer take 6 ms together"));
  CHECK(refused("{strategy: naive, step: 0 ms}") ==
        "s.yaml:12:43: measured.rows.step: expected a time above zero");
  CHECK(refused("{strategy: naive, step: 5 ms, set: {a: 1, a: 2}}") ==
        "s.yaml:12:61: measured.rows.set: repeated key \"a\"");
  CHECK(refused("{strategy: naive, step: 5 ms, set: {a: [1]}}") ==
        "s.yaml:12:58: measured.rows.set.a: expected a value, got a list");
  CHECK(refused("") == "s.yaml:12:11: measured: expected at least one row");
  CHECK(refusal_at(scratch, 12, "measured: {source: x}") ==
        "s.yaml:12:11: measured: missing key \"rows\"");
}

TEST_CASE("the flag --set is the same as editing the file", "[scenarios][scenario_reader]") {
  const Scratch scratch;
  const auto file = scratch.write("s.yaml", good_scenario);
  const auto edited = [&](int line, const std::string& text) {
    return read_scenario(scratch.write("edited.yaml", spoiled(line, text)));
  };
  check_alike(read_scenario(file, {{"cluster.ranks_per_node", "8"}}),
              edited(7, "  ranks_per_node: 8"));
  check_alike(read_scenario(file, {{"training.bucket_cap", "50MiB"}}),
              edited(10, "  bucket_cap: 50MiB"));
  check_alike(read_scenario(file, {{"workload.model", "vgg16"}}), edited(2, "  model: vgg16"));
  check_alike(read_scenario(file, {{"compare", "[overlap]"}}), edited(11, "compare: [overlap]"));
  check_alike(
      read_scenario(file, {{"cluster.device", "{base: h100-sxm, memory_bandwidth: 1 GB/s}"}}),
      edited(6, "  device: {base: h100-sxm, memory_bandwidth: 1 GB/s}"));
}

TEST_CASE("the flag --set can add what the file does not have, and the last of two wins",
          "[scenarios][scenario_reader]") {
  const Scratch scratch;
  const auto file = scratch.write("s.yaml", good_scenario);
  CHECK(read_scenario(file, {{"training.micro_batches", "4"}}).training.micro_batches == 4);
  CHECK(read_scenario(file, {{"workload.times.forward", "5 ms"}}).times.forward == 5ms);
  CHECK(read_scenario(file, {{"name", "one"}, {"name", "two"}}).name == "two");
  CHECK(read_scenario(file, {{"training", "{}"}, {"training.bucket_cap", "2 MiB"}})
            .training.bucket_cap == 2 * MiB);
}

TEST_CASE("a change of one of several places that share a mapping by alias leaves the others",
          "[scenarios][scenario_reader]") {
  const Scratch scratch;
  const auto file = scratch.write("s.yaml",
                                  "workload: {model: resnet18, batch: 8}\n"
                                  "cluster:\n"
                                  "  device: h100-sxm\n"
                                  "  nodes: 2\n"
                                  "  ranks_per_node: 2\n"
                                  "  intra_node: &link {latency: 5 us, bandwidth: 100 GB/s}\n"
                                  "  inter_node: *link\n"
                                  "measured:\n"
                                  "  rows:\n"
                                  "    - {strategy: naive, step: 1 s, set: &both "
                                  "{cluster.intra_node.bandwidth: 1 GB/s}}\n"
                                  "    - {strategy: flat, step: 1 s, set: *both}\n");
  const auto bandwidths = [&](const Settings& set) {
    const Cluster cluster = read_scenario(file, set).cluster;
    return std::pair(cluster.intra_node.bandwidth.bytes_per_second,
                     cluster.inter_node.bandwidth.bytes_per_second);
  };
  // The anchor is changed, then the alias, then one after the other.
  CHECK(bandwidths({}) == std::pair(100e9, 100e9));
  CHECK(bandwidths({{"cluster.intra_node.bandwidth", "1 GB/s"}}) == std::pair(1e9, 100e9));
  CHECK(bandwidths({{"cluster.inter_node.bandwidth", "2 GB/s"}}) == std::pair(100e9, 2e9));
  CHECK(bandwidths({{"cluster.intra_node.bandwidth", "1 GB/s"},
                    {"cluster.inter_node.bandwidth", "2 GB/s"},
                    {"cluster.intra_node.bandwidth", "3 GB/s"}}) == std::pair(3e9, 2e9));
  // And what a measured row sets.
  const auto [key, value] = read_scenario(file).measured->rows[0].set.at(0);
  CHECK(bandwidths({{key, value}}) == std::pair(1e9, 100e9));
}

TEST_CASE("what a --set leaves as it is keeps its place in the file",
          "[scenarios][scenario_reader]") {
  const Scratch scratch;
  const Settings set{{"workload.batch", "4"}, {"cluster.ranks_per_node", "4"}};
  CHECK(refusal(scratch, spoiled(4, "  dtype: fp31"), set) ==
        refusal(scratch, spoiled(4, "  dtype: fp31")));
  // The mapping itself, which is one that a --set has changed.
  CHECK(refusal(scratch, spoiled(2, "  sequence: 8"), set) ==
        "s.yaml:2:3: workload: missing key \"model\"");
  CHECK(refusal(scratch, spoiled(4, "  dytpe: fp32"), set) ==
        "s.yaml:4:3: workload.dytpe: unknown key; did you mean \"dtype\"?" + known_in_workload);
  CHECK(refusal(scratch, spoiled(4, "  batch: 8"), set) ==
        "s.yaml:4:3: workload: repeated key \"batch\"");
}

TEST_CASE("the flag --set does not touch the file", "[scenarios][scenario_reader]") {
  const Scratch scratch;
  const auto file = scratch.write("s.yaml", good_scenario);
  read_scenario(file, {{"training.micro_batches", "4"}});
  CHECK(content_of(file) == good_scenario);
}

TEST_CASE("what is wrong with a --set is told by its own text", "[scenarios][scenario_reader]") {
  const Scratch scratch;
  const auto refused = [&](const std::string& key, const std::string& value) {
    return refusal(scratch, good_scenario, {{key, value}});
  };
  CHECK(refused("workload.batch", "0") ==
        "--set workload.batch=0: expected a whole number from 1 to 10000000, got \"0\"");
  CHECK(refused("workload.modl", "gpt2") ==
        "--set workload.modl=gpt2: unknown key; did you mean \"model\"?" + known_in_workload);
  CHECK(refused("trainin.bucket_cap", "1 MiB") ==
        "--set trainin.bucket_cap=1 MiB: unknown key; did you mean \"training\"?" +
            known_in_scenario);
  CHECK_THAT(refused("training.comm.hook", "none"),
             Catch::StartsWith("--set training.comm.hook=none: unknown key; did you mean "
                               "\"comm_hook\"?; known: strategy, pytorch, bucket_cap, "));
  CHECK(refused("workload.batch.x", "1") ==
        "--set workload.batch.x=1: batch is not a mapping in s.yaml");
  CHECK(refused("workload", "5") == "--set workload=5: expected a mapping of keys to values");
  CHECK(refused("training.bucket_caps", "[1 MiB, 2]") ==
        "--set training.bucket_caps=[1 MiB, 2]: expected a size with its unit, such as \"25 MiB\" "
        "or \"10 "
        "MB\" and above zero, got \"2\"");
  CHECK_THAT(refused("workload.batch", "[1"),
             Catch::StartsWith("--set workload.batch=[1: the value is not YAML: "));
  for (const char* path : {".", "..", "a..b", ".a", "a.", "training..bucket_cap"}) {
    CAPTURE(path);
    CHECK(refused(path, "1") == std::string("--set ") + path +
                                    "=1: expected KEY=VALUE, such as training.bucket_cap=50MiB");
  }
}

TEST_CASE("what a mapping lacks that only a --set made is told by the --set",
          "[scenarios][scenario_reader]") {
  const Scratch scratch;
  const std::string no_cluster = "workload: {model: resnet18, batch: 8}\n";
  CHECK_THAT(refusal(scratch, no_cluster, {{"cluster.nodes", "2"}}),
             Catch::StartsWith("--set cluster.nodes=2: "));
  // One that the file has is told where it stands.
  CHECK_THAT(
      refusal(scratch, no_cluster + "cluster: {ranks_per_node: 2}\n", {{"cluster.nodes", "2"}}),
      Catch::StartsWith("s.yaml:2:10: cluster: "));
}

TEST_CASE("a mapping keeps what it does not say from the entry that its cluster is based on",
          "[scenarios][scenario_reader]") {
  const Scratch scratch;
  const auto read = [&](const std::string& cluster) {
    return read_scenario(
               scratch.write("s.yaml",
                             "workload: {model: resnet18, batch: 8}\ncluster: {" + cluster + "}\n"),
               {})
        .cluster;
  };
  // DGX H100 has inter_node: {base: ib-ndr, nics: 8}.
  const Cluster as_it_is = read("system: dgx-h100, nodes: 2");
  REQUIRE(as_it_is.inter_node.nics == 8);
  const Cluster fewer = read("system: dgx-h100, nodes: 2, inter_node: {nics: 4}");
  CHECK(fewer.inter_node.nics == 4);
  CHECK(fewer.inter_node.bandwidth.bytes_per_second ==
        as_it_is.inter_node.bandwidth.bytes_per_second);
  CHECK(fewer.inter_node.latency == as_it_is.inter_node.latency);
  // A mapping with a base of its own, and a bare name, stand by themselves.
  const Cluster other =
      read("system: dgx-h100, nodes: 2, inter_node: {base: ib-hdr, latency: 9 us}");
  CHECK(other.inter_node.latency == std::chrono::microseconds{9});
  CHECK(
      other.inter_node.bandwidth.bytes_per_second ==
      read("system: dgx-h100, nodes: 2, inter_node: ib-hdr").inter_node.bandwidth.bytes_per_second);
}

TEST_CASE("another link of a ready cluster keeps its number of NICs, whatever is set beside it",
          "[scenarios][scenario_reader]") {
  const Scratch scratch;
  const auto file = scratch.write("s.yaml",
                                  "workload: {model: resnet18, batch: 8}\n"
                                  "cluster: {system: dgx-h100, nodes: 2}\n");
  const auto nics = [&](const std::vector<Setting>& set) {
    return read_scenario(file, set).cluster.inter_node.nics;
  };
  CHECK(nics({}) == 8);
  CHECK(nics({{"cluster.inter_node", "ib-hdr"}}) == 8);
  CHECK(nics({{"cluster.inter_node", "ib-hdr"}, {"cluster.inter_node.nics", "2"}}) == 2);
  CHECK(nics({{"cluster.inter_node.nics", "2"}, {"cluster.inter_node", "ib-hdr"}}) == 2);
}

TEST_CASE("a --set of any text is told on one short line", "[scenarios][scenario_reader]") {
  const Scratch scratch;
  for (const std::string& value :
       {std::string("\"a\\nb\""), std::string("a\nb"), std::string(100'000, 'x'),
        std::string(100'000, '['), std::string("\x1b[1m\xff\xfe"), std::string("*a"),
        std::string("&a *a"), std::string("{a: {b: {c: 1}}}"), std::string("!!binary aGk="),
        std::string("- - - 1")}) {
    for (const char* key :
         {"workload.batch", "cluster.device", "compare", "training.buckets", "no.such"}) {
      const std::string message = refusal(scratch, good_scenario, {{key, value}});
      CAPTURE(key, message.substr(0, 300));
      CHECK(!message.empty());
      CHECK(message.size() < 600);
      CHECK(message.find('\n') == std::string::npos);
    }
  }
}

TEST_CASE("a device or model from a file or written out is the catalogue's own",
          "[scenarios][scenario_reader]") {
  const Scratch scratch;
  const std::filesystem::path catalogue = std::filesystem::path(DDPSIM_SCENARIOS) / "catalogue";
  const Scenario named = read_scenario(scratch.write("s.yaml", good_scenario));
  const auto edited = [&](int line, const std::string& text) {
    return read_scenario(scratch.write("s.yaml", spoiled(line, text)));
  };
  check_alike(edited(6, "  device: " + (catalogue / "devices/h100-sxm.yaml").string()), named);
  check_alike(edited(6, "  device: {base: h100-sxm}"), named);
  check_alike(edited(8, "  intra_node: {base: nvlink4}"), named);
  check_alike(edited(2, "  model: " + (catalogue / "models/resnet18.yaml").string()), named);
  check_alike(edited(2, "  model: {base: resnet18}"), named);
  check_alike(edited(2, "  model: {family: resnet, blocks: [2, 2, 2, 2], bottleneck: false}"),
              named);
}

TEST_CASE("every scenario that ddpsim ships is read", "[scenarios][scenario_reader]") {
  int files = 0;
  for (const char* folder : {"examples", "seeds", "measured"}) {
    for (const auto& entry :
         std::filesystem::directory_iterator(std::filesystem::path(DDPSIM_SCENARIOS) / folder)) {
      if (entry.path().extension() != ".yaml") continue;
      CAPTURE(entry.path());
      const Scenario scenario = read_scenario(entry.path());
      CHECK(!scenario.workload.parameters.empty());
      CHECK(scenario.name != entry.path().stem());  // it says what it is
      CHECK(scenario.measured.has_value() ==
            (folder == std::string("measured") || entry.path().stem() == "cs336-xl-2xh100"));
      if (scenario.measured) CHECK(!scenario.measured->source.empty());
      ++files;
    }
  }
  CHECK(files >= 40);
}

}  // namespace
}  // namespace ddpsim
