#include "tools/output.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>
#include <unistd.h>

#include "scenarios/input_error.hpp"

namespace ddpsim {

void Outputs::add(const std::string& path, std::string content) {
  if (!path.empty()) files_.emplace_back(path, std::move(content));
}

void Outputs::commit() const {
  for (const auto& [path, content] : files_) {
    if (path == "-") {
      std::fwrite(content.data(), 1, content.size(), stdout);
      continue;
    }
    // What is no plain file (a pipe, /dev/null) is written in place; a symbolic link's target is what counts.
    std::error_code error;
    const bool in_place = std::filesystem::exists(path, error) && !std::filesystem::is_regular_file(path, error);
    const std::filesystem::path target = std::filesystem::is_symlink(path, error) ? std::filesystem::canonical(path, error) : std::filesystem::path(path);
    const std::string beside = in_place ? path : fmt::format("{}.{}.part", target.string(), getpid());
    std::ofstream file(beside, std::ios::binary);
    file << content;
    file.close();
    if (file && !in_place) std::filesystem::rename(beside, target, error);
    if (!file || error) {
      const std::string reason = error ? error.message() : std::strerror(errno);
      if (!in_place) std::filesystem::remove(beside, error);
      throw InputError(fmt::format("{}: cannot be written: {}", path, reason));
    }
  }
}

}  // namespace ddpsim
