#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace ddpsim {

/// The place that a flag names for a result. "-" is stdout, "" is nowhere.
struct ResultPlace {
  std::string flag, path;
};

/// Call before the work whose results go to `places`. Throws InputError if one of them could not be
/// written now, if two are one file, however they are spelled, or if one is among `inputs`, the
/// files that are read. Leaves nothing behind.
void check_places(const std::vector<ResultPlace>& places,
                  const std::vector<std::filesystem::path>& inputs);

/// What a command is going to write. Nothing is touched before everything has been computed; then
/// each file is written whole beside its place and renamed into it: a reader never sees half of
/// one. Stdout comes last.
class Outputs {
 public:
  /// "-" is stdout, "" is nowhere.
  void add(const std::string& path, std::string content);
  /// A folder that files go to; it and those above it are made if they are missing.
  void add_folder(const std::string& path) { folders_.push_back(path); }
  /// Text for people, on stdout: what a terminal would obey in it, but for the ends of lines, is
  /// spelled out (model/base/printable.hpp). It gets colours where stdout has them (color.hpp).
  void add_text(const std::string& text);
  /// Writes all that can be written. Then throws InputError if a file could not be,
  /// std::runtime_error if stdout alone could not.
  void commit() const;

 private:
  std::vector<std::pair<std::string, std::string>> files_;
  std::vector<std::string> folders_;
};

/// Indented JSON with a final newline; bytes that are no UTF-8 become U+FFFD.
std::string json_text(const nlohmann::ordered_json& json);

}  // namespace ddpsim
