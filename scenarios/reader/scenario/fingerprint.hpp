#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>

namespace ddpsim {

/// Tells contents apart: 64 bits of FNV-1a. Not against somebody who wants them to be equal.
/// Source: Fowler, Noll, Vo; draft-eastlake-fnv.
class Fingerprint {
 public:
  /// The texts ("a", "b") differ from ("ab").
  void add(std::string_view text);
  std::uint64_t value() const { return value_; }

 private:
  void mix(unsigned char byte) {
    value_ ^= byte;
    value_ *= 0x100000001b3;
  }

  std::uint64_t value_ = 0xcbf29ce484222325;
};

/// Every file that the text of `file` (YAML) names, relative to its folder, with what those name,
/// and `file` itself: their contents, in that order. What names no file adds nothing. Throws
/// InputError for more than 1000 files.
void add_file(Fingerprint& fingerprint, const std::filesystem::path& file);

/// A value of `--set` for a scenario in `folder`: its text, and the files it names.
void add_setting(Fingerprint& fingerprint, const std::filesystem::path& folder,
                 std::string_view value);

/// Every entry of the catalogue.
void add_catalogue(Fingerprint& fingerprint);

}  // namespace ddpsim
