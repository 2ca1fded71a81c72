#pragma once

#include <chrono>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include <cuda_runtime.h>
#include <nccl.h>

#include "model/base/dtype.hpp"
#include "model/base/quantity.hpp"

namespace ddpsim {

/// NCCL's version, as it numbers them. Throws DeviceError.
int nccl_version();
/// What rank 0 makes, and every rank connects with. Throws DeviceError.
std::vector<std::byte> make_nccl_id();

/// NCCL's communicator of one rank, and the calls on it; see Gpu.
///
/// Its calls return once their work is enqueued, as PyTorch's do. (Of a communicator that does not
/// block, NCCL 2.28 starts a thread for every call: 62 us of the host's time on an H200.) Only the
/// making of one waits for other ranks.
class NcclCommunicator {
 public:
  explicit NcclCommunicator(std::chrono::milliseconds timeout) : timeout_(timeout) {}
  ~NcclCommunicator() { abort(); }
  NcclCommunicator(const NcclCommunicator&) = delete;
  NcclCommunicator& operator=(const NcclCommunicator&) = delete;

  /// Its collectives run on this stream, which must outlive the connection.
  void connect(std::span<const std::byte> id, int rank, int ranks, int channels,
               cudaStream_t stream);
  void all_reduce(void* values, std::int64_t count, DType type);
  void broadcast(void* bytes, Bytes size);
  void all_gather(void* parts, Bytes size);
  void reduce_scatter(void* parts, std::int64_t count, DType type);
  void exchange(const void* from, void* to, Bytes size);

  /// What went wrong in the work given so far, in one line; empty: nothing known.
  std::string failure() const;
  void abort();

 private:
  void check(ncclResult_t result, const char* call, int line) const;

  std::chrono::milliseconds timeout_;
  ncclComm_t communicator_ = nullptr;
  cudaStream_t stream_ = nullptr;
  int rank_ = 0;
};

}  // namespace ddpsim
