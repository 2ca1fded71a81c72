#include "backend/device/cpu/sparse_rows.hpp"

#include <algorithm>
#include <numeric>
#include <random>
#include <span>

#include <fmt/format.h>

#include "backend/device/cpu/piece_values.hpp"
#include "backend/device_error.hpp"

namespace ddpsim {

using execute::Doing;
using execute::Piece;

namespace {

std::span<std::int64_t> numbers_in(const Piece& piece) {
  return {reinterpret_cast<std::int64_t*>(piece.data), piece.bytes().size() / sizeof(std::int64_t)};
}

/// A gradient, row by row.
class RowsOf {
 public:
  RowsOf(const Piece& gradient, std::int64_t width) : values_(floats(gradient)), width_(width) {}

  std::int64_t height() const { return static_cast<std::int64_t>(values_.size()) / width_; }
  std::span<float> operator[](std::int64_t row) const {
    if (row < 0 || row >= height())
      throw DeviceError(
          fmt::format("a rank sends row {} of a sparse gradient that has {}", row, height()));
    return values_.subspan(static_cast<std::size_t>(row * width_),
                           static_cast<std::size_t>(width_));
  }

 private:
  std::span<float> values_;
  std::int64_t width_;
};

std::int64_t width_of(const Piece& some, std::span<const std::int64_t> numbers) {
  return some.count / static_cast<std::int64_t>(numbers.size());
}

}  // namespace

const std::vector<std::int64_t>& SparseRows::some_rows(std::int64_t height, std::size_t count,
                                                       std::uint64_t seed) {
  const std::lock_guard lock(mutex_);
  const auto [found, is_new] = rows_.try_emplace({height, count, seed});
  if (!is_new) return found->second;
  std::vector<std::int64_t> all(static_cast<std::size_t>(height));
  std::iota(all.begin(), all.end(), 0);
  std::mt19937_64 random(1000 * seed + static_cast<std::uint64_t>(rank_));
  std::sample(all.begin(), all.end(), std::back_inserter(found->second), count,
              random);  // keeps their order
  return found->second;
}

void SparseRows::fill(const Piece& gradient, std::int64_t width, const Piece& numbers,
                      std::uint64_t seed, const float* values) {
  const std::span<std::int64_t> chosen = numbers_in(numbers);
  const RowsOf rows(gradient, width);
  std::ranges::copy(some_rows(rows.height(), chosen.size(), seed), chosen.begin());
  std::ranges::fill(floats(gradient), 0.0F);
  for (const std::int64_t number : chosen)
    for (float& value : rows[number]) value = *values++ * 0.5F;
}

void SparseRows::take(const Doing& doing, const program::TakeRows& take) {
  const std::span<std::int64_t> numbers = numbers_in(doing.memory.piece(take.rows));
  const Piece to = doing.memory.piece(take.to);
  const RowsOf rows(doing.memory.piece(take.from), width_of(to, numbers));
  auto next = floats(to).begin();
  for (const std::int64_t number : numbers)
    for (const float value : rows[number]) *next++ = value * take.factor;
}

/// In the order of the numbers, so that sums are the same on all ranks to the bit.
void SparseRows::add(const Doing& doing, const program::AddRows& add) {
  const std::span<std::int64_t> numbers = numbers_in(doing.memory.piece(add.rows));
  const Piece from = doing.memory.piece(add.from);
  const RowsOf rows(doing.memory.piece(add.to), width_of(from, numbers));
  for (const std::int64_t number : numbers) std::ranges::fill(rows[number], 0.0F);
  auto next = floats(from).begin();
  for (const std::int64_t number : numbers)
    for (float& value : rows[number]) value += *next++;
}

std::string refusal_of_rows(const program::Job& job, const program::Slice& rows,
                            const program::Slice& some, const program::Slice& all) {
  if (rows.empty() || some.empty() || all.empty()) return "it has no rows";
  if (job.buffers[some.buffer].type != DType::fp32 || job.buffers[all.buffer].type != DType::fp32)
    return "a CPU takes rows of fp32 gradients";
  const Bytes size = size_of(job, rows);
  const std::int64_t count = size.count / std::int64_t{sizeof(std::int64_t)};
  if (count == 0 || size.count % std::int64_t{sizeof(std::int64_t)} != 0 ||
      some.count % count != 0 || all.count % (some.count / count) != 0)
    return "its rows are not of one length";
  return "";
}

}  // namespace ddpsim
