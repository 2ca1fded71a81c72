#include "scenarios/reader/workload/profile_reader.hpp"

#include <chrono>

#include <catch2/catch.hpp>

#include "sim/predict/predict.hpp"
#include "tests/scenarios/reader/refusal.hpp"

namespace ddpsim {
namespace {

using namespace std::chrono_literals;

const std::string good_profile =
    "format: ddpsim.workload/1\n"                                       // 1
    "source: a test\n"                                                  // 2
    "forward: 6 ms\n"                                                   // 3
    "backward: 10 ms\n"                                                 // 4
    "optimizer: 2 ms\n"                                                 // 5
    "parameters:\n"                                                     // 6
    "  - {name: 0.weight, shape: [64, 32], ready: 9 ms}\n"              // 7
    "  - {name: 0.bias, shape: [64], dtype: bf16, ready: 9 ms}\n"       // 8
    "  - {name: 1.weight, shape: [8, 64], dtype: fp16, ready: 4 ms}\n"  // 9
    "arrival: [2, 0, 1]\n";                                             // 10

const std::string scenario_of_profile =
    "workload: {model: p.yaml}\ncluster: {device: h100-sxm, ranks_per_node: 2, intra_node: "
    "nvlink4, skew: 0 %}\n";

std::string with(int number, const std::string& text) {
  std::istringstream lines(good_profile);
  std::string all, line;
  for (int i = 1; std::getline(lines, line); ++i) all += (i == number ? text : line) + "\n";
  return all;
}

std::string refused(const Scratch& scratch, const std::string& profile) {
  scratch.write("p.yaml", profile);
  return refusal(scratch, scenario_of_profile);
}

TEST_CASE("a profile says which parameters are unused, and how many rows a sparse gradient has",
          "[scenarios][profile_reader]") {
  const Scratch scratch;
  scratch.write("p.yaml", with(7, "  - {name: 0.weight, shape: [64, 32], unused: true}"));
  const Workload workload =
      read_scenario(scratch.write("s.yaml", scenario_of_profile +
                                                "training: {find_unused_parameters: true}\n"))
          .workload;
  CHECK(workload.parameters[0].unused);
  CHECK(arrival_order(workload) == std::vector<int>{2, 1, 0});
  scratch.write(
      "p.yaml",
      with(7, "  - {name: 0.weight, shape: [64, 32], sparse: true, rows: 5, ready: 9 ms}"));
  const Workload sparse = read_scenario(scratch.write("s.yaml", scenario_of_profile)).workload;
  CHECK(sparse.parameters[0].sparse_values() == Bytes{5 * 32 * 4});
  CHECK(sparse.parameters[0].sparse_indices() == Bytes{5 * 8});
  CHECK(refused(scratch, with(7, "  - {name: 0.weight, shape: [64, 32], rows: 5, ready: 9 ms}")) ==
        "p.yaml:7:45: parameters.rows: rows are a sparse gradient's: say sparse: true");
}

TEST_CASE("a profile becomes a workload with a kernel up to each instant gradients were ready",
          "[scenarios][profile_reader]") {
  const Scratch scratch;
  scratch.write("p.yaml", good_profile);
  const Workload workload = read_scenario(scratch.write("s.yaml", scenario_of_profile)).workload;
  CHECK(workload.name == "p");
  CHECK(workload.source == "a test");
  CHECK(workload.optimizer == 2ms);
  REQUIRE(workload.layers.size() == 1);
  CHECK(workload.layers[0].forward.at(0).time == 6ms);
  // Ready at 4 and 9 of 10 ms: kernels of 4, 5 and the remaining 1 ms.
  REQUIRE(workload.layers[0].backward.size() == 3);
  CHECK(workload.layers[0].backward[0].time == 4ms);
  CHECK(workload.layers[0].backward[1].time == 5ms);
  CHECK(workload.layers[0].backward[2].time == 1ms);
  REQUIRE(workload.parameters.size() == 3);
  CHECK(workload.parameters[0].ready_after == 1);
  CHECK(workload.parameters[2].ready_after == 0);
  CHECK(workload.parameters[0].dtype == DType::fp32);
  CHECK(workload.parameters[1].dtype == DType::bf16);
  CHECK(workload.parameters[2].elements() == 512);
  CHECK(arrival_order(workload) == std::vector<int>{2, 0, 1});
}

TEST_CASE("a profile says what copying a gradient back takes, and what is outside the passes",
          "[scenarios][profile_reader]") {
  const Scratch scratch;
  scratch.write("p.yaml", good_profile + "copy_back: 109 us\noutside: 3 ms\n");
  const Workload workload = read_scenario(scratch.write("s.yaml", scenario_of_profile)).workload;
  CHECK(workload.copy_back == 109us);
  CHECK(workload.outside == 3ms);
}

TEST_CASE("without an order of arrival, gradients come as they are ready, ties in reverse",
          "[scenarios][profile_reader]") {
  const Scratch scratch;
  scratch.write("p.yaml", with(10, ""));
  const Workload workload = read_scenario(scratch.write("s.yaml", scenario_of_profile)).workload;
  CHECK(arrival_order(workload) == std::vector<int>{2, 1, 0});
}

TEST_CASE("a profile's buffers are broadcast, those of one type together",
          "[scenarios][profile_reader]") {
  const Scratch scratch;
  scratch.write("p.yaml", good_profile +
                              "buffers:\n"
                              "  - {tensors: 4, bytes: 2048}\n"
                              "  - {tensors: 2, bytes: 16}\n");
  const Scenario scenario = read_scenario(scratch.write("s.yaml", scenario_of_profile));
  REQUIRE(scenario.workload.buffers.size() == 2);
  CHECK(scenario.workload.buffers[0].tensors == 4);
  std::vector<std::int64_t> broadcast;
  const Step step = predict(model_of(scenario), scenario.training);
  const program::Job& job = step.planned->job;
  for (const program::Task& task : job.programs.front().tasks)
    if (const Work& work = job.works[task.work]; work.operation == Operation::broadcast)
      broadcast.push_back(work.payload.count);
  CHECK(broadcast == std::vector<std::int64_t>{2048, 16});
}

TEST_CASE("buffers of a profile are counted and have bytes", "[scenarios][profile_reader]") {
  const Scratch scratch;
  const auto said = [&](const std::string& entry) {
    return refused(scratch, good_profile + "buffers: [" + entry + "]\n");
  };
  CHECK_THAT(said("{tensors: 0, bytes: 8}"), Catch::StartsWith("p.yaml:11:21: "));
  CHECK_THAT(said("{tensors: 1, bytes: 0}"), Catch::StartsWith("p.yaml:11:31: "));
  CHECK_THAT(said("{tensors: 1, bytes: 1099511627777}"), Catch::StartsWith("p.yaml:11:31: "));
  CHECK_THAT(said("{tensors: 1}"), Catch::Contains("missing key \"bytes\""));
  CHECK_THAT(said("4"), Catch::StartsWith("p.yaml:11:11: "));
}

TEST_CASE("a profile's times are the step's", "[scenarios][profile_reader]") {
  const Scratch scratch;
  scratch.write("p.yaml", good_profile);
  const Scenario scenario = read_scenario(scratch.write("s.yaml", scenario_of_profile));
  Training alone = scenario.training;
  alone.strategy = Strategy::none;
  const StepMetrics metrics = predict(model_of(scenario), alone).metrics;
  CHECK(in_ms(metrics.forward) == Approx(6).epsilon(0.01));
  CHECK(in_ms(metrics.backward) == Approx(10).epsilon(0.01));
  CHECK(in_ms(metrics.optimizer) == Approx(2).epsilon(0.01));
  CHECK(in_ms(metrics.step) == Approx(18).epsilon(0.01));
}

TEST_CASE("where a profile's steps differ, the slowest of several ranks sets the pace",
          "[scenarios][profile_reader]") {
  const Scratch scratch;
  scratch.write("p.yaml", with(5, "optimizer: 2 ms\nstep_spread: 0.1"));
  const Scenario scenario = read_scenario(scratch.write("s.yaml", scenario_of_profile));
  CHECK(scenario.workload.step_spread == 0.1);
  Training alone = scenario.training;
  alone.strategy = Strategy::none;
  CHECK(in_ms(predict(model_of(scenario), alone).metrics.step) ==
        Approx(18 * 1.0564).epsilon(0.01));  // 1 / sqrt(pi) standard deviations
  for (const std::string bad : {"-0.1", "1.1", "nan", "10 %"})
    CHECK_THAT(refused(scratch, with(5, "step_spread: " + bad)),
               Catch::StartsWith("p.yaml:5:14: step_spread: "));
}

TEST_CASE("a gradient that is ready after its backward pass is refused",
          "[scenarios][profile_reader]") {
  const Scratch scratch;
  CHECK(
      refused(scratch, with(7, "  - {name: 0.weight, shape: [64, 32], ready: 10.1 ms}")) ==
      "p.yaml:7:46: parameters.ready: a gradient cannot be ready after the backward pass has ended "
      "(10.000000 ms)");
  CHECK(refused(scratch, with(7, "  - {name: 0.weight, shape: [64, 32], ready: 10 ms}")).empty());
}

TEST_CASE("a file of another format is no workload profile", "[scenarios][profile_reader]") {
  const Scratch scratch;
  CHECK(refused(scratch, with(1, "format: ddpsim.workload/3")) ==
        "p.yaml:1:9: format: expected ddpsim.workload/1");
  CHECK(refused(scratch, with(1, "format: ddpsim.link/1")) ==
        "s.yaml:1:19: workload.model: p.yaml is a link, not a model: give it as --link p.yaml");
  CHECK(refused(scratch, with(1, "format: [1]")) ==
        "p.yaml:1:9: format: expected ddpsim.workload/1, got a list");
}

TEST_CASE("parameters of a profile have names of their own", "[scenarios][profile_reader]") {
  const Scratch scratch;
  const std::string repeated =
      refused(scratch, with(8, "  - {name: 0.weight, shape: [64], ready: 9 ms}"));
  // The list begins at its first dash.
  CHECK_THAT(repeated, Catch::StartsWith("p.yaml:7:3: parameters: "));
  CHECK_THAT(repeated, Catch::Contains("0.weight"));
  CHECK(refused(scratch, with(8, "  - {shape: [64], ready: 9 ms}")) ==
        "p.yaml:8:5: parameters: missing key \"name\"");
}

TEST_CASE("a name with a line break keeps its error on one line", "[scenarios][profile_reader]") {
  const Scratch scratch;
  const std::string twice =
      "  - {name: \"a\\nb\", shape: [64], ready: 9 ms}\n  - {name: \"a\\nb\", shape: [64], ready: "
      "9 ms}";
  const std::string message = refused(scratch, with(7, twice));
  CHECK_THAT(message, Catch::Contains("a\\nb"));
  CHECK(message.find('\n') == std::string::npos);
}

TEST_CASE("shapes of a profile are positive and their products fit",
          "[scenarios][profile_reader]") {
  const Scratch scratch;
  CHECK(
      refused(scratch, with(7, "  - {name: 0.weight, shape: [64, 0], ready: 9 ms}")) ==
      "p.yaml:7:34: parameters.shape: expected a whole number from 1 to 1099511627776, got \"0\"");
  CHECK(refused(scratch, with(7, "  - {name: 0.weight, shape: 64, ready: 9 ms}")) ==
        "p.yaml:7:29: parameters.shape: expected a list of whole numbers, such as [1024, 1024]");
  // 2^40 squared is 2^80 elements.
  CHECK_THAT(
      refused(scratch, with(7,
                            "  - {name: 0.weight, shape: [1099511627776, 1099511627776], ready: "
                            "9 ms}")),
      Catch::StartsWith("p.yaml:7:3: parameters: "));
}

TEST_CASE("an order of arrival names each parameter once", "[scenarios][profile_reader]") {
  const Scratch scratch;
  CHECK(refused(scratch, with(10, "arrival: [2, 0, 3]")) ==
        "p.yaml:10:17: arrival: expected a whole number from 0 to 2, got \"3\"");
  CHECK(refused(scratch, with(10, "arrival: [2, 0, -1]")) ==
        "p.yaml:10:17: arrival: expected a whole number from 0 to 2, got \"-1\"");
  CHECK_THAT(refused(scratch, with(10, "arrival: [2, 0, 0]")), Catch::Contains("arrival"));
  CHECK_THAT(refused(scratch, with(10, "arrival: [2, 0]")), Catch::Contains("arrival"));
  CHECK(refused(scratch, with(10, "arrival: 2, 0, 1")) ==
        "p.yaml:10:10: arrival: expected a list of parameter indices");
}

TEST_CASE("a profile without its passes or parameters is refused", "[scenarios][profile_reader]") {
  const Scratch scratch;
  CHECK(refused(scratch, with(3, "")) == "p.yaml:1:1: missing key \"forward\"");
  CHECK(refused(scratch, with(4, "")) == "p.yaml:1:1: missing key \"backward\"");
  CHECK(refused(scratch, with(4, "backward: 0 ms")) ==
        "p.yaml:4:11: backward: expected a time above zero");
  CHECK(refused(scratch,
                "format: ddpsim.workload/1\nforward: 1 ms\nbackward: 1 ms\nparameters: []\n") ==
        "p.yaml:4:13: parameters: expected at least one parameter");
  CHECK(
      refused(scratch, with(5, "optimiser: 2 ms")) ==
      "p.yaml:5:1: optimiser: unknown key; did you mean \"optimizer\"?; known: format, written_by, "
      "source, forward, backward, optimizer, copy_back, outside, step_spread, doubts, parameters, "
      "buffers, "
      "arrival, "
      "measured, end");
}

TEST_CASE("a profile has its own batch, types and times", "[scenarios][profile_reader]") {
  const Scratch scratch;
  scratch.write("p.yaml", good_profile);
  CHECK(refusal(scratch, "workload: {model: p.yaml, batch: 8}\ncluster: {device: h100-sxm}\n") ==
        "s.yaml:1:27: workload.batch: unknown key; known: model, optimizer, clip_gradients, times");
}

TEST_CASE("what a profile measured is the scenario's, unless the scenario has its own",
          "[scenarios][profile_reader]") {
  const Scratch scratch;
  const std::string measured =
      "measured:\n"                                                      // 11
      "  source: a trace\n"                                              // 12
      "  rows:\n"                                                        // 13
      "    - {strategy: bucketed, step: 20 ms, communication: 3 ms}\n";  // 14
  scratch.write("p.yaml", good_profile + measured);
  const Scenario from_profile = read_scenario(scratch.write("s.yaml", scenario_of_profile));
  REQUIRE(from_profile.measured);
  CHECK(from_profile.measured->source == "a trace");
  REQUIRE(from_profile.measured->rows.size() == 1);
  CHECK(from_profile.measured->rows[0].strategy == Strategy::bucketed);
  CHECK(from_profile.measured->rows[0].step == 20ms);
  CHECK(scratch.without_folder(from_profile.measured->rows[0].place) == "p.yaml:14:7");

  const Scenario own = read_scenario(scratch.write(
      "s.yaml", scenario_of_profile + "measured: {rows: [{strategy: naive, step: 30 ms}]}\n"));
  REQUIRE(own.measured);
  REQUIRE(own.measured->rows.size() == 1);
  CHECK(own.measured->rows[0].strategy == Strategy::naive);

  CHECK(refused(scratch, good_profile + "measured: {rows: [{strategy: naive}]}\n") ==
        "p.yaml:11:19: measured.rows: missing key \"step\"");
  CHECK(refused(scratch, good_profile + "measured: {rows: []}\n") ==
        "p.yaml:11:11: measured: expected at least one row");
}

TEST_CASE("the example profile and link are read", "[scenarios][profile_reader]") {
  const Scenario scenario =
      read_scenario(std::filesystem::path(DDPSIM_SCENARIOS) / "examples/own-profile.yaml");
  CHECK(scenario.workload.parameters.size() == 6);
  CHECK(scenario.training.buckets.size() == 3);
  CHECK(scenario.cluster.intra_node.name == "link");
  CHECK(scenario.cluster.intra_node.table_ranks == 2);
  REQUIRE(scenario.cluster.intra_node.all_reduce.size() == 4);
  CHECK(scenario.cluster.intra_node.all_reduce[0] ==
        std::pair{Bytes{1'000'000}, Duration{58'100'000}});
}

}  // namespace
}  // namespace ddpsim
