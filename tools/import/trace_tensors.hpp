#pragma once

#include <optional>
#include <string>
#include <vector>

#include "model/workload/workload.hpp"
#include "tools/import/torch_trace.hpp"

namespace ddpsim {

/// A bucket: what the steps say of their all-reduces of one place in the order. Times are medians,
/// from the start of the step.
struct FoundBucket {
  std::int64_t elements = -1;  ///< -1: not said
  int tensors = 0;
  std::string type;  ///< as the trace spells it
  Duration launched{};
  bool ran = false;  ///< else the rest is not known
  Duration start{}, end{}, took{};
};

/// Bytes of a bucket, of fp32 unless its type is told; -1 if its elements are not, or its type is
/// none that gradients have here.
std::int64_t bytes_of(const FoundBucket& bucket);

/// What the gradients of a trace are.
struct FoundGradients {
  std::vector<ProfiledParameter> parameters;  ///< in registration order; empty: sizes are not known
  std::vector<int> arrival;                   ///< empty: registration order reversed
  bool tensors_known = false;                 ///< else a parameter stands for each bucket
  std::vector<FoundBucket> buckets;
};

/// Finds out, with the medians over the whole steps:
///
/// * sizes of the tensors, in the order of their hooks: from the shapes recorded at accumulations,
///   or the copies out of the buckets (shapes, or bytes), or `model`; else a parameter stands for
///   each bucket. A hook without a gradient (its parameter took no part in the loss) has the shape
///   of its copy out of the bucket, or what the other gradients leave of its bucket;
/// * which of them each bucket holds: those whose hooks fired since the bucket before, or where
///   that does not add up to the elements it carried, those that do.
///
/// What is missing or does not add up is told in `finding`. Names are invented, "parameter.0" being
/// the last to arrive, unless `model` is given: its gradients then arrive as it says. Throws
/// InputError, naming `file`, if `model` has another number of parameters than the trace, or other
/// sizes.
FoundGradients find_gradients(TraceFinding& finding, const Trace& trace, const std::string& file,
                              const std::optional<Workload>& model);

/// The workload profile, with a `measured` block of what the traced steps took: not of one rank
/// alone, whose step a prediction of several must not be held against. Throws InputError,
/// naming `file`, if the sizes of the gradients are not known.
WorkloadProfile profile_of(const TraceFinding& finding, const FoundGradients& gradients,
                           const std::string& file);

/// The share of the median step that the parts of a profile make up, a median each: its passes,
/// what finishes backward (all-reduces, copies back), and what it says of `outside`.
double accounted(const TraceFinding& finding);

/// "Float", "float", "c10::Half", "BFloat16"; nothing for types no gradient has here, such as
/// "c10::complex<float>".
std::optional<DType> gradient_type(const std::string& spelled);

/// The middle of several, the mean of two middle ones; zero of none.
Duration median(std::vector<Duration> times);

/// Why the median of these steps says little, a sentence: half of them lie far from it. Nothing
/// where they lie near, and of fewer than three.
std::vector<std::string> step_doubts(const std::vector<FoundStep>& steps);

}  // namespace ddpsim
