#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "model/base/dtype.hpp"
#include "model/base/quantity.hpp"
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

/// A stream of a GPU, a number from 0.
using GpuStream = int;
/// Where memory is made ready between steps.
inline constexpr GpuStream first_stream = 0;

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
  GpuStream stream = first_stream;
};

/// One parameter of an optimizer step; states that the optimizer does not keep are null.
struct UpdatedTensor {
  void* parameter = nullptr;
  const void* gradient = nullptr;
  void* momentum = nullptr;
  void* variance = nullptr;
  std::int64_t count = 0;
};

/// One optimizer step: many tensors in one kernel.
struct UpdateCall {
  static constexpr std::size_t most_tensors = 64;  ///< of a call

  Optimizer optimizer = Optimizer::sgd;
  std::span<const UpdatedTensor> tensors{};
  DType type = DType::fp32;  ///< of all that belongs to them, as PyTorch keeps it
  int step = 1;
  GpuStream stream = first_stream;
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

/// A collective of one rank: of all ranks of a communicator, on a stream.
struct RanksCall {
  int communicator = 0;
  GpuStream stream = first_stream;
  const void* from = nullptr;
  void* to = nullptr;
  std::int64_t count = 0;  ///< elements of the smaller of both
  DType type = DType::fp32;
};

/// Bytes for another rank of a communicator, or from it, or from oneself to oneself.
struct GpuMessage {
  int peer = 0;  ///< place in the communicator
  std::byte* data = nullptr;
  Bytes size;
  bool is_received = false;
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

  /// Makes a stream with what libraries need for it, unless it is there: that takes a while.
  /// Streams are of one priority.
  virtual void make_stream(GpuStream stream) = 0;
  /// Throws DeviceError saying how much `what` wanted and how much there is.
  virtual std::shared_ptr<std::byte> allocate(Bytes size, const char* what) = 0;
  /// `count` values, uniform in [-1, 1), each a function of the seed and its place. On the first
  /// stream.
  virtual void fill(void* values, std::int64_t count, DType type, std::uint64_t seed) = 0;
  virtual void clear(GpuStream stream, void* values, Bytes size) = 0;
  /// Bytes as they are; the two do not overlap.
  virtual void copy(GpuStream stream, void* to, const void* from, Bytes size) = 0;
  /// From the host's memory, which is free again when this returns; rounded to the type.
  virtual void write(GpuStream stream, void* to, std::span<const float> values, DType type) = 0;
  /// Blocks until every stream is idle; converts to float.
  virtual std::vector<float> read(const void* values, std::int64_t count, DType type) = 0;

  virtual void record(int event, GpuStream stream) = 0;
  /// What comes next on `stream` waits for the event's latest record.
  virtual void wait(GpuStream stream, int event) = 0;
  virtual bool reached(int event) = 0;
  /// Between two reached events.
  virtual Duration between(int earlier, int later) = 0;

  /// Notes the GPU's own clock (globaltimer) when the first stream comes here.
  virtual void note_clock() = 0;
  /// What was noted last, in nanoseconds, once the stream has been there.
  virtual std::uint64_t noted_clock() = 0;

  virtual void gemm(const GemmCall& call) = 0;
  /// to = value
  virtual void set(GpuStream stream, void* to, std::int64_t count, DType type, float value) = 0;
  /// to = factor * from.
  virtual void scale(GpuStream stream, void* to, const void* from, std::int64_t count, DType type,
                     float factor) = 0;
  /// to = a * left + b * right.
  virtual void combine(GpuStream stream, void* to, const void* left, const void* right,
                       std::int64_t count, DType type, float a, float b) = 0;
  /// A kernel that moves `traffic` through memory, half read, half written, and no more. `from` and
  /// `to` have room for half of `longest`; longer traffic begins again.
  virtual void move(GpuStream stream, const void* from, void* to, Bytes traffic, Bytes longest) = 0;
  /// Moves as much as a normalisation or a softmax does: rows of 1024 values are read, reduced, and
  /// written scaled by the result.
  virtual void normalise(GpuStream stream, const void* from, void* to, Bytes traffic,
                         Bytes longest) = 0;
  /// A kernel that takes this long on one multiprocessor.
  virtual void spin(GpuStream stream, Duration time) = 0;
  virtual void update(const UpdateCall& call) = 0;
  /// to = from, rounded to nearest, ties to even. May be done in place between types of one size.
  virtual void convert(GpuStream stream, void* to, DType to_type, const void* from, DType from_type,
                       std::int64_t count) = 0;
  /// Gram-Schmidt on the columns of a row-major [rows x columns] matrix: each is divided by its
  /// norm + epsilon, then taken out of those behind it. A column of zeros becomes NaN without
  /// epsilon. Source: powerSGD_hook.py _orthogonalize_gram_schmidt
  virtual void orthogonalize(GpuStream stream, void* matrix, std::int64_t rows,
                             std::int64_t columns, DType type, float epsilon) = 0;
  /// Scales and zero points that make 0 to 255 of all between the least value and the largest, 0
  /// always among them. Source: torch.quantization MinMaxObserver, quint8, affine.
  virtual void observe(GpuStream stream, const QuantizeCall& call) = 0;
  /// Codes, given scales.
  virtual void quantize(GpuStream stream, const QuantizeCall& call) = 0;
  /// Values = factor x the sum over ranks of what the codes say.
  virtual void dequantize(GpuStream stream, const QuantizeCall& call, int ranks, float factor) = 0;

  /// What rank 0 makes, and every rank connects with.
  virtual std::vector<std::byte> make_id() = 0;
  /// Blocks until every rank has connected, or fails at the timeout: communicator 0, of all ranks.
  /// `channels`: the most thread blocks a collective may take; 0: NCCL decides. Replaces all
  /// earlier communicators.
  virtual void connect(std::span<const std::byte> id, int rank, int ranks, int channels) = 0;
  /// All ranks of communicator 0 make another one at once: each colour gets one of its own, its
  /// ranks in the order of their places. A rank without a colour (-1) has no part in it. Blocks, as
  /// `connect`. Returns its number, the same on all ranks.
  virtual int split(int colour, int place) = 0;
  // Reductions add up, or make the mean. What is sent may lie in what is received at its own
  // place, and nowhere else.
  virtual void all_reduce(const RanksCall& call, bool mean) = 0;
  /// [root]'s to all.
  virtual void broadcast(const RanksCall& call, int root) = 0;
  /// to: [place][count].
  virtual void all_gather(const RanksCall& call) = 0;
  /// from: [place][count].
  virtual void reduce_scatter(const RanksCall& call, bool mean) = 0;
  /// All of these at once, by NCCL's kernels.
  virtual void exchange(int communicator, GpuStream stream,
                        std::span<const GpuMessage> messages) = 0;

  /// What went wrong in the work given so far, in one line; empty: nothing known.
  virtual std::string failure() = 0;
  /// Ends every collective under way, wherever the other ranks are.
  virtual void abort() = 0;

  /// Names what is enqueued until `pop_range`, for profilers (NVTX).
  virtual void push_range(const std::string& name) = 0;
  virtual void pop_range() = 0;
};

}  // namespace ddpsim
