#include "backend/link/nccl/nccl_beside.hpp"

#include <algorithm>
#include <variant>

#include "model/base/index.hpp"

namespace ddpsim {
namespace {

/// A batch has about this many bytes.
constexpr std::int64_t batch_bytes = 64 << 20;
constexpr int longest_batch = 64;

}  // namespace

void NcclBeside::begin(const execute::Running& running, const GpuEvents& events) {
  events_ = events;
  issued_ = 0;
  enqueued_.clear();
  stopped_ = true;
  if (!running.job.beside) return;
  const program::Task& task = running.job.beside->tasks.back();
  const auto& collective = std::get<program::Collective>(running.job.deed_of(task).action);
  size_ = collective.to.count * size_of(DType::fp32);
  stream_ = task.stream;
  communicator_ = link_.number_of(collective.communicator);
  link_.reserve_values(size_, stream_);
  stopped_ = false;
}

int NcclBeside::batch() const {
  return static_cast<int>(std::clamp<std::int64_t>(
      batch_bytes / std::max<std::int64_t>(1, size_.count), 1, longest_batch));
}

void NcclBeside::feed(bool computed) {
  for (int more = 0; more < 2 && !stopped_; ++more) {
    const bool full =
        issued_ >= 2 * batch() && !gpu_.reached(events_.beside_end(issued_ - batch() - 1));
    if (full && !computed) return;
    double done = computed ? 1 : 0;
    if (issued_ > 0) hosts_.all_reduce(std::span(&done, 1));
    stopped_ = done > 0;
    for (int i = 0; i < batch() && !stopped_; ++i, ++issued_) {
      gpu_.record(events_.beside_start(issued_), stream_);
      const Instant issued = clock_.now();
      link_.reduce_values(size_, stream_, communicator_);
      enqueued_.push_back(issued + (clock_.now() - issued) / link_.calls());
      gpu_.record(events_.beside_end(issued_), stream_);
    }
  }
}

void NcclBeside::report(Instant begun, RankRun& run) const {
  const Instant computed_at = Instant{} + run.computed;
  run.background_begun = begun - Instant{};
  Duration busy{};
  Instant end = begun;
  for (int i = 0; i < issued_ && end < computed_at; ++i) {
    end = std::min(computed_at, clock_.instant_of(events_.beside_end(i)));
    // On an idle stream the event before it has long been when the host has enqueued it.
    const Instant start =
        std::max({begun, clock_.instant_of(events_.beside_start(i)), enqueued_[at(i)]});
    busy += std::max(Duration::zero(), end - start);  // it may start when all is computed
    run.background_ended += end < computed_at ? 1 : 0;
  }
  const Duration since = computed_at - begun;
  run.background_busy =
      since > Duration::zero() ? std::min(1.0, in_seconds(busy) / in_seconds(since)) : 0;
}

}  // namespace ddpsim
