#pragma once

#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace ddpsim {

/// What a command is going to write. Nothing is touched before everything has been computed; then
/// each file is written whole beside its place, and when all are, renamed into it: a reader never
/// sees half of one, and a file that cannot be written leaves the others as they were. Stdout comes
/// last.
class Outputs {
 public:
  /// "-" is stdout, "" is nowhere.
  void add(const std::string& path, std::string content);
  /// Throws InputError if a file could not be written now; leaves nothing behind.
  void check() const;
  /// Throws InputError if a file cannot be written, std::runtime_error if stdout cannot.
  void commit() const;

 private:
  std::vector<std::pair<std::string, std::string>> files_;
};

/// Indented JSON with a final newline; bytes that are no UTF-8 become U+FFFD.
std::string json_text(const nlohmann::ordered_json& json);

}  // namespace ddpsim
