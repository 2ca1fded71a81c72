#include "scenarios/reader/text/memory_file.hpp"

#include <map>
#include <mutex>
#include <shared_mutex>
#include <stdexcept>

namespace ddpsim {
namespace {

struct Texts {
  std::shared_mutex mutex;
  std::map<std::filesystem::path, std::string> by_path;
};

/// Never destroyed: threads may still read when the program ends.
Texts& texts() {
  static Texts& all = *new Texts;
  return all;
}

}  // namespace

MemoryFile::MemoryFile(std::filesystem::path path, std::string text)
    : path_(path.lexically_normal()) {
  const std::unique_lock lock(texts().mutex);
  if (!texts().by_path.emplace(path_, std::move(text)).second)
    throw std::invalid_argument(path_.string() + ": there is such a text already");
}

MemoryFile::~MemoryFile() {
  const std::unique_lock lock(texts().mutex);
  texts().by_path.erase(path_);
}

std::optional<std::string> text_in_memory(const std::filesystem::path& path) {
  const std::shared_lock lock(texts().mutex);
  if (texts().by_path.empty()) return std::nullopt;
  const auto found = texts().by_path.find(path.lexically_normal());
  return found == texts().by_path.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace ddpsim
