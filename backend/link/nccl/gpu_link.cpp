#include "backend/link/nccl/gpu_link.hpp"

#include <cstdlib>
#include <utility>

#include <fmt/format.h>

namespace ddpsim {

std::string description_of(const GpuLink& link, int ranks) {
  switch (link.mode) {
    case GpuLink::Mode::group:
      return ranks == 1 ? "one GPU" : "NCCL";
    case GpuLink::Mode::shared:
      return "one GPU shared by all ranks: gradients are real, times mean nothing";
    case GpuLink::Mode::loopback:
      return fmt::format(
          "loopback on one GPU: NCCL send and receive to itself of what a rank of {} moves",
          link.loopback);
  }
  return "";
}

void share_one_gpu(int rank) {
  setenv("NCCL_HOSTID", fmt::format("ddpsim-rank-{}", rank).c_str(), 1);
  for (const auto& [name, value] : {std::pair{"NCCL_NET", "Socket"},
                                    {"NCCL_SOCKET_IFNAME", "lo"},
                                    {"NCCL_PROTO", "Simple"},
                                    {"NCCL_MAX_CTAS", "4"},
                                    {"NCCL_RAS_ENABLE", "0"},
                                    {"NCCL_MNNVL_ENABLE", "0"},
                                    {"NCCL_MULTI_RANK_GPU_ENABLE", "1"}})
    setenv(name, value, 0);
}

}  // namespace ddpsim
