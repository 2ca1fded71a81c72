#include "tools/report/output.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <list>
#include <stdexcept>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "scenarios/reader/input_error.hpp"

namespace ddpsim {
namespace {

/// A file that is being written: beside its place, or, for what is no plain file (a pipe,
/// /dev/null), in place. Until it is put in place, its destruction leaves nothing behind.
class Part {
 public:
  explicit Part(const std::string& path) : path_(path), target_(path), beside_(path) {
    std::error_code error;
    const std::filesystem::file_status status = std::filesystem::status(path, error);
    if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status)) return;
    if (std::filesystem::exists(status))
      target_ = std::filesystem::canonical(path, error);  // where a link leads
    beside_ = fmt::format("{}.{}.part", target_.string(), getpid());
  }
  Part(const Part&) = delete;
  ~Part() {
    std::error_code error;
    if (beside_ != path_) std::filesystem::remove(beside_, error);
  }

  void write(const std::string& content) const {
    errno = 0;
    std::ofstream file(beside_, std::ios::binary);
    file << content;
    file.close();
    if (!file) fail(std::strerror(errno));
  }
  /// Can it be written? What is no plain file is not touched.
  void check() const {
    if (beside_ != path_) write("");
  }
  void put_in_place() const {
    std::error_code error;
    if (beside_ != path_) std::filesystem::rename(beside_, target_, error);
    if (error) fail(error.message());
  }

 private:
  [[noreturn]] void fail(const std::string& reason) const {
    throw InputError(fmt::format("{}: cannot be written: {}", path_, reason));
  }

  std::string path_;
  std::filesystem::path target_, beside_;
};

}  // namespace

void Outputs::add(const std::string& path, std::string content) {
  if (!path.empty()) files_.emplace_back(path, std::move(content));
}

void Outputs::check() const {
  for (const auto& [path, content] : files_)
    if (path != "-") Part(path).check();
}

void Outputs::commit() const {
  std::list<Part> parts;
  for (const auto& [path, content] : files_)
    if (path != "-") parts.emplace_back(path).write(content);
  for (const Part& part : parts) part.put_in_place();
  for (const auto& [path, content] : files_)
    if (path == "-") std::fwrite(content.data(), 1, content.size(), stdout);
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0)
    throw std::runtime_error(fmt::format("stdout cannot be written: {}", std::strerror(errno)));
}

std::string json_text(const nlohmann::ordered_json& json) {
  return json.dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace ddpsim
