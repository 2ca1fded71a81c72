// Bucket assignment of random lists: against what holds of every list, and against PyTorch itself,
// which bucket_oracle.py asks.
#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <random>
#include <ranges>
#include <sstream>
#include <string>

#include <catch2/catch.hpp>

#include "model/parallel/bucketing.hpp"
#include "tests/torch_oracle.hpp"

namespace ddpsim {
namespace {

struct Case {
  std::vector<Bytes> limits;
  std::vector<std::int64_t> elements;  // like `gradients`, one per parameter
  std::vector<GradientInfo> gradients;
  std::vector<int> arrival;  // empty: torch is given no indices
};

std::uint64_t draw(std::mt19937_64& random, std::uint64_t low, std::uint64_t high) {
  return low + random() % (high - low + 1);
}

/// Spread over the orders of magnitude below 2^bits; in `grain`s, so that sums meet limits exactly.
std::int64_t draw_size(std::mt19937_64& random, std::uint64_t bits, std::int64_t grain) {
  const std::uint64_t top = std::uint64_t{1} << draw(random, 0, bits);
  return static_cast<std::int64_t>(draw(random, top / 2, top)) / grain * grain;
}

std::vector<int> registration_order(const Case& one) {
  std::vector<int> order(one.gradients.size());
  std::iota(order.begin(), order.end(), 0);
  return order;
}

Case random_case(std::mt19937_64& random) {
  Case result;
  const std::int64_t grain = draw(random, 0, 1) ? 1 : 1 << 18;
  const std::uint64_t dtypes = draw(random, 1, all_dtypes.size());
  for (std::uint64_t left = draw(random, 1, 3); left > 0; --left)
    result.limits.push_back({std::max(draw_size(random, 26, grain), std::int64_t{1})});
  if (draw(random, 0, 19) == 0)
    result.limits.back() = {std::numeric_limits<std::int64_t>::max()};  // as at construction
  for (std::uint64_t left = draw(random, 1, 60); left > 0; --left) {
    const DType dtype = all_dtypes.at(draw(random, 0, dtypes - 1));
    result.elements.push_back(draw_size(random, 23, grain));  // up to 8 388 608
    result.gradients.push_back({.size = result.elements.back() * size_of(dtype),
                                .dtype = dtype,
                                .sparse = draw(random, 0, 14) == 0});
  }
  if (draw(random, 0, 2) > 0) {
    result.arrival = registration_order(result);
    for (std::size_t last = result.arrival.size() - 1; last > 0; --last)
      std::swap(result.arrival[last], result.arrival[draw(random, 0, last)]);
  }
  return result;
}

std::vector<int> order_of(const Case& one) {
  return one.arrival.empty() ? registration_order(one) : one.arrival;
}

DType type_in_memory(DType type) {
  return type == DType::tf32 ? DType::fp32 : type;
}

/// The buckets of one dtype in the order they were filled: each has the limit whose turn it is, and
/// closed when the rule says, neither earlier nor later. The last may be a leftover.
void check_limits(const std::vector<BucketAssignment>& filled, const Case& one, BucketRule rule) {
  const auto size_of_index = [&](int i) { return one.gradients[static_cast<std::size_t>(i)].size; };
  for (std::size_t i = 0; i < filled.size(); ++i) {
    const auto& [inside, limit] = filled[i];
    Bytes size;
    for (const int index : inside) size += size_of_index(index);
    const bool last = i + 1 == filled.size();
    REQUIRE(limit == one.limits[std::min(i, one.limits.size() - 1)]);
    if (rule == BucketRule::torch) {
      REQUIRE((last || size >= limit));
      REQUIRE((inside.size() == 1 || size - size_of_index(inside.back()) < limit));
    } else {
      REQUIRE((last || size + size_of_index(filled[i + 1].parameters.front()) > limit));
      REQUIRE((size <= limit || size == size_of_index(inside.front())));
    }
  }
}

TEST_CASE("any list is divided by its rule and nothing is lost", "[model][bucketing]") {
  std::mt19937_64 random{20};
  for (int round = 0; round < 2000; ++round) {
    const Case one = random_case(random);
    const BucketRule rule = round % 2 ? BucketRule::torch : BucketRule::before_overflow;
    const std::vector<int> order = order_of(one);
    std::vector<std::size_t> place(order.size());
    for (std::size_t i = 0; i < order.size(); ++i) place[static_cast<std::size_t>(order[i])] = i;
    std::vector<int> seen;
    std::map<DType, std::vector<BucketAssignment>> filled;
    std::vector<std::vector<int>> by_index;
    for (const auto& bucket : assign_buckets(one.gradients, order, one.limits, rule)) {
      const std::vector<int>& inside = bucket.parameters;
      REQUIRE(!inside.empty());
      REQUIRE(std::ranges::is_sorted(
          inside, {}, [&](int index) { return place[static_cast<std::size_t>(index)]; }));
      const GradientInfo& first = one.gradients[static_cast<std::size_t>(inside.front())];
      for (const int index : inside) {
        const GradientInfo& gradient = one.gradients[static_cast<std::size_t>(index)];
        REQUIRE(type_in_memory(gradient.dtype) == type_in_memory(first.dtype));
        REQUIRE((!gradient.sparse || (inside.size() == 1 && bucket.limit == Bytes{0})));
      }
      if (!first.sparse) filled[type_in_memory(first.dtype)].push_back(bucket);
      seen.insert(seen.end(), inside.begin(), inside.end());
      by_index.push_back(inside);
    }
    for (const auto& [dtype, buckets] : filled) check_limits(buckets, one, rule);
    std::ranges::sort(seen);
    REQUIRE(seen == registration_order(one));

    std::ranges::sort(by_index, {}, [](const auto& inside) { return std::ranges::min(inside); });
    const auto sorted = assign_buckets(one.gradients, order, one.limits, rule, true);
    REQUIRE(std::ranges::equal(sorted, by_index, {}, &BucketAssignment::parameters));
  }
}

void write(std::ostream& out, const Case& one) {
  for (const Bytes limit : one.limits) out << limit.count << ' ';
  out << '\n';
  for (const std::int64_t count : one.elements) out << count << ' ';
  out << '\n';
  for (const GradientInfo& gradient : one.gradients) out << name_of(gradient.dtype) << ' ';
  out << '\n';
  for (const GradientInfo& gradient : one.gradients) out << gradient.sparse << ' ';
  out << '\n';
  for (const int index : one.arrival) out << index << ' ';
  out << '\n';
}

/// A bucket as a line of the oracle: its limit, then its indices.
using Line = std::vector<std::int64_t>;

std::vector<Line> read_answer(std::istream& in) {
  std::vector<Line> buckets;
  std::string text;
  while (std::getline(in, text) && !text.empty()) {
    std::istringstream words(text);
    Line line;
    for (std::int64_t number = 0; words >> number;) line.push_back(number);
    buckets.push_back(std::move(line));
  }
  return buckets;
}

std::vector<Line> our_answer(const Case& one) {
  std::vector<Line> buckets;
  for (const auto& [parameters, limit] : assign_buckets(one.gradients, order_of(one), one.limits,
                                                        BucketRule::torch, one.arrival.empty())) {
    buckets.push_back({limit.count});
    buckets.back().insert(buckets.back().end(), parameters.begin(), parameters.end());
  }
  return buckets;
}

TEST_CASE("buckets and limits are those of PyTorch", "[model][bucketing][oracle]") {
  std::mt19937_64 random{1};
  std::vector<Case> cases(4000);
  for (Case& one : cases) one = random_case(random);

  std::ostringstream questions;
  for (const Case& one : cases) write(questions, one);
  const std::optional<std::string> answers =
      ask_torch("model/parallel/bucket_oracle.py", questions.str());
  if (!answers) return;

  std::istringstream in(*answers);
  for (std::size_t i = 0; i < cases.size(); ++i) {
    CAPTURE(i);
    REQUIRE(our_answer(cases[i]) == read_answer(in));
  }
}

}  // namespace
}  // namespace ddpsim
