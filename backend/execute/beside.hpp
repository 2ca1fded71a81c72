#pragma once

#include <atomic>
#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "backend/backend.hpp"
#include "backend/execute/link.hpp"
#include "backend/execute/memory.hpp"
#include "model/program/job.hpp"

namespace ddpsim::execute {

/// Why Beside cannot run what a job has beside its programs; empty: it can, or there is nothing.
std::string refusal_of_beside(const program::Job& job);

/// The program beside the others (Job::beside), on a thread of its own: again and again from the
/// start of a step until a rank has ended its own program. All ranks do it equally often: the last
/// number of what its last all-reduce adds up says how many ranks have ended.
class Beside {
 public:
  /// All must outlive this object. The job has a program beside.
  Beside(const program::Job& job, const Memory& memory, Link& link)
      : job_(job), memory_(memory), link_(link) {}

  /// What the thread does.
  void repeat();
  /// This rank has ended its program.
  void computed() { computed_ = true; }

  /// When this rank reached each of the collectives.
  std::vector<Instant> arrivals() const;
  /// Writes the figures of the background into `run`. `last`: when the last rank reached each
  /// collective.
  void report(std::span<const Instant> last, RankRun& run) const;

 private:
  void collect(const program::Collective& collective, bool is_last);
  bool pauses() const;

  const program::Job& job_;
  const Memory& memory_;
  Link& link_;
  std::atomic<bool> computed_ = false;
  bool another_has_ = false;
  std::uint32_t issued_ = 0;                        ///< collectives so far
  std::vector<std::pair<Instant, Instant>> spans_;  ///< arrival, end
};

}  // namespace ddpsim::execute
