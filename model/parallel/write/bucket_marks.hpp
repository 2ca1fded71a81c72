#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "model/base/index.hpp"

namespace ddpsim {

/// A task of a step with which buckets have to do.
struct BucketMark {
  enum class Kind : std::uint8_t {
    filled,    ///< puts a gradient in its bucket: behind it a bucket that is full may be launched
    launched,  ///< the all-reduce of a bucket
    awaited,   ///< the wait for that
    taken      ///< a gradient comes out of its bucket: before it the bucket may be waited for
  };
  Kind kind = Kind::filled;
  std::uint32_t deed = 0;           ///< the task's
  std::int32_t parameter = nobody;  ///< of `filled` and `taken`
};

/// What buckets decide in a step that has all gradients in one of them. Its policy says so while it
/// writes the step.
///
/// Under buckets that are contiguous in the order of arrival the step is the same, but for the
/// marked launch and wait: a bucket is launched behind the mark `filled` with which it and those
/// before it are full, and waited for, one after the other, before the first of its gradients is
/// taken; or, if none is taken, where the marked wait is. Where that is not so, the policy says in
/// a phrase what else there is. It is held against a comparison of two steps in
/// tests/sim/tune/bucket_structure_test.cpp.
class BucketMarks {
 public:
  /// The order in which gradients arrive: parameter indices.
  explicit BucketMarks(const std::vector<int>& arrival);

  void filled(std::int32_t deed, std::int32_t parameter);
  void launched(std::int32_t deed) { add(BucketMark::Kind::launched, launched_ = deed); }
  /// `result`: the task that is waited for.
  void awaited(std::int32_t deed, std::int32_t result);
  void taken(std::int32_t deed, std::int32_t parameter) {
    add(BucketMark::Kind::taken, deed, parameter);
  }
  /// A collective that is no bucket's comes next.
  void sends_other();

  // What there is besides. Of several phrases the first one counts.
  /// In this step, and so under all buckets; such a phrase counts before those of other steps.
  void step_has(std::string_view why) {
    if (!of_step_) of_step_ = why;
  }
  /// In the step with a bucket for each gradient.
  void others_have(std::string_view why) {
    if (!of_others_) of_others_ = why;
  }
  static constexpr std::string_view late = "a bucket is not sent as soon as its turn comes";
  /// In this step; such a phrase counts before all others.
  void above_all(std::string_view why) { of_step_ = why; }

  /// The phrase that says why buckets change more than launches and waits; none: they do not.
  std::optional<std::string_view> why_more() const;
  /// In the order of the tasks.
  std::span<const BucketMark> all() const { return marks_; }

 private:
  void add(BucketMark::Kind kind, std::int32_t deed, std::int32_t parameter = nobody) {
    marks_.push_back({kind, static_cast<std::uint32_t>(deed), parameter});
  }

  std::vector<BucketMark> marks_;
  std::optional<std::string_view> of_step_, of_others_;
  std::int32_t launched_ = nobody;         ///< the latest deed
  std::vector<std::int32_t> position_of_;  ///< [parameter] in the order of arrival
  // These are about the present backward pass:
  std::vector<bool> is_filled_;  ///< [position]
  std::size_t full_ = 0;         ///< the first so many are in their buckets
};

}  // namespace ddpsim
