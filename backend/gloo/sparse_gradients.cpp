#include "backend/gloo/sparse_gradients.hpp"

#include <algorithm>
#include <array>
#include <numeric>
#include <random>
#include <stdexcept>

#include <fmt/format.h>

#include "backend/device_error.hpp"

namespace ddpsim {
namespace {

/// What ranks tell each other first: nine numbers, as ProcessGroupGloo's do. Height, width, rows.
using Shape = std::array<std::int64_t, 9>;

[[noreturn]] void refuse_message(Message message) {
  throw std::invalid_argument(fmt::format("{} is no part of a sparse gradient", name_of(message)));
}

std::vector<std::int64_t> some_rows(std::int64_t height, std::int64_t count, std::uint64_t seed) {
  std::vector<std::int64_t> all(static_cast<std::size_t>(height)), some;
  std::iota(all.begin(), all.end(), 0);
  std::mt19937_64 random(seed);
  std::sample(all.begin(), all.end(), std::back_inserter(some), count,
              random);  // keeps their order
  return some;
}

template <typename Value>
std::span<std::byte> bytes_of(std::vector<Value>& values) {
  return std::as_writable_bytes(std::span(values));
}

}  // namespace

void check_sparse_rows(const Workload& workload) {
  for (const Parameter& parameter : workload.parameters) {
    if (!parameter.sparse || parameter.sparse_rows <= parameter.shape.front()) continue;
    throw std::invalid_argument(fmt::format(
        "{} has {} rows, and its sparse gradient would send {}: set rows to at most {}",
        parameter.name, parameter.shape.front(), parameter.sparse_rows, parameter.shape.front()));
  }
}

SparseGradients::SparseGradients(const Workload& workload, int rank) {
  check_sparse_rows(workload);
  for (std::size_t p = 0; p < workload.parameters.size(); ++p) {
    const Parameter& parameter = workload.parameters[p];
    if (!parameter.sparse) continue;
    Gradient gradient;
    gradient.height = parameter.shape.front();
    gradient.width = parameter.elements() / gradient.height;
    const std::int64_t count = parameter.sparse_rows > 0 ? parameter.sparse_rows : gradient.height;
    gradient.rows = some_rows(gradient.height, count, 1000 * p + static_cast<std::size_t>(rank));
    gradient.mine.resize(static_cast<std::size_t>(count * gradient.width));
    gradients_.emplace(static_cast<std::int32_t>(p), std::move(gradient));
  }
}

void SparseGradients::fill(std::int32_t parameter, std::span<float> gradient,
                           std::span<const float> values) {
  const Gradient& sparse = gradients_.at(parameter);
  std::fill(gradient.begin(), gradient.end(), 0.0F);
  auto next = values.begin();
  for (const std::int64_t row : sparse.rows)
    for (float& value : sparse.row(gradient, row)) value = *next++ * 0.5F;
}

void SparseGradients::scale(std::int32_t parameter, std::span<float> gradient, float factor) const {
  const Gradient& sparse = gradients_.at(parameter);
  for (const std::int64_t row : sparse.rows)
    for (float& value : sparse.row(gradient, row)) value *= factor;
}

std::size_t SparseGradients::payload(std::int32_t parameter, Message message) const {
  const Gradient& sparse = gradients_.at(parameter);
  switch (message) {
    case Message::sparse_indices:
      return sparse.rows.size() * sizeof(std::int64_t);
    case Message::sparse_values:
      return sparse.mine.size() * sizeof(float);
    case Message::sparse_shape:
      return sizeof(Shape);
    case Message::gradients:
    case Message::buffers:
    case Message::own:
    case Message::bucket_indices:
    case Message::bucket_lengths:
    case Message::used_map:
    case Message::active_ranks:
    case Message::early_end:
    case Message::buffer_source:
    case Message::will_sync:
    case Message::parameters:
      break;
  }
  refuse_message(message);
}

void SparseGradients::gather(std::int32_t parameter, Message message, std::span<float> gradient,
                             Communicator& communicator, std::uint32_t tag) {
  Gradient& sparse = gradients_.at(parameter);
  switch (message) {
    case Message::sparse_indices:
      return gather_rows(sparse, communicator, tag);
    case Message::sparse_values:
      return gather_values(sparse, gradient, communicator, tag);
    case Message::sparse_shape:
      return gather_shape(sparse, communicator, tag);
    case Message::gradients:
    case Message::buffers:
    case Message::own:
    case Message::bucket_indices:
    case Message::bucket_lengths:
    case Message::used_map:
    case Message::active_ranks:
    case Message::early_end:
    case Message::buffer_source:
    case Message::will_sync:
    case Message::parameters:
      break;
  }
  refuse_message(message);
}

void SparseGradients::gather_shape(Gradient& gradient, Communicator& communicator,
                                   std::uint32_t tag) const {
  const Shape mine{gradient.height, gradient.width,
                   static_cast<std::int64_t>(gradient.rows.size())};
  std::vector<Shape> all(static_cast<std::size_t>(communicator.ranks()));
  communicator.all_gather(std::as_bytes(std::span(mine)), bytes_of(all), tag);
  for (std::size_t rank = 0; rank < all.size(); ++rank)
    if (all[rank] != mine)
      throw DeviceError(
          fmt::format("rank {} has another sparse gradient: {} rows of {} x {}, where this rank "
                      "has {} of {} x {}",
                      rank, all[rank][2], all[rank][0], all[rank][1], mine[2], mine[0], mine[1]));
}

void SparseGradients::gather_rows(Gradient& gradient, Communicator& communicator,
                                  std::uint32_t tag) const {
  gradient.all_rows.resize(gradient.rows.size() * static_cast<std::size_t>(communicator.ranks()));
  communicator.all_gather(std::as_bytes(std::span(gradient.rows)), bytes_of(gradient.all_rows),
                          tag);
  for (const std::int64_t row : gradient.all_rows)
    if (row < 0 || row >= gradient.height)
      throw DeviceError(fmt::format("a rank sends row {} of a sparse gradient that has {}", row,
                                    gradient.height));
}

void SparseGradients::gather_values(Gradient& gradient, std::span<float> values,
                                    Communicator& communicator, std::uint32_t tag) const {
  auto next = gradient.mine.begin();
  for (const std::int64_t row : gradient.rows) {
    const auto from = gradient.row(values, row);
    next = std::copy(from.begin(), from.end(), next);
    std::fill(from.begin(), from.end(), 0.0F);
  }
  gradient.all.resize(gradient.mine.size() * static_cast<std::size_t>(communicator.ranks()));
  communicator.all_gather(std::as_bytes(std::span(gradient.mine)), bytes_of(gradient.all), tag);
  // By rank, so that the sum is the same everywhere to the bit.
  auto theirs = gradient.all.begin();
  for (const std::int64_t row : gradient.all_rows)
    for (float& value : gradient.row(values, row)) value += *theirs++;
}

}  // namespace ddpsim
