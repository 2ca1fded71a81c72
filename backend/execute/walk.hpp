#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <tuple>
#include <vector>

#include "backend/backend.hpp"
#include "backend/execute/device.hpp"
#include "backend/execute/link.hpp"
#include "backend/execute/memory.hpp"
#include "backend/execute/streams.hpp"
#include "model/program/job.hpp"

namespace ddpsim::execute {

/// One run of a job on one rank: the host thread walks the rank's program in order and does each
/// task of its own stream once what it waits for has ended; it hands over what stands on other
/// streams, and all that communicates.
class Walk {
 public:
  /// The memory is arranged for the job. All must outlive this object.
  Walk(const program::Job& job, const RunOptions& options, Memory& memory, Device& device,
       Link& link, Streams& streams);

  /// Communicates: all ranks start at one instant, and tell each other in the end when they
  /// arrived at their collectives.
  RankRun run();

 private:
  void round(int number);
  void execute(std::uint32_t index);
  bool host_does(std::uint32_t index) const;
  void do_on_host(std::uint32_t index, TaskTimes& times);
  void call_hook(const program::Call& call, const program::Task& task, TaskTimes& times) const;
  void hand_over(std::uint32_t index);
  std::uint32_t next_tag(const program::Action& action);
  void communicate(const program::Task& task, std::uint32_t tag);
  void collect(const program::Collective& collective, std::uint32_t tag, std::uint8_t stream);
  Group group_of(std::int16_t communicator) const;
  std::vector<std::int64_t> counts_of(const program::Collective& collective) const;
  void count(Bytes size);
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
  Streams& streams_;
  /// Communicator; peer and direction of a message, or nobody.
  using Lane = std::tuple<std::int16_t, std::int16_t, bool>;
  std::map<Lane, std::uint32_t> issued_;                 ///< so far
  std::vector<std::vector<std::uint32_t>> collectives_;  ///< [communicator] tasks of a round
  std::mutex counting_;
  RankRun run_;
};

}  // namespace ddpsim::execute
