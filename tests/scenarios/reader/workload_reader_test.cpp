#include "scenarios/reader/workload/workload_reader.hpp"

#include <chrono>

#include <catch2/catch.hpp>

#include "sim/predict/predict.hpp"
#include "tests/scenarios/reader/refusal.hpp"

namespace ddpsim {
namespace {

using namespace std::chrono_literals;

Scenario scenario_with(const Scratch& scratch, int line, const std::string& text) {
  return read_scenario(scratch.write("s.yaml", spoiled(line, text)));
}

const std::string small_transformer =
    "  model: {family: gpt2, layers: 2, d_model: 64, d_ff: 256, heads: 4, vocabulary: 100, "
    "positions: 32}\n"
    "  sequence: 32";

TEST_CASE("a model written out has the tensors its shape implies", "[scenarios][workload_reader]") {
  const Scratch scratch;
  const Scenario scenario = scenario_with(scratch, 2, small_transformer);
  // GPT-2: two embeddings, twelve tensors a block (two norms, two attention and two MLP matrices,
  // each with its bias), two of the last norm; the head is tied.
  CHECK(scenario.workload.parameters.size() == 2 + 2 * 12 + 2);
  // Embeddings 100*64 + 32*64; a block 12 d^2 + 13 d = 49152 + 832; the last norm 2 d.
  CHECK(scenario.workload.elements() == 6400 + 2048 + 2 * (49152 + 832) + 128);
  CHECK(scenario.d_model == 64);
  CHECK(scenario.num_layers == 2);
  CHECK(scenario.workload.name == "inline");
}

TEST_CASE("blocks are checkpoints: none, all, or every so many-th",
          "[scenarios][workload_reader]") {
  const Scratch scratch;
  const auto again = [&](const std::string& value) {
    int kernels = 0;
    const Scenario scenario =
        scenario_with(scratch, 2, small_transformer + "\n  activation_checkpointing: " + value);
    for (const Layer& layer : scenario.workload.layers)
      for (const Kernel& kernel : layer.backward)
        kernels += kernel.name.ends_with(".again") ? 1 : 0;
    return kernels;
  };
  CHECK(again("none") == 0);
  CHECK(again("2") > 0);
  CHECK(again("full") > again("2"));
  CHECK_THAT(refusal(scratch, spoiled(2, small_transformer + "\n  activation_checkpointing: 3")),
             Catch::Contains("expected at most 2: the model has that many blocks"));
  CHECK_THAT(refusal(scratch, spoiled(2, "  model: resnet18\n  activation_checkpointing: full")),
             Catch::StartsWith("s.yaml:3:29: workload.activation_checkpointing: "
                               "activation_checkpointing is modelled for blocks of the families"));
  CHECK_THAT(
      refusal(scratch, spoiled(2, small_transformer + "\n  activation_checkpointing: selective")),
      Catch::Contains("selective is modelled for blocks of family llama: write full"));
  for (const char* value : {"1", "0", "some", "true", "[full]"})
    CHECK_THAT(
        refusal(scratch, spoiled(2, small_transformer + "\n  activation_checkpointing: " + value)),
        Catch::StartsWith("s.yaml:4:29: workload.activation_checkpointing: expected"));
}

TEST_CASE("the optimizer is AdamW unless the scenario says otherwise",
          "[scenarios][workload_reader]") {
  const Scratch scratch;
  CHECK(read_scenario(scratch.write("s.yaml", good_scenario)).optimizer == Optimizer::adamw);
  CHECK(scenario_with(scratch, 4, "  optimizer: sgd").optimizer == Optimizer::sgd);
  CHECK(scenario_with(scratch, 4, "  optimizer: adamw-loop").optimizer == Optimizer::adamw_loop);
  CHECK(scenario_with(scratch, 4, "  optimizer: 12 ms").workload.optimizer == 12ms);
}

TEST_CASE("an optimizer that is neither a law nor a time is refused",
          "[scenarios][workload_reader]") {
  const Scratch scratch;
  CHECK(refusal_at(scratch, 4, "  optimizer: adamww") ==
        "s.yaml:4:14: workload.optimizer: unknown name \"adamww\"; did you mean \"adamw\"?; known: "
        "none, "
        "sgd, sgd-plain, adam, adamw, adamw-fused, adamw-loop, lamb, adafactor, muon, "
        "rmsprop, novograd, lion, adam-8bit");
  CHECK(refusal_at(scratch, 4, "  optimizer: 12") ==
        "s.yaml:4:14: workload.optimizer: expected a time with its unit, such as \"250 ms\" or \"5 "
        "us\", "
        "got \"12\"");
}

TEST_CASE("parameters have a type that is stored, and tf32 is not",
          "[scenarios][workload_reader]") {
  const Scratch scratch;
  CHECK(refusal_at(scratch, 4, "  dtype: fp33") ==
        "s.yaml:4:10: workload.dtype: unknown name \"fp33\"; did you mean \"fp32\"?; known: fp32, "
        "tf32, "
        "bf16, fp16");
  CHECK(refusal_at(scratch, 4, "  dtype: tf32") ==
        "s.yaml:4:10: workload.dtype: tf32 is how GEMMs compute, not how parameters are stored: "
        "write "
        "dtype: fp32 and compute: tf32");
  CHECK(scenario_with(scratch, 4, "  compute: tf32").workload.parameters.front().dtype ==
        DType::fp32);
}

TEST_CASE("a type that the device cannot multiply is refused", "[scenarios][workload_reader]") {
  const Scratch scratch;
  const std::string scenario = spoiled(4, "  dtype: bf16");
  CHECK(refusal(scratch, scenario).empty());
  CHECK(refusal(scratch, scenario, {{"cluster.device", "v100"}}) ==
        "s.yaml:2:3: workload: device v100 does not multiply bf16: choose another compute type");
}

TEST_CASE(
    "a transformer needs a sequence it has positions for, a convolutional network ignores one",
    "[scenarios][workload_reader]") {
  const Scratch scratch;
  CHECK(refusal_at(scratch, 2, "  model: gpt2") ==
        "s.yaml:2:3: workload: missing key \"sequence\"");
  CHECK(
      refusal_at(scratch, 2, "  model: gpt2\n  sequence: 1025") ==
      "s.yaml:2:10: workload.model: gpt2: a sequence of 1025 is longer than the 1024 positions the "
      "model has learned");
  CHECK(refusal_at(scratch, 4, "  sequence: 512").empty());
  CHECK(refusal_at(scratch, 4, "  image: 32").empty());
  CHECK(refusal_at(scratch, 4, "  image: 16") ==
        "s.yaml:4:10: workload.image: expected a whole number from 32 to 16384, got \"16\"");
}

TEST_CASE("frozen parameters are named", "[scenarios][workload_reader]") {
  const Scratch scratch;
  const auto read = [&](const std::string& names) {
    return read_scenario(
               scratch.write("s.yaml", spoiled(2, small_transformer + "\n  frozen: " + names)))
        .workload;
  };
  const Workload all = read("[]"), some = read("[\"*wpe*\", transformer.h.0.ln_1.bias]");
  CHECK(all.frozen_parameters.empty());
  REQUIRE(some.frozen_parameters.size() == 2);
  CHECK(some.frozen_parameters[0].name == "transformer.wpe.weight");
  CHECK(some.parameters.size() + 2 == all.parameters.size());
  CHECK_THAT(refusal(scratch, spoiled(2, small_transformer + "\n  frozen: [wpe]")),
             Catch::Contains("has no parameter named \"wpe\""));
  CHECK_THAT(refusal(scratch, spoiled(2, small_transformer + "\n  frozen: [\"*\"]")),
             Catch::Contains("nothing is trained"));
}

TEST_CASE("a model that cannot be is refused at the key that says so",
          "[scenarios][workload_reader]") {
  const Scratch scratch;
  CHECK(refusal_at(scratch, 2, "  model: {family: gpt3}") ==
        "s.yaml:2:19: workload.model.family: unknown name \"gpt3\"; did you mean \"gpt2\"?; known: "
        "cs336, "
        "llama, gpt2, bert, resnet, vgg, mlp, vit, t5, mixtral, efficientnet, whisper, dlrm, "
        "ssd, mask_rcnn");
  CHECK(refusal_at(scratch, 2, "  model: {family: vgg, channels: [64, -1]}") ==
        "s.yaml:2:39: workload.model.channels: expected a whole number from 0 to 10000000, got "
        "\"-1\"");
  CHECK(refusal_at(scratch, 2, "  model: {layers: 2}") ==
        "s.yaml:2:10: workload.model: missing key \"family\"");
  CHECK(refusal_at(scratch, 2, "  model: {base: gpt2, layer: 2}\n  sequence: 8") ==
        "s.yaml:2:23: workload.model.layer: unknown key; did you mean \"layers\"?; known: family, "
        "base, source, layers, d_model, d_ff, heads, kv_heads, vocabulary, positions, activation");
  CHECK_THAT(refusal_at(scratch, 2, "  model: {family: resnet, blocks: [1, 2], bottleneck: true}"),
             Catch::StartsWith("s.yaml:2:10: workload.model: "));
}

TEST_CASE("a perceptron is its widths, with biases or without", "[scenarios][workload_reader]") {
  const Scratch scratch;
  // 64 x 128 and 128 x 10 weights; a bias for each output.
  const Scenario biased =
      scenario_with(scratch, 2, "  model: {family: mlp, widths: [64, 128, 10]}");
  CHECK(biased.workload.parameters.size() == 4);
  CHECK(biased.workload.elements() == 64 * 128 + 128 + 128 * 10 + 10);
  CHECK(biased.workload.layers.front().forward.front().gemm->m == 8);  // the batch
  CHECK(biased.workload.name == "inline");
  const Scenario plain =
      scenario_with(scratch, 2, "  model: {family: mlp, widths: [64, 128, 10], bias: false}");
  CHECK(plain.workload.parameters.size() == 2);
  CHECK(plain.workload.elements() == 64 * 128 + 128 * 10);
  // Neither a sequence nor a picture is its business.
  CHECK(refusal_at(scratch, 2, "  model: {family: mlp, widths: [1, 1]}\n  sequence: 8\n  image: 64")
            .empty());
}

TEST_CASE("a perceptron may stand in a file of its own", "[scenarios][workload_reader]") {
  const Scratch scratch;
  scratch.write("net.yaml", "source: a test\nfamily: mlp\nwidths: [64, 128, 10]\n");
  const Scenario scenario = scenario_with(
      scratch, 2, "  model: {base: net.yaml, bias: false}\n  optimizer: sgd\n  compute: tf32");
  CHECK(scenario.workload.elements() == 64 * 128 + 128 * 10);
  CHECK(scenario.workload.source == "not said; the rest as net");
  CHECK(scenario.workload.layers.front().forward.front().type == DType::tf32);
}

TEST_CASE("widths that cannot be are refused in a line", "[scenarios][workload_reader]") {
  const Scratch scratch;
  const auto refusal_of = [&](const std::string& keys) {
    return refusal_at(scratch, 2, "  model: {family: mlp" + keys + "}");
  };
  CHECK(refusal_of("") == "s.yaml:2:10: workload.model: missing key \"widths\"");
  CHECK(
      refusal_of(", widths: [1024]") ==
      "s.yaml:2:10: workload.model: inline: widths: a multilayer perceptron has at least two (its "
      "input's and its output's), got 1");
  CHECK(
      refusal_of(", widths: []") ==
      "s.yaml:2:10: workload.model: inline: widths: a multilayer perceptron has at least two (its "
      "input's and its output's), got 0");
  CHECK(
      refusal_of(", widths: [8, 0]") ==
      "s.yaml:2:36: workload.model.widths: expected a whole number from 1 to 10000000, got \"0\"");
  CHECK(refusal_of(", widths: [8, 99999999999]") ==
        "s.yaml:2:36: workload.model.widths: expected a whole number from 1 to 10000000, got "
        "\"99999999999\"");
  CHECK(refusal_of(", widths: [8, 1e3]") ==
        "s.yaml:2:36: workload.model.widths: expected a whole number from 1 to 10000000, got "
        "\"1e3\"");
  CHECK_THAT(refusal_of(", widths: 1024"),
             Catch::StartsWith("s.yaml:2:32: workload.model.widths: expected a list of whole "
                               "numbers"));
  CHECK_THAT(refusal_of(", widths: [10000000, 10000000, 10000000, 10000000]"),
             Catch::StartsWith("s.yaml:2:10: workload.model: inline: the network would hold "));
  CHECK_THAT(refusal_of(", widths: [8, 8], bias: maybe"),
             Catch::StartsWith("s.yaml:2:46: workload.model.bias: "));
  CHECK(refusal_of(", widths: [8, 8], classes: 10") ==
        "s.yaml:2:40: workload.model.classes: unknown key; known: family, base, source, widths, "
        "bias");
}

TEST_CASE("sizes whose products would not fit are refused, not wrapped around",
          "[scenarios][workload_reader]") {
  const Scratch scratch;
  CHECK_THAT(
      refusal_at(
          scratch, 2,
          "  model: {family: llama, layers: 10000, d_model: 10000000, d_ff: 10000000, heads: "
          "1, vocabulary: 10000000}\n  sequence: 10000000"),
      Catch::StartsWith("s.yaml:2:10: workload.model: inline: "));
  CHECK_THAT(refusal_at(scratch, 3, "  batch: 10000000"),
             Catch::StartsWith("s.yaml:2:10: workload.model: resnet18: "));
}

TEST_CASE("measured times are met by the step without communication",
          "[scenarios][workload_reader]") {
  const Scratch scratch;
  const Scenario scenario = scenario_with(
      scratch, 2,
      "  model: resnet50\n  times: {forward: 60 ms, backward: 130 ms, optimizer: 9 ms}");
  Training alone = scenario.training;
  alone.strategy = Strategy::none;
  const StepMetrics metrics = predict(model_of(scenario), alone).metrics;
  CHECK(in_ms(metrics.forward) == Approx(60).epsilon(0.01));
  CHECK(in_ms(metrics.backward) == Approx(130).epsilon(0.01));
  CHECK(in_ms(metrics.optimizer) == Approx(9).epsilon(0.01));
}

TEST_CASE("one measured time leaves the others to the laws", "[scenarios][workload_reader]") {
  const Scratch scratch;
  const auto alone = [](const Scenario& scenario) {
    Training training = scenario.training;
    training.strategy = Strategy::none;
    return predict(model_of(scenario), training).metrics;
  };
  const std::string model = "  model: resnet50\n  image: 224";
  const StepMetrics laws = alone(scenario_with(scratch, 2, model));
  const StepMetrics timed = alone(scenario_with(scratch, 2, model + "\n  times: {forward: 60 ms}"));
  CHECK(in_ms(timed.forward) == Approx(60).epsilon(0.01));
  CHECK(in_ms(timed.backward) == Approx(in_ms(laws.backward)).epsilon(0.01));
  CHECK(in_ms(timed.optimizer) == Approx(in_ms(laws.optimizer)).epsilon(0.01));
}

}  // namespace
}  // namespace ddpsim
