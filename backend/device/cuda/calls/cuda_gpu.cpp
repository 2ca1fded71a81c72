// The calls to CUDA's runtime, cuBLAS and kernels of our own: a part of the module `gpu`, which the
// program loads when a GPU is asked for (gpu_module.hpp). Every call is checked; nothing here
// decides anything.

#include "backend/device/cuda/calls/cuda_gpu.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include <cublas_v2.h>
#include <cuda_runtime.h>
#include <fmt/format.h>
#include <nvtx3/nvToolsExt.h>

#include "backend/device/cuda/calls/comm_hook_kernels.hpp"
#include "backend/device/cuda/calls/cuda_check.hpp"
#include "backend/device/cuda/calls/gpu_kernels.hpp"
#include "backend/device/cuda/calls/nccl_communicators.hpp"
#include "backend/device_error.hpp"

namespace ddpsim {
namespace {

cudaDataType_t cuda_type(DType type) {
  switch (type) {
    case DType::bf16:
      return CUDA_R_16BF;
    case DType::fp16:
      return CUDA_R_16F;
    case DType::fp32:
    case DType::tf32:
      return CUDA_R_32F;
    case DType::fp64:
    case DType::complex64:
    case DType::complex128:
    case DType::fp8_e4m3:
    case DType::fp8_e5m2:
      break;
  }
  throw std::invalid_argument(
      fmt::format("the nccl backend multiplies no {} on a GPU", name_of(type)));
}

std::string uuid_text(const cudaUUID_t& uuid) {
  std::string text;
  for (const char byte : uuid.bytes)
    text += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  return text;
}

class CudaGpu : public Gpu {
 public:
  CudaGpu(int device, std::chrono::milliseconds timeout) : communicators_(timeout) {
    CHECKED(cudaSetDevice(device));
    cudaDeviceProp properties{};
    CHECKED(cudaGetDeviceProperties(&properties, device));
    const int nccl = nccl_version();
    int runtime = 0, driver = 0, clock = 0, memory_clock = 0;
    CHECKED(cudaRuntimeGetVersion(&runtime));
    CHECKED(cudaDriverGetVersion(&driver));
    CHECKED(cudaDeviceGetAttribute(&clock, cudaDevAttrClockRate, device));
    CHECKED(cudaDeviceGetAttribute(&memory_clock, cudaDevAttrMemoryClockRate, device));
    make_stream(first_stream);
    int cublas = 0;
    CHECKED(cublasGetVersion(streams_.front().cublas, &cublas));
    description_.name = properties.name;
    description_.uuid = uuid_text(properties.uuid);
    description_.multiprocessors = properties.multiProcessorCount;
    description_.memory = Bytes{static_cast<std::int64_t>(properties.totalGlobalMem)};
    description_.l2 = Bytes{properties.l2CacheSize};
    description_.versions =
        fmt::format("CUDA {} on a driver for {}, NCCL {}.{}.{}, cuBLAS {}, at most {} and {} MHz",
                    cuda_version(runtime), cuda_version(driver), nccl / 10000, nccl / 100 % 100,
                    nccl % 100, cublas, clock / 1000, memory_clock / 1000);
    void* noted = nullptr;
    CHECKED(cudaMallocHost(&noted, sizeof(std::uint64_t)));
    clock_ = std::shared_ptr<void>(noted, [](void* memory) { cudaFreeHost(memory); });
    load_kernels();
  }

  ~CudaGpu() override {
    // Errors have no place to go.
    communicators_.abort();
    for (const cudaEvent_t event : events_) cudaEventDestroy(event);
    for (const StreamParts& each : streams_) {
      if (each.stream == nullptr) continue;
      cublasDestroy(each.cublas);
      cudaStreamDestroy(each.stream);
    }
  }

  GpuDescription description() const override { return description_; }

  /// GEMMs of two streams run at once, so each stream has a handle and a workspace.
  void make_stream(GpuStream stream) override {
    const auto number = static_cast<std::size_t>(stream);
    if (number < streams_.size() && streams_[number].stream != nullptr) return;
    if (number >= streams_.size()) streams_.resize(number + 1);
    StreamParts& made = streams_[number];
    // Streams have one priority, as PyTorch's have by default.
    CHECKED(cudaStreamCreateWithFlags(&made.stream, cudaStreamNonBlocking));
    CHECKED(cublasCreate(&made.cublas));
    made.workspace = give_workspace(made.cublas, made.stream);
  }

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
    check(error, "cudaMalloc", __FILE_NAME__, __LINE__);
    return {static_cast<std::byte*>(memory), [](std::byte* each) { cudaFree(each); }};
  }

  void fill(void* values, std::int64_t count, DType type, std::uint64_t seed) override {
    if (count == 0) return;
    ddpsim::fill(on(first_stream), values, count, type, seed);
    CHECKED(cudaGetLastError());
  }

  void clear(GpuStream stream, void* values, Bytes size) override {
    CHECKED(cudaMemsetAsync(values, 0, static_cast<std::size_t>(size.count), stream_of(stream)));
  }

  void copy(GpuStream stream, void* to, const void* from, Bytes size) override {
    CHECKED(cudaMemcpyAsync(to, from, static_cast<std::size_t>(size.count),
                            cudaMemcpyDeviceToDevice, stream_of(stream)));
  }

  void write(GpuStream stream, void* to, std::span<const float> values, DType type) override {
    const auto count = static_cast<std::int64_t>(values.size());
    std::vector<std::byte> raw(static_cast<std::size_t>(count * size_of(type).count));
    from_floats(values.data(), count, type, raw.data());
    // From pageable memory it returns once the values are in a buffer of the driver's.
    CHECKED(cudaMemcpyAsync(to, raw.data(), raw.size(), cudaMemcpyHostToDevice, stream_of(stream)));
  }

  std::vector<float> read(const void* values, std::int64_t count, DType type) override {
    for (const StreamParts& each : streams_)
      if (each.stream != nullptr) CHECKED(cudaStreamSynchronize(each.stream));
    std::vector<std::byte> raw(static_cast<std::size_t>(count * size_of(type).count));
    CHECKED(cudaMemcpy(raw.data(), values, raw.size(), cudaMemcpyDeviceToHost));
    std::vector<float> result(static_cast<std::size_t>(count));
    to_floats(raw.data(), count, type, result.data());
    return result;
  }

  void record(int event, GpuStream stream) override {
    CHECKED(cudaEventRecord(event_of(event), stream_of(stream)));
  }
  void wait(GpuStream stream, int event) override {
    CHECKED(cudaStreamWaitEvent(stream_of(stream), event_of(event), 0));
  }
  bool reached(int event) override {
    const cudaError_t state = cudaEventQuery(event_of(event));
    if (state == cudaErrorNotReady) {
      cudaGetLastError();  // CUDA keeps it as if it were an error
      return false;
    }
    check(state, "work on the GPU", __FILE_NAME__, __LINE__);
    return true;
  }
  Duration between(int earlier, int later) override {
    float milliseconds = 0;
    CHECKED(cudaEventElapsedTime(&milliseconds, event_of(earlier), event_of(later)));
    return from_seconds(static_cast<double>(milliseconds) / 1000);
  }

  void note_clock() override {
    ddpsim::note_clock(on(first_stream), static_cast<std::uint64_t*>(clock_.get()));
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
        parts_of(call.stream).cublas, right_transposed ? CUBLAS_OP_T : CUBLAS_OP_N,
        left_transposed ? CUBLAS_OP_T : CUBLAS_OP_N, n, m, k, &one, call.right,
        cuda_type(call.type), right_transposed ? k : n, g.k * g.n, call.left, cuda_type(call.type),
        left_transposed ? m : k, g.m * g.k, &zero, call.result, cuda_type(call.result_type), n,
        g.m * g.n, static_cast<int>(g.batch), compute, CUBLAS_GEMM_DEFAULT));
  }

  void scale(GpuStream stream, void* to, const void* from, std::int64_t count, DType type,
             float factor) override {
    if (count == 0) return;
    ddpsim::scale(on(stream), to, from, count, type, factor);
    CHECKED(cudaGetLastError());
  }

  void set(GpuStream stream, void* to, std::int64_t count, DType type, float value) override {
    if (count == 0) return;
    ddpsim::set(on(stream), to, count, type, value);
    CHECKED(cudaGetLastError());
  }

  void combine(GpuStream stream, void* to, const void* left, const void* right, std::int64_t count,
               DType type, float a, float b) override {
    if (count == 0) return;
    ddpsim::combine(on(stream), to, left, right, count, type, a, b);
    CHECKED(cudaGetLastError());
  }

  void move(GpuStream stream, const void* from, void* to, Bytes traffic, Bytes longest) override {
    ddpsim::move(on(stream), from, to, traffic, longest);
    CHECKED(cudaGetLastError());
  }

  void normalise(GpuStream stream, const void* from, void* to, Bytes traffic,
                 Bytes longest) override {
    ddpsim::normalise(on(stream), from, to, traffic, longest);
    CHECKED(cudaGetLastError());
  }

  void spin(GpuStream stream, Duration time) override {
    ddpsim::spin(on(stream), time);
    CHECKED(cudaGetLastError());
  }

  void update(const UpdateCall& call) override {
    if (call.tensors.empty()) return;
    ddpsim::update(on(call.stream), call);
    CHECKED(cudaGetLastError());
  }

  void convert(GpuStream stream, void* to, DType to_type, const void* from, DType from_type,
               std::int64_t count) override {
    if (count == 0) return;
    ddpsim::convert(on(stream), to, to_type, from, from_type, count);
    CHECKED(cudaGetLastError());
  }

  void orthogonalize(GpuStream stream, void* matrix, std::int64_t rows, std::int64_t columns,
                     DType type, float epsilon) override {
    if (rows * columns == 0) return;
    ddpsim::orthogonalize(on(stream), matrix, rows, columns, type, epsilon);
    CHECKED(cudaGetLastError());
  }

  void observe(GpuStream stream, const QuantizeCall& call) override {
    clear(stream, call.scales, Bytes{2 * 4 * call.channels});
    ddpsim::observe(on(stream), call);
    CHECKED(cudaGetLastError());
  }

  void quantize(GpuStream stream, const QuantizeCall& call) override {
    ddpsim::quantize(on(stream), call);
    CHECKED(cudaGetLastError());
  }

  void dequantize(GpuStream stream, const QuantizeCall& call, int ranks, float factor) override {
    ddpsim::dequantize(on(stream), call, ranks, factor);
    CHECKED(cudaGetLastError());
  }

  std::vector<std::byte> make_id() override { return make_nccl_id(); }

  void connect(std::span<const std::byte> id, int rank, int ranks, int channels) override {
    communicators_.connect(id, rank, ranks, channels);
  }
  int split(int colour, int place) override { return communicators_.split(colour, place); }
  void all_reduce(const RanksCall& call, bool mean) override {
    communicators_.all_reduce(call, mean, stream_of(call.stream));
  }
  void broadcast(const RanksCall& call, int root) override {
    communicators_.broadcast(call, root, stream_of(call.stream));
  }
  void all_gather(const RanksCall& call) override {
    communicators_.all_gather(call, stream_of(call.stream));
  }
  void reduce_scatter(const RanksCall& call, bool mean) override {
    communicators_.reduce_scatter(call, mean, stream_of(call.stream));
  }
  void exchange(int communicator, GpuStream stream, std::span<const GpuMessage> messages) override {
    communicators_.exchange(communicator, messages, stream_of(stream));
  }

  std::string failure() override {
    if (std::string problem = communicators_.failure(); !problem.empty()) return problem;
    const cudaError_t error = cudaPeekAtLastError();
    return error == cudaSuccess || error == cudaErrorNotReady
               ? std::string()
               : fmt::format("CUDA: {} ({})", cudaGetErrorString(error), cudaGetErrorName(error));
  }

  void abort() override { communicators_.abort(); }

  void push_range(const std::string& name) override { nvtxRangePushA(name.c_str()); }
  void pop_range() override { nvtxRangePop(); }

 private:
  /// Once each: CUDA loads a kernel when it is first launched, which may wait for the whole GPU.
  /// Also tells whether this build has code for this GPU at all.
  void load_kernels() {
    std::byte* memory = streams_.front().workspace.get();
    for (const DType type : {DType::fp32, DType::bf16, DType::fp16}) {
      fill(memory, 64, type, 0);
      set(first_stream, memory, 64, type, 0);
      scale(first_stream, memory, memory, 64, type, 1);
      combine(first_stream, memory, memory, memory, 64, type, 1, 1);
      const UpdatedTensor tensor{memory, memory, memory + 1024, memory + 2048, 64};
      for (const Optimizer optimizer : {Optimizer::sgd, Optimizer::adam})
        update({optimizer, {&tensor, 1}, type});
      for (const DType from : {DType::fp32, DType::bf16, DType::fp16})
        convert(first_stream, memory, type, memory + 1024, from, 64);
      orthogonalize(first_stream, memory, 8, 2, type, 0);
      const QuantizeCall call{memory,
                              64,
                              type,
                              64,
                              1,
                              reinterpret_cast<float*>(memory + 1024),
                              reinterpret_cast<std::uint8_t*>(memory + 2048)};
      observe(first_stream, call);
      quantize(first_stream, call);
      dequantize(first_stream, call, 1, 1);
    }
    move(first_stream, memory, memory, Bytes{4096}, Bytes{1 << 20});
    normalise(first_stream, memory, memory, Bytes{8192}, Bytes{1 << 20});
    spin(first_stream, std::chrono::microseconds{1});
    note_clock();
    CHECKED(cudaStreamSynchronize(stream_of(first_stream)));
  }

  /// What PyTorch gives it on Hopper.
  std::shared_ptr<std::byte> give_workspace(cublasHandle_t handle, cudaStream_t stream) {
    constexpr std::size_t size = 32 << 20;
    auto workspace = allocate(Bytes{size}, "cuBLAS's workspace");
    CHECKED(cublasSetStream(handle, stream));
    CHECKED(cublasSetWorkspace(handle, workspace.get(), size));
    return workspace;
  }

  GpuLaunch on(GpuStream stream) const { return {stream_of(stream), description_.multiprocessors}; }

  struct StreamParts {
    cudaStream_t stream = nullptr;  ///< null: it was not made
    cublasHandle_t cublas = nullptr;
    std::shared_ptr<std::byte> workspace;
  };
  const StreamParts& parts_of(GpuStream stream) const {
    return streams_.at(static_cast<std::size_t>(stream));
  }
  cudaStream_t stream_of(GpuStream stream) const { return parts_of(stream).stream; }

  cudaEvent_t event_of(int index) {
    while (static_cast<std::size_t>(index) >= events_.size()) {
      cudaEvent_t event = nullptr;
      CHECKED(cudaEventCreateWithFlags(&event, cudaEventDefault));
      events_.push_back(event);
    }
    return events_[static_cast<std::size_t>(index)];
  }

  GpuDescription description_;
  std::vector<StreamParts> streams_;
  std::shared_ptr<void> clock_;
  std::vector<cudaEvent_t> events_;
  NcclCommunicators communicators_;
};

}  // namespace

std::unique_ptr<Gpu> make_cuda_gpu(int device, std::chrono::milliseconds timeout) {
  return std::make_unique<CudaGpu>(device, timeout);
}

}  // namespace ddpsim
