#pragma once

#include <optional>
#include <span>
#include <string>

#include "model/base/quantity.hpp"

namespace ddpsim {

/// A rank, or all ranks of a node, that are not as the cluster says.
struct RankException {
  std::optional<int> node{};  ///< none: one rank
  int rank = 0;               ///< that rank, or the first of the node's
  int ranks = 1;              ///< so many, from there on
  double compute = 1;         ///< their computation takes so many times as long
  /// What each NIC of the node carries; none: what the others' do.
  std::optional<Bandwidth> nic{};
  /// In every step their hosts stand still for so long, before they enqueue the kernel by which the
  /// share `at` of the step's computation is enqueued.
  Duration pause{};
  double at = 0;

  /// Do these ranks compute otherwise than the others?
  bool computes_otherwise() const { return compute != 1 || pause > Duration::zero(); }
};

/// "rank 5", "node 3".
inline std::string name_of(const RankException& exception) {
  return exception.node ? "node " + std::to_string(*exception.node)
                        : "rank " + std::to_string(exception.rank);
}

/// The exception that a rank is, or is one of; null: it is none.
inline const RankException* exception_of(std::span<const RankException> exceptions, int rank) {
  for (const RankException& exception : exceptions)
    if (rank >= exception.rank && rank < exception.rank + exception.ranks) return &exception;
  return nullptr;
}

}  // namespace ddpsim
