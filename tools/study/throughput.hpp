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

/// The matrix products of the forward and backward passes of a step, of one rank.
struct ModelFlops {
  double flops = 0;            ///< multiplications and additions
  double seconds_at_peak = 0;  ///< they would take, each type at the peak of the device for it
};
/// Every product counts as the kernels of the workload do it: a linear layer of n parameters has
/// 2 n operations a token forward and 4 n backward, which is the 6 N D of transformers; attention
/// and convolutions come on top. Attention that is fused leaves out what a causal mask hides and
/// computes its scores anew in the backward pass. Not counted are the optimizer, the comm hook, and
/// all that is no matrix product. None: kernels of a workload profile, of which only the time is
/// known, or a device without a peak for one of the types.
std::optional<ModelFlops> model_flops(const Workload& workload, const Device& device,
                                      int micro_batches);

}  // namespace ddpsim
