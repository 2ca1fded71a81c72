// What the law of memory patterns says of cuDNN's batch norms, by its forms.
#include <cmath>

#include <catch2/catch.hpp>

#include "model/kernel/kernel_law.hpp"
#include "model/kernel/machine.hpp"

using namespace ddpsim;

namespace batch_norm_law_test {
namespace {

MemoryPattern norm(std::int64_t channels, std::int64_t pixels, bool last, bool backward = false) {
  MemoryPattern pattern;
  pattern.of = PatternKind::batch_norm;
  pattern.rows = channels;
  pattern.columns = pixels;
  pattern.channels_last = last;
  pattern.backward = backward;
  return pattern;
}

double seconds(const MemoryPattern& pattern, DType type, const Machine& machine = {}) {
  return in_seconds(pattern_time(pattern, type, {0}, 1, machine).busy);
}

TEST_CASE("with channels last few channels cost what their pixels cost",
          "[model][batch_norm_law]") {
  // 10^8 pixels at 64 ps take 6.4 ms; the bytes of one channel, 3 x 0.2 GB, 0.14 ms.
  const double one = seconds(norm(1, 100'000'000, true), DType::fp16);
  CHECK(one == Approx(14e-6 + 6.4e-3).epsilon(1e-3));
  // Four channels, whose bytes still take next to no time, as long.
  CHECK(seconds(norm(4, 100'000'000, true), DType::fp16) == Approx(one).epsilon(0.01));
  // A block takes 64 channels in 16 bits and 32 in 32: 128 bytes.
  const double pixels = 1e7 * 64e-12, bytes = 3 * 1e7 * 64 * 4 / 4.23e12;
  CHECK(seconds(norm(64, 10'000'000, true), DType::fp32) ==
        Approx(14e-6 + std::hypot(2 * pixels, bytes)).epsilon(1e-6));
}

TEST_CASE("backward reads twice what forward reads, and a gradient with it",
          "[model][batch_norm_law]") {
  const double pixels = 1e7 * 84e-12, bytes = 5 * 1e7 * 64 * 2 / 4.23e12;
  CHECK(seconds(norm(64, 10'000'000, true, true), DType::fp16) ==
        Approx(14e-6 + std::hypot(pixels, bytes)).epsilon(1e-6));
}

TEST_CASE("a block's pace with channels first is quicker in 16 bits", "[model][batch_norm_law]") {
  // One channel of 10^8 pixels: its block alone works.
  const double wide = seconds(norm(1, 100'000'000, false), DType::fp32);
  const double narrow = seconds(norm(1, 100'000'000, false), DType::fp16);
  CHECK(narrow / wide == Approx(0.78).epsilon(0.01));
}

TEST_CASE("what a V100 does in 32 bits with channels first says nothing of the rest",
          "[model][batch_norm_law]") {
  Machine volta;
  volta.compute_capability = 70;
  const MemoryPattern last = norm(64, 10'000'000, true), first = norm(64, 10'000'000, false);
  CHECK(seconds(last, DType::fp32, volta) == seconds(last, DType::fp32));
  CHECK(seconds(first, DType::fp16, volta) == seconds(first, DType::fp16));
  CHECK(seconds(first, DType::fp32, volta) < seconds(first, DType::fp32));
}

}  // namespace
}  // namespace batch_norm_law_test
