#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "backend/device/cuda/gpu_beside.hpp"
#include "backend/device/cuda/gpu_clock.hpp"
#include "backend/device/cuda/gpu_events.hpp"
#include "backend/execute/streams.hpp"
#include "model/workload/workload.hpp"

namespace ddpsim {

/// The streams of a job as streams of a GPU: the host thread only enqueues, and every dependency
/// between them is a wait for an event.
class GpuStreams : public execute::Streams {
 public:
  /// `profile`: collectives start and end when NCCL's profiler interface says. All must outlive
  /// this object.
  GpuStreams(Gpu& gpu, GpuWaiter& waiter, GpuClock& clock, GpuBeside& beside, bool profile)
      : gpu_(gpu), waiter_(waiter), clock_(clock), beside_(beside), profile_(profile) {}

  /// Whose layers and parameters profilers are told. `workload` must outlive its use.
  void load(const Workload& workload) { workload_ = &workload; }

  std::string refusal(const program::Job& job) const override;
  bool host_computes() const override { return false; }
  void begin(const execute::Running& running) override;
  void start() override;
  void begin_round(int round) override;
  void enter(std::uint32_t task) override;
  void leave() override;
  void submit(std::uint32_t task, std::function<void()> call) override;
  void wait(std::uint32_t task) override;
  Instant finish() override;
  void abandon() override {}
  std::vector<Instant> arrivals_beside() const override;
  void report_beside(std::span<const Instant> last, RankRun& run) const override;

 private:
  /// What was enqueued on a stream.
  struct Ahead {
    bool is_used = false;
    int entries = 0;                      ///< since the last mark
    int marks = 0;                        ///< so far
    std::optional<std::uint32_t> last{};  ///< task of this round
  };

  void keep_near(std::uint32_t task);
  bool has_computed();

  Gpu& gpu_;
  GpuWaiter& waiter_;
  GpuClock& clock_;
  GpuBeside& beside_;
  bool profile_;
  const Workload* workload_ = nullptr;
  std::optional<execute::Running> running_;
  GpuEvents events_;
  std::vector<Ahead> ahead_;        ///< [stream]
  std::vector<bool> handed_over_;   ///< [task] at any time
  std::vector<std::string> names_;  ///< [task] for profilers
};

}  // namespace ddpsim
