#include "backend/nccl/nccl_communicator.hpp"

#include <cstring>
#include <thread>

#include <fmt/format.h>

#include "backend/device_error.hpp"
#include "backend/nccl/cuda_check.hpp"

namespace ddpsim {
namespace {

ncclDataType_t nccl_type(DType type) {
  switch (type) {
    case DType::bf16:
      return ncclBfloat16;
    case DType::fp16:
      return ncclFloat16;
    default:
      return ncclFloat32;
  }
}

std::string one_line(const char* text) {
  std::string line = text == nullptr ? "" : text;
  return line.substr(0, line.find('\n'));
}

/// `communicator` may be null.
void check_result(ncclResult_t result, const char* call, int line, ncclComm_t communicator) {
  if (result != ncclSuccess && result != ncclInProgress)
    fail_call(call, __FILE_NAME__, line,
              fmt::format("{} ({})", ncclGetErrorString(result),
                          one_line(ncclGetLastError(communicator))));
}

}  // namespace

int nccl_version() {
  int version = 0;
  check_result(ncclGetVersion(&version), "ncclGetVersion", __LINE__, nullptr);
  return version;
}

std::vector<std::byte> make_nccl_id() {
  ncclUniqueId id;
  check_result(ncclGetUniqueId(&id), "ncclGetUniqueId", __LINE__, nullptr);
  std::vector<std::byte> bytes(sizeof(id));
  std::memcpy(bytes.data(), &id, sizeof(id));
  return bytes;
}

void NcclCommunicator::connect(std::span<const std::byte> bytes, int rank, int ranks, int channels,
                               cudaStream_t stream) {
  ncclUniqueId id;
  if (bytes.size() != sizeof(id))
    throw DeviceError(fmt::format("NCCL's id has {} bytes, got {}", sizeof(id), bytes.size()));
  std::memcpy(&id, bytes.data(), sizeof(id));
  abort();
  rank_ = rank;
  stream_ = stream;
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  if (channels > 0) {
    config.minCTAs = 1;
    config.maxCTAs = channels;
  }
  settle(ncclCommInitRankConfig(&communicator_, ranks, id, rank, &config), "ncclCommInitRankConfig",
         __LINE__);
}

void NcclCommunicator::all_reduce(void* values, std::int64_t count, DType type) {
  settle(ncclAllReduce(values, values, static_cast<std::size_t>(count), nccl_type(type), ncclSum,
                       communicator_, stream_),
         "ncclAllReduce", __LINE__);
}

void NcclCommunicator::broadcast(void* bytes, Bytes size) {
  settle(ncclBroadcast(bytes, bytes, static_cast<std::size_t>(size.count), ncclInt8, 0,
                       communicator_, stream_),
         "ncclBroadcast", __LINE__);
}

void NcclCommunicator::all_gather(void* parts, Bytes size) {
  const auto count = static_cast<std::size_t>(size.count);
  settle(ncclAllGather(static_cast<std::byte*>(parts) + rank_ * size.count, parts, count, ncclInt8,
                       communicator_, stream_),
         "ncclAllGather", __LINE__);
}

void NcclCommunicator::reduce_scatter(void* parts, std::int64_t count, DType type) {
  settle(ncclReduceScatter(
             parts, static_cast<std::byte*>(parts) + rank_ * count * size_of(type).count,
             static_cast<std::size_t>(count), nccl_type(type), ncclSum, communicator_, stream_),
         "ncclReduceScatter", __LINE__);
}

void NcclCommunicator::exchange(const void* from, void* to, Bytes size) {
  const auto count = static_cast<std::size_t>(size.count);
  check(ncclGroupStart(), "ncclGroupStart", __LINE__);
  const ncclResult_t sent = ncclSend(from, count, ncclInt8, 0, communicator_, stream_);
  const ncclResult_t received = ncclRecv(to, count, ncclInt8, 0, communicator_, stream_);
  const ncclResult_t ended = ncclGroupEnd();  // also after an error: an open group takes no abort
  check(sent, "ncclSend", __LINE__);
  check(received, "ncclRecv", __LINE__);
  settle(ended, "ncclGroupEnd", __LINE__);
}

std::string NcclCommunicator::failure() const {
  if (communicator_ == nullptr) return "";
  ncclResult_t state = ncclSuccess;
  ncclCommGetAsyncError(communicator_, &state);
  if (state == ncclSuccess || state == ncclInProgress) return "";
  return fmt::format("NCCL: {} ({})", ncclGetErrorString(state),
                     one_line(ncclGetLastError(communicator_)));
}

void NcclCommunicator::abort() {
  if (communicator_ == nullptr) return;
  ncclCommAbort(communicator_);
  communicator_ = nullptr;
}

void NcclCommunicator::check(ncclResult_t result, const char* call, int line) const {
  check_result(result, call, line, communicator_);
}

/// Until the communicator has taken the call: it does not block.
void NcclCommunicator::settle(ncclResult_t result, const char* call, int line) const {
  check(result, call, line);
  const auto deadline = std::chrono::steady_clock::now() + timeout_;
  while (result == ncclInProgress) {
    std::this_thread::yield();
    check(ncclCommGetAsyncError(communicator_, &result), call, line);
    check(result, call, line);
    if (std::chrono::steady_clock::now() > deadline)
      fail_call(call, __FILE_NAME__, line,
                fmt::format("no answer within {:g} s; a rank may be gone",
                            static_cast<double>(timeout_.count()) / 1000));
  }
}

}  // namespace ddpsim
