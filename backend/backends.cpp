#include "backend/backends.hpp"

namespace ddpsim {
namespace {

std::string join(const std::vector<std::string>& parts) {
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "" : "; ") + part;
  return text;
}

}  // namespace

std::vector<BackendStatus> backends() {
  std::vector<std::string> nccl{"not part of ddpsim yet"};
  if (!DDPSIM_HAS_CUDA) nccl.emplace_back("the CUDA toolkit was not found when this was built");
  if (!DDPSIM_HAS_NCCL) nccl.emplace_back("NCCL was not found when this was built");
  return {{"gloo", "CPUs over TCP, a process per rank", ""},
          {"threads", "CPUs over TCP, a thread per rank: no set-up at all", ""},
          {"nccl", "NVIDIA GPUs", join(nccl)}};
}

}  // namespace ddpsim
