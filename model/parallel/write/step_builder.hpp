#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "model/parallel/training.hpp"
#include "model/parallel/write/bucket.hpp"
#include "model/parallel/write/complete_gradients.hpp"
#include "model/parallel/write/step_buffers.hpp"
#include "model/parallel/write/step_works.hpp"
#include "model/parallel/write/step_writer.hpp"

namespace ddpsim {

/// The state that the strategies and modes of a step share while its job is written.
struct StepBuilder {
  StepBuilder(const StepWorks& works, const Training& training);

  const StepWorks& works;
  const Training& training;
  StepWriter writer;
  StepBuffers memory{writer.memory, works};
  std::vector<Bucket> buckets;          ///< in launch order
  const bool has_readers = false;       ///< user's code may read gradients that are complete
  program::CompleteGradients complete;  ///< for those

  bool synced = false;                  ///< the micro-batch being written communicates
  std::vector<std::int32_t> bucket_of;  ///< [parameter]; nobody: it is in no bucket
  std::vector<std::int32_t> gradient;   ///< [bucket] task that put its latest gradient in place
  std::vector<std::int32_t> launched;   ///< [bucket] task that has its latest result
  bool updates_in_backward = false;     ///< parameters may change meanwhile
  std::int32_t shards = 1;  ///< the optimizer works on one of so many parts of parameters
  /// Where parameters lie one behind the other and ranks share them by elements: what the optimizer
  /// updates in their place.
  std::vector<OwnPart> own_parts;

  Bucket& bucket(std::int32_t index) { return buckets[at(index)]; }
  std::int32_t bucket_count() const { return static_cast<std::int32_t>(buckets.size()); }
  bool unused(std::int32_t parameter) const { return works.gradients[at(parameter)].unused; }
  /// The ones among `parameters` that get a gradient in this step.
  std::vector<std::int32_t> used(std::vector<std::int32_t> parameters) const;
  /// What copies into buckets and divisions divide by.
  float share() const { return 1 / static_cast<float>(divisor()); }
  std::int32_t divisor() const { return training.divisor(works.device.ranks); }
  /// Do kernels divide? (If not, all-reduces make means.)
  bool divides() const { return training.average == Average::divide; }

  Bucket& add_bucket(std::vector<std::int32_t> parameters);
  /// Makes the memory of all buckets, and says which of them each parameter is in; to be called
  /// once all buckets are there. Memory that `then` makes lies behind the bucket's.
  void lay_out_buckets(const std::function<void(std::int32_t)>& then);
  void begin_micro_batch(std::int16_t number);

  /// All-reduces a bucket once the kernels enqueued so far have ended. `handed_over`: a gradient
  /// hook issues it, in the midst of kernels.
  void all_reduce(std::int32_t bucket, bool handed_over);
  /// What follows on an asynchronous device waits for the bucket, while the host goes on; on a
  /// synchronous device the host itself waits.
  void wait(std::int32_t bucket);
  /// A gradient hook of DDP, or of a user's own overlap, fires on the host.
  void fire_hook(std::int32_t parameter, std::int32_t bucket);
  /// The sum becomes a mean: all of a bucket, or one gradient in its place in it.
  void divide_bucket(std::int32_t bucket, const Work& work);
  void divide_each(std::int32_t bucket, const std::vector<KnownWork>& work);
  /// Before a kernel of a layer's backward pass: the gradients that it writes come, of parameters
  /// that are sharded.
  void gradients_come(std::size_t layer, std::size_t kernel);
  /// A gradient x `factor` into its place in its bucket; of an unused one zeros.
  void put_in(std::int32_t parameter, std::uint32_t work, float factor);
  /// Gradients into their bucket, by one kernel.
  void concatenate(std::int32_t bucket, const Work& work);
  /// Every gradient back out of its bucket.
  void copy_out(std::int32_t bucket, const std::vector<KnownWork>& work);
  /// A kernel of the optimizer over `share` of `all` elements, or parts.
  std::uint32_t part_of_update(KnownWork known, std::int64_t share, std::int64_t all);
  /// Marks the newest task as the one with which the gradient is in its bucket.
  void mark_filled(std::int32_t parameter) {
    if (writer.marks != nullptr) writer.marks->filled(writer.newest(), parameter);
  }
  /// As BucketMarks has it, if anybody asks.
  void step_has(std::string_view why) {
    if (writer.marks != nullptr) writer.marks->step_has(why);
  }
  void others_have(std::string_view why) {
    if (writer.marks != nullptr) writer.marks->others_have(why);
  }
  /// The bucket's gradients are sent where they lie: nobody reads them meanwhile.
  void take_from_readers(std::int32_t bucket);

  program::Job finish(int without_inputs);

 private:
  void list_gradients();
};

}  // namespace ddpsim
