#pragma once

#include <vector>

#include "backend/device/cuda/gpu_beside.hpp"
#include "backend/device/cuda/gpu_clock.hpp"
#include "backend/link/nccl/nccl_link.hpp"

namespace ddpsim {

/// All-reduces beside computation. The ranks agree on each batch: one more as long as all of them
/// compute. Two batches are on the way, for the stream never to run dry; pauses between them are
/// left out. The values are nobody's.
class NcclBeside : public GpuBeside {
 public:
  /// All must outlive this object.
  NcclBeside(Gpu& gpu, NcclLink& link, Communicator& hosts, const GpuClock& clock)
      : gpu_(gpu), link_(link), hosts_(hosts), clock_(clock) {}

  void begin(const execute::Running& running, const GpuEvents& events) override;
  void feed(bool computed) override;
  bool stopped() const override { return stopped_; }
  int issued() const override { return issued_; }
  Instant begun() const override { return clock_.instant_of(events_.beside_start(0)); }
  void report(Instant begun, RankRun& run) const override;

 private:
  int batch() const;

  Gpu& gpu_;
  NcclLink& link_;
  Communicator& hosts_;
  const GpuClock& clock_;
  GpuEvents events_;
  Bytes size_;
  GpuStream stream_ = first_stream;
  int communicator_ = 0;
  int issued_ = 0;
  std::vector<Instant> enqueued_;  ///< [issued] when the host had made its first call
  bool stopped_ = true;
};

}  // namespace ddpsim
