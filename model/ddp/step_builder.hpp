#pragma once

#include <cstdint>
#include <vector>

#include "model/ddp/step_works.hpp"
#include "model/ddp/training.hpp"
#include "model/schedule/schedule_writer.hpp"

namespace ddpsim {

/// The state that the strategies and modes of a step share while its schedule is written.
struct StepBuilder {
  StepBuilder(const StepWorks& works, const Training& training);

  const StepWorks& works;
  const Training& training;
  ScheduleWriter writer;

  bool synced = false;                  ///< the micro-batch being written communicates
  std::vector<std::int32_t> bucket_of;  ///< [parameter]
  std::vector<std::int32_t> gradient;   ///< [bucket] task that put its latest gradient in place
  std::vector<std::int32_t> launched;   ///< [bucket] task that has its latest result

  std::vector<Bucket>& buckets() { return writer.schedule.buckets; }
  Bucket& bucket(std::int32_t index) { return buckets()[at(index)]; }
  std::int32_t bucket_count() { return static_cast<std::int32_t>(buckets().size()); }

  bool unused(std::int32_t parameter) const { return works.gradients[at(parameter)].unused; }
  /// The ones among `parameters` that get a gradient in this step.
  std::vector<std::int32_t> used(std::vector<std::int32_t> parameters) const;
  /// What copies into buckets and divisions divide by.
  std::int32_t divisor() const;
  /// Do kernels divide? (If not, all-reduces make means.)
  bool divides() const { return training.average == Average::divide; }

  Bucket& add_bucket(std::vector<std::int32_t> parameters);
  /// Says which bucket each parameter is in; to be called once all buckets are there.
  void index_buckets();

  /// All-reduces a bucket once the kernels enqueued so far have ended. `handed_over`: a gradient
  /// hook issues it, in the midst of kernels.
  void all_reduce(std::int32_t bucket, bool handed_over);
  /// What follows on an asynchronous device waits for the bucket, while the host goes on; on a
  /// synchronous device the host itself waits.
  void wait(std::int32_t bucket) { writer.await(launched[at(bucket)], bucket); }
  /// A gradient hook of DDP, or of a user's own overlap, fires on the host.
  void fire_hook(std::int32_t parameter, std::int32_t bucket);
  /// A kernel for each parameter of the bucket that is used.
  void per_parameter(Operation operation, const std::vector<KnownWork>& work, std::int32_t bucket);
};

}  // namespace ddpsim
