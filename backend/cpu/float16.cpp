// Each loop is written once, small enough to be vectorised, and compiled twice: for any CPU, and
// for those with AVX2 and F16C. Only fp16 of the latter is written by hand, eight numbers at a
// time: compilers do not use its conversion instructions by themselves.

#include "backend/cpu/float16.hpp"

#include <algorithm>
#include <bit>
#include <cassert>

#include <Eigen/Core>

#if DDPSIM_X86
#include <cpuid.h>
#include <immintrin.h>
#endif

namespace ddpsim {
namespace {

#define DDPSIM_INLINE [[gnu::always_inline]] inline

DDPSIM_INLINE std::uint16_t to_bf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t rounded = (bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16;
  const bool nan = (bits & 0x7fffffffU) > 0x7f800000U;
  return static_cast<std::uint16_t>(nan ? 0x7fc0U : rounded);
}
DDPSIM_INLINE float from_bf16(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}
DDPSIM_INLINE std::uint16_t to_fp16(float value) {
  return Eigen::half_impl::float_to_half_rtne(value).x;
}
DDPSIM_INLINE float from_fp16(std::uint16_t bits) {
  return Eigen::half_impl::half_to_float(Eigen::half_impl::raw_uint16_to_half(bits));
}

DDPSIM_INLINE void narrow_bf16(const float* from, std::uint16_t* to, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) to[i] = to_bf16(from[i]);
}
DDPSIM_INLINE void widen_bf16(const std::uint16_t* from, float* to, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) to[i] = from_bf16(from[i]);
}
DDPSIM_INLINE void add_bf16(std::uint16_t* into, const std::uint16_t* from, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i)
    into[i] = to_bf16(from_bf16(into[i]) + from_bf16(from[i]));
}
/// Magnitudes within [first, infinity).
DDPSIM_INLINE std::int64_t count_from(std::uint32_t first, const float* values, std::size_t count) {
  std::int64_t sum = 0;
  constexpr std::size_t piece = 1 << 14;
  for (std::size_t begin = 0; begin < count; begin += piece) {
    std::uint32_t found = 0;  // as wide as what is compared: it vectorises
    const std::size_t end = std::min(count, begin + piece);
    for (std::size_t i = begin; i < end; ++i) {
      const std::uint32_t magnitude = std::bit_cast<std::uint32_t>(values[i]) & 0x7fffffffU;
      found += static_cast<std::uint32_t>(magnitude - first < 0x7f800000U - first);
    }
    sum += found;
  }
  return sum;
}
/// Counts the values whose exponent has all bits set: infinities and NaN.
DDPSIM_INLINE std::int64_t count_exponent(std::uint16_t exponent, const std::uint16_t* values,
                                          std::size_t count) {
  std::int64_t sum = 0;
  constexpr std::size_t piece = 1 << 14;
  for (std::size_t begin = 0; begin < count; begin += piece) {
    std::uint16_t found = 0;
    const std::size_t end = std::min(count, begin + piece);
    for (std::size_t i = begin; i < end; ++i)
      found = static_cast<std::uint16_t>(found + ((values[i] & exponent) == exponent ? 1 : 0));
    sum += found;
  }
  return sum;
}

#if DDPSIM_X86
#define DDPSIM_AVX2 __attribute__((target("avx2,f16c")))

/// F16C by the processor's own word: clang knows it from release 15 on.
bool has_f16c() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_F16C) != 0;
}

bool has_avx2() {
  static const bool has = __builtin_cpu_supports("avx2") && has_f16c();
  return has;
}

DDPSIM_AVX2 void narrow_bf16_avx2(const float* from, std::uint16_t* to, std::size_t count) {
  narrow_bf16(from, to, count);
}
DDPSIM_AVX2 void widen_bf16_avx2(const std::uint16_t* from, float* to, std::size_t count) {
  widen_bf16(from, to, count);
}
DDPSIM_AVX2 void add_bf16_avx2(std::uint16_t* into, const std::uint16_t* from, std::size_t count) {
  add_bf16(into, from, count);
}
DDPSIM_AVX2 std::int64_t count_from_avx2(std::uint32_t first, const float* values,
                                         std::size_t count) {
  return count_from(first, values, count);
}
DDPSIM_AVX2 std::int64_t count_exponent_avx2(std::uint16_t exponent, const std::uint16_t* values,
                                             std::size_t count) {
  return count_exponent(exponent, values, count);
}

DDPSIM_AVX2 inline __m256 load16(const std::uint16_t* from) {
  return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
}
DDPSIM_AVX2 inline void store16(std::uint16_t* to, __m256 values) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(to),
                   _mm256_cvtps_ph(values, _MM_FROUND_TO_NEAREST_INT));
}
DDPSIM_AVX2 void narrow_fp16_avx2(const float* from, std::uint16_t* to, std::size_t count) {
  std::size_t i = 0;
  for (; i + 8 <= count; i += 8) store16(to + i, _mm256_loadu_ps(from + i));
  for (; i < count; ++i) to[i] = to_fp16(from[i]);
}
DDPSIM_AVX2 void widen_fp16_avx2(const std::uint16_t* from, float* to, std::size_t count) {
  std::size_t i = 0;
  for (; i + 8 <= count; i += 8) _mm256_storeu_ps(to + i, load16(from + i));
  for (; i < count; ++i) to[i] = from_fp16(from[i]);
}
DDPSIM_AVX2 void add_fp16_avx2(std::uint16_t* into, const std::uint16_t* from, std::size_t count) {
  std::size_t i = 0;
  for (; i + 8 <= count; i += 8)
    store16(into + i, _mm256_add_ps(load16(into + i), load16(from + i)));
  for (; i < count; ++i) into[i] = to_fp16(from_fp16(into[i]) + from_fp16(from[i]));
}
#endif

}  // namespace

void narrow(DType type, std::span<const float> from, std::span<std::uint16_t> to) {
  assert(from.size() == to.size());
#if DDPSIM_X86
  if (has_avx2())
    return (type == DType::bf16 ? narrow_bf16_avx2 : narrow_fp16_avx2)(from.data(), to.data(),
                                                                       from.size());
#endif
  if (type == DType::bf16) return narrow_bf16(from.data(), to.data(), from.size());
  for (std::size_t i = 0; i < from.size(); ++i) to[i] = to_fp16(from[i]);
}

void widen(DType type, std::span<const std::uint16_t> from, std::span<float> to) {
  assert(from.size() == to.size());
#if DDPSIM_X86
  if (has_avx2())
    return (type == DType::bf16 ? widen_bf16_avx2 : widen_fp16_avx2)(from.data(), to.data(),
                                                                     from.size());
#endif
  if (type == DType::bf16) return widen_bf16(from.data(), to.data(), from.size());
  for (std::size_t i = 0; i < from.size(); ++i) to[i] = from_fp16(from[i]);
}

void add16(DType type, std::span<std::uint16_t> into, std::span<const std::uint16_t> from) {
  assert(from.size() == into.size());
#if DDPSIM_X86
  if (has_avx2())
    return (type == DType::bf16 ? add_bf16_avx2 : add_fp16_avx2)(into.data(), from.data(),
                                                                 from.size());
#endif
  if (type == DType::bf16) return add_bf16(into.data(), from.data(), from.size());
  for (std::size_t i = 0; i < from.size(); ++i)
    into[i] = to_fp16(from_fp16(into[i]) + from_fp16(from[i]));
}

std::int64_t count_overflows(DType type, std::span<const float> values) {
  // Half way from the largest finite number to the next power of two, which is even: 65520, and
  // 2^128 (1 - 2^-9).
  const std::uint32_t first = type == DType::bf16 ? 0x7f7f8000U : 0x477ff000U;
#if DDPSIM_X86
  if (has_avx2()) return count_from_avx2(first, values.data(), values.size());
#endif
  return count_from(first, values.data(), values.size());
}

std::int64_t count_not_finite(DType type, std::span<const std::uint16_t> values) {
  const std::uint16_t exponent = type == DType::bf16 ? 0x7f80 : 0x7c00;
#if DDPSIM_X86
  if (has_avx2()) return count_exponent_avx2(exponent, values.data(), values.size());
#endif
  return count_exponent(exponent, values.data(), values.size());
}

}  // namespace ddpsim
