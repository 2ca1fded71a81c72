#pragma once

#include <optional>

#include "model/scenario/scenario.hpp"

namespace ddpsim {

/// What one step trains on, all ranks together.
struct StepSamples {
  double samples = 0;
  std::optional<double> tokens;  ///< none: samples are no sequences
};
/// `batch` x micro-batches x ranks that have inputs. None: a workload profile does not say how
/// large its batch was.
std::optional<StepSamples> samples_of(const Scenario& scenario, const Training& training);

/// Matrix products of a step, of one rank.
struct Flops {
  double flops = 0;            ///< multiplications and additions
  double seconds_at_peak = 0;  ///< they would take, each type at the peak of the device for it
};
/// The matrix products of the forward and backward passes of a step, of one rank.
struct StepFlops {
  Flops executed;              ///< all that the device multiplies
  std::optional<Flops> model;  ///< each once: without what is computed anew; none: not known
};
/// Every product counts as the kernels of the workload do it: a linear layer of n parameters has
/// 2 n operations a token forward and 4 n backward, which is the 6 N D of transformers; attention
/// and convolutions come on top. Attention that is fused leaves out what a causal mask hides. It
/// computes its scores anew in the backward pass, as activation checkpoints do with all of a block:
/// that is executed, and not the model's. Not counted are the optimizer, the comm hook, and all
/// that is no matrix product. None: kernels of a workload profile, of which only the time is known,
/// or a device without a peak for one of the types.
/// Source: Chowdhery et al., PaLM, arXiv 2204.02311, appendix B (MFU, HFU); Korthikanti et al.,
/// Reducing Activation Recomputation in Large Transformer Models, arXiv 2205.05198, section 6.3.
std::optional<StepFlops> step_flops(const Workload& workload, const Device& device,
                                    int micro_batches);

}  // namespace ddpsim
