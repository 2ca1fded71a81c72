#pragma once

#include <map>
#include <optional>
#include <vector>

#include "model/parallel/write/bucket.hpp"
#include "model/parallel/write/job_memory.hpp"

namespace ddpsim::program {

/// A bucket whose comm hook's steps are said as actions, one after the other, on memory that lives
/// as long as the bucket's.
class HookedBucket {
 public:
  /// `slots`: its gradients' places; `parameters`: their parameters, in one piece.
  HookedBucket(JobMemory& memory, const Bucket& bucket, std::int32_t index, const Slice& data,
               std::vector<Slice> slots, const Slice& parameters, int ranks);

  /// The data are the bucket again.
  void begin() { data_ = bucket_; }
  /// What the step does. Throws std::logic_error for a collective.
  Action action_of(const CommStep& step);
  /// A seed that is taken beside the step: with nothing to draw for, torch takes one all the same.
  std::optional<Draw> seed_beside(const CommStep& step) const;
  /// What the collective sends, and where what it brings comes to lie.
  struct Ends {
    Slice from, to;
  };
  Ends ends_of(const CommStep& step) const;
  /// The kind of a collective, and what it does to what it brings.
  static Collective collective_of(const CommStep& step);
  /// The optimizer's step for this bucket.
  void set_update(const Update& update) { update_ = update; }
  /// The communicator whose groups have so many ranks each.
  void set_group(int ranks, std::int16_t communicator) { groups_[ranks] = communicator; }

 private:
  struct Factors {
    Slice p, q;
  };
  void begin_factors(Start of_each, const CommStep* pack);
  const LowRank& matrix_of(const CommStep& step) const;
  const Factors& factors_of(const CommStep& step) const;
  /// The matrix that PowerSGD compresses, in the data.
  Slice matrix_in_data(const CommStep& step) const;
  std::vector<Slice> uncompressed() const;

  JobMemory& memory_;
  const Bucket& steps_;
  std::int32_t index_;
  Slice bucket_, data_;
  std::vector<Slice> slots_;
  Slice parameters_;
  Update update_;
  std::map<int, std::int16_t> groups_;  ///< by the number of ranks
  int ranks_;
  Slice narrow_, square_, error_, input_, small_, p_, q_, scales_, all_scales_, codes_, all_codes_,
      pairs_, all_pairs_, payload_;
  std::vector<Factors> factors_;  ///< [of Bucket::low_rank]
};

}  // namespace ddpsim::program
