#pragma once

#include <span>
#include <string>
#include <vector>

#include "backend/backend.hpp"
#include "model/workload/workload.hpp"

namespace ddpsim {

/// What the gradients of a step have to be: the mean over ranks of what each computes by itself.
struct GradientReference {
  std::vector<std::vector<double>> mean;  ///< [parameter][element], over all ranks
  std::vector<double> largest;            ///< [parameter] magnitude of any rank's
  int roundings = 1;                      ///< additions and scalings on the way
};

/// What a comm hook leaves of the mean of all gradients.
enum class Kept : std::uint8_t {
  mean,             ///< within rounding, or within a step of quantisation
  same_everywhere,  ///< it loses what it likes, but the same on all ranks
  nothing,          ///< every rank may have its own
};

/// How the gradients after a step compare to it.
struct GradientCheck {
  bool identical = true;   ///< on all ranks, to the bit
  double worst = 0;        ///< largest |gradient - mean| over its tolerance; above 1 is wrong
  Kept kept = Kept::mean;  ///< only with `mean` they are compared with it
  /// Parameters whose gradients differ between ranks, where some do and none may; else those whose
  /// gradients are too far from the mean.
  int wrong = 0;
  std::string first_wrong;  ///< name of the first of those; empty: none

  bool good() const { return wrong == 0; }
};

/// What the gradients are to be compared with after a step.
struct ExpectedGradients {
  Kept kept = Kept::mean;
  std::vector<DType> wire;  ///< 16-bit types in which the values were sent, if any
  bool quantized = false;   ///< to 8 bit
  int divisor = 0;          ///< what the step divided sums by; 0: all ranks
  /// The job that was run, where ranks keep parts of parameters; null: they have all of each.
  const program::Job* in_parts = nullptr;
};

/// Runs a job without communication, in which parameters have to stay as they are, and averages,
/// in double, what each rank computed. Communicates.
GradientReference reference_gradients(Backend& backend, const Workload& workload,
                                      const program::Job& none, int micro_batches);

/// Compares the gradients of the last step, in which parameters have to stay as they are
/// (without_updates), for a hook may read them. The tolerance is (ranks + micro-batches + 2) units
/// of rounding, in the parameter's type or in that of the wire, of its largest gradient: each sum
/// and scaling rounds once, and sums of micro-batches may cancel. Quantisation adds a step of 1/255
/// of the widest range. Of a parameter of which ranks keep parts each compares its own, and the
/// ranks that keep the same part have to have the same. Every rank gets the same answer.
/// Communicates.
GradientCheck check_gradients(Backend& backend, const Workload& workload,
                              const GradientReference& reference,
                              const ExpectedGradients& expected = {});

}  // namespace ddpsim
