#pragma once

#include <span>
#include <vector>

#include "model/parallel/hooks/hook_writer.hpp"

namespace ddpsim {

/// A matrix that PowerSGD compresses: M = P Q^T, P of rows x rank, Q of columns x rank.
struct LowRank {
  std::int32_t gradient = nobody;  ///< its place in the bucket; nobody: M is all data
  std::int64_t rows = 0, columns = 0, rank = 0;
  program::Slice p{}, q{};
};

/// PowerSGD's rank for a matrix, or 0: it is not compressed.
/// Source: pytorch powerSGD_hook.py _should_compress (rule R40).
int powersgd_rank(const PowerSgd& state, MatrixShape matrix);

/// The gradients that PowerSGD compresses, in the order in which their P and Q lie, are drawn and
/// multiplied: of equal shapes one after the other, shapes as they first come.
/// Source: powerSGD_hook.py shape_to_tensors.
std::vector<LowRank> low_rank_gradients(const PowerSgd& state,
                                        std::span<const MatrixShape> gradients);

/// The statements that both PowerSGD hooks consist of, and the memory they keep.
class LowRankWriter {
 public:
  /// The data are what is compressed.
  LowRankWriter(HookWriter& writer, std::vector<LowRank> matrices);

  /// Has PowerSGD begun? Before that gradients are reduced plainly.
  static bool has_begun(const HookWriter& writer);

  program::Slice p, q;            ///< of all matrices, one behind the other
  std::vector<LowRank> matrices;  ///< in that order
  bool draws = false;             ///< Q is drawn in this iteration

  /// Each Q is a view, with which a job of the steady state begins as if it had just been drawn.
  /// Where nothing is compressed a seed is taken all the same, as torch takes one.
  void add_views();

  void add_error();
  void keep_error();
  void draw_q(const LowRank& matrix);
  void orthogonalize_q(const LowRank& matrix, double epsilon);
  void orthogonalize_p(const LowRank& matrix, double epsilon);
  void project(const LowRank& matrix);       ///< P = M Q
  void back_project(const LowRank& matrix);  ///< Q = M^T P
  void reconstruct(const LowRank& matrix);   ///< M = P Q^T

 private:
  program::Slice in_data(const LowRank& matrix) const;
  void multiply(std::string_view label, const LowRank& matrix, const program::Multiply& product);
  void orthogonalize(std::string_view label, const LowRank& matrix,
                     const program::Orthogonalize& columns);

  HookWriter& writer_;
  program::Slice error_, input_;
};

}  // namespace ddpsim
