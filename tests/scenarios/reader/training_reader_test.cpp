#include "scenarios/reader/training/training_reader.hpp"

#include <catch2/catch.hpp>
#include <fmt/format.h>

#include "tests/model/flat_step.hpp"
#include "tests/scenarios/reader/refusal.hpp"

namespace ddpsim {
namespace {

/// A profile of three parameters of 1 MiB each; gradients arrive c, b, a.
const std::string three_parameters =
    "format: ddpsim.workload/1\nforward: 1 ms\nbackward: 3 ms\nparameters:\n"
    "  - {name: a, shape: [262144], ready: 3 ms}\n"
    "  - {name: b, shape: [262144], ready: 2 ms}\n"
    "  - {name: c, shape: [262144], ready: 1 ms}\n";

/// A scenario of it whose line 4 is `text`, under `training:`.
std::string with_training(const std::string& text) {
  return "workload: {model: p.yaml}\n"
         "cluster: {device: h100-sxm, ranks_per_node: 2, intra_node: nvlink4}\n"
         "training:\n" +
         text + "\n";
}

struct Three {
  Scratch scratch;
  Three() { scratch.write("p.yaml", three_parameters); }
  std::string refused(const std::string& text) const {
    return refusal(scratch, with_training(text));
  }
  Training read(const std::string& text) const {
    return read_scenario(scratch.write("s.yaml", with_training(text))).training;
  }
};

TEST_CASE("training is DistributedDataParallel's own where nothing is said",
          "[scenarios][training_reader]") {
  const Scratch scratch;
  scratch.write("p.yaml", three_parameters);
  const Training training =
      read_scenario(
          scratch.write("s.yaml", "workload: {model: p.yaml}\ncluster: {device: h100-sxm}\n"))
          .training;
  CHECK(training.strategy == Strategy::bucketed);
  CHECK(training.bucket_cap == 25 * MiB);
  CHECK(training.first_bucket_cap == MiB);
  CHECK(training.bucket_rule == BucketRule::torch);
  CHECK(training.micro_batches == 1);
  CHECK(!training.no_sync);
  CHECK(!training.find_unused_parameters);
  CHECK(!training.static_graph);
  CHECK(!training.gradient_as_bucket_view);
  CHECK(training.iteration == 0);
}

TEST_CASE("R35: what DDP or a comm hook cannot do with a parameter is refused by its name",
          "[scenarios][training_reader]") {
  const Scratch scratch;
  const auto refused = [&](const std::string& parameter, const std::string& training) {
    scratch.write("p.yaml",
                  "format: ddpsim.workload/1\nforward: 1 ms\nbackward: 3 ms\nparameters:\n"
                  "  - {name: a, shape: [8, 8], ready: 3 ms}\n  - " +
                      parameter + "\n");
    return refusal(scratch, with_training(training));
  };
  CHECK(refused("{name: idle, shape: [8], unused: true}", "  no_sync: false") ==
        "s.yaml:4:3: training: no gradient reaches idle, so DistributedDataParallel's next forward "
        "would fail: set find_unused_parameters: true or static_graph: true");
  CHECK_THAT(
      refused("{name: words, shape: [8, 4], sparse: true, ready: 2 ms}", "  comm_hook: allreduce"),
      Catch::StartsWith(
          "s.yaml:4:14: training.comm_hook: comm hooks take dense gradients, and that of "
          "words is sparse"));
  CHECK_THAT(refused("{name: b, shape: [8], ready: 2 ms}",
                     "  hooks:\n    - clip: {layer: \"*\", norm: 1}"),
             Catch::StartsWith("s.yaml:5:21: ") && Catch::Contains("a profile has no layers"));
}

TEST_CASE("R45: what would break ZeRO's hooks in PyTorch is refused in its place",
          "[scenarios][training_reader]") {
  const Scratch scratch;
  const auto refused = [&](const std::string& dtype, const std::string& more) {
    scratch.write("p.yaml",
                  "format: ddpsim.workload/1\nforward: 1 ms\nbackward: 3 ms\nparameters:\n"
                  "  - {name: a, shape: [8, 8], ready: 3 ms}\n  - {name: b, shape: [8], ready: 2 "
                  "ms, dtype: " +
                      dtype + "}\n");
    const std::string line = refusal(scratch, with_training("  comm_hook: zero_step\n" + more));
    if (!line.empty()) CHECK_THAT(line, Catch::StartsWith("s.yaml:4:14: training.comm_hook: "));
    return line;
  };
  CHECK(refused("fp32", "").empty());
  CHECK_THAT(refused("bf16", ""), Catch::Contains("parameters of one type, and b is not"));
  CHECK_THAT(refused("fp32", "  find_unused_parameters: true"),
             Catch::Contains("which it never does with find_unused_parameters alone"));
  CHECK(refused("fp32", "  find_unused_parameters: true\n  static_graph: true").empty());
  CHECK_THAT(refused("fp32", "  join: true"), Catch::Contains("take join out"));
}

TEST_CASE("who builds a schedule without a scenario is refused with the reader's sentence",
          "[scenarios][training_reader]") {
  const Three three;
  const Scenario scenario =
      read_scenario(three.scratch.write("s.yaml", with_training("  no_sync: false")));
  const StepWorks works(scenario.workload, scenario.cluster, Optimizer::sgd);
  const auto same = [&](const std::string& text, const std::string& place, auto change) {
    Training training = scenario.training;
    change(training);
    CHECK_NOTHROW(flat_step(works, scenario.training));
    std::string thrown;
    try {
      flat_step(works, training);
    } catch (const std::invalid_argument& problem) {
      thrown = problem.what();
    }
    REQUIRE(thrown != "");
    CHECK(three.refused(text) == "s.yaml:" + place + ": " + thrown);
  };
  using Buckets = std::vector<std::vector<int>>;
  same("  buckets: [[c], [a]]", "4:12", [](Training& t) { t.buckets = Buckets{{2}, {0}}; });
  same("  buckets: [[c, b], [a, b]]", "4:25", [](Training& t) {
    t.buckets = Buckets{{2, 1}, {0, 1}};
  });
  same("  buckets: [[c, b], [], [a]]", "4:21", [](Training& t) {
    t.buckets = Buckets{{2, 1}, {}, {0}};
  });
  same("  parameter_groups: 4", "4:21", [](Training& t) { t.parameter_groups = 4; });
  const std::string delayed = "  delay_all_reduce: {parameters: [c], hook: a}";
  same(delayed + "\n  micro_batches: 2", "4:21", [](Training& t) {
    t.delayed = DelayedAllReduce{{2}, 0};
    t.micro_batches = 2;
  });
  same(delayed + "\n  join: true", "4:21", [](Training& t) {
    t.delayed = DelayedAllReduce{{2}, 0};
    t.join = Join{};
  });
  same(delayed + "\n  comm_hook: optimizer_overlap", "4:21", [](Training& t) {
    t.delayed = DelayedAllReduce{{2}, 0};
    t.comm_hook.kind = CommHookKind::optimizer_overlap;
  });
  same("  delay_all_reduce: {parameters: [a], hook: c}", "4:45", [](Training& t) {
    t.delayed = DelayedAllReduce{{0}, 2};
  });
  same("  delay_all_reduce: {parameters: [], hook: c}", "4:21", [](Training& t) {
    t.delayed = DelayedAllReduce{{}, 2};
  });
  same("  comm_hook: zero_step\n  join: true", "4:14", [](Training& t) {
    t.comm_hook.kind = CommHookKind::zero_step;
    t.join = Join{};
  });
}

TEST_CASE("a setting from the command line is refused as such", "[scenarios][training_reader]") {
  const Three three;
  CHECK_THAT(
      refusal(three.scratch, with_training("  join: true"), {{"training.comm_hook", "zero_step"}}),
      Catch::StartsWith("--set training.comm_hook=zero_step: ZeRO's hooks with uneven"));
}

TEST_CASE("R45: ZeRO's hooks where collectives are not NCCL's are refused in their place",
          "[scenarios][training_reader]") {
  const Three three;
  CHECK_THAT(refusal(three.scratch, with_training("  comm_hook: zero_step"),
                     {{"cluster.collectives_at_once", "2"}}),
             Catch::StartsWith("s.yaml:4:14: training.comm_hook: ZeRO's hooks are for NCCL"));
}

TEST_CASE("R11: a cap is cut off to whole bytes", "[scenarios][training_reader]") {
  const Three three;
  CHECK(three.read("  bucket_cap: 25 MiB").bucket_cap == Bytes{26'214'400});
  CHECK(three.read("  bucket_cap: 0.001 MiB").bucket_cap == Bytes{1'048});  // of 1048.576
  CHECK(three.read("  bucket_caps: [0.01 MiB, 1 MiB]").bucket_caps.front() == Bytes{10'485});
}

TEST_CASE("every setting of training is read", "[scenarios][training_reader]") {
  const Three three;
  const Training training = three.read(
      "  strategy: overlap\n  bucket_cap: 4 MB\n  first_bucket_cap: none\n  bucket_rule: "
      "before_overflow\n"
      "  micro_batches: 4\n  no_sync: true\n  find_unused_parameters: true\n  static_graph: true\n"
      "  gradient_as_bucket_view: true\n  phase: first\n  comm_hook: none\n  hooks: []");
  CHECK(training.strategy == Strategy::overlap);
  CHECK(training.bucket_cap == Bytes{4'000'000});
  CHECK(!training.first_bucket_cap);
  CHECK(training.bucket_rule == BucketRule::before_overflow);
  CHECK(training.micro_batches == 4);
  CHECK(training.no_sync);
  CHECK(training.find_unused_parameters);
  CHECK(training.static_graph);
  CHECK(training.gradient_as_bucket_view);
  CHECK(training.iteration == 1);
}

TEST_CASE("only torch's rule has a special first bucket unless one is asked for",
          "[scenarios][training_reader]") {
  const Three three;
  CHECK(three.read("  bucket_rule: torch").first_bucket_cap == MiB);
  CHECK(!three.read("  bucket_rule: before_overflow").first_bucket_cap);
  CHECK(three.read("  first_bucket_cap: 2 MiB\n  bucket_rule: before_overflow").first_bucket_cap ==
        2 * MiB);
  CHECK(!three.read("  broadcast_buffers: false").broadcast_buffers);
}

TEST_CASE("R12: a release says whether a cap holds for the first bucket too",
          "[scenarios][training_reader]") {
  const Three three;
  for (const char* older : {"1.13", "2.0"})
    CHECK(three.read(fmt::format("  pytorch: {}\n  bucket_cap: 2 MiB", older)).first_bucket_cap ==
          MiB);
  CHECK(three.read("  pytorch: 2.13").first_bucket_cap == MiB);
  for (const char* newest : {"", "  pytorch: 2.13\n"}) {
    const std::string text = std::string(newest) + "  bucket_cap: 2 MiB";
    CHECK(!three.read(text).first_bucket_cap);
    CHECK(three.read(text + "\n  first_bucket_cap: 1 MiB").first_bucket_cap == MiB);
  }
  CHECK(three.refused("  pytorch: 3") ==
        "s.yaml:4:12: training.pytorch: unknown name \"3\"; known: 1.13, 2.0, 2.13");
}

TEST_CASE("modes are read", "[scenarios][training_reader]") {
  const Three three;
  CHECK(three.read("  iteration: 3").iteration == 3);
  CHECK(three.refused("  phase: first\n  iteration: 3") ==
        "s.yaml:5:14: training.iteration: iteration and phase exclude each other");
  CHECK(three.read("  last_bucket_cap: true").last_bucket_cap);
  CHECK(three.read("  skip_all_reduce_unused_params: true").skip_all_reduce_unused_params);
  CHECK(three.read("  join: true").join == Join{});
  CHECK(!three.read("  join: false").join);
  CHECK(three.read("  join: {divide_by_initial_world_size: false}").join == Join{false, false, 0});
  CHECK(three.read("  join: {joined_ranks: 2}").join == Join{false, true, 2});
  CHECK(three.refused("  join: {throw: true}") ==
        "s.yaml:4:10: training.join.throw: unknown key; did you mean "
        "\"throw_on_early_termination\"?; known: throw_on_early_termination, "
        "divide_by_initial_world_size, joined_ranks");
}

TEST_CASE("where batches come from is read, and says how much ranks usually differ",
          "[scenarios][training_reader]") {
  const Three three;
  const auto skew = [&](const std::string& text) {
    return read_scenario(three.scratch.write("s.yaml", with_training(text))).cluster.skew;
  };
  CHECK(three.read("  micro_batches: 1").input == Input::ready);
  CHECK(three.read("  input: decoded").input == Input::decoded);
  CHECK(skew("  input: ready") == usual_skew);
  CHECK(skew("  input: decoded") == usual_skew_of_decoded_input);
  // Who says how much they differ is believed.
  CHECK(read_scenario(three.scratch.write("s.yaml", with_training("  input: decoded")),
                      {{"cluster.skew", "1 %"}})
            .cluster.skew == Approx(0.01));
  const Training made = three.read("  input: {time: 480 ms, cores: 48}\n  micro_batches: 2");
  CHECK(made.input == Input::ready);
  // Two micro-batches of eight ranks: 16 batches of 480 ms on 48 cores.
  CHECK(made.least_step(8) == std::chrono::milliseconds{160});
  CHECK(three.read("  input: ready").least_step(8) == Duration::zero());
  CHECK(three.refused("  input: {time: 480 ms}") ==
        "s.yaml:4:10: training.input: missing key \"cores\"");
  CHECK(three.refused("  input: {time: 480 ms, cores: 0}") ==
        "s.yaml:4:32: training.input.cores: expected a whole number from 1 to 100000, got \"0\"");
  CHECK(three.refused("  input: {time: 480 ms, cores: 100000}").empty());
  CHECK_THAT(three.refused("  input: {time: 480 ms, cores: 100001}"),
             Catch::Contains("expected a whole number from 1 to 100000"));
  CHECK(three.refused("  input: decode") ==
        "s.yaml:4:10: training.input: unknown name \"decode\"; did you mean \"decoded\"?; known: "
        "ready, decoded");
}

TEST_CASE("an explicit bucket has one type", "[scenarios][training_reader]") {
  const Three three;
  three.scratch.write("p.yaml",
                      three_parameters + "  - {name: d, shape: [8], dtype: bf16, ready: 1 ms}\n");
  CHECK(three.refused("  buckets: [[c, d], [b, a]]") ==
        "s.yaml:4:17: training.buckets: \"d\" is bf16, but its bucket is fp32: a bucket has one "
        "type");
  CHECK(three.read("  buckets: [[d], [c, b, a]]").buckets.size() == 2);
}

TEST_CASE("names of a closed set are refused with the nearest", "[scenarios][training_reader]") {
  const Three three;
  CHECK(three.refused("  strategy: bucketd") ==
        "s.yaml:4:13: training.strategy: unknown name \"bucketd\"; did you mean \"bucketed\"?; "
        "known: "
        "none, naive, flat, overlap, bucketed, zero1, zero2, zero3, fsdp");
  CHECK(three.refused("  bucket_rule: pytorch") ==
        "s.yaml:4:16: training.bucket_rule: unknown name \"pytorch\"; did you mean \"torch\"?; "
        "known: "
        "torch, before_overflow");
  CHECK(three.refused("  phase: frst") ==
        "s.yaml:4:10: training.phase: unknown name \"frst\"; did you mean \"first\"?; known: "
        "steady, first");
  CHECK(three.refused("  micro_batches: 0") ==
        "s.yaml:4:18: training.micro_batches: expected a whole number from 1 to 1024, got \"0\"");
}

TEST_CASE("a cap that closes no bucket is refused", "[scenarios][training_reader]") {
  const Three three;
  // Three gradients of 1 MiB: caps of 1, 1 and 1 MiB close a bucket each; the fourth has nothing
  // left.
  CHECK(three.refused("  bucket_caps: [1 MiB, 1 MiB, 1 MiB]").empty());
  CHECK(three.refused("  bucket_caps: [1 MiB, 1 MiB, 1 MiB, 5 MiB]") ==
        "s.yaml:4:38: training.bucket_caps: this cap closes no bucket: all gradients are in the 3 "
        "before "
        "it");
  // The second cap takes all that is left (2 of 25 MiB), so the third is idle.
  CHECK(three.refused("  bucket_caps: [1 MiB, 25 MiB]").empty());
  CHECK(three.refused("  bucket_caps: [1 MiB, 25 MiB, 25 MiB]") ==
        "s.yaml:4:32: training.bucket_caps: this cap closes no bucket: all gradients are in the 2 "
        "before "
        "it");
  CHECK(three.read("  bucket_caps: [1 MiB, 25 MiB]").bucket_caps == std::vector{MiB, 25 * MiB});
}

TEST_CASE("bucket caps are a list of sizes", "[scenarios][training_reader]") {
  const Three three;
  CHECK(three.refused("  bucket_caps: 1 MiB") ==
        "s.yaml:4:16: training.bucket_caps: expected a list of sizes, such as [1 MiB, 4 MiB, 25 "
        "MiB]");
  CHECK(three.refused("  bucket_caps: []") ==
        "s.yaml:4:16: training.bucket_caps: expected at least one size");
  CHECK(three.refused("  bucket_caps: [1 MiB, 2]") ==
        "s.yaml:4:24: training.bucket_caps: expected a size with its unit, such as \"25 MiB\" or "
        "\"10 "
        "MB\" and above zero, got \"2\"");
  CHECK(three.refused("  bucket_caps: [1 MiB, -1 MiB]") ==
        "s.yaml:4:24: training.bucket_caps: expected a size with its unit, such as \"25 MiB\" or "
        "\"10 "
        "MB\" and above zero, got \"-1 MiB\"");
}

TEST_CASE("buckets name every parameter once", "[scenarios][training_reader]") {
  const Three three;
  CHECK(three.read("  buckets: [[c, b], [a]]").buckets ==
        std::vector<std::vector<int>>{{2, 1}, {0}});
  CHECK(three.refused("  buckets: [[c], [a]]") ==
        "s.yaml:4:12: training.buckets: parameter \"b\" is in no bucket (1 of 3 are missing)");
  CHECK(three.refused("  buckets: [[c, b], [a, b]]") ==
        "s.yaml:4:25: training.buckets: parameter \"b\" is in a bucket already");
  CHECK(three.refused("  buckets: [[c, b], [a, weight]]") ==
        "s.yaml:4:25: training.buckets: p has no parameter \"weight\"");
  CHECK(three.refused("  buckets: [[c, b], [], [a]]") ==
        "s.yaml:4:21: training.buckets: expected at least one parameter name in a bucket");
  CHECK(three.refused("  buckets: [c, b, a]") ==
        "s.yaml:4:13: training.buckets: expected a list of parameter names");
  CHECK(three.refused("  buckets: all") ==
        "s.yaml:4:12: training.buckets: expected a list of lists of parameter names");
}

TEST_CASE("a parameter that a model lacks is answered with the nearest it has",
          "[scenarios][training_reader]") {
  const Scratch scratch;
  CHECK(refusal_at(scratch, 10, "  buckets: [[fc.wieght]]") ==
        "s.yaml:10:14: training.buckets: resnet18 has no parameter \"fc.wieght\"; did you mean "
        "\"fc.weight\"?");
  const std::string message = refusal_at(scratch, 10, "  buckets: [[\"fc\\n\\e[1m\"]]");
  CHECK_THAT(message, Catch::StartsWith("s.yaml:10:14: training.buckets: resnet18 has no parameter "
                                        "\"fc\\n\\x1b[1m\""));
}

TEST_CASE("ways to cut buckets exclude each other", "[scenarios][training_reader]") {
  const Three three;
  CHECK(three.refused("  bucket_caps: [1 MiB]\n  buckets: [[a, b, c]]") ==
        "s.yaml:5:12: training.buckets: buckets and bucket_caps exclude each other");
  CHECK(
      three.refused("  bucket_caps: [1 MiB]\n  parameter_groups: 2") ==
      "s.yaml:5:21: training.parameter_groups: parameter_groups excludes buckets and bucket_caps");
  CHECK(three.refused("  parameter_groups: 4") ==
        "s.yaml:4:21: training.parameter_groups: 4 parameter groups of 3 parameters: some would be "
        "empty");
  CHECK(three.read("  parameter_groups: 3").parameter_groups == 3);
}

TEST_CASE("R50: delay_all_reduce takes names and a hook that comes after them",
          "[scenarios][training_reader]") {
  const Three three;
  const Training training = three.read("  delay_all_reduce: {parameters: [c, \"b*\", b], hook: a}");
  REQUIRE(training.delayed);
  CHECK(training.delayed->parameters == std::vector<std::int32_t>{2, 1});
  CHECK(training.delayed->hook == 0);
  CHECK_THAT(three.refused("  delay_all_reduce: {parameters: [a], hook: c}"),
             Catch::Contains("s.yaml:4:") && Catch::Contains("a gets its gradient after this one"));
  CHECK_THAT(three.refused("  delay_all_reduce: {parameters: [d], hook: a}"),
             Catch::Contains("s.yaml:4:35") && Catch::Contains("no parameter is named \"d\""));
  CHECK_THAT(three.refused("  delay_all_reduce: {parameters: [c], hook: \"*\"}"),
             Catch::Contains("3 are named so"));
  CHECK_THAT(three.refused("  delay_all_reduce: {parameters: [], hook: a}"),
             Catch::Contains("one parameter at least"));
  CHECK_THAT(three.refused("  delay_all_reduce: {parameters: [c], hook: a}\n  micro_batches: 2"),
             Catch::Contains("set micro_batches: 1"));
  CHECK_THAT(three.refused("  delay_all_reduce: {parameters: [c], hook: a}\n  parameter_groups: 2"),
             Catch::Contains("goes with the buckets DDP makes"));
}

TEST_CASE("R17: a collective of a list of steps may have a communicator of its own",
          "[scenarios][comm_hook_reader]") {
  const Three three;
  const Training training =
      three.read("  comm_hook: [reduce_scatter, {all_gather: {communicator: 1}}]");
  REQUIRE(training.comm_hook.steps.size() == 2);
  CHECK(training.comm_hook.steps[0].communicator == 0);
  CHECK(training.comm_hook.steps[1].communicator == 1);
  CHECK_THAT(three.refused("  comm_hook: [{all_reduce: {communicator: 9}}]"),
             Catch::Contains("s.yaml:4:") && Catch::Contains("3"));
  CHECK_THAT(three.refused("  comm_hook: [{all_reduce: 3}]"),
             Catch::Contains("write it as a word"));
}

}  // namespace
}  // namespace ddpsim
