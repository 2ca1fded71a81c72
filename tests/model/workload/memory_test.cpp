#include <sstream>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "tests/model/workload/architectures.hpp"
#include "tests/torch_oracle.hpp"

using namespace ddpsim;
using namespace ddpsim::architectures;

namespace {

Bytes kept(const Workload& workload) {
  Bytes sum;
  for (const Layer& layer : workload.layers)
    for (const ModuleMemory& module : layer.memory) sum += module.kept;
  return sum;
}

/// Every so many-th block is a checkpoint.
WorkloadSize with_checkpoints(WorkloadSize size, int every) {
  size.checkpointed = every;
  return size;
}

struct Question {
  DType dtype;
  std::string numbers;  ///< as memory_oracle.py takes them
  Architecture architecture;
  WorkloadSize size;
};

WorkloadSize sized(int batch, int length) {
  WorkloadSize size;
  size.batch = batch;
  size.sequence = size.image = length;
  return size;
}

}  // namespace

TEST_CASE("what is kept for backward is what PyTorch's autograd saves", "[model][memory][oracle]") {
  const std::vector<Question> questions{
      {DType::fp32, "cs336 3 64 2 128 512 4 0 1000",
       TransformerShape{Family::cs336, 2, 128, 512, 4, 0, 1000, 0}, sized(3, 64)},
      {DType::bf16, "cs336 3 64 2 128 512 4 0 1000",
       TransformerShape{Family::cs336, 2, 128, 512, 4, 0, 1000, 0}, sized(3, 64)},
      {DType::fp32, "llama 3 64 2 128 352 4 2 1000",
       TransformerShape{Family::llama, 2, 128, 352, 4, 2, 1000, 0}, sized(3, 64)},
      {DType::bf16, "llama 3 64 2 128 352 4 2 1000",
       TransformerShape{Family::llama, 2, 128, 352, 4, 2, 1000, 0}, sized(3, 64)},
      {DType::fp32, "gpt2 3 64 2 128 512 4 0 1000 128",
       TransformerShape{Family::gpt2, 2, 128, 512, 4, 0, 1000, 128}, sized(3, 64)},
      {DType::fp32, "bert 3 64 2 128 512 4 0 1000 128",
       TransformerShape{Family::bert, 2, 128, 512, 4, 0, 1000, 128}, sized(3, 64)},
      {DType::fp32, "resnet 2 64 1 10 1 2 1 1", ResNetShape{{1, 2, 1, 1}, true, 10}, sized(2, 64)},
      {DType::fp32, "resnet 2 64 0 10 2 2 1 1", ResNetShape{{2, 2, 1, 1}, false, 10}, sized(2, 64)},
      {DType::fp32, "vgg 2 64 10 16 16 0 32 0", VggShape{{16, 16, 0, 32, 0}, 10}, sized(2, 64)},
      {DType::fp32, "vit 2 64 16 2 128 512 4 10", VitShape{16, 2, 128, 512, 4, 10}, sized(2, 64)},
      {DType::fp32, "cs336/1 3 64 2 128 512 4 0 1000",
       TransformerShape{Family::cs336, 2, 128, 512, 4, 0, 1000, 0},
       with_checkpoints(sized(3, 64), 1)},
      {DType::bf16, "llama/1 3 64 2 128 352 4 2 1000",
       TransformerShape{Family::llama, 2, 128, 352, 4, 2, 1000, 0},
       with_checkpoints(sized(3, 64), 1)},
      {DType::fp32, "gpt2/2 3 64 3 128 512 4 0 1000 128",
       TransformerShape{Family::gpt2, 3, 128, 512, 4, 0, 1000, 128},
       with_checkpoints(sized(3, 64), 2)},
      {DType::fp32, "bert/1 3 64 2 128 512 4 0 1000 128",
       TransformerShape{Family::bert, 2, 128, 512, 4, 0, 1000, 128},
       with_checkpoints(sized(3, 64), 1)},
      {DType::fp32, "vit/2 2 64 16 2 128 512 4 10", VitShape{16, 2, 128, 512, 4, 10},
       with_checkpoints(sized(2, 64), 2)},
      {DType::fp32, "mlp 16 1 1 64 128 96 10", MlpShape{{64, 128, 96, 10}, true}, sized(16, 1)},
  };
  std::string text;
  for (const Question& question : questions)
    text += std::string(name_of(question.dtype)) + " " + question.numbers + "\n";
  const auto answers = ask_torch("model/workload/memory_oracle.py", text);
  if (!answers) return;
  std::istringstream lines(*answers);
  for (const Question& question : questions) {
    WorkloadSize size = question.size;
    size.dtype = size.compute = question.dtype;
    const Workload workload = build_workload("net", question.architecture, size);
    std::string line;
    REQUIRE(std::getline(lines, line));
    std::istringstream words(line);
    std::int64_t saved = 0, parameters = 0;
    words >> saved >> parameters;
    CAPTURE(name_of(question.dtype), question.numbers);
    // What is left out: the tables of Llama's rotary positions, and scalars.
    CHECK(static_cast<double>(kept(workload).count) ==
          Approx(static_cast<double>(saved)).epsilon(0.02));
    CHECK(workload.gradient_size() == Bytes{parameters});
    for (const Parameter& parameter : workload.parameters) {
      std::string name;
      words >> name;
      CHECK(parameter.name == name);
    }
  }
}
