// The calls. Every one is checked; nothing here decides anything.
//
// NCCL's communicator does not block, so that it can be aborted; a call that is still in progress is
// polled.

#include "backend/nccl/cuda_gpu.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <thread>

#include <cublas_v2.h>
#include <cuda_runtime.h>
#include <fmt/format.h>
#include <nccl.h>
#include <nvtx3/nvToolsExt.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backend/device_error.hpp"
#include "backend/nccl/comm_hook_kernels.hpp"
#include "backend/nccl/gpu_kernels.hpp"

namespace ddpsim {
namespace {

[[noreturn]] void fail(const char* call, int line, const std::string& what) {
  throw DeviceError(fmt::format("{}: {} (cuda_gpu.cpp:{})", call, what, line));
}

void check(cudaError_t error, const char* call, int line) {
  if (error == cudaSuccess) return;
  fail(call, line,
       error == cudaErrorNoKernelImageForDevice
           ? std::string("this build has no code for this GPU: configure with "
                         "-DCMAKE_CUDA_ARCHITECTURES=native and build again")
           : fmt::format("{} ({})", cudaGetErrorString(error), cudaGetErrorName(error)));
}
void check(cublasStatus_t status, const char* call, int line) {
  if (status != CUBLAS_STATUS_SUCCESS) fail(call, line, cublasGetStatusString(status));
}

#define CHECKED(call) check(call, #call, __LINE__)

cudaDataType_t cuda_type(DType type) {
  switch (type) {
    case DType::bf16:
      return CUDA_R_16BF;
    case DType::fp16:
      return CUDA_R_16F;
    default:
      return CUDA_R_32F;
  }
}

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

std::string dotted(int version) {
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

std::string uuid_text(const cudaUUID_t& uuid) {
  std::string text;
  for (const char byte : uuid.bytes)
    text += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  return text;
}

class CudaGpu : public Gpu {
 public:
  CudaGpu(int device, std::chrono::milliseconds timeout) : timeout_(timeout) {
    CHECKED(cudaSetDevice(device));
    cudaDeviceProp properties{};
    CHECKED(cudaGetDeviceProperties(&properties, device));
    int runtime = 0, driver = 0, nccl = 0, clock = 0, memory_clock = 0;
    CHECKED(cudaRuntimeGetVersion(&runtime));
    CHECKED(cudaDriverGetVersion(&driver));
    checked(ncclGetVersion(&nccl), "ncclGetVersion", __LINE__);
    CHECKED(cudaDeviceGetAttribute(&clock, cudaDevAttrClockRate, device));
    CHECKED(cudaDeviceGetAttribute(&memory_clock, cudaDevAttrMemoryClockRate, device));
    CHECKED(cublasCreate(&cublas_));
    int cublas = 0;
    CHECKED(cublasGetVersion(cublas_, &cublas));
    description_.name = properties.name;
    description_.uuid = uuid_text(properties.uuid);
    description_.multiprocessors = properties.multiProcessorCount;
    description_.memory = Bytes{static_cast<std::int64_t>(properties.totalGlobalMem)};
    description_.l2 = Bytes{properties.l2CacheSize};
    description_.versions =
        fmt::format("CUDA {} on a driver for {}, NCCL {}.{}.{}, cuBLAS {}, at most {} and {} MHz",
                    dotted(runtime), dotted(driver), nccl / 10000, nccl / 100 % 100, nccl % 100,
                    cublas, clock / 1000, memory_clock / 1000);
    // Streams of one priority, as PyTorch's are by default.
    CHECKED(cudaStreamCreateWithFlags(&compute_, cudaStreamNonBlocking));
    CHECKED(cudaStreamCreateWithFlags(&communication_, cudaStreamNonBlocking));
    CHECKED(cudaStreamCreateWithFlags(&aside_, cudaStreamNonBlocking));
    // GEMMs of two streams run at once, so each stream has a handle and a workspace.
    CHECKED(cublasCreate(&cublas_aside_));
    workspace_ = give_workspace(cublas_, compute_);
    workspace_aside_ = give_workspace(cublas_aside_, aside_);
    void* noted = nullptr;
    CHECKED(cudaMallocHost(&noted, sizeof(std::uint64_t)));
    clock_ = std::shared_ptr<void>(noted, [](void* memory) { cudaFreeHost(memory); });
    load_kernels();
  }

  ~CudaGpu() override {
    // Errors have no place to go.
    if (communicator_ != nullptr) ncclCommAbort(communicator_);
    for (const cudaEvent_t event : events_) cudaEventDestroy(event);
    cublasDestroy(cublas_);
    cublasDestroy(cublas_aside_);
    for (cudaStream_t stream : {compute_, communication_, aside_}) cudaStreamDestroy(stream);
  }

  GpuDescription description() const override { return description_; }

  std::shared_ptr<std::byte> allocate(Bytes size, const char* what) override {
    void* memory = nullptr;
    const auto wanted = static_cast<std::size_t>(std::max<std::int64_t>(size.count, 1));
    const cudaError_t error = cudaMalloc(&memory, wanted);
    if (error == cudaErrorMemoryAllocation) {
      cudaGetLastError();  // it is told here
      std::size_t free = 0, total = 0;
      CHECKED(cudaMemGetInfo(&free, &total));
      throw DeviceError(fmt::format(
          "out of GPU memory: {} would take {}, and {} of {} are free: take a smaller batch or "
          "model",
          what, to_string(size), to_string(Bytes{static_cast<std::int64_t>(free)}),
          to_string(Bytes{static_cast<std::int64_t>(total)})));
    }
    check(error, "cudaMalloc", __LINE__);
    return {static_cast<std::byte*>(memory), [](std::byte* each) { cudaFree(each); }};
  }

  void fill(void* values, std::int64_t count, DType type, std::uint64_t seed) override {
    if (count == 0) return;
    ddpsim::fill(on(Stream::compute), values, count, type, seed);
    CHECKED(cudaGetLastError());
  }

  void clear(Stream stream, void* values, Bytes size) override {
    CHECKED(cudaMemsetAsync(values, 0, static_cast<std::size_t>(size.count), stream_of(stream)));
  }

  void write(Stream stream, void* to, std::span<const float> values, DType type) override {
    const auto count = static_cast<std::int64_t>(values.size());
    std::vector<std::byte> raw(static_cast<std::size_t>(count * size_of(type).count));
    from_floats(values.data(), count, type, raw.data());
    // From pageable memory it returns once the values are in a buffer of the driver's.
    CHECKED(cudaMemcpyAsync(to, raw.data(), raw.size(), cudaMemcpyHostToDevice, stream_of(stream)));
  }

  std::vector<float> read(const void* values, std::int64_t count, DType type) override {
    for (cudaStream_t stream : {compute_, communication_, aside_})
      CHECKED(cudaStreamSynchronize(stream));
    std::vector<std::byte> raw(static_cast<std::size_t>(count * size_of(type).count));
    CHECKED(cudaMemcpy(raw.data(), values, raw.size(), cudaMemcpyDeviceToHost));
    std::vector<float> result(static_cast<std::size_t>(count));
    to_floats(raw.data(), count, type, result.data());
    return result;
  }

  void record(int event, Stream stream) override {
    CHECKED(cudaEventRecord(event_of(event), stream_of(stream)));
  }
  void wait(Stream stream, int event) override {
    CHECKED(cudaStreamWaitEvent(stream_of(stream), event_of(event), 0));
  }
  bool reached(int event) override {
    const cudaError_t state = cudaEventQuery(event_of(event));
    if (state == cudaErrorNotReady) {
      cudaGetLastError();  // CUDA keeps it as if it were an error
      return false;
    }
    check(state, "work on the GPU", __LINE__);
    return true;
  }
  Duration between(int earlier, int later) override {
    float milliseconds = 0;
    CHECKED(cudaEventElapsedTime(&milliseconds, event_of(earlier), event_of(later)));
    return from_seconds(static_cast<double>(milliseconds) / 1000);
  }

  void note_clock() override {
    ddpsim::note_clock(on(Stream::compute), static_cast<std::uint64_t*>(clock_.get()));
    CHECKED(cudaGetLastError());
  }
  std::uint64_t noted_clock() override {
    std::uint64_t value = 0;
    std::memcpy(&value, clock_.get(), sizeof(value));  // page-locked: the GPU wrote it here
    return value;
  }

  void gemm(const GemmCall& call) override {
    // Row-major C = A B is column-major C' = B' A'.
    const Gemm& g = call.gemm;
    const int m = static_cast<int>(g.m), n = static_cast<int>(g.n), k = static_cast<int>(g.k);
    const bool right_transposed = call.layout == GpuGemmLayout::nt;
    const bool left_transposed = call.layout == GpuGemmLayout::tn;
    const float one = 1, zero = 0;
    const cublasComputeType_t compute =
        call.type == DType::tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
    CHECKED(cublasGemmStridedBatchedEx(
        call.stream == Stream::aside ? cublas_aside_ : cublas_,
        right_transposed ? CUBLAS_OP_T : CUBLAS_OP_N, left_transposed ? CUBLAS_OP_T : CUBLAS_OP_N,
        n, m, k, &one, call.right, cuda_type(call.type), right_transposed ? k : n, g.k * g.n,
        call.left, cuda_type(call.type), left_transposed ? m : k, g.m * g.k, &zero, call.result,
        cuda_type(call.result_type), n, g.m * g.n, static_cast<int>(g.batch), compute,
        CUBLAS_GEMM_DEFAULT));
  }

  void scale(Stream stream, void* to, const void* from, std::int64_t count, DType type,
             float factor) override {
    if (count == 0) return;
    ddpsim::scale(on(stream), to, from, count, type, factor);
    CHECKED(cudaGetLastError());
  }

  void add(Stream stream, void* to, const void* from, std::int64_t count, DType type) override {
    if (count == 0) return;
    ddpsim::add(on(stream), to, from, count, type);
    CHECKED(cudaGetLastError());
  }

  void move(Stream stream, const void* from, void* to, Bytes traffic, Bytes longest) override {
    ddpsim::move(on(stream), from, to, traffic, longest);
    CHECKED(cudaGetLastError());
  }

  void normalise(const void* from, void* to, Bytes traffic, Bytes longest) override {
    ddpsim::normalise(on(Stream::compute), from, to, traffic, longest);
    CHECKED(cudaGetLastError());
  }

  void spin(Stream stream, Duration time) override {
    ddpsim::spin(on(stream), time);
    CHECKED(cudaGetLastError());
  }

  void update(const UpdateCall& call) override {
    ddpsim::update(on(call.stream), call);
    CHECKED(cudaGetLastError());
  }

  void convert(Stream stream, void* to, DType to_type, const void* from, DType from_type,
               std::int64_t count) override {
    if (count == 0) return;
    ddpsim::convert(on(stream), to, to_type, from, from_type, count);
    CHECKED(cudaGetLastError());
  }

  void subtract(Stream stream, void* to, const void* left, const void* right, std::int64_t count,
                DType type) override {
    if (count == 0) return;
    ddpsim::subtract(on(stream), to, left, right, count, type);
    CHECKED(cudaGetLastError());
  }

  void orthogonalize(Stream stream, void* matrix, std::int64_t rows, std::int64_t columns,
                     DType type, float epsilon) override {
    if (rows * columns == 0) return;
    ddpsim::orthogonalize(on(stream), matrix, rows, columns, type, epsilon);
    CHECKED(cudaGetLastError());
  }

  void observe(Stream stream, const QuantizeCall& call) override {
    clear(stream, call.scales, Bytes{2 * 4 * call.channels});
    ddpsim::observe(on(stream), call);
    CHECKED(cudaGetLastError());
  }

  void quantize(Stream stream, const QuantizeCall& call) override {
    ddpsim::quantize(on(stream), call);
    CHECKED(cudaGetLastError());
  }

  void dequantize(Stream stream, const QuantizeCall& call, int ranks, float factor) override {
    ddpsim::dequantize(on(stream), call, ranks, factor);
    CHECKED(cudaGetLastError());
  }

  std::vector<std::byte> make_id() override {
    ncclUniqueId id;
    checked(ncclGetUniqueId(&id), "ncclGetUniqueId", __LINE__);
    std::vector<std::byte> bytes(sizeof(id));
    std::memcpy(bytes.data(), &id, sizeof(id));
    return bytes;
  }

  void connect(std::span<const std::byte> bytes, int rank, int ranks, int channels) override {
    ncclUniqueId id;
    if (bytes.size() != sizeof(id))
      throw DeviceError(fmt::format("NCCL's id has {} bytes, got {}", sizeof(id), bytes.size()));
    std::memcpy(&id, bytes.data(), sizeof(id));
    abort();
    rank_ = rank;
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    if (channels > 0) {
      config.minCTAs = 1;
      config.maxCTAs = channels;
    }
    settled(ncclCommInitRankConfig(&communicator_, ranks, id, rank, &config),
            "ncclCommInitRankConfig", __LINE__);
  }

  void all_reduce(void* values, std::int64_t count, DType type) override {
    settled(ncclAllReduce(values, values, static_cast<std::size_t>(count), nccl_type(type), ncclSum,
                          communicator_, communication_),
            "ncclAllReduce", __LINE__);
  }

  void broadcast(void* bytes, Bytes size) override {
    settled(ncclBroadcast(bytes, bytes, static_cast<std::size_t>(size.count), ncclInt8, 0,
                          communicator_, communication_),
            "ncclBroadcast", __LINE__);
  }

  void all_gather(void* parts, Bytes size) override {
    const auto count = static_cast<std::size_t>(size.count);
    settled(ncclAllGather(static_cast<std::byte*>(parts) + rank_ * size.count, parts, count,
                          ncclInt8, communicator_, communication_),
            "ncclAllGather", __LINE__);
  }

  void reduce_scatter(void* parts, std::int64_t count, DType type) override {
    settled(ncclReduceScatter(parts,
                              static_cast<std::byte*>(parts) + rank_ * count * size_of(type).count,
                              static_cast<std::size_t>(count), nccl_type(type), ncclSum,
                              communicator_, communication_),
            "ncclReduceScatter", __LINE__);
  }

  void exchange(const void* from, void* to, Bytes size) override {
    const auto count = static_cast<std::size_t>(size.count);
    checked(ncclGroupStart(), "ncclGroupStart", __LINE__);
    const ncclResult_t sent = ncclSend(from, count, ncclInt8, 0, communicator_, communication_);
    const ncclResult_t received = ncclRecv(to, count, ncclInt8, 0, communicator_, communication_);
    const ncclResult_t ended = ncclGroupEnd();  // also after an error: an open group takes no abort
    checked(sent, "ncclSend", __LINE__);
    checked(received, "ncclRecv", __LINE__);
    settled(ended, "ncclGroupEnd", __LINE__);
  }

  std::string failure() override {
    if (communicator_ != nullptr) {
      ncclResult_t state = ncclSuccess;
      ncclCommGetAsyncError(communicator_, &state);
      if (state != ncclSuccess && state != ncclInProgress)
        return fmt::format("NCCL: {} ({})", ncclGetErrorString(state),
                           one_line(ncclGetLastError(communicator_)));
    }
    const cudaError_t error = cudaPeekAtLastError();
    return error == cudaSuccess || error == cudaErrorNotReady
               ? std::string()
               : fmt::format("CUDA: {} ({})", cudaGetErrorString(error), cudaGetErrorName(error));
  }

  void abort() override {
    if (communicator_ == nullptr) return;
    ncclCommAbort(communicator_);
    communicator_ = nullptr;
  }

  void push_range(const std::string& name) override { nvtxRangePushA(name.c_str()); }
  void pop_range() override { nvtxRangePop(); }

 private:
  /// Once each: CUDA loads a kernel when it is first launched, which may wait for the whole GPU. Also
  /// tells whether this build has code for this GPU at all.
  void load_kernels() {
    std::byte* memory = workspace_.get();
    for (const DType type : {DType::fp32, DType::bf16, DType::fp16}) {
      fill(memory, 64, type, 0);
      scale(Stream::compute, memory, memory, 64, type, 1);
      add(Stream::compute, memory, memory, 64, type);
      for (const Optimizer optimizer : {Optimizer::sgd, Optimizer::adam})
        update({optimizer, memory, memory, memory + 1024, memory + 2048, 64, type, 1});
      for (const DType from : {DType::fp32, DType::bf16, DType::fp16})
        convert(Stream::compute, memory, type, memory + 1024, from, 64);
      subtract(Stream::compute, memory, memory, memory, 64, type);
      orthogonalize(Stream::compute, memory, 8, 2, type, 0);
      const QuantizeCall call{memory,
                              64,
                              type,
                              64,
                              1,
                              reinterpret_cast<float*>(memory + 1024),
                              reinterpret_cast<std::uint8_t*>(memory + 2048)};
      observe(Stream::compute, call);
      quantize(Stream::compute, call);
      dequantize(Stream::compute, call, 1, 1);
    }
    move(Stream::compute, memory, memory, Bytes{4096}, Bytes{1 << 20});
    normalise(memory, memory, Bytes{8192}, Bytes{1 << 20});
    spin(Stream::compute, std::chrono::microseconds{1});
    note_clock();
    CHECKED(cudaStreamSynchronize(compute_));
  }

  /// What PyTorch gives it on Hopper.
  std::shared_ptr<std::byte> give_workspace(cublasHandle_t handle, cudaStream_t stream) {
    constexpr std::size_t size = 32 << 20;
    auto workspace = allocate(Bytes{size}, "cuBLAS's workspace");
    CHECKED(cublasSetStream(handle, stream));
    CHECKED(cublasSetWorkspace(handle, workspace.get(), size));
    return workspace;
  }

  static std::string one_line(const char* text) {
    std::string line = text == nullptr ? "" : text;
    return line.substr(0, line.find('\n'));
  }

  void checked(ncclResult_t result, const char* call, int line) {
    if (result != ncclSuccess && result != ncclInProgress)
      fail(call, line,
           fmt::format("{} ({})", ncclGetErrorString(result),
                       one_line(ncclGetLastError(communicator_))));
  }

  /// Until the communicator has taken the call: it does not block.
  void settled(ncclResult_t result, const char* call, int line) {
    checked(result, call, line);
    const auto deadline = std::chrono::steady_clock::now() + timeout_;
    while (result == ncclInProgress) {
      std::this_thread::yield();
      checked(ncclCommGetAsyncError(communicator_, &result), call, line);
      checked(result, call, line);
      if (std::chrono::steady_clock::now() > deadline)
        fail(call, line,
             fmt::format("no answer within {:g} s; a rank may be gone",
                         static_cast<double>(timeout_.count()) / 1000));
    }
  }

  GpuLaunch on(Stream stream) const { return {stream_of(stream), description_.multiprocessors}; }

  cudaStream_t stream_of(Stream stream) const {
    switch (stream) {
      case Stream::communication:
        return communication_;
      case Stream::aside:
        return aside_;
      case Stream::host:
      case Stream::compute:
      case Stream::to_host:  // the backend refuses schedules with these two
      case Stream::to_device:
        break;
    }
    return compute_;
  }

  cudaEvent_t event_of(int index) {
    while (static_cast<std::size_t>(index) >= events_.size()) {
      cudaEvent_t event = nullptr;
      CHECKED(cudaEventCreateWithFlags(&event, cudaEventDefault));
      events_.push_back(event);
    }
    return events_[static_cast<std::size_t>(index)];
  }

  std::chrono::milliseconds timeout_;
  GpuDescription description_;
  cudaStream_t compute_ = nullptr, communication_ = nullptr, aside_ = nullptr;
  cublasHandle_t cublas_ = nullptr, cublas_aside_ = nullptr;
  std::shared_ptr<std::byte> workspace_, workspace_aside_;
  std::shared_ptr<void> clock_;
  std::vector<cudaEvent_t> events_;
  ncclComm_t communicator_ = nullptr;
  int rank_ = 0;
};

}  // namespace

int gpu_count() {
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  if (error == cudaErrorNoDevice) return 0;
  if (error == cudaErrorInsufficientDriver) {
    int driver = 0, runtime = 0;
    cudaDriverGetVersion(&driver);
    cudaRuntimeGetVersion(&runtime);
    throw DeviceError(
        driver == 0 ? std::string("there is no NVIDIA driver on this machine")
                    : fmt::format("the NVIDIA driver is for CUDA {}, and this build needs {}: "
                                  "update the driver",
                                  dotted(driver), dotted(runtime)));
  }
  if (error != cudaSuccess)
    throw DeviceError(
        fmt::format("CUDA: {} ({})", cudaGetErrorString(error), cudaGetErrorName(error)));
  return count;
}

GpuLook look_for_gpus() {
  GpuLook look;
  look.problem = "looking for GPUs failed";
  int answer[2];
  if (pipe(answer) != 0) return look;
  const pid_t child = fork();
  if (child == 0) {
    std::string text;
    try {
      text = fmt::format("{}", gpu_count());
    } catch (const std::exception& problem) {
      text = problem.what();
    }
    const bool told =
        write(answer[1], text.data(), text.size()) == static_cast<ssize_t>(text.size());
    _exit(told ? 0 : 1);
  }
  close(answer[1]);
  std::string text;
  char buffer[512];
  for (ssize_t got; (got = ::read(answer[0], buffer, sizeof(buffer))) > 0;)
    text.append(buffer, static_cast<std::size_t>(got));
  close(answer[0]);
  int status = 0;
  if (child > 0) waitpid(child, &status, 0);
  if (child < 0 || status != 0 || text.empty()) return look;
  look.problem.clear();
  if (text.find_first_not_of("0123456789") != std::string::npos)
    look.problem = text;
  else
    look.count = std::stoi(text);
  if (look.problem.empty() && look.count == 0)
    look.problem = "there is no NVIDIA GPU on this machine";
  return look;
}

std::unique_ptr<Gpu> make_cuda_gpu(int device, std::chrono::milliseconds timeout) {
  return std::make_unique<CudaGpu>(device, timeout);
}

}  // namespace ddpsim
