#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ddpsim::golden {

using Words = std::vector<std::string>;

/// What a seed draws for places, such as "training.bucket_cap". What is drawn for one place depends
/// on no other place, so that a new key of a format changes only the scenarios in which it appears.
class Draw {
 public:
  explicit Draw(std::uint64_t seed) : seed_(seed) {}

  /// Any 64 bits.
  std::uint64_t number(std::string_view place) const {
    std::uint64_t bits = 0xcbf29ce484222325 ^ (seed_ * 0x9e3779b97f4a7c15);
    for (const char c : place) bits = (bits ^ static_cast<unsigned char>(c)) * 0x100000001b3;
    bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9;
    bits = (bits ^ (bits >> 27)) * 0x94d049bb133111eb;
    return bits ^ (bits >> 31);
  }
  /// Each of low ... high.
  std::int64_t between(std::string_view place, std::int64_t low, std::int64_t high) const {
    const auto values = static_cast<std::uint64_t>(high - low) + 1;
    return low + static_cast<std::int64_t>(number(place) % values);
  }
  bool chance(std::string_view place, int percent) const { return between(place, 0, 99) < percent; }
  /// One of the words, of which there is one at least. Each word has a number of its own, and the
  /// largest wins: one more word changes only those draws that it wins.
  std::string any_of(std::string_view place, const Words& words) const {
    const std::string* best = nullptr;
    std::uint64_t most = 0;
    for (const std::string& word : words) {
      const std::uint64_t here = number(std::string(place) + "=" + word);
      if (best && here <= most) continue;
      best = &word;
      most = here;
    }
    return *best;
  }

 private:
  std::uint64_t seed_;
};

}  // namespace ddpsim::golden
