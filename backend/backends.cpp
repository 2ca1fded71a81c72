#include "backend/backends.hpp"

#if DDPSIM_NCCL_BACKEND
#include "backend/nccl/cuda_gpu.hpp"
#endif

namespace ddpsim {
namespace {

std::string join(const std::vector<std::string>& parts) {
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "" : "; ") + part;
  return text;
}

}  // namespace

std::vector<BackendStatus> backends() {
  std::vector<std::string> nccl;
  if (!DDPSIM_HAS_CUDA)
    nccl.emplace_back("nvcc and the CUDA toolkit were not found when this was built");
  if (!DDPSIM_HAS_NCCL) nccl.emplace_back("NCCL was not found when this was built");
#if DDPSIM_NCCL_BACKEND
  if (const std::string missing = missing_gpu(); !missing.empty()) nccl.push_back(missing);
#endif
  return {{"gloo", "CPUs over TCP, a process per rank", ""},
          {"threads", "CPUs over TCP, a thread per rank: no set-up at all", ""},
          {"nccl", "NVIDIA GPUs", join(nccl)}};
}

}  // namespace ddpsim
