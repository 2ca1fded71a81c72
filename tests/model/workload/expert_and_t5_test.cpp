#include <numeric>
#include <sstream>
#include <string>
#include <vector>

#include <catch2/catch.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tests/model/workload/architectures.hpp"
#include "tests/torch_oracle.hpp"

using namespace ddpsim;
using namespace ddpsim::architectures;

namespace {

constexpr T5Shape t5_small{
    .layers = 6, .d_model = 512, .d_ff = 2048, .heads = 8, .vocabulary = 32128};
constexpr T5Shape little_t5{.layers = 2,
                            .decoder_layers = 3,
                            .d_model = 64,
                            .d_ff = 160,
                            .heads = 4,
                            .head_size = 24,
                            .vocabulary = 500,
                            .position_buckets = 16,
                            .decoder_sequence = 24};
constexpr MixtralShape mixtral_8x7b{.layers = 32,
                                    .d_model = 4096,
                                    .d_ff = 14336,
                                    .heads = 32,
                                    .kv_heads = 8,
                                    .vocabulary = 32000,
                                    .experts = 8,
                                    .experts_per_token = 2};
constexpr MixtralShape little_mixtral{.layers = 2,
                                      .d_model = 64,
                                      .d_ff = 176,
                                      .heads = 4,
                                      .kv_heads = 2,
                                      .vocabulary = 500,
                                      .experts = 4,
                                      .experts_per_token = 2};

Bytes saved_by_autograd(const Workload& workload) {
  Bytes sum;
  for (const Layer& layer : workload.layers)
    for (const ModuleMemory& module : layer.memory) sum += module.kept;
  return sum;
}

Bytes moved(const Workload& workload, KernelsOf pass) {
  Bytes sum;
  for (const Layer& layer : workload.layers)
    for (const Kernel& kernel : layer.*pass) sum += kernel.traffic;
  return sum;
}

std::vector<std::string> arriving_names(const Workload& workload) {
  std::vector<std::string> found;
  for (const int index : arrival_order(workload))
    found.push_back(workload.parameters[static_cast<std::size_t>(index)].name);
  return found;
}

WorkloadSize of_tokens(DType dtype, int batch, int sequence) {
  WorkloadSize size;
  size.batch = batch;
  size.sequence = sequence;
  size.dtype = size.compute = dtype;
  return size;
}

}  // namespace

TEST_CASE("T5 and Mixtral have their published elements", "[model][expert_and_t5]") {
  // T5: keras-hub's t5_presets.py; the large one also in google-research's issue 326, with 388
  // tensors, where the table of relative positions is one per stack too. 3B: 32 heads of 128 on a
  // stream of 1024. With v = 32128, i = heads * 64 = d and L blocks each way:
  //     v d + L (4 d i + 2 d ff + 2 d) + L (8 d i + 2 d ff + 3 d) + 2 (32 heads + d)
  const auto t5 = [](int layers, int width, int inner, int heads, int head_size = 0) {
    T5Shape shape = t5_small;
    shape.layers = layers;
    shape.d_model = width;
    shape.d_ff = inner;
    shape.heads = heads;
    shape.head_size = head_size;
    return build(shape);
  };
  CHECK(build(t5_small).elements() == 60'506'624);
  CHECK(t5(12, 768, 3072, 12).elements() == 222'903'552);
  CHECK(t5(24, 1024, 4096, 16).elements() == 737'668'096);
  CHECK(t5(24, 1024, 16384, 32, 128).elements() == 2'851'598'336);
  // A block has 4 matrices of attention, 2 of feed-forward and 2 gains, in the decoder 10 and 3.
  CHECK(build(t5_small).parameters.size() == 6 * 8 + 6 * 13 + 2 * 2 + 1);
  // Mixtral: keras-hub's mixtral_presets.py. 2 * 32000 d + d + 32 (2 d^2 + 2 d 1024 + 8 d +
  // 8 * 3 d ff + 2 d), d = 4096, ff = 14336.
  const Workload mixtral = build(mixtral_8x7b);
  CHECK(mixtral.elements() == 46'702'792'704);
  CHECK(mixtral.parameters.size() == 32 * (4 + 1 + 24 + 2) + 3);
}

TEST_CASE("T5 and Mixtral are registered, keep activations and get gradients as in PyTorch",
          "[model][expert_and_t5][oracle]") {
  struct Question {
    std::string numbers;  ///< as the oracle takes them
    Architecture architecture;
    WorkloadSize size;
  };
  T5Shape even = little_t5;  // the defaults
  even.decoder_layers = even.head_size = even.decoder_sequence = 0;
  T5Shape single = little_t5;
  single.layers = single.decoder_layers = 1;
  std::vector<Question> questions;
  for (const DType dtype : {DType::fp32, DType::bf16}) {
    const auto ask = [&](const std::string& numbers, const Architecture& architecture) {
      questions.push_back({numbers, architecture, of_tokens(dtype, 3, 40)});
    };
    ask("t5 3 40 24 2 3 64 160 4 24 500 16", little_t5);
    ask("t5 3 40 40 2 2 64 160 4 16 500 16", even);
    ask("t5 3 40 24 1 1 64 160 4 24 500 16", single);
    ask("mixtral 3 40 2 500 64 176 4 2 4 2", little_mixtral);
  }
  std::string text;
  for (const Question& question : questions)
    text += fmt::format("{} {}\n", name_of(question.size.dtype), question.numbers);
  const auto answers = ask_torch("model/workload/expert_and_t5_oracle.py", text);
  if (!answers) return;
  std::istringstream lines(*answers);
  for (const Question& question : questions) {
    CAPTURE(name_of(question.size.dtype), question.numbers);
    const Workload workload = build_workload("net", question.architecture, question.size);
    std::string line;
    REQUIRE(std::getline(lines, line));
    std::istringstream words(line);
    std::int64_t saved = 0;
    std::size_t parameters = 0;
    words >> saved >> parameters;
    CHECK(static_cast<double>(saved_by_autograd(workload).count) ==
          Approx(static_cast<double>(saved)).epsilon(0.02));
    REQUIRE(workload.parameters.size() == parameters);
    for (const Parameter& parameter : workload.parameters) {
      std::string name, shape;
      words >> name >> shape;
      CHECK(parameter.name == name);
      CHECK(fmt::format("{}", fmt::join(parameter.shape, "x")) == shape);
    }
    std::vector<std::string> arrived(parameters);
    for (std::string& name : arrived) words >> name;
    CHECK(arriving_names(workload) == arrived);
  }
}

TEST_CASE("T5's shared table is complete at the very end, its decoder before its encoder",
          "[model][expert_and_t5]") {
  const std::vector<std::string> order = arriving_names(build(t5_small));
  CHECK(order.front() == "decoder.final_layer_norm.weight");
  CHECK(order.back() == "shared.weight");
  // The decoder's 6 * 13 + 2 tensors, then the encoder's.
  CHECK(order.at(6 * 13 + 2) == "encoder.final_layer_norm.weight");
  CHECK(build(t5_small).parameters.front().layer == 0);
}

TEST_CASE("T5 multiplies each weight with the tokens that meet it", "[model][expert_and_t5]") {
  // 3 samples of 40 and 24 tokens; 4 heads of 24 are 96 wide, on a stream of 64.
  const std::int64_t source = 3 * 40, target = 3 * 24, matrix = 64 * 96, feed = 2 * 64 * 160;
  const std::int64_t weights = 2 * source * (4 * matrix + feed)          // encoder
                               + 3 * target * (4 * matrix + feed)        // decoder by itself
                               + 3 * (2 * target + 2 * source) * matrix  // q and o; k and v
                               + target * 500 * 64;                      // logits
  const std::int64_t scores = 2 * 3 * 96 * (2 * 40 * 40 + 3 * 24 * 24 + 3 * 24 * 40);
  const Workload workload = build(little_t5, 3, 40);
  CHECK(multiplied(workload, &Layer::forward) == 2 * (weights + scores));
  CHECK(multiplied(workload, &Layer::backward) == 2 * multiplied(workload, &Layer::forward));
}

TEST_CASE("a Mixtral token is multiplied with two experts", "[model][expert_and_t5]") {
  // 12.9 billion parameters a token, says the paper: all, less six of eight experts.
  const std::int64_t expert = std::int64_t{3} * 4096 * 14336;
  const std::int64_t attention = 2 * (std::int64_t{4096} * 4096 + 4096 * 1024);
  const std::int64_t active = 32 * (2 * expert + attention + 8 * 4096) + 32000 * 4096;
  const Workload workload = build(mixtral_8x7b, 2, 64);
  // A query sees 32.5 of 64 keys on average, in two products; backward in five, which makes 162.5
  // rows of a product, rounded up.
  const std::int64_t queries = std::int64_t{32} * 2 * 64 * 4096;
  CHECK(multiplied(workload, &Layer::forward) == 2 * (active * 2 * 64 + queries * 65));
  CHECK(multiplied(workload, &Layer::backward) == 2 * (2 * active * 2 * 64 + queries * 163));
  // 128 tokens, two choices each: 32 rows for each of eight.
  int experts = 0;
  for (const Kernel& kernel : workload.layers[1].forward)
    if (kernel.name.ends_with(".w1")) {
      ++experts;
      REQUIRE(kernel.gemm);
      CHECK(*kernel.gemm == Gemm{32, 14336, 4096, 1});
    }
  CHECK(experts == 8);
}

TEST_CASE("choices that no expert number divides are all made", "[model][expert_and_t5]") {
  // 3 tokens and 2 choices among 4 experts: 2, 2, 1 and 1 rows.
  std::vector<std::int64_t> rows;
  const Workload workload = build(little_mixtral, 1, 3);
  for (const Kernel& kernel : workload.layers[1].forward)
    if (kernel.name.ends_with(".w2")) rows.push_back(kernel.gemm->m);
  CHECK(rows == std::vector<std::int64_t>{2, 2, 1, 1});
}

TEST_CASE("work of T5 and Mixtral grows with the batch", "[model][expert_and_t5]") {
  for (const Architecture& architecture : std::vector<Architecture>{little_t5, little_mixtral}) {
    const Workload one = build(architecture, 1), two = build(architecture, 2),
                   three = build(architecture, 3);
    CHECK_NOTHROW(check(two));
    for (const KernelsOf pass : {&Layer::forward, &Layer::backward}) {
      CHECK(multiplied(two, pass) == 2 * multiplied(one, pass));
      CHECK(moved(two, pass) - moved(one, pass) == moved(three, pass) - moved(two, pass));
    }
  }
}

TEST_CASE("a T5 or Mixtral that cannot be built is refused by name", "[model][expert_and_t5]") {
  const auto refuses = [](const Architecture& architecture, const WorkloadSize& size,
                          const std::string& about) {
    CHECK_THROWS_WITH(build_workload("net", architecture, size),
                      Catch::Contains("net: ") && Catch::Contains(about));
  };
  const auto t5 = [](auto member, int value) {
    T5Shape shape = t5_small;
    shape.*member = value;
    return shape;
  };
  const auto mixtral = [](auto member, int value) {
    MixtralShape shape = little_mixtral;
    shape.*member = value;
    return shape;
  };
  refuses(t5(&T5Shape::layers, 0), {}, "layers must be positive");
  refuses(t5(&T5Shape::heads, 7), {}, "7 heads do not divide a d_model of 512");
  refuses(t5(&T5Shape::decoder_sequence, -1), {}, "decoder_sequence must not be negative, got -1");
  refuses(t5(&T5Shape::position_buckets, 0), {}, "position_buckets must be positive");
  refuses(mixtral(&MixtralShape::experts, 0), {1, 16}, "experts must be positive");
  refuses(mixtral(&MixtralShape::experts_per_token, 5), {1, 16},
          "a token cannot take 5 of 4 experts");
  refuses(mixtral(&MixtralShape::kv_heads, 3), {1, 16}, "3 kv_heads do not divide 4 heads");
  refuses(little_mixtral, {1, 1}, "leave some of 4 experts without any");
  CHECK_NOTHROW(build_workload("net", little_mixtral, {1, 2}));
}
