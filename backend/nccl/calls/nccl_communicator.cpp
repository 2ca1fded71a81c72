#include "backend/nccl/calls/nccl_communicator.hpp"

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <future>
#include <memory>
#include <stdexcept>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "backend/device_error.hpp"
#include "backend/nccl/calls/cuda_check.hpp"

namespace ddpsim {
namespace {

ncclDataType_t nccl_type(DType type) {
  switch (type) {
    case DType::bf16:
      return ncclBfloat16;
    case DType::fp16:
      return ncclFloat16;
    case DType::fp32:
    case DType::tf32:
      return ncclFloat32;
    case DType::fp64:
    case DType::complex64:
    case DType::complex128:
    case DType::fp8_e4m3:
    case DType::fp8_e5m2:
      break;
  }
  throw std::invalid_argument(fmt::format("the nccl backend reduces no {}", name_of(type)));
}

std::string one_line(const char* text) {
  std::string line = text == nullptr ? "" : text;
  return line.substr(0, line.find('\n'));
}

/// `communicator` may be null.
void check_result(ncclResult_t result, const char* call, int line, ncclComm_t communicator) {
  if (result != ncclSuccess)
    fail_call(call, __FILE_NAME__, line,
              fmt::format("{} ({})", ncclGetErrorString(result),
                          one_line(ncclGetLastError(communicator))));
}

/// Made by a thread of its own, for it waits for every rank. One that is made too late is aborted
/// there.
ncclComm_t made_within(std::chrono::milliseconds timeout, ncclUniqueId id, int rank, int ranks,
                       ncclConfig_t config) {
  // All connections of collectives are made now, so that no collective waits for a rank that is
  // gone. Send and receive connect when first used, here a rank with itself.
  setenv("NCCL_RUNTIME_CONNECT", "0", 1);
  int device = 0;
  CHECKED(cudaGetDevice(&device));
  const auto late = std::make_shared<std::atomic<bool>>(false);
  std::packaged_task<std::pair<ncclResult_t, ncclComm_t>()> make([=]() mutable {
    ncclComm_t made = nullptr;
    if (cudaSetDevice(device) != cudaSuccess) return std::pair(ncclUnhandledCudaError, made);
    const ncclResult_t result = ncclCommInitRankConfig(&made, ranks, id, rank, &config);
    if (*late && made != nullptr) ncclCommAbort(made);
    return std::pair(result, made);
  });
  auto making = make.get_future();
  std::thread(std::move(make)).detach();
  if (making.wait_for(timeout) != std::future_status::ready) {
    *late = true;
    fail_call("ncclCommInitRankConfig", __FILE_NAME__, __LINE__,
              fmt::format("no answer within {:g} s; a rank may be gone",
                          static_cast<double>(timeout.count()) / 1000));
  }
  const auto [result, made] = making.get();
  check_result(result, "ncclCommInitRankConfig", __LINE__, nullptr);
  return made;
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
  config.blocking = 1;
  if (channels > 0) {
    config.minCTAs = 1;
    config.maxCTAs = channels;
  }
  communicator_ = made_within(timeout_, id, rank, ranks, config);
}

void NcclCommunicator::all_reduce(void* values, std::int64_t count, DType type) {
  check(ncclAllReduce(values, values, static_cast<std::size_t>(count), nccl_type(type), ncclSum,
                      communicator_, stream_),
        "ncclAllReduce", __LINE__);
}

void NcclCommunicator::broadcast(void* bytes, Bytes size) {
  check(ncclBroadcast(bytes, bytes, static_cast<std::size_t>(size.count), ncclInt8, 0,
                      communicator_, stream_),
        "ncclBroadcast", __LINE__);
}

void NcclCommunicator::all_gather(void* parts, Bytes size) {
  const auto count = static_cast<std::size_t>(size.count);
  check(ncclAllGather(static_cast<std::byte*>(parts) + rank_ * size.count, parts, count, ncclInt8,
                      communicator_, stream_),
        "ncclAllGather", __LINE__);
}

void NcclCommunicator::reduce_scatter(void* parts, std::int64_t count, DType type) {
  check(ncclReduceScatter(
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
  check(ended, "ncclGroupEnd", __LINE__);
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

}  // namespace ddpsim
