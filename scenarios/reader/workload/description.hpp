#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/cluster/cluster.hpp"
#include "model/kernel/kernel_law.hpp"
#include "model/workload/device_kernel.hpp"
#include "model/workload/optimizer.hpp"
#include "model/workload/workload.hpp"

namespace ddpsim {

/// What a described kernel does, which decides how the law of kernels takes it.
enum class KernelKind : std::uint8_t { gemm, conv, attention, memory };
inline constexpr std::array all_kernel_kinds{KernelKind::gemm, KernelKind::conv,
                                             KernelKind::attention, KernelKind::memory};
std::string_view name_of(KernelKind kind);

/// Releases of PyTorch that differ in the kernels they choose.
enum class DescribedRelease : std::uint8_t { v2_6, v2_11, v2_13 };
inline constexpr std::array all_described_releases{DescribedRelease::v2_6, DescribedRelease::v2_11,
                                                   DescribedRelease::v2_13};
std::string_view name_of(DescribedRelease release);
/// 211 is 2.11.
int number_of(DescribedRelease release);

/// A kernel as `ddpsim describe` writes it, each distinct one once.
struct DescribedKernel {
  std::string op;  ///< "aten.addmm"
  KernelKind kind = KernelKind::memory;
  std::optional<Product> gemm;                  ///< of gemm and conv
  std::optional<AttentionOperation> attention;  ///< of attention
  std::optional<ConvolutionShape> conv;         ///< of conv; none: not known
  std::optional<MemoryPattern> pattern;         ///< of memory; none: elementwise
  /// The time of its call on the reference host, in a warm loop; none: not said.
  std::optional<Duration> host;
  DType type = DType::fp32;            ///< how it multiplies
  std::int64_t read = 0, written = 0;  ///< bytes, all launches together
  double flops = 0;                    ///< masks not discounted
  int launches = 1;
  std::optional<int> launches_in_fp32;  ///< none: as many
  int operations = 1;                   ///< of PyTorch whose first launches these are
  bool tensor_cores = true;             ///< whether they can multiply a convolution in TF32
  std::optional<int> multiprocessors;   ///< the fewest of a device that launches it
  bool recomputed = false;       ///< a kernel of the forward pass that the backward pass runs again
  int capability = 0;            ///< CUDA's, times ten: the least of such a device
  std::optional<Duration> time;  ///< measured, all launches together
};

/// The kernel with index `kernel`, `count` times in a row.
struct KernelRun {
  int kernel = 0;
  int count = 1;

  bool operator==(const KernelRun&) const = default;
};

struct DescribedLayer {
  std::string name;
  std::vector<KernelRun> forward, backward;
  std::optional<std::int64_t> kept;  ///< bytes that autograd keeps; none: not known
  /// The most bytes alive at one time in its passes; none: not known.
  std::optional<std::int64_t> forward_peak, backward_peak;
  /// The peaks where convolutions multiply in fp32; none: equal to forward_peak and backward_peak.
  std::optional<std::int64_t> forward_peak_in_fp32, backward_peak_in_fp32;
};

enum class StepPass : std::uint8_t { forward, backward };
inline constexpr std::array all_step_passes{StepPass::forward, StepPass::backward};
constexpr std::string_view name_of(StepPass pass) {
  return pass == StepPass::forward ? "forward" : "backward";
}

/// A collective that the model itself sends.
struct DescribedCollective {
  std::string op;
  StepPass pass = StepPass::forward;
  std::string module;      ///< the path of the one that sends it; "": the model, or its loss
  std::int64_t bytes = 0;  ///< that a rank gives
  int count = 1;
  /// In that pass of which layer, and behind which entry, every repetition counted; none: not said.
  std::optional<int> layer, after;
};

struct DescribedParameter {
  std::string name;
  std::vector<std::int64_t> shape;
  DType dtype = DType::fp32;
  std::optional<int> layer;
  std::optional<int> after;  ///< counts every repetition of that layer's backward
  /// The entries of that layer's passes that its module runs, counted likewise; none: not known.
  std::optional<KernelRange> forward, backward;
  bool sparse = false;
  std::int64_t sparse_rows = 0;
  bool unused = false;
};

/// A workload description (format: ddpsim.workload/2): one training step as `ddpsim describe`
/// captured it without a device, kernel by kernel. docs/scenario.md tells each key.
struct WorkloadDescription {
  std::string source, model;
  int batch = 1;
  std::optional<int> sequence;
  DType dtype = DType::fp32;
  std::optional<DType> compute;
  std::optional<Optimizer> optimizer;
  bool clip_gradients = false;
  bool marks_recomputed = false;  ///< do kernels that run again say so?
  DescribedRelease release = DescribedRelease::v2_13;
  std::string attention;  ///< which kernels attention was described as; "": there is none
  std::vector<std::string> notes, partial;
  std::vector<DescribedKernel> kernels;
  std::vector<DescribedLayer> layers;
  std::vector<DescribedParameter> parameters;
  std::vector<int> arrival;
  std::vector<BufferGroup> buffers;
  std::vector<BufferGroup> frozen;
  std::vector<FrozenParameter> frozen_parameters;  ///< ranges are of entries
  std::int64_t inputs = 0;                         ///< bytes of the batch; 0: not known
  std::vector<DescribedCollective> collectives;
};

/// The most kernels a description may have a step launch, each repetition counted: a model of 70
/// billion parameters launches about ten thousand.
inline constexpr std::int64_t most_described_kernels = 1'000'000;

/// How a kernel multiplies on a device. What is described as fp32 may run as tf32: where the
/// scenario says so (`compute`), and otherwise in convolutions, for which PyTorch allows it unless
/// told not to (torch.backends.cudnn.allow_tf32), on devices that have it.
DType multiplied_as(const DescribedKernel& kernel, std::optional<DType> compute,
                    const Device& device);

/// How long a described kernel keeps the device busy, by the law of its class, in all its launches;
/// none where the device runs none, and where the description knows no class. `compute` as above.
std::optional<KernelTime> class_time(const DescribedKernel& kernel, std::optional<DType> compute,
                                     const Device& device, DescribedRelease release);

/// Is it known where it is sent, and by which law?
bool is_priced(const DescribedCollective& collective);

/// The description as a workload of kernels with known shapes. Neighbours that only move memory
/// become one kernel with all their launches, unless a gradient is complete in between, so that
/// the step is simulated fast and ends at the same instant. The description has been checked.
Workload workload_of(const WorkloadDescription& description, const std::string& name,
                     std::optional<DType> compute, const Device& device);

/// Multiplications and additions of all attention kernels of a step, as PyTorch counts them, and of
/// those the ones that a causal mask saves.
struct MaskedFlops {
  double counted = 0, masked = 0;
};
MaskedFlops masked_flops(const WorkloadDescription& description);

}  // namespace ddpsim
