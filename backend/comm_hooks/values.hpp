#pragma once

#include <algorithm>
#include <array>
#include <cassert>
#include <cstddef>
#include <span>
#include <vector>

#include "backend/cpu/float16.hpp"

namespace ddpsim {

/// A row of numbers of one type that lies elsewhere: fp32, or fp16 or bf16 as their bits. Sums and
/// products are made in fp32, piece by piece, and rounded to the type when they are put back.
class Values {
 public:
  using Room = std::array<float, 4096>;  ///< a piece; it stays in the cache

  Values() = default;
  explicit Values(std::span<float> wide) : wide_(wide) {}
  Values(DType type, std::span<std::uint16_t> narrow) : type_(type), narrow_(narrow) {}

  bool is_wide() const { return size_of(type_) == Bytes{4}; }
  std::size_t size() const { return is_wide() ? wide_.size() : narrow_.size(); }
  std::span<std::byte> bytes() const {
    return is_wide() ? std::as_writable_bytes(wide_) : std::as_writable_bytes(narrow_);
  }
  Values part(std::size_t begin, std::size_t count) const {
    assert(begin + count <= size());
    return is_wide() ? Values(wide_.subspan(begin, count))
                     : Values(type_, narrow_.subspan(begin, count));
  }
  /// In fp32: where they lie, or, of 16 bits, `room`, which must be large enough.
  std::span<float> in_fp32(std::span<float> room) const {
    if (is_wide()) return wide_;
    widen(type_, narrow_, room.first(size()));
    return room.first(size());
  }
  void assign(std::span<const float> from) const {
    assert(from.size() == size());
    if (!is_wide())
      narrow(type_, from, narrow_);
    else if (from.data() != wide_.data())
      std::ranges::copy(from, wide_.begin());
  }

  /// Calls f(piece, begin) on one piece after the other, each as long as a Room at most. Pieces are
  /// only read.
  template <class Function>
  void each(Function f) const {
    Room room;
    for (std::size_t begin = 0; begin < size(); begin += room.size())
      f(std::span<const float>(part(begin, std::min(room.size(), size() - begin)).in_fp32(room)),
        begin);
  }
  /// f(piece, begin), to be changed.
  template <class Function>
  void change(Function f) const {
    Room room;
    for (std::size_t begin = 0; begin < size(); begin += room.size()) {
      const Values values = part(begin, std::min(room.size(), size() - begin));
      const std::span<float> piece = values.in_fp32(room);
      f(piece, begin);
      values.assign(piece);
    }
  }

 private:
  DType type_ = DType::fp32;
  std::span<float> wide_;
  std::span<std::uint16_t> narrow_;
};

/// values *= factor
inline void scale_by(const Values& values, float factor) {
  values.change([&](std::span<float> piece, std::size_t) {
    for (float& value : piece) value *= factor;
  });
}
/// Reads and writes `traffic` bytes of the values, from their beginning again as often as it takes;
/// the values stay as they are.
inline void touch(const Values& values, std::int64_t traffic) {
  volatile float opaque = 1;
  const float one = opaque;
  const std::span<std::byte> bytes = values.bytes();
  const auto pass = 2 * static_cast<std::int64_t>(bytes.size());
  const std::size_t element = bytes.size() / std::max<std::size_t>(1, values.size());
  for (; pass > 0 && traffic > 0; traffic -= pass) {
    const auto count = static_cast<std::size_t>(std::min(traffic, pass)) / (2 * element);
    scale_by(values.part(0, count), one);
  }
}

/// A row of numbers of one type. It keeps its memory when it shrinks.
class Numbers {
 public:
  /// What is there of this type stays; what is new is zero.
  void resize(DType type, std::size_t count) {
    type_ = type;
    const bool is_wide = size_of(type) == Bytes{4};
    wide_.resize(is_wide ? count : 0);
    narrow_.resize(is_wide ? 0 : count);
  }
  Values values() { return size_of(type_) == Bytes{4} ? Values(wide_) : Values(type_, narrow_); }

 private:
  DType type_ = DType::fp32;
  std::vector<float> wide_;
  std::vector<std::uint16_t> narrow_;
};

/// All values in fp32, for what cannot be done piece by piece: the values themselves if they are
/// fp32, else a copy.
class InFull {
 public:
  explicit InFull(Values values)
      : values_(values), room_(values.is_wide() ? 0 : values.size()), all_(values.in_fp32(room_)) {}
  InFull(const InFull&) = delete;
  InFull& operator=(const InFull&) = delete;

  std::span<float> get() const { return all_; }
  float* data() const { return all_.data(); }
  void put_back() const { values_.assign(all_); }

 private:
  Values values_;
  std::vector<float> room_;
  std::span<float> all_;
};

}  // namespace ddpsim
