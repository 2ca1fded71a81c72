#include "backend/nccl/step/gpu_background.hpp"

#include <algorithm>

#include "backend/nccl/step/step_events.hpp"
#include "model/base/index.hpp"

namespace ddpsim {
namespace {

/// A batch has about this many bytes.
constexpr std::int64_t batch_bytes = 64 << 20;
constexpr int longest_batch = 64;

}  // namespace

GpuBackground::GpuBackground(Gpu& gpu, GpuCollectives& collectives, Communicator& communicator,
                             const GpuStepClock& clock, Bytes size, std::uint32_t tasks)
    : gpu_(gpu),
      collectives_(collectives),
      communicator_(communicator),
      clock_(clock),
      size_(size),
      tasks_(tasks),
      stopped_(size == Bytes{}) {
  if (!stopped_) collectives_.reserve(Operation::all_reduce, size);
}

int GpuBackground::batch() const {
  return static_cast<int>(std::clamp<std::int64_t>(
      batch_bytes / std::max<std::int64_t>(1, size_.count), 1, longest_batch));
}

void GpuBackground::feed(bool computed) {
  for (int more = 0; more < 2 && !stopped_; ++more) {
    const bool full = issued_ >= 2 * batch() &&
                      !gpu_.reached(background_end_event(tasks_, issued_ - batch() - 1));
    if (full && !computed) return;
    double done = computed ? 1 : 0;
    if (issued_ > 0) communicator_.all_reduce(std::span(&done, 1));
    stopped_ = done > 0;
    for (int i = 0; i < batch() && !stopped_; ++i, ++issued_) {
      gpu_.record(background_start_event(tasks_, issued_), Stream::communication);
      const Instant issued = clock_.now();
      collectives_.all_reduce(collectives_.next_values(size_),
                              std::max<std::int64_t>(1, size_.count / 4), DType::fp32);
      enqueued_.push_back(issued + (clock_.now() - issued) / collectives_.calls());
      gpu_.record(background_end_event(tasks_, issued_), Stream::communication);
    }
  }
}

int GpuBackground::last_event() const {
  return background_end_event(tasks_, issued_ - 1);
}

Instant GpuBackground::begun() const {
  return clock_.instant_of(background_start_event(tasks_, 0));
}

void GpuBackground::report(Instant begun, Instant computed_at, RankRun& run) const {
  run.background_begun = begun - Instant{};
  Duration busy{};
  Instant end = begun;
  for (int i = 0; i < issued_ && end < computed_at; ++i) {
    end = std::min(computed_at, clock_.instant_of(background_end_event(tasks_, i)));
    // On an idle stream the event before it has long been when the host has enqueued it.
    const Instant start =
        std::max({begun, clock_.instant_of(background_start_event(tasks_, i)), enqueued_[at(i)]});
    busy += std::max(Duration::zero(), end - start);  // it may start when all is computed
    run.background_ended += end < computed_at ? 1 : 0;
  }
  const Duration since = computed_at - begun;
  run.background_busy =
      since > Duration::zero() ? std::min(1.0, in_seconds(busy) / in_seconds(since)) : 0;
}

}  // namespace ddpsim
