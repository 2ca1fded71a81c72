#pragma once

#include <string>
#include <vector>

#include "model/base/index.hpp"

namespace ddpsim {

/// How many ranks each node of a job has, one device each: one number where all nodes have as many,
/// else a number for each node. There is no conversion to a number: who needs one has to say of
/// which node.
class RanksPerNode {
 public:
  RanksPerNode(int of_each = 1) : largest_(of_each), smallest_(of_each) {}
  /// The ranks of each node, in the order of the nodes. Where all numbers are equal, only that one
  /// number is kept, and the number of nodes is not. Throws std::invalid_argument if there is no
  /// node, or one without ranks.
  explicit RanksPerNode(std::vector<int> of_each);

  bool equal() const { return of_each_.empty(); }
  int largest() const { return largest_; }
  int smallest() const { return smallest_; }
  /// Ranks of `nodes` nodes together. If nodes are unequal, `nodes` must be all of them.
  int total(int nodes) const { return nodes * largest_ - lacking_; }
  /// How many ranks there would be more if every node had as many as the largest.
  int lacking() const { return lacking_; }

  const std::vector<int>& of_each() const { return of_each_; }  ///< empty: all are equal
  /// The ranks of the first `nodes` nodes.
  RanksPerNode first(int nodes) const;
  int of_node(int node) const { return equal() ? largest_ : of_each_[at(node)]; }
  /// The first rank of a node, both from 0.
  int first_of(int node) const;
  /// Which of its node's ranks a rank of the job is, both from 0.
  int place_of(int rank) const;

  bool operator==(const RanksPerNode&) const = default;

 private:
  int largest_ = 1, smallest_ = 1, lacking_ = 0;
  std::vector<int> of_each_;
};

/// "8"; "8 + 4" or "3 x 8 + 4" for unequal nodes, "1 to 8" for many of them.
std::string to_string(const RanksPerNode& ranks);

}  // namespace ddpsim
