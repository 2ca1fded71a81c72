#pragma once

#include <vector>

#include "model/cost/calibration.hpp"

namespace ddpsim {

/// What one kind of collective took among so many ranks: by size, growing, at least one point. More
/// bytes never take less time.
struct CollectiveTable {
  Operation operation = Operation::all_gather;
  int ranks = 2;
  AllReduceTable times;
  Bandwidth peak;  ///< the best bytes / time of all points
};

/// The collectives of a calibration, but for the all-reduce of all ranks, as tables.
class MeasuredCollectives {
 public:
  MeasuredCollectives() = default;
  explicit MeasuredCollectives(std::vector<MeasuredCollective> points);

  /// The table of so many ranks; else of the largest smaller number that was measured, else of the
  /// smallest. Null: the kind was not measured.
  const CollectiveTable* find(Operation operation, int ranks) const;

  /// A point beyond the last one of a table: [table] as in tables().
  void extend(std::size_t table, Bytes size, Duration time);
  const std::vector<CollectiveTable>& tables() const { return tables_; }

 private:
  std::vector<CollectiveTable> tables_;  ///< by kind, then ranks
};

}  // namespace ddpsim
