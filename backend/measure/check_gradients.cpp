#include "backend/measure/check_gradients.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "backend/measure/measure_step.hpp"
#include "model/base/index.hpp"

namespace ddpsim {
namespace {

std::uint64_t digest(std::span<const float> values) {
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (const float value : values) {
    std::uint32_t bits = 0;
    std::memcpy(&bits, &value, sizeof(bits));
    hash = (hash ^ bits) * 0x100000001b3U;
  }
  return hash;
}

/// What a rank has of a parameter's gradient, of `count` elements if nobody shares it.
program::GradientRange range_of(const ExpectedGradients& expected, int rank, std::size_t parameter,
                                std::size_t count) {
  const auto all = static_cast<std::int64_t>(count);
  if (expected.in_parts == nullptr || expected.in_parts->parts.empty()) return {0, all, 0};
  if (expected.in_parts->parts[parameter].of == nobody) return {0, all, 0};
  return program::gradient_of_rank(*expected.in_parts, rank, parameter);
}

/// [parameter] By the digests of all ranks' gradients. Ranks that keep other parts than this one
/// have other gradients.
std::vector<bool> differs_between_ranks(Backend& backend, const ExpectedGradients& expected,
                                        const std::vector<std::uint64_t>& digests) {
  std::vector<bool> differs(digests.size());
  const auto mine = std::as_bytes(std::span(digests));
  const auto all = backend.gather(mine);
  for (int rank = 0; rank < static_cast<int>(all.size()); ++rank)
    for (std::size_t p = 0; p < digests.size(); ++p) {
      const auto& theirs = all[at(rank)];
      const std::size_t at = p * sizeof(std::uint64_t);
      if (range_of(expected, rank, p, 0) != range_of(expected, backend.rank(), p, 0)) continue;
      differs[p] = differs[p] || theirs.size() != mine.size() ||
                   std::memcmp(theirs.data() + at, mine.data() + at, sizeof(std::uint64_t)) != 0;
    }
  return differs;
}

/// Element by element, over all ranks.
std::vector<double> largest_of_all(Backend& backend, std::vector<double> values) {
  for (const auto& theirs : backend.gather(std::as_bytes(std::span(values))))
    for (std::size_t i = 0; i < values.size() && theirs.size() == values.size() * sizeof(double);
         ++i) {
      double value = 0;
      std::memcpy(&value, theirs.data() + i * sizeof(double), sizeof(double));
      values[i] = std::max(values[i], value);
    }
  return values;
}

/// The distance from 1 to the next number of the type.
double epsilon(DType type) {
  switch (type) {
    case DType::fp32:
    case DType::tf32:
      return 0x1p-23;
    case DType::bf16:
      return 0x1p-7;
    case DType::fp16:
      return 0x1p-10;
    case DType::fp64:
    case DType::complex128:
      return 0x1p-52;
    case DType::complex64:
      return 0x1p-23;
    case DType::fp8_e4m3:
      return 0x1p-3;
    case DType::fp8_e5m2:
      return 0x1p-2;
  }
  return 0x1p-23;
}

std::vector<double> tolerances_of(const Workload& workload, const GradientReference& reference,
                                  const ExpectedGradients& expected) {
  const double widest = *std::max_element(reference.largest.begin(), reference.largest.end());
  std::vector<double> tolerances;
  for (std::size_t p = 0; p < reference.largest.size(); ++p) {
    double unit = epsilon(workload.parameters[p].dtype);
    for (const DType type : expected.wire) unit = std::max(unit, epsilon(type));
    double tolerance = reference.largest[p] * reference.roundings * unit;
    if (!expected.wire.empty()) tolerance += 0x1p-24 * reference.roundings;  // fp16's smallest step
    if (expected.quantized)
      tolerance += 2 * widest / 255;  // a range of -widest to widest, in 255 steps
    tolerances.push_back(
        std::max(tolerance, static_cast<double>(std::numeric_limits<float>::min())));
  }
  return tolerances;
}

}  // namespace

GradientReference reference_gradients(Backend& backend, const Workload& workload,
                                      const program::Job& none, int micro_batches) {
  backend.run(none);
  GradientReference reference;
  std::vector<double> largest;
  for (int p = 0; p < static_cast<int>(workload.parameters.size()); ++p) {
    const std::vector<float> mine = backend.gradient(p);
    std::vector<double> mean(mine.begin(), mine.end());
    double most = 0;
    for (const double value : mean) most = std::max(most, std::abs(value));
    largest.push_back(most);
    backend.sum(mean);
    for (double& value : mean) value /= backend.ranks();
    reference.mean.push_back(std::move(mean));
  }
  reference.roundings = backend.ranks() + micro_batches + 2;
  reference.largest = largest_of_all(backend, std::move(largest));
  return reference;
}

GradientCheck check_gradients(Backend& backend, const Workload& workload,
                              const GradientReference& reference,
                              const ExpectedGradients& expected) {
  const double scale =
      expected.divisor > 0 ? static_cast<double>(backend.ranks()) / expected.divisor : 1;
  const std::vector<double> tolerances = tolerances_of(workload, reference, expected);
  std::vector<std::uint64_t> digests;
  std::vector<double> worst;  // [parameter], of this rank
  for (int p = 0; p < static_cast<int>(workload.parameters.size()); ++p) {
    const std::vector<float> gradient = backend.gradient(p);
    const std::vector<double>& all = reference.mean[at(p)];
    const program::GradientRange range = range_of(expected, backend.rank(), at(p), all.size());
    const auto mean = std::span(all).subspan(static_cast<std::size_t>(range.begin),
                                             static_cast<std::size_t>(range.count));
    const auto found =
        std::span(gradient).subspan(std::min(static_cast<std::size_t>(range.at), gradient.size()));
    const auto mine = found.first(std::min(found.size(), mean.size()));
    digests.push_back(digest(mine));
    const double tolerance = tolerances[static_cast<std::size_t>(p)];
    double most = 0;
    for (std::size_t i = 0; i < mine.size(); ++i) {
      const double off = std::abs(static_cast<double>(mine[i]) - scale * mean[i]) / tolerance;
      most = off > most || std::isnan(off) ? off : most;
      if (std::isnan(off)) break;
    }
    worst.push_back(std::isnan(most) ? std::numeric_limits<double>::max() : most);
  }
  GradientCheck check;
  check.kept = expected.kept;
  const std::vector<bool> differs = differs_between_ranks(backend, expected, digests);
  check.identical = std::ranges::count(differs, true) == 0;
  worst = largest_of_all(backend, std::move(worst));
  if (check.kept == Kept::mean) check.worst = std::ranges::max(worst);
  for (std::size_t p = 0; p < worst.size(); ++p) {
    const bool is_wrong = check.identical ? check.kept == Kept::mean && worst[p] > 1
                                          : check.kept != Kept::nothing && differs[p];
    if (!is_wrong) continue;
    if (check.wrong++ == 0) check.first_wrong = workload.parameters[p].name;
  }
  return check;
}

}  // namespace ddpsim
