#include "backend/comm_hooks/power_sgd.hpp"

#include <stdexcept>

#include <fmt/format.h>

#include "backend/comm_hooks/orthogonalize.hpp"
#include "backend/gloo/gemm.hpp"

namespace ddpsim {
namespace {

std::size_t size(std::int64_t count) {
  return static_cast<std::size_t>(count);
}

}  // namespace

PowerSgdBucket::PowerSgdBucket(const PowerSgd& state, bool batched, int ranks,
                               std::span<const CommBucket::Matrix> gradients, std::size_t elements)
    : state_(state), batched_(batched), ranks_(ranks) {
  std::vector<Piece> places;  // of the gradients in the bucket
  std::vector<LowRank> shapes;
  if (batched) {
    const std::int64_t side = batched_side(static_cast<std::int64_t>(elements));
    shapes.push_back({nobody, side, side, state.rank});
    if (state.rank > side)
      throw std::invalid_argument(
          fmt::format("batched_powersgd of rank {} needs buckets of more than {} elements",
                      state.rank, elements));
  } else {
    shapes = low_rank_gradients(state, gradients);
    std::size_t begin = 0;
    for (const auto& [rows, columns] : gradients) {
      places.push_back({begin, size(rows * columns)});
      begin += places.back().count;
    }
    if (begin != elements)
      throw std::invalid_argument(
          fmt::format("a bucket of {} elements has gradients of {}", elements, begin));
  }
  std::vector<bool> taken(places.size());
  for (const LowRank& shape : shapes) {
    Pieces pieces{shape, {0, size(shape.rows * shape.columns)}, {}, {}};
    if (shape.tensor != nobody) {
      pieces.m = places[size(shape.tensor)];
      taken[size(shape.tensor)] = true;
    }
    pieces.p = {p_size_, size(shape.rows * shape.rank)};
    pieces.q = {q_size_, size(shape.columns * shape.rank)};
    p_size_ += pieces.p.count;
    q_size_ += pieces.q.count;
    compressed_.push_back(pieces);
  }
  for (std::size_t i = 0; i < places.size(); ++i) {
    if (taken[i]) continue;
    small_pieces_.push_back(places[i]);
    small_size_ += places[i].count;
  }
}

const PowerSgdBucket::Pieces& PowerSgdBucket::pieces_of(const CommStep& step) const {
  for (const Pieces& pieces : compressed_)
    if (pieces.shape.tensor == step.tensor) return pieces;
  throw std::invalid_argument(
      fmt::format("gradient {} of a bucket is not compressed", step.tensor));
}

void PowerSgdBucket::run(const CommStep& step, const Values& data, const Seed& next) {
  // They are made here, and not where they are first written: a measurement of kernels alone runs no
  // collectives, a schedule of the steady state has no first time.
  small_.resize(step.type, small_size_);
  p_.resize(step.type, p_size_);
  q_.resize(step.type, q_size_);
  const auto ranks = static_cast<float>(ranks_);
  switch (step.action) {
    case CommAction::add_error:
      error_.resize(step.type, data.size());
      combine(data, error_.values(), [](auto values, auto errors) {
        for (std::size_t i = 0; i < values.size(); ++i) values[i] += errors[i];
      });
      return;
    case CommAction::keep_input:
      input_.resize(step.type, data.size());
      copy(input_.values(), data);
      return;
    case CommAction::keep_error:
      input_.resize(step.type, data.size());
      error_.resize(step.type, data.size());
      copy(error_.values(), input_.values());
      combine(error_.values(), data, [](auto errors, auto values) {
        for (std::size_t i = 0; i < values.size(); ++i) errors[i] -= values[i];
      });
      return;
    case CommAction::pack:
      pack(step, data, next);
      return;
    case CommAction::unpack: {
      small_.values().change([&](auto values, std::size_t) {
        for (float& value : values) value /= ranks;
      });
      std::size_t begin = 0;
      for (const Piece& piece : small_pieces_) {
        copy(data.part(piece.begin, piece.count), small_.values().part(begin, piece.count));
        begin += piece.count;
      }
      return;
    }
    case CommAction::draw_q:
      draw(pieces_of(step), step.type, next);
      return;
    case CommAction::orthogonalize_q: {
      // A schedule of the steady state begins without draw_q.
      if (!drawn_)
        for (const Pieces& pieces : compressed_) draw(pieces, step.type, next);
      const Pieces& pieces = pieces_of(step);
      orthogonalize(step, q_.values().part(pieces.q.begin, pieces.q.count), pieces.shape.columns,
                    pieces.shape.rank);
      return;
    }
    case CommAction::orthogonalize_p: {
      const Pieces& pieces = pieces_of(step);
      orthogonalize(step, p_.values().part(pieces.p.begin, pieces.p.count), pieces.shape.rows,
                    pieces.shape.rank);
      return;
    }
    case CommAction::divide_q:
      q_.values().change([&](auto values, std::size_t) {
        for (float& value : values) value /= ranks;
      });
      return;
    case CommAction::project:
    case CommAction::back_project:
    case CommAction::reconstruct:
      multiply(step, data);
      return;
    default:
      throw std::invalid_argument(
          fmt::format("not a kernel of PowerSGD: {}", name_of(step.action)));
  }
}

Values PowerSgdBucket::reduced(const CommStep& step) {
  Numbers& numbers = step.action == CommAction::reduce_p   ? p_
                     : step.action == CommAction::reduce_q ? q_
                                                           : small_;
  numbers.resize(step.type, step.action == CommAction::reduce_p   ? p_size_
                            : step.action == CommAction::reduce_q ? q_size_
                                                                  : small_size_);
  return numbers.values();
}

std::vector<float> PowerSgdBucket::error() {
  std::vector<float> copy(error_.size());
  error_.values().each([&](auto piece, std::size_t begin) {
    std::ranges::copy(piece, copy.begin() + static_cast<std::ptrdiff_t>(begin));
  });
  return copy;
}

/// One seed for all Q of a bucket. Of 16 bits they are fp32's, rounded (torch draws 16 numbers and more
/// from coarser uniform ones then).
void PowerSgdBucket::draw(const Pieces& pieces, DType type, const Seed& next) {
  if (&pieces == compressed_.data()) random_.emplace(next());
  if (!random_) throw std::invalid_argument("Q is drawn in another order than it lies in");
  q_.resize(type, q_size_);
  const InFull q(q_.values().part(pieces.q.begin, pieces.q.count));
  random_->randn(q.get());
  q.put_back();
  drawn_ = true;
}

void PowerSgdBucket::orthogonalize(const CommStep& step, Values matrix, std::int64_t rows,
                                   std::int64_t rank) {
  const InFull full(matrix);
  // torch 1.13 does not hand the epsilon to the batched variant.
  ddpsim::orthogonalize(full.get(), rows, rank, batched_ ? 0 : state_.orthogonalization_epsilon,
                        size_of(step.type) < Bytes{4});
  full.put_back();
}

void PowerSgdBucket::multiply(const CommStep& step, const Values& data) {
  const Pieces& pieces = pieces_of(step);
  const auto [tensor, n, m, r] = pieces.shape;
  const InFull matrix(data.part(pieces.m.begin, pieces.m.count));
  const InFull p(p_.values().part(pieces.p.begin, pieces.p.count));
  const InFull q(q_.values().part(pieces.q.begin, pieces.q.count));
  if (step.action == CommAction::project) {
    gemm(GemmLayout::nn, n, r, m, matrix.data(), q.data(), p.data());
    p.put_back();
  } else if (step.action == CommAction::back_project) {
    gemm(GemmLayout::tn, m, r, n, matrix.data(), p.data(), q.data());
    q.put_back();
  } else {
    gemm(GemmLayout::nt, n, m, r, p.data(), q.data(), matrix.data());
    matrix.put_back();
  }
}

void PowerSgdBucket::pack(const CommStep& step, const Values& data, const Seed& next) {
  small_.resize(step.type, small_size_);
  std::size_t begin = 0;
  for (const Piece& piece : small_pieces_) {
    copy(small_.values().part(begin, piece.count), data.part(piece.begin, piece.count));
    begin += piece.count;
  }
  // With nothing to draw for, torch takes a seed all the same.
  if (!compressed_.empty() || (drawn_ && state_.warm_start)) return;
  next();
  drawn_ = true;
}

}  // namespace ddpsim
