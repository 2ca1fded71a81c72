// Comm hooks' numbers against torch's own hooks, on two processes over Gloo (comm_hooks_oracle.py).

#include <cmath>
#include <cstdlib>
#include <sstream>

#include <catch2/catch.hpp>
#include <fmt/format.h>

#include "tests/backend/hooked_job.hpp"
#include "tests/torch_oracle.hpp"

namespace ddpsim {
namespace {

constexpr int ranks = 2;

std::string line_of(std::span<const float> values) {
  std::string line;
  for (const float value : values) line += fmt::format("{:.9g} ", value);
  return line + "\n";
}

template <class Number>
std::vector<Number> numbers_of(std::istream& answers) {
  std::string line, word;
  REQUIRE(std::getline(answers, line));
  std::vector<Number> numbers;
  for (std::istringstream words(line); words >> word;)
    numbers.push_back(static_cast<Number>(std::strtod(word.c_str(), nullptr)));
  return numbers;
}

float largest(std::span<const float> values) {
  float most = 0;
  for (const float value : values) most = std::max(most, std::abs(value));
  return most;
}

/// Equal within `tolerance` of the largest value.
void require_close(std::span<const float> ours, std::span<const float> torchs, float tolerance) {
  REQUIRE(ours.size() == torchs.size());
  const float allowed = tolerance * std::max(largest(torchs), 1e-3F);
  float worst = 0;
  for (std::size_t i = 0; i < ours.size(); ++i) {
    const float error = std::abs(ours[i] - torchs[i]);
    worst = error <= worst ? worst : error;  // NaN stays
  }
  CHECK(worst <= allowed);
}

/// Shapes of gradients, and the bucket of them.
struct Shapes {
  std::vector<std::vector<std::int64_t>> gradients;

  CommBucket bucket() const {
    CommBucket made;
    for (const auto& shape : gradients) made.gradients.push_back(matrix_of(shape));
    return made;
  }
  std::string text() const {
    std::string all;
    for (const auto& shape : gradients) {
      if (!all.empty()) all += ",";
      for (std::size_t d = 0; d < shape.size(); ++d)
        all += fmt::format("{}{}", d == 0 ? "" : "x", shape[d]);
    }
    return all;
  }
};

/// A hook over some steps on given gradients, as a question to torch and done here.
struct Case {
  CommHook hook;
  std::vector<Shapes> shapes;
  int steps = 1;
  float scale = 1;
  std::vector<std::vector<PerRank>> gradients{};  ///< [step][bucket][rank]

  void draw(std::mt19937& engine) {
    for (int step = 0; step < steps; ++step) {
      auto& buckets = gradients.emplace_back();
      for (const Shapes& each : shapes) {
        PerRank& values = buckets.emplace_back();
        for (int rank = 0; rank < ranks; ++rank)
          values.push_back(random_values(engine, each.bucket().elements(), scale));
      }
    }
  }
  std::string question() const {
    std::string all;
    for (const Shapes& each : shapes) {
      if (!all.empty()) all += ';';
      all += each.text();
    }
    const PowerSgd& state = hook.powersgd;
    std::string text = fmt::format(
        "{} rank={} start={} min_compression_rate={} error_feedback={:d} warm_start={:d} "
        "epsilon={} seed={} steps={} shapes={}\n",
        name_of(hook.kind), state.rank, state.start_iteration, state.min_compression_rate,
        state.error_feedback, state.warm_start, state.orthogonalization_epsilon, state.seed, steps,
        all);
    for (const auto& buckets : gradients)
      for (const PerRank& bucket : buckets)
        for (const auto& values : bucket) text += line_of(values);
    return text;
  }
  void compare(std::istream& answers, float tolerance) const {
    std::vector<CommBucket> buckets;
    for (const Shapes& each : shapes) buckets.push_back(each.bucket());
    HookedJob job(hook, buckets, ranks);
    for (int step = 0; step < steps; ++step)
      for (std::size_t b = 0; b < shapes.size(); ++b) {
        PerRank values = gradients[static_cast<std::size_t>(step)][b];
        job.run(static_cast<int>(b), step + 1, values);
        const PowerSgd& state = hook.powersgd;
        INFO(label(hook) << " feedback " << state.error_feedback << " warm " << state.warm_start
                         << " epsilon " << state.orthogonalization_epsilon << ", step " << step
                         << ", bucket " << b);
        CHECK(values[0] == values[1]);
        require_close(values[0], numbers_of<float>(answers), tolerance);
        std::vector<float> errors;
        for (std::size_t rank = 0; rank < ranks; ++rank) {
          const std::vector<float> error = job.ranks().error(rank, static_cast<std::int32_t>(b));
          errors.insert(errors.end(), error.begin(), error.end());
        }
        require_close(errors, numbers_of<float>(answers), tolerance);
      }
  }
};

/// Asks torch all of them at once.
void compare(std::vector<Case> cases, float tolerance) {
  std::mt19937 engine(11);
  std::string questions;
  for (Case& each : cases) {
    each.draw(engine);
    questions += each.question();
  }
  const auto answer = ask_torch("backend/comm_hooks/comm_hooks_oracle.py", questions);
  if (!answer) return;
  std::istringstream answers(*answer);
  for (const Case& each : cases) each.compare(answers, tolerance);
  std::string rest;
  CHECK_FALSE(std::getline(answers, rest));
}

CommHook powersgd(CommHookKind kind, int rank, bool feedback, bool warm) {
  CommHook hook;
  hook.kind = kind;
  hook.powersgd.rank = rank;
  hook.powersgd.start_iteration = 2;
  hook.powersgd.error_feedback = feedback;
  hook.powersgd.warm_start = warm;
  hook.powersgd.seed = 42;
  return hook;
}

}  // namespace

TEST_CASE("PowerSGD gives torch's gradients and errors, from the same seed, over several steps",
          "[backend][comm_hooks][oracle]") {
  // Matrices of one shape apart from each other, one of four dimensions, one too small to compress,
  // vectors; a bucket of vectors alone, which takes a seed all the same; Qs of fewer and of more
  // than 16 numbers, which torch draws differently.
  const std::vector<Shapes> shapes{
      {{{16, 12}, {16}, {20, 24}, {16, 12}, {3, 3}, {8, 4, 3, 3}}},
      {{{7}, {5}}},
      {{{24, 20}, {11}}},
  };
  std::vector<Case> cases;
  for (const int rank : {1, 2, 4})
    for (const bool feedback : {false, true})
      for (const bool warm : {false, true}) {
        cases.push_back({powersgd(CommHookKind::powersgd, rank, feedback, warm), shapes, 6});
        cases.back().hook.powersgd.min_compression_rate = rank == 4 ? 1 : 2;
      }
  cases.push_back({powersgd(CommHookKind::powersgd, 2, true, true), shapes, 5});
  cases.back().hook.powersgd.orthogonalization_epsilon = 0.25;  // enough to be seen
  compare(std::move(cases), 5e-5F);
}

TEST_CASE("batched PowerSGD gives torch's gradients and errors, padding included",
          "[backend][comm_hooks][oracle]") {
  std::vector<Case> cases;
  for (const int rank : {1, 2, 4})
    for (const bool feedback : {false, true})
      for (const bool warm : {false, true})
        cases.push_back({powersgd(CommHookKind::batched_powersgd, rank, feedback, warm),
                         {{{{16, 12}, {16}}}, {{{10, 10}}}},
                         5});
  compare(std::move(cases), 5e-5F);
}

TEST_CASE("quantisation gives torch's gradients, per tensor and per channel",
          "[backend][comm_hooks][oracle]") {
  // 512 elements are padded by as many. 1e-6: the range is below what torch's scale resolves.
  std::vector<Case> cases;
  for (const float scale : {1.0F, 1e3F, 1e-6F})
    for (const CommHookKind kind :
         {CommHookKind::quantization_pertensor, CommHookKind::quantization_perchannel}) {
      CommHook hook;
      hook.kind = kind;
      cases.push_back({hook, {{{{700}}}, {{{512}}}, {{{3}}}}, 1, scale});
    }
  compare(std::move(cases), 0);
}

TEST_CASE("fp16_compress and allreduce give torch's gradients to the bit",
          "[backend][comm_hooks][oracle]") {
  std::vector<Case> cases;
  for (const float scale : {1.0F, 1e-6F, 1e4F})  // 1e-6: subnormal in fp16
    for (const CommHookKind kind : {CommHookKind::allreduce, CommHookKind::fp16_compress}) {
      CommHook hook;
      hook.kind = kind;
      cases.push_back({hook, {{{{70, 61}, {3}}}}, 1, scale});
    }
  compare(std::move(cases), 0);
}

TEST_CASE("casts to 16 bit, and sums of them, are torch's to the bit",
          "[backend][comm_hooks][oracle]") {
  std::mt19937 engine(3);
  // Ties both ways, the ends of the finite and of the normal numbers, zeros, infinities.
  std::vector<float> values{0,           -0.0F,     1,         1 + 0x1p-11F, 1 + 0x3p-11F,
                            1 + 0x1p-8F, 65504,     65519.9F,  65520,        -65536,
                            0x1p-14F,    0x1p-24F,  0x1p-25F,  0x1.8p-25F,   3.3895e38F,
                            3.3961e38F,  0x1p-133F, 0x1p-140F, INFINITY,     -INFINITY};
  for (int i = 0; i < 5000; ++i)
    values.push_back(std::ldexp(random_values(engine, 1)[0], static_cast<int>(engine() % 60) - 40));
  const auto answer =
      ask_torch("backend/comm_hooks/comm_hooks_oracle.py", "casts\n" + line_of(values));
  if (!answer) return;
  std::istringstream answers(*answer);
  for (const DType type : {DType::fp16, DType::bf16}) {
    INFO(name_of(type));
    std::vector<std::uint16_t> bits(values.size());
    narrow(type, values, bits);
    CHECK(bits == numbers_of<std::uint16_t>(answers));
    std::vector<std::uint16_t> sums = bits, before = bits;
    std::ranges::rotate(before, before.end() - 1);
    add16(type, sums, before);
    const auto expected = numbers_of<std::uint16_t>(answers);
    REQUIRE(expected.size() == sums.size());
    const int exponent = type == DType::fp16 ? 0x7c00 : 0x7f80;
    const auto same = [&](int one, int other) {  // a NaN is as good as another
      return one == other || ((one & 0x7fff) > exponent && (other & 0x7fff) > exponent);
    };
    CHECK(std::ranges::equal(sums, expected, same));
    // And back: every number of 16 bits is itself again.
    std::vector<std::uint16_t> all(1 << 16), again(1 << 16);
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::uint16_t>(i);
    std::vector<float> wide(1 << 16);
    widen(type, all, wide);
    narrow(type, wide, again);
    CHECK(std::ranges::equal(all, again, same));
  }
}

}  // namespace ddpsim
