#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "backend/execute/beside.hpp"
#include "backend/execute/link.hpp"
#include "backend/execute/stream_threads.hpp"
#include "backend/execute/streams.hpp"

namespace ddpsim::execute {

/// Streams whose tasks are done by threads: one for each lane of each stream that a rank uses. What
/// communicates on the host's stream has threads too, as only these may communicate.
///
/// Instants are taken around every task: about 50 ns each.
class ThreadStreams : public Streams {
 public:
  /// Both must outlive this object.
  ThreadStreams(StreamThreads& threads, Link& link) : threads_(threads), link_(link) {}

  std::string refusal(const program::Job& job) const override;
  bool host_computes() const override { return true; }
  void begin(const Running& running) override;
  void start() override;
  void begin_round(int round) override;
  void end_round() override;
  void submit(std::uint32_t task, std::function<void()> call) override;
  void wait(std::uint32_t task) override;
  Instant finish() override;
  void abandon() override;
  std::vector<Instant> arrivals_beside() const override;
  void report_beside(std::span<const Instant> last, RankRun& run) const override;

 private:
  std::vector<std::uint64_t> awaited(std::uint32_t task) const;

  StreamThreads& threads_;
  Link& link_;
  std::optional<Running> running_;
  std::vector<std::size_t> queue_of_;   ///< [stream]
  std::vector<std::uint64_t> tickets_;  ///< [task] of this round; 0: not handed over
  std::optional<Beside> beside_;        ///< the job's, if it has one
};

}  // namespace ddpsim::execute
