#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "model/workload/caller.hpp"
#include "model/workload/workload.hpp"

namespace ddpsim {

/// PyTorch's optimizers as they run by default (`adam`, `adamw`, `sgd` with momentum and weight
/// decay, `sgd-plain` with neither, `rmsprop` without momentum: the multi-tensor "foreach" code;
/// `adafactor` and `muon`: a loop over tensors), fused AdamW, apex's FusedLAMB and FusedNovoGrad,
/// Lion as its authors' loop over tensors, bitsandbytes' Adam with states of 8 bits, and the
/// per-tensor Python loop of the CS336 course.
enum class Optimizer : std::uint8_t {
  none,
  sgd,
  sgd_plain,
  adam,
  adamw,
  adamw_fused,
  adamw_loop,
  lamb,
  adafactor,
  muon,
  rmsprop,
  novograd,
  lion,
  adam_8bit
};
inline constexpr std::array all_optimizers{
    Optimizer::none,      Optimizer::sgd,         Optimizer::sgd_plain,  Optimizer::adam,
    Optimizer::adamw,     Optimizer::adamw_fused, Optimizer::adamw_loop, Optimizer::lamb,
    Optimizer::adafactor, Optimizer::muon,        Optimizer::rmsprop,    Optimizer::novograd,
    Optimizer::lion,      Optimizer::adam_8bit};
std::string_view name_of(Optimizer optimizer);

/// The kernels of one optimizer step, in the order they run.
///
/// A law each, in passes (one read or one write of every element) and elementwise operations:
///
///     adamw-loop    33 passes, 14 operations, one kernel each per tensor
///     adamw         20 passes,  8 operations      adam  18 passes, 7 operations
///     adamw-fused    7 passes,  1 operation       sgd   11 passes, 4 operations
///     lamb          13 passes,  8 operations      sgd-plain  3 passes, 1 operation
///     rmsprop       13 passes,  5 operations      novograd   6 passes, 3 operations
///     lion          19 passes,  8 operations, one kernel each per tensor
///     adafactor     17 passes, 18 operations of a matrix; 19 and 9 of a vector; one by one
///     adam-8bit     parameter and gradient 3 passes, two states of a byte an element and a scale
///                   in fp32 for 256 of them, read and written; one kernel per tensor. Tensors of
///                   less than 4096 elements keep states in fp32
///
/// Muon orthogonalises what momentum makes of a hidden layer's matrix in bf16, by five
/// Newton-Schulz steps of three products each; all else is updated by AdamW. Hidden are all layers
/// but the first and the last (embeddings and the head), as its author has it. Adafactor reads two
/// norms of each tensor back to the host, which is not counted.
/// Sources: torch/optim/sgd.py, _adafactor.py (2.5), _muon.py (2.9: _zeropower_via_newtonschulz);
/// apex/optimizers/fused_lamb.py, csrc/multi_tensor_lamb.cu; github.com/KellerJordan/Muon;
/// torch/optim/rmsprop.py; apex/optimizers/fused_novograd.py, csrc/multi_tensor_novograd.cu;
/// github.com/google/automl, lion/lion_pytorch.py; bitsandbytes/optim/optimizer.py.
///
/// The counts are those of the statements: e.g. the loop's m = b1*m + (1-b1)*g is mul, mul, add:
/// 2+2+3 passes. A foreach or fused operation over many tensors is cut into launches of at most 320
/// blocks of 65536 elements, and at most 110 tensors. Every pass is taken to reach memory. A loop
/// over tensors that fit a large L2 does better, one over small tensors is bound by launches
/// instead. Against published steps of the loop: 3.41e9 fp32 parameters took 231 ms on an 80 GB GPU
/// (github:damek/cs336-assignment2-systems@749e968) where the law says 256 on an A100-80, and 272
/// ms on an RTX PRO 6000 with its 128 MB of L2
/// (github:EnzoDing-rgb/cs336-assignment2-systems@9cb4efb) where it says 320.
std::vector<Kernel> optimizer_kernels(Optimizer optimizer, const Workload& workload);

/// Clipping by the norm of all gradients (torch.nn.utils.clip_grad_norm_, foreach), in the order it
/// runs: the norms of all tensors (1 pass; zeros before, and their sums behind), the norm of these
/// and the factor (six kernels of one number or few), the product with it (2 passes). Sources:
/// torch/nn/utils/clip_grad.py (_get_total_norm, _clip_grads_with_norm_); ForeachReduceOp.cu.
std::vector<Kernel> clip_kernels(const Workload& workload);

/// Who enqueues the optimizer's kernels.
Caller optimizer_caller(Optimizer optimizer);

/// What the optimizer keeps from step to step, in the parameters' format (as PyTorch does: there
/// are no copies of parameters in fp32): of all parameters, or of one.
Bytes optimizer_state(Optimizer optimizer, const Workload& workload);
Bytes optimizer_state(Optimizer optimizer, const Workload& workload, std::size_t parameter);

/// What it takes beside that while it updates these parameters, at most at one time: an operation
/// over all tensors that does not write in place has its results for all of them (foreach's square
/// root, or SGD's weight decay); a loop has those of one tensor.
Bytes optimizer_working(Optimizer optimizer, const Workload& workload,
                        std::span<const std::int32_t> parameters);

/// Do the backends compute this update on real ranks?
bool runs_on_ranks(Optimizer optimizer);

/// How many numbers of each element of a parameter that update keeps: SGD its momentum, Adam the
/// variance too. None of one that no backend computes.
std::size_t state_slices(Optimizer optimizer);

}  // namespace ddpsim
