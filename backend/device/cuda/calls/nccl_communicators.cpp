#include "backend/device/cuda/calls/nccl_communicators.hpp"

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <future>
#include <memory>
#include <stdexcept>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "backend/device/cuda/calls/cuda_check.hpp"
#include "backend/device_error.hpp"

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

std::size_t bytes_of(const RanksCall& call) {
  return static_cast<std::size_t>(call.count * size_of(call.type).count);
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

/// What `make` makes, on a thread of its own, for it waits for every rank. One that is made too
/// late is aborted there.
ncclComm_t made_within(std::chrono::milliseconds timeout, const char* call,
                       std::function<ncclResult_t(ncclComm_t*)> make) {
  int device = 0;
  CHECKED(cudaGetDevice(&device));
  const auto late = std::make_shared<std::atomic<bool>>(false);
  std::packaged_task<std::pair<ncclResult_t, ncclComm_t>()> task(
      [device, late, make = std::move(make)] {
        ncclComm_t made = nullptr;
        if (cudaSetDevice(device) != cudaSuccess) return std::pair(ncclUnhandledCudaError, made);
        const ncclResult_t result = make(&made);
        if (*late && made != nullptr) ncclCommAbort(made);
        return std::pair(result, made);
      });
  auto making = task.get_future();
  std::thread(std::move(task)).detach();
  if (making.wait_for(timeout) != std::future_status::ready) {
    *late = true;
    fail_call(call, __FILE_NAME__, __LINE__,
              fmt::format("no answer within {:g} s; a rank may be gone",
                          static_cast<double>(timeout.count()) / 1000));
  }
  const auto [result, made] = making.get();
  check_result(result, call, __LINE__, nullptr);
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

void NcclCommunicators::connect(std::span<const std::byte> bytes, int rank, int ranks,
                                int channels) {
  ncclUniqueId id;
  if (bytes.size() != sizeof(id))
    throw DeviceError(fmt::format("NCCL's id has {} bytes, got {}", sizeof(id), bytes.size()));
  std::memcpy(&id, bytes.data(), sizeof(id));
  abort();
  // All connections of collectives are made now, so that no collective waits for a rank that is
  // gone. Send and receive connect when first used.
  setenv("NCCL_RUNTIME_CONNECT", "0", 1);
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 1;
  if (channels > 0) {
    config.minCTAs = 1;
    config.maxCTAs = channels;
  }
  communicators_.push_back(
      made_within(timeout_, "ncclCommInitRankConfig", [=](ncclComm_t* made) mutable {
        return ncclCommInitRankConfig(made, ranks, id, rank, &config);
      }));
}

/// With the settings of the one of all ranks.
int NcclCommunicators::split(int colour, int place) {
  const int its = colour < 0 ? NCCL_SPLIT_NOCOLOR : colour;
  communicators_.push_back(
      made_within(timeout_, "ncclCommSplit", [all = of(0), its, place](ncclComm_t* made) {
        return ncclCommSplit(all, its, place, made, nullptr);
      }));
  return static_cast<int>(communicators_.size()) - 1;
}

void NcclCommunicators::all_reduce(const RanksCall& call, bool mean, cudaStream_t stream) {
  const ncclComm_t communicator = of(call.communicator);
  check_result(ncclAllReduce(call.from, call.to, static_cast<std::size_t>(call.count),
                             nccl_type(call.type), mean ? ncclAvg : ncclSum, communicator, stream),
               "ncclAllReduce", __LINE__, communicator);
}

void NcclCommunicators::broadcast(const RanksCall& call, int root, cudaStream_t stream) {
  const ncclComm_t communicator = of(call.communicator);
  check_result(
      ncclBroadcast(call.from, call.to, bytes_of(call), ncclInt8, root, communicator, stream),
      "ncclBroadcast", __LINE__, communicator);
}

void NcclCommunicators::all_gather(const RanksCall& call, cudaStream_t stream) {
  const ncclComm_t communicator = of(call.communicator);
  check_result(ncclAllGather(call.from, call.to, bytes_of(call), ncclInt8, communicator, stream),
               "ncclAllGather", __LINE__, communicator);
}

void NcclCommunicators::reduce_scatter(const RanksCall& call, bool mean, cudaStream_t stream) {
  const ncclComm_t communicator = of(call.communicator);
  check_result(
      ncclReduceScatter(call.from, call.to, static_cast<std::size_t>(call.count),
                        nccl_type(call.type), mean ? ncclAvg : ncclSum, communicator, stream),
      "ncclReduceScatter", __LINE__, communicator);
}

void NcclCommunicators::exchange(int number, std::span<const GpuMessage> messages,
                                 cudaStream_t stream) {
  const ncclComm_t communicator = of(number);
  check_result(ncclGroupStart(), "ncclGroupStart", __LINE__, communicator);
  ncclResult_t first = ncclSuccess;  // that is none
  for (const GpuMessage& each : messages) {
    const auto count = static_cast<std::size_t>(each.size.count);
    const ncclResult_t result =
        each.is_received ? ncclRecv(each.data, count, ncclInt8, each.peer, communicator, stream)
                         : ncclSend(each.data, count, ncclInt8, each.peer, communicator, stream);
    if (first == ncclSuccess) first = result;
  }
  const ncclResult_t ended = ncclGroupEnd();  // also after an error: an open group takes no abort
  check_result(first, "ncclSend or ncclRecv", __LINE__, communicator);
  check_result(ended, "ncclGroupEnd", __LINE__, communicator);
}

std::string NcclCommunicators::failure() const {
  for (const ncclComm_t each : communicators_) {
    if (each == nullptr) continue;
    ncclResult_t state = ncclSuccess;
    ncclCommGetAsyncError(each, &state);
    if (state != ncclSuccess && state != ncclInProgress)
      return fmt::format("NCCL: {} ({})", ncclGetErrorString(state),
                         one_line(ncclGetLastError(each)));
  }
  return "";
}

/// Those that were made of the one of all ranks go first.
void NcclCommunicators::abort() {
  while (!communicators_.empty()) {
    if (communicators_.back() != nullptr) ncclCommAbort(communicators_.back());
    communicators_.pop_back();
  }
}

}  // namespace ddpsim
