#include "backend/comm_hooks/hook_values.hpp"

#include <utility>

#include "model/schedule/comm_step.hpp"

namespace ddpsim {

std::int64_t HookValues::cast(DType type, std::span<float> bucket) {
  return size_of(type) < Bytes{4} ? narrow(type, bucket) : widen(bucket);
}

std::int64_t HookValues::narrow(DType type, std::span<float> bucket) {
  Numbers from;
  if (apart_) std::swap(from, own_);  // from the other 16-bit type
  own_.resize(type, bucket.size());
  std::int64_t overflows = 0;
  (apart_ ? from.values() : Values(bucket)).each([&](auto piece, std::size_t begin) {
    overflows += count_overflows(type, piece);
    own_.values().part(begin, piece.size()).assign(piece);
  });
  apart_ = true;
  not_finite_ = own_.count_not_finite();
  return overflows;
}

std::int64_t HookValues::widen(std::span<float> bucket) {
  if (!apart_) return 0;
  const std::int64_t overflows = std::max<std::int64_t>(0, own_.count_not_finite() - not_finite_);
  copy(Values(bucket), own_.values().part(0, bucket.size()));
  apart_ = false;
  return overflows;
}

void HookValues::pad(DType type, std::span<float> bucket) {
  const auto side =
      static_cast<std::size_t>(batched_side(static_cast<std::int64_t>(bucket.size())));
  own_.resize(type, bucket.size());
  own_.resize(type, side * side);
  if (!apart_) copy(own_.values().part(0, bucket.size()), Values(bucket));
  apart_ = true;
}

void HookValues::unpad(DType type, std::span<float> bucket) {
  if (!apart_) return;
  if (size_of(type) < Bytes{4}) return own_.resize(type, bucket.size());
  copy(Values(bucket), own_.values().part(0, bucket.size()));
  apart_ = false;
}

}  // namespace ddpsim
