#pragma once

#include <filesystem>
#include <functional>
#include <set>
#include <string>
#include <string_view>

namespace ddpsim {

/// Finds the files that a scenario names: profiles, calibrations, tables, and what those name in
/// turn. Every scalar of a YAML text that is the path of a plain file, relative to the folder of
/// that text, counts as one.
class NamedFiles {
 public:
  /// `visit` hears of each file once, with its content, in the order they are found.
  using Visit = std::function<void(const std::filesystem::path& file, const std::string& content)>;
  explicit NamedFiles(Visit visit) : visit_(std::move(visit)) {}

  /// `file` itself and what it names, if it is YAML by its name. A file that cannot be read is left
  /// out. Throws InputError for more than 1000 files.
  void add_file(const std::filesystem::path& file);
  /// What the text of a YAML document names.
  void add_text(std::string_view text, const std::filesystem::path& folder);

 private:
  Visit visit_;
  std::set<std::filesystem::path> seen_;
};

/// The content of a file; "" if it cannot be read.
std::string content_of_file(const std::filesystem::path& file);

}  // namespace ddpsim
