#pragma once

#include <algorithm>
#include <cassert>
#include <chrono>
#include <cmath>
#include <compare>
#include <cstdint>
#include <string>

namespace ddpsim {

/// Time is a whole number of picoseconds, so that sums are exact in any order and timelines repeat
/// bit for bit. The range is +-106 days.
using Duration = std::chrono::duration<std::int64_t, std::pico>;

/// The clock of a timeline: zero is the start of the step. It is never read; it only keeps
/// `Instant` from being mixed up with other time points.
struct SimClock {
  using duration = Duration;
  using rep = Duration::rep;
  using period = Duration::period;
  using time_point = std::chrono::time_point<SimClock, Duration>;
  static constexpr bool is_steady = true;
};
using Instant = SimClock::time_point;

/// A whole amount of bytes. KiB, MiB, GiB are powers of 1024; kB, MB, GB powers of 1000.
struct Bytes {
  std::int64_t count = 0;
  auto operator<=>(const Bytes&) const = default;
};
constexpr Bytes operator+(Bytes a, Bytes b) {
  return {a.count + b.count};
}
constexpr Bytes operator-(Bytes a, Bytes b) {
  return {a.count - b.count};
}
constexpr Bytes operator*(std::int64_t times, Bytes a) {
  return {times * a.count};
}
constexpr Bytes& operator+=(Bytes& a, Bytes b) {
  return a = a + b;
}
constexpr Bytes KiB{1024}, MiB{1024 * KiB.count}, GiB{1024 * MiB.count};

struct Bandwidth {
  double bytes_per_second = 0;
  auto operator<=>(const Bandwidth&) const = default;
};
constexpr Bandwidth gigabytes_per_second(double value) {
  return {value * 1e9};
}

struct FlopRate {
  double flops_per_second = 0;
  auto operator<=>(const FlopRate&) const = default;
};
constexpr FlopRate teraflops_per_second(double value) {
  return {value * 1e12};
}

/// Real ticks to whole ones, to the nearest, halves away from zero; what does not fit becomes the
/// farthest time there is. As std::llround, but for the call, which the simulator would spend a
/// tenth of its time on: the largest real below a half carries a fraction of a half or more, and
/// nothing less, to the next whole number. `ticks` must be a number.
inline Duration from_ticks(double ticks) {
  assert(!std::isnan(ticks));
  constexpr double farthest = 8e18, below_half = 0.49999999999999994;
  const double within = std::clamp(ticks, -farthest, farthest);
  return Duration{static_cast<Duration::rep>(within + std::copysign(below_half, within))};
}
/// Here reals become time: rounded once, to the nearest tick.
inline Duration from_seconds(double seconds) {
  return from_ticks(seconds * 1e12);
}
constexpr double in_seconds(Duration time) {
  return static_cast<double>(time.count()) / 1e12;
}
constexpr double in_ms(Duration time) {
  return static_cast<double>(time.count()) / 1e9;
}
constexpr double in_us(Duration time) {
  return static_cast<double>(time.count()) / 1e6;
}
inline double in_ms(Instant at) {
  return in_ms(at.time_since_epoch());
}

inline Duration operator/(Bytes size, Bandwidth rate) {
  return from_seconds(static_cast<double>(size.count) / rate.bytes_per_second);
}
/// `time` made longer or shorter by a real factor, to the nearest tick.
inline Duration scaled(Duration time, double factor) {
  return from_ticks(static_cast<double>(time.count()) * factor);
}

/// For people: "12.3 ms", "25 MiB", "450 GB/s", "989 TFLOP/s"; three significant digits or more.
std::string to_string(Duration time);
std::string to_string(Bytes size);
std::string to_string(Bandwidth rate);
std::string to_string(FlopRate rate);

}  // namespace ddpsim
