#include "backend/comm_hooks/power_sgd.hpp"

#include <stdexcept>

#include <fmt/format.h>

#include "backend/comm_hooks/orthogonalize.hpp"
#include "backend/cpu/gemm.hpp"

namespace ddpsim {
namespace {

std::size_t size(std::int64_t count) {
  return static_cast<std::size_t>(count);
}

Values part(const Values& values, LowRankLayout::Range range) {
  return values.part(size(range.begin), size(range.count));
}

}  // namespace

Values PowerSgdBucket::numbers(HookPiece piece, DType type, std::size_t data_size) {
  const auto resized = [type](Numbers& numbers, std::size_t count) {
    numbers.resize(type, count);
    return numbers.values();
  };
  switch (piece) {
    case HookPiece::small:
      return resized(small_, size(layout_.small_size));
    case HookPiece::p:
      return resized(p_, size(layout_.p_size));
    case HookPiece::q:
      return resized(q_, size(layout_.q_size));
    case HookPiece::input:
      return resized(input_, data_size);
    case HookPiece::error:
      return resized(error_, data_size);
    case HookPiece::none:
    case HookPiece::data:
    case HookPiece::matrix:
    case HookPiece::scales:
    case HookPiece::codes:
    case HookPiece::pairs:
    case HookPiece::own_part:
    case HookPiece::plugin_payload:
    case HookPiece::parameters:
      break;
  }
  throw std::logic_error("not a piece of PowerSGD");
}

void PowerSgdBucket::pack(const CommStep& step, const Values& data, const NextSeed& next) {
  const Values small = numbers(HookPiece::small, step.type, data.size());
  std::size_t begin = 0;
  for (const LowRankLayout::Range& range : layout_.uncompressed) {
    copy(small.part(begin, size(range.count)), part(data, range));
    begin += size(range.count);
  }
  // With nothing to draw for, torch takes a seed all the same.
  if (!layout_.compressed.empty() || (drawn_ && step.keeps_random)) return;
  next();
  drawn_ = true;
}

void PowerSgdBucket::unpack(const CommStep& step, const Values& data, int ranks) {
  const Values small = numbers(HookPiece::small, step.type, data.size());
  divide_by(small, ranks);
  std::size_t begin = 0;
  for (const LowRankLayout::Range& range : layout_.uncompressed) {
    copy(part(data, range), small.part(begin, size(range.count)));
    begin += size(range.count);
  }
}

void PowerSgdBucket::draw(const CommStep& step, const NextSeed& next) {
  draw(layout_.of(step.tensor), step.type, next);
}

/// One seed for all Q of a bucket. Of 16 bits they are fp32's, rounded (torch draws 16 numbers and
/// more from coarser uniform ones then).
void PowerSgdBucket::draw(const LowRankLayout::Compressed& gradient, DType type,
                          const NextSeed& next) {
  if (&gradient == layout_.compressed.data()) random_.emplace(next());
  if (!random_) throw std::invalid_argument("Q is drawn in another order than it lies in");
  const InFull q(part(numbers(HookPiece::q, type, 0), gradient.q));
  random_->randn(q.get());
  q.put_back();
  drawn_ = true;
}

void PowerSgdBucket::orthogonalize(HookPiece target, const CommStep& step, const NextSeed& next) {
  if (target == HookPiece::q && !drawn_)
    for (const LowRankLayout::Compressed& each : layout_.compressed) draw(each, step.type, next);
  const LowRankLayout::Compressed& gradient = layout_.of(step.tensor);
  const bool is_q = target == HookPiece::q;
  const InFull matrix(part(numbers(target, step.type, 0), is_q ? gradient.q : gradient.p));
  ddpsim::orthogonalize(matrix.get(), is_q ? gradient.shape.columns : gradient.shape.rows,
                        gradient.shape.rank, step.factor, size_of(step.type) < Bytes{4});
  matrix.put_back();
}

void PowerSgdBucket::multiply(HookPiece target, const CommStep& step, const Values& data) {
  const LowRankLayout::Compressed& gradient = layout_.of(step.tensor);
  const auto [tensor, rows, columns, rank] = gradient.shape;
  const InFull m(part(data, gradient.m));
  const InFull p(part(numbers(HookPiece::p, step.type, 0), gradient.p));
  const InFull q(part(numbers(HookPiece::q, step.type, 0), gradient.q));
  if (target == HookPiece::p) {
    gemm(GemmLayout::nn, rows, rank, columns, m.data(), q.data(), p.data());
    p.put_back();
  } else if (target == HookPiece::q) {
    gemm(GemmLayout::tn, columns, rank, rows, m.data(), p.data(), q.data());
    q.put_back();
  } else {
    gemm(GemmLayout::nt, rows, columns, rank, p.data(), q.data(), m.data());
    m.put_back();
  }
}

std::vector<float> PowerSgdBucket::error() {
  std::vector<float> copied(error_.size());
  error_.values().each([&](auto piece, std::size_t begin) {
    std::ranges::copy(piece, copied.begin() + static_cast<std::ptrdiff_t>(begin));
  });
  return copied;
}

}  // namespace ddpsim
