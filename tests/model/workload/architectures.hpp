#pragma once

#include "model/workload/architecture.hpp"

namespace ddpsim::architectures {

using Family = TransformerShape::Family;

inline const TransformerShape cs336_small{Family::cs336, 12, 768, 3072, 12, 0, 10000, 0};
inline const TransformerShape cs336_xl_2025{Family::cs336, 48, 1600, 6400, 25, 0, 10000, 0};
inline const TransformerShape gpt2_small{Family::gpt2, 12, 768, 3072, 12, 0, 50257, 1024};
inline const TransformerShape bert_base{Family::bert, 12, 768, 3072, 12, 0, 30522, 512};
inline const TransformerShape llama2_7b{Family::llama, 32, 4096, 11008, 32, 0, 32000, 0};
inline const ResNetShape resnet18{{2, 2, 2, 2}, false, 1000};
inline const ResNetShape resnet50{{3, 4, 6, 3}, true, 1000};
inline const VggShape vgg16{
    {64, 64, 0, 128, 128, 0, 256, 256, 256, 0, 512, 512, 512, 0, 512, 512, 512, 0}, 1000};
inline const MlpShape perceptron{{512, 1024, 1024, 1024, 10}, true};

inline Workload build(const Architecture& architecture, int batch = 2, int sequence = 16) {
  WorkloadSize size;
  size.batch = batch;
  size.sequence = sequence;
  return build_workload("net", architecture, size);
}

inline std::vector<Workload> one_of_each_family(int batch = 2) {
  std::vector<Workload> workloads;
  for (const Architecture& architecture : std::vector<Architecture>{
           cs336_small, gpt2_small, bert_base, llama2_7b, resnet18, resnet50, vgg16, perceptron})
    workloads.push_back(build(architecture, batch));
  return workloads;
}

/// A pass of a layer.
using KernelsOf = std::vector<Kernel> Layer::*;

/// Multiplications and additions of all products in a pass.
inline std::int64_t multiplied(const Workload& workload, KernelsOf pass) {
  std::int64_t sum = 0;
  for (const Layer& layer : workload.layers)
    for (const Kernel& kernel : layer.*pass)
      if (kernel.gemm)
        sum += 2 * kernel.gemm->m * kernel.gemm->n * kernel.gemm->k * kernel.gemm->batch;
  return sum;
}

}  // namespace ddpsim::architectures
