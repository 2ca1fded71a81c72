#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace ddpsim {

/// A text that stands in place of a file while this object lives: whoever reads `path` reads the
/// text. So a caller who has a scenario or a profile as text asks for the same predictions by the
/// same functions as one who has a file, and what the text names is looked for in the folder of
/// `path`. For several threads at once.
class MemoryFile {
 public:
  /// Throws std::invalid_argument if another object has that path.
  MemoryFile(std::filesystem::path path, std::string text);
  ~MemoryFile();
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

/// The text that stands in place of the file; none where the file itself counts.
std::optional<std::string> text_in_memory(const std::filesystem::path& path);

}  // namespace ddpsim
