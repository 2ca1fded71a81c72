#include "backend/run/backends.hpp"

#include "backend/device/cuda/gpu_module.hpp"

namespace ddpsim {
namespace {

std::string nothing() {
  return "";
}

std::string missing_for_nccl() {
  // A module that was added after this build counts as well.
  if (DDPSIM_NCCL_BACKEND || has_module("gpu")) return look_for_gpus().problem;
  std::string text;
  if (!DDPSIM_HAS_CUDA)
    text = "nvcc and the CUDA toolkit were not found, or left out, when this was built";
  if (!DDPSIM_HAS_NCCL)
    text += std::string(text.empty() ? "" : "; ") + "NCCL was not found when this was built";
  return text.empty() ? "cuBLAS was not found when this was built" : text;
}

}  // namespace

std::vector<BackendStatus> backends() {
  return {{"gloo", "CPUs over TCP, a process per rank", nothing},
          {"threads", "CPUs over TCP, a thread per rank: no set-up at all", nothing},
          {"nccl", "NVIDIA GPUs, a process per rank", missing_for_nccl}};
}

}  // namespace ddpsim
