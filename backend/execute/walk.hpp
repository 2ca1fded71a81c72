#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <tuple>
#include <vector>

#include "backend/backend.hpp"
#include "backend/execute/beside.hpp"
#include "backend/execute/device.hpp"
#include "backend/execute/link.hpp"
#include "backend/execute/memory.hpp"
#include "model/program/job.hpp"

namespace ddpsim::execute {

/// One run of a job on one rank: the host thread walks the rank's program in order and does each
/// task of its own stream once what it waits for has ended; it hands tasks of other streams, and
/// all that communicates, to threads beside it.
class Walk {
 public:
  /// The memory is arranged for the job. All must outlive this object.
  Walk(const program::Job& job, const RunOptions& options, Memory& memory, Device& device,
       Link& link);

  /// Communicates: all ranks start at one instant, and tell each other in the end when they
  /// arrived at their collectives.
  RankRun run();

 private:
  void arrange_streams();
  void round();
  void execute(std::uint32_t index);
  void do_on_host(std::uint32_t index, TaskTimes& times);
  void call_hook(const program::Call& call, const program::Task& task, TaskTimes& times) const;
  void hand_over(std::uint32_t index, TaskTimes& times);
  std::uint32_t next_tag(const program::Action& action);
  void do_beside(std::uint32_t index, std::uint32_t tag, TaskTimes& times);
  void communicate(const program::Action& action, std::uint32_t tag);
  void collect(const program::Collective& collective, std::uint32_t tag);
  Group group_of(std::int16_t communicator) const;
  std::vector<std::int64_t> counts_of(const program::Collective& collective) const;
  void count(Bytes size);
  void wait_for_inputs(std::uint32_t index);
  std::vector<std::uint64_t> awaited(std::uint32_t index) const;
  bool by_processor(const program::Action& action) const;
  template <typename Call>
  void timed(TaskTimes& times, bool by_processor, Call call) const;
  template <typename Call>
  void slowed(Call call) const;
  void learn_starts();

  const program::Action& action_of(std::uint32_t index) const {
    return job_.deed_of(program_.tasks[index]).action;
  }
  Instant now() const { return link_.now(); }

  const program::Job& job_;
  const program::Program& program_;  ///< this rank's
  const RunOptions& options_;
  Memory& memory_;
  Device& device_;
  Link& link_;
  std::vector<std::size_t> queue_of_;   ///< [stream]
  std::vector<std::uint64_t> tickets_;  ///< [task] 0: not handed over
  std::vector<Instant> arrivals_;       ///< [task] when its turn came
  /// Communicator; peer and direction of a message, or nobody.
  using Lane = std::tuple<std::int16_t, std::int16_t, bool>;
  std::map<Lane, std::uint32_t> issued_;                 ///< so far
  std::vector<std::vector<std::uint32_t>> collectives_;  ///< [communicator] tasks of a round
  std::mutex counting_;
  Beside beside_;
  RankRun run_;
};

}  // namespace ddpsim::execute
