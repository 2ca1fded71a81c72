#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "model/base/dtype.hpp"
#include "model/base/quantity.hpp"
#include "model/schedule/operation.hpp"
#include "model/schedule/schedule.hpp"
#include "model/workload/optimizer.hpp"
#include "model/workload/workload.hpp"

namespace ddpsim {

/// What a GPU is, for provenance and checks.
struct GpuDescription {
  std::string name;      ///< "NVIDIA H200"
  std::string versions;  ///< driver, CUDA, NCCL, cuBLAS, clocks
  std::string uuid;      ///< one physical device, one uuid
  int multiprocessors = 0;
  Bytes memory, l2;
};

/// How a GEMM reads its operands: row-major [m x k] [k x n], or one of them transposed in memory.
enum class GpuGemmLayout : std::uint8_t { nn, nt, tn };

struct GemmCall {
  GpuGemmLayout layout = GpuGemmLayout::nn;
  Gemm gemm;
  DType type = DType::fp32;         ///< of the operands, and how they multiply
  DType result_type = DType::fp32;  ///< fp32, or that of the operands
  const void* left = nullptr;
  const void* right = nullptr;
  void* result = nullptr;
  Stream stream = Stream::compute;  ///< or aside
};

/// One optimizer step over `count` consecutive elements.
struct UpdateCall {
  Optimizer optimizer = Optimizer::sgd;
  void* parameter = nullptr;
  const void* gradient = nullptr;
  void* momentum = nullptr;
  void* variance = nullptr;
  std::int64_t count = 0;
  DType type = DType::fp32;  ///< of all four, as PyTorch keeps them
  int step = 1;
  Stream stream = Stream::compute;
};

/// 8-bit codes of values, each channel of them with a scale and a zero point: code = value / scale
/// + zero point. Of several ranks, all of one rank lies before all of the next.
struct QuantizeCall {
  void* values = nullptr;
  std::int64_t count = 0;
  DType type = DType::fp32;  ///< of the values
  std::int64_t channel = 0;  ///< values of a channel; what the last ones lack counts as 0
  std::int64_t channels = 1;
  float* scales = nullptr;        ///< [2][channels]: scales, then zero points
  std::uint8_t* codes = nullptr;  ///< [channels][channel]
};

/// The calls one rank makes on its GPU and on NCCL, and nothing else: thin, so that all that
/// decides which stream does what and waits for whom runs without a GPU too, against a recording
/// fake.
///
/// One thread owns it. Work is asynchronous: it runs on its stream in the order it was given; what
/// blocks says so. Events are numbers from 0, made on first use. A call that fails throws a
/// DeviceError with the call, its source line, and what CUDA or NCCL says; errors of work
/// already given show in `failure`. The destructor waits for nothing: `abort` first after an error.
class Gpu {
 public:
  virtual ~Gpu() = default;
  virtual GpuDescription description() const = 0;

  /// Throws DeviceError saying how much `what` wanted and how much there is.
  virtual std::shared_ptr<std::byte> allocate(Bytes size, const char* what) = 0;
  /// `count` values, uniform in [-1, 1), a function of the seed. On the compute stream.
  virtual void fill(void* values, std::int64_t count, DType type, std::uint64_t seed) = 0;
  virtual void clear(Stream stream, void* values, Bytes size) = 0;
  /// From the host's memory, which is free again when this returns; rounded to the type.
  virtual void write(Stream stream, void* to, std::span<const float> values, DType type) = 0;
  /// Blocks until every stream is idle; converts to float.
  virtual std::vector<float> read(const void* values, std::int64_t count, DType type) = 0;

  virtual void record(int event, Stream stream) = 0;
  /// What comes next on `stream` waits for the event's latest record.
  virtual void wait(Stream stream, int event) = 0;
  virtual bool reached(int event) = 0;
  /// Between two reached events.
  virtual Duration between(int earlier, int later) = 0;

  /// Notes the GPU's own clock (globaltimer) when the compute stream comes here.
  virtual void note_clock() = 0;
  /// What was noted last, in nanoseconds, once the stream has been there.
  virtual std::uint64_t noted_clock() = 0;

  virtual void gemm(const GemmCall& call) = 0;
  /// to = factor * from.
  virtual void scale(Stream stream, void* to, const void* from, std::int64_t count, DType type,
                     float factor) = 0;
  /// to += from.
  virtual void add(Stream stream, void* to, const void* from, std::int64_t count, DType type) = 0;
  /// A kernel that moves `traffic` through memory, half read, half written, and no more. `from` and
  /// `to` have room for half of `longest`; longer traffic begins again.
  virtual void move(Stream stream, const void* from, void* to, Bytes traffic, Bytes longest) = 0;
  /// Moves as much as a normalisation or a softmax does: rows of 1024 values are read, reduced, and
  /// written scaled by the result.
  virtual void normalise(const void* from, void* to, Bytes traffic, Bytes longest) = 0;
  /// A kernel that takes this long on one multiprocessor.
  virtual void spin(Stream stream, Duration time) = 0;
  virtual void update(const UpdateCall& call) = 0;

  // What comm hooks compute.

  /// to = from, rounded to nearest, ties to even. May be done in place between types of one size.
  virtual void convert(Stream stream, void* to, DType to_type, const void* from, DType from_type,
                       std::int64_t count) = 0;
  /// to = left - right.
  virtual void subtract(Stream stream, void* to, const void* left, const void* right,
                        std::int64_t count, DType type) = 0;
  /// Gram-Schmidt on the columns of a row-major [rows x columns] matrix: each is divided by its
  /// norm + epsilon, then taken out of those behind it. A column of zeros becomes NaN without
  /// epsilon. Source: powerSGD_hook.py _orthogonalize_gram_schmidt
  virtual void orthogonalize(Stream stream, void* matrix, std::int64_t rows, std::int64_t columns,
                             DType type, float epsilon) = 0;
  /// Scales and zero points that make 0 to 255 of all between the least value and the largest, 0
  /// always among them. Source: torch.quantization MinMaxObserver, quint8, affine.
  virtual void observe(Stream stream, const QuantizeCall& call) = 0;
  /// Codes, given scales.
  virtual void quantize(Stream stream, const QuantizeCall& call) = 0;
  /// Values = factor x the sum over ranks of what the codes say.
  virtual void dequantize(Stream stream, const QuantizeCall& call, int ranks, float factor) = 0;

  /// What rank 0 makes, and every rank connects with.
  virtual std::vector<std::byte> make_id() = 0;
  /// Blocks until every rank has connected, or fails at the timeout. `channels`: the most thread
  /// blocks a collective may take; 0: NCCL decides. Replaces an earlier connection.
  virtual void connect(std::span<const std::byte> id, int rank, int ranks, int channels) = 0;
  /// The collectives run on the communication stream, in place; reductions are sums.
  virtual void all_reduce(void* values, std::int64_t count, DType type) = 0;
  virtual void broadcast(void* bytes, Bytes size) = 0;
  /// [rank][size]: this rank's part is in place, the others' come.
  virtual void all_gather(void* parts, Bytes size) = 0;
  /// [rank][count]: afterwards this rank's part is the sum, the others mean nothing.
  virtual void reduce_scatter(void* parts, std::int64_t count, DType type) = 0;
  /// A grouped send and receive with oneself, by NCCL's kernels.
  virtual void exchange(const void* from, void* to, Bytes size) = 0;

  /// What went wrong in the work given so far, in one line; empty: nothing known.
  virtual std::string failure() = 0;
  /// Ends every collective under way, wherever the other ranks are.
  virtual void abort() = 0;

  /// Names what is enqueued until `pop_range`, for profilers (NVTX).
  virtual void push_range(const std::string& name) = 0;
  virtual void pop_range() = 0;
};

}  // namespace ddpsim
