#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <tuple>
#include <vector>

#include "model/program/job.hpp"

namespace ddpsim::program {

/// All ranks of a job at once, on one thread: every rank does its program's tasks one after the
/// other, in order, and what several do together is done when all have come to it. Buffers begin
/// with zeros and are numbers in double precision.
///
/// Knows fills, sums, copies, kernels that fill gradients, and all that communicates; throws
/// std::logic_error for other actions, and where ranks wait for each other in vain.
class PlainRanks {
 public:
  /// What a rank's kernel reads as its `index`-th number where its operands have this seed.
  using Operand = std::function<float(std::int32_t rank, std::uint32_t seed, std::int64_t index)>;

  PlainRanks(const Job& job, Operand operand);

  void run();

  /// A buffer that is no view, in the end.
  const std::vector<double>& buffer(std::int32_t rank, BufferId id) const {
    return memory_[at(rank)][id];
  }
  /// The largest magnitude that any number had.
  double largest() const { return largest_; }

 private:
  using Numbers = std::vector<double>;

  bool step(std::int32_t rank);
  bool collect(std::int32_t rank, const Collective& collective);
  std::vector<Numbers> results_of(const Collective& collective, const std::vector<Numbers>& inputs,
                                  const std::vector<Numbers>& outputs,
                                  const std::vector<std::size_t>& counts, bool in_place) const;
  bool receive(std::int32_t rank, const Receive& receive);
  void compute(std::int32_t rank, const Task& task);
  void pack(std::int32_t rank, const Task& task, const Pack& pack);

  const Program& program_of(std::int32_t rank) const {
    return job_.programs[job_.program_of[at(rank)]];
  }
  const Action* next_of(std::int32_t rank) const;
  Numbers read(std::int32_t rank, const Slice& slice) const;
  void write(std::int32_t rank, const Slice& slice, const Numbers& numbers);

  const Job& job_;
  Operand operand_;
  std::vector<std::vector<Numbers>> memory_;  // [rank][buffer]
  std::vector<std::size_t> next_;             // [rank] task
  std::vector<int> rounds_;                   // [rank] that are done
  /// Communicator, sender and receiver: messages under way, in order.
  std::map<std::tuple<std::int16_t, std::int32_t, std::int32_t>, std::vector<Numbers>> sent_;
  double largest_ = 0;
};

/// As CPUs have operands.
PlainRanks::Operand operands_of_cpus(const Job& job);

}  // namespace ddpsim::program
