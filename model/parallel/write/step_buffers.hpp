#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <vector>

#include "model/parallel/write/bucket.hpp"
#include "model/parallel/write/job_memory.hpp"
#include "model/parallel/write/step_works.hpp"

namespace ddpsim {

/// What a rank updates of parameters that lie one behind the other.
struct OwnPart {
  program::Slice parameters, gradients;
};

/// The buffers of a step that is being written, and where gradients lie while it runs. What not
/// every step has comes where it is first used.
class StepBuffers {
 public:
  /// Both must outlive this object.
  StepBuffers(program::JobMemory& memory, const StepWorks& works);

  /// A bucket of gradients of several types is told in bytes, or, for a comm hook, in elements of
  /// the first one's type, as which the hook takes them. Buckets are added in their order.
  void add_bucket(const Bucket& bucket);
  const program::Slice& bucket(std::int32_t index) const { return buckets_[at(index)]; }
  /// The parameters of a bucket that its hook updates or sends come to lie in one piece.
  program::Slice put_together(const Bucket& bucket, std::int32_t index);

  /// These parameters come to lie in one piece, in their order, each at a multiple of `align`
  /// elements and the end at one of `multiple`.
  struct WeightsTogether {
    program::Slice all;
    std::vector<program::Slice> places;  ///< in the order of the parameters
  };
  WeightsTogether put_weights_together(const std::vector<std::int32_t>& parameters,
                                       std::int32_t index, std::int64_t align,
                                       std::int64_t multiple);
  /// Ranks share what gradients lie in: this one begins there and is found at `where` in the end.
  void share_gradient(std::int32_t parameter, std::int64_t begin, const program::Slice& where,
                      std::int16_t communicator);

  /// The rank keeps a part of the parameter, of so many elements, instead of all of it: the one of
  /// its place in its group of the communicator. The whole and its gradient are there for a while;
  /// the whole's memory is of `padded` elements, if those are more than the parameter has.
  void shard(std::int32_t parameter, std::int64_t elements, std::int16_t communicator,
             std::int64_t padded = 0);
  /// As above, for a parameter that lies among others, from `begin` on, in something flat of which
  /// the rank keeps the part `shard`. Where its whole lies `lies_in` says.
  void shard_in_flat(std::int32_t parameter, std::int64_t begin, const program::Slice& shard,
                     std::int16_t communicator);
  /// From now on kernels find the whole parameter there.
  void lies_in(std::int32_t parameter, const program::Slice& whole) {
    weights_[at(parameter)] = whole;
  }
  bool is_sharded(std::int32_t parameter) const {
    return !shards_.empty() && shards_[at(parameter)].buffer != program::no_buffer;
  }
  const program::Slice& shard_of(std::int32_t parameter) const { return shards_[at(parameter)]; }
  /// As Job::parts.
  const std::vector<program::Part>& parts() const { return parts_; }
  /// Where the optimizer finds the gradient of the rank's part.
  void set_shard_gradient(std::int32_t parameter, const program::Slice& where) {
    shard_gradients_[at(parameter)] = where;
  }
  DType type(std::int32_t parameter) const { return type_of(parameter); }
  /// The type of the rank's part and of what the optimizer keeps for it.
  DType kept_type(std::int32_t parameter) const { return works_.kept_as[at(parameter)]; }
  std::int64_t elements(std::int32_t parameter) const { return elements_of(parameter); }

  const program::Slice& weight(std::int32_t parameter) const { return weights_[at(parameter)]; }
  /// With what its memory is padded by.
  program::Slice padded_weight(std::int32_t parameter) const {
    const program::BufferId buffer = weight(parameter).buffer;
    return {buffer, program::nowhere, 0, memory_.job.buffers[buffer].elements};
  }
  const std::vector<program::Slice>& weights() const { return weights_; }
  /// Where `.grad` lies.
  const program::Slice& where(std::int32_t parameter);
  /// Where the gradient of this micro-batch is computed: later ones are added to `.grad` from
  /// elsewhere, unless nothing is there any more.
  const program::Slice& computed(std::int32_t parameter);
  /// The gradient of a later micro-batch, until it is added to `.grad`.
  const program::Slice& fresh(std::int32_t parameter);
  /// A gradient's place in its bucket; of a bucket in place: `.grad` itself.
  const program::Slice& slot(std::int32_t parameter) const { return slots_[at(parameter)]; }
  std::vector<program::Slice> slots(const Bucket& bucket) const;
  /// Where the gradient is that the optimizer would take now.
  program::Slice gradient_now(std::int32_t parameter);

  /// No micro-batch finds gradients of one before.
  void compute_in_place() { in_place_ = true; }
  /// What was put in a bucket in the micro-batch before, and not copied back, lies there from now
  /// on.
  void begin_micro_batch(std::int16_t number);
  /// The gradient is copied into its bucket.
  void put_in(std::int32_t parameter) { sent_[at(parameter)] = true; }
  /// And back: the gradient has memory of its own, which is returned.
  const program::Slice& take_back(std::int32_t parameter);

  /// The rows of a sparse gradient that are not zero on this rank, as they are sent: their numbers,
  /// and themselves; and those of all ranks.
  struct Rows {
    program::Slice numbers, values, all_numbers, all_values;
  };
  const Rows& rows_of(std::int32_t parameter);
  /// For each gradient that a kernel fills where its rows' numbers go, and its first row.
  program::Operands rows_filled(const std::vector<std::int32_t>& parameters);

  const program::Slice& module_buffers(std::size_t group);
  const program::Slice& flat_buffers(std::size_t group);
  /// All parameters, one behind the other.
  const program::Slice& model();

  /// The optimizer's step for these parameters.
  program::Update update(const std::vector<std::int32_t>& which,
                         const std::vector<program::Slice>& gradients);
  program::Update update(const std::vector<OwnPart>& parts);
  /// All memory that a rank without inputs sends.
  std::vector<program::Slice> all_gradients() const;

 private:
  DType type_of(std::int32_t parameter) const;
  std::int64_t elements_of(std::int32_t parameter) const;
  bool is_sparse(std::int32_t parameter) const { return works_.gradients[at(parameter)].sparse; }
  const program::Slice& gradient_memory(std::vector<program::Slice>& of, const char* name,
                                        std::int32_t parameter);
  const program::Slice& gradient(std::int32_t parameter) {
    return gradient_memory(gradients_, "g", parameter);
  }
  program::Slice kept_by_optimizer(std::int32_t parameter, std::size_t which);

  program::JobMemory& memory_;
  const StepWorks& works_;
  program::Slice model_;
  // [parameter]
  std::vector<program::Slice> weights_, gradients_, fresh_;
  std::vector<program::Slice> shards_, shard_gradients_;  ///< empty: no parameter has a shard
  std::vector<program::Part> parts_;                      ///< likewise
  std::vector<program::Slice> shared_;  ///< gradients that ranks share; empty: none
  std::vector<program::Slice> slots_;
  std::vector<program::Slice> where_;
  std::vector<bool> sent_;                           ///< in this micro-batch
  std::array<std::vector<program::Slice>, 2> kept_;  ///< by the optimizer
  std::map<std::int32_t, Rows> rows_;                ///< of sparse gradients

  std::vector<program::Slice> buckets_;
  std::vector<program::Slice> module_buffers_, flat_buffers_;  ///< [group]
  std::int16_t micro_batch_ = 0;
  bool in_place_ = false;  ///< every micro-batch computes gradients in one place
};

}  // namespace ddpsim
