#pragma once

#include <chrono>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include <cuda_runtime.h>
#include <nccl.h>

#include "backend/device/cuda/gpu.hpp"

namespace ddpsim {

/// NCCL's version, as it numbers them. Throws DeviceError.
int nccl_version();
/// What rank 0 makes, and every rank connects with. Throws DeviceError.
std::vector<std::byte> make_nccl_id();

/// NCCL's communicators of one rank, and the calls on them; see Gpu.
///
/// Its calls return once their work is enqueued, as PyTorch's do. (Of a communicator that does not
/// block, NCCL 2.28 starts a thread for every call: 62 us of the host's time on an H200.) Only the
/// making of one waits for other ranks.
class NcclCommunicators {
 public:
  explicit NcclCommunicators(std::chrono::milliseconds timeout) : timeout_(timeout) {}
  ~NcclCommunicators() { abort(); }
  NcclCommunicators(const NcclCommunicators&) = delete;
  NcclCommunicators& operator=(const NcclCommunicators&) = delete;

  void connect(std::span<const std::byte> id, int rank, int ranks, int channels);
  int split(int colour, int place);
  void all_reduce(const RanksCall& call, bool mean, cudaStream_t stream);
  void broadcast(const RanksCall& call, int root, cudaStream_t stream);
  void all_gather(const RanksCall& call, cudaStream_t stream);
  void reduce_scatter(const RanksCall& call, bool mean, cudaStream_t stream);
  void exchange(int communicator, std::span<const GpuMessage> messages, cudaStream_t stream);

  /// What went wrong in the work given so far, in one line; empty: nothing known.
  std::string failure() const;
  void abort();

 private:
  ncclComm_t of(int communicator) const {
    return communicators_.at(static_cast<std::size_t>(communicator));
  }

  std::chrono::milliseconds timeout_;
  std::vector<ncclComm_t> communicators_;  ///< null: this rank has no part in it
};

}  // namespace ddpsim
