#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace ddpsim {

/// The place that a flag names for a result. "-" is stdout, "" is nowhere.
struct ResultPlace {
  std::string flag, path;
  std::int64_t room = 4096;  ///< bytes that the disk must have for it
};

/// Call before the work whose results go to `places`. Throws InputError if one of them is no name
/// of a file, if two are one file, however they are spelled, or if one is among `inputs`, the files
/// that are read; DeviceError if one could not be written now. Leaves nothing behind.
void check_places(const std::vector<ResultPlace>& places,
                  const std::vector<std::filesystem::path>& inputs);

/// Takes the next part of a file.
using TakePart = std::function<void(std::string_view)>;
/// Makes a file part by part. Called while it is written: of a large one never all is in memory.
using MakeParts = std::function<void(const TakePart&)>;

/// What a command is going to write. Nothing is touched before everything has been computed; then
/// each file is written whole (replaced_file.hpp): a reader never sees half of one. Stdout comes
/// last.
class Outputs {
 public:
  /// "-" is stdout, "" is nowhere.
  void add(const std::string& path, std::string content);
  /// Adds a file that is made as it is written. What `parts` refers to must live until commit(),
  /// and what it throws comes out there.
  void add_parts(const std::string& path, MakeParts parts);
  /// What took long to measure: where it cannot be written in the end it is kept elsewhere, and the
  /// error says where.
  void add_measured(const std::string& path, std::string content);
  /// A folder that files go to; it and those above it are made if they are missing.
  void add_folder(const std::string& path) { folders_.push_back(path); }
  /// Text for people, on stdout: what a terminal would obey in it, but for the ends of lines, is
  /// spelled out (model/base/printable.hpp). It gets colours where stdout has them (color.hpp).
  void add_text(const std::string& text);
  /// Writes all that can be written. Then throws DeviceError if the machine could not write a file
  /// or stdout, InputError if all that failed are names that are no file's.
  void commit() const;

 private:
  struct File {
    std::string path, content;
    MakeParts parts;  ///< in place of `content`, if it is there
  };
  void print(const File& file) const;

  std::vector<File> files_;
  std::set<std::string> measured_;  ///< paths
  std::vector<std::string> folders_;
};

/// The result, or each of a list of them, with the "version" of the program behind its "format".
nlohmann::ordered_json with_version(const nlohmann::ordered_json& json);

/// Indented JSON with a final newline, with_version; bytes that are no UTF-8 become U+FFFD.
std::string json_text(const nlohmann::ordered_json& json);

}  // namespace ddpsim
