#include "tools/report/output.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <stdexcept>

#include <fcntl.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <sys/stat.h>
#include <unistd.h>

#include "model/base/printable.hpp"
#include "scenarios/reader/input_error.hpp"
#include "tools/report/color.hpp"

namespace ddpsim {
namespace {

namespace fs = std::filesystem;

/// A file that is being written: beside its place, or, for what is no plain file (a pipe,
/// /dev/null), in place. Until it is put in place, its destruction leaves nothing behind.
class Part {
 public:
  explicit Part(const std::string& path) : path_(path), target_(path), beside_(path) {
    std::error_code error;
    const fs::file_status status = fs::status(path, error);
    if (fs::exists(status) && !fs::is_regular_file(status)) return;
    if (fs::exists(status)) target_ = fs::canonical(path, error);  // where a link leads
    beside_ = fmt::format("{}.{}.part", target_.string(), getpid());
  }
  Part(const Part&) = delete;
  ~Part() {
    std::error_code error;
    if (beside_ != path_) fs::remove(beside_, error);
  }

  void write(const std::string& content) const {
    // Beside its place a file of our own is made: no link that somebody put there is followed.
    const int mode = beside_ == path_ ? O_WRONLY : O_WRONLY | O_CREAT | O_EXCL;
    int file = open(beside_.c_str(), mode | O_CLOEXEC, 0666);
    if (file < 0 && errno == EEXIST && unlink(beside_.c_str()) == 0)  // a dead process left it
      file = open(beside_.c_str(), mode | O_CLOEXEC, 0666);
    if (file < 0) fail(std::strerror(errno));
    std::size_t done = 0;
    while (done < content.size()) {
      const ssize_t written = ::write(file, content.data() + done, content.size() - done);
      if (written < 0 && errno == EINTR) continue;
      if (written <= 0) break;
      done += static_cast<std::size_t>(written);
    }
    const int problem = done < content.size() ? errno : 0;
    if (close(file) != 0 && problem == 0) fail(std::strerror(errno));
    if (problem != 0) fail(std::strerror(problem));
  }
  /// Can it be written? What is no plain file is not touched.
  void check() const {
    if (beside_ != path_)
      write("");
    else if (fs::is_directory(path_))
      fail(std::strerror(EISDIR));
    else if (access(path_.c_str(), W_OK) != 0)
      fail(std::strerror(errno));
  }
  void put_in_place() const {
    std::error_code error;
    if (beside_ != path_) fs::rename(beside_, target_, error);
    if (error) fail(error.message());
  }

 private:
  [[noreturn]] void fail(const std::string& reason) const {
    throw InputError(fmt::format("{}: cannot be written: {}", path_, reason));
  }

  std::string path_;
  fs::path target_, beside_;
};

/// Are these one file, or would they be? Two results may share a device such as /dev/null.
bool one_file(const fs::path& one, const fs::path& other) {
  std::error_code error;
  if (fs::exists(one, error) && fs::exists(other, error))
    return !fs::is_character_file(one, error) && fs::equivalent(one, other, error);
  return fs::weakly_canonical(fs::absolute(one, error), error) ==
         fs::weakly_canonical(fs::absolute(other, error), error);
}

/// Does stdout, which the shell may have sent to a plain file, lead to this one?
bool is_stdout(const std::string& path) {
  struct stat given {
  }, standard{};
  return path == "-" || (stat(path.c_str(), &given) == 0 && fstat(STDOUT_FILENO, &standard) == 0 &&
                         S_ISREG(given.st_mode) && given.st_dev == standard.st_dev &&
                         given.st_ino == standard.st_ino);
}

void check_apart(const std::vector<ResultPlace>& places) {
  for (auto one = places.begin(); one != places.end(); ++one) {
    if (one->path != "-" && is_stdout(one->path))
      throw InputError(fmt::format("{} {}: stdout goes there already: write - or name another file",
                                   one->flag, one->path));
    for (auto other = places.begin(); other != one; ++other) {
      if (one->path == other->path)
        throw InputError(fmt::format("two results cannot both be written to {}",
                                     one->path == "-" ? "stdout" : one->path));
      if (one->path != "-" && other->path != "-" && one_file(one->path, other->path))
        throw InputError(
            fmt::format("{} {} and {} {} are one file: two results cannot both be "
                        "written there",
                        other->flag, other->path, one->flag, one->path));
    }
  }
}

}  // namespace

void check_places(const std::vector<ResultPlace>& given, const std::vector<fs::path>& inputs) {
  std::vector<ResultPlace> places;
  for (const ResultPlace& place : given)
    if (!place.path.empty()) places.push_back(place);
  check_apart(places);
  for (const ResultPlace& place : places) {
    if (place.path == "-") continue;
    for (const fs::path& input : inputs)
      if (one_file(place.path, input))
        throw InputError(
            fmt::format("{} {}: this would overwrite {}, which is read; name another "
                        "file",
                        place.flag, place.path, input == place.path ? "a file" : input.string()));
    Part(place.path).check();
  }
}

void Outputs::add(const std::string& path, std::string content) {
  if (!path.empty()) files_.emplace_back(path, std::move(content));
}

void Outputs::add_text(const std::string& text) {
  const std::string plain = printable(text, "\n");
  add("-", has_color(STDOUT_FILENO) ? in_color(plain) : plain);
}

void Outputs::commit() const {
  std::string problems;
  for (const std::string& folder : folders_) {
    std::error_code error;
    fs::create_directories(folder, error);  // a file that cannot be written there says so
  }
  for (const auto& [path, content] : files_) {
    if (path == "-") continue;
    try {
      const Part part(path);
      part.write(content);
      part.put_in_place();
    } catch (const InputError& problem) {
      problems += fmt::format("{}{}", problems.empty() ? "" : "; ", problem.what());
    }
  }
  for (const auto& [path, content] : files_)
    if (path == "-") std::fwrite(content.data(), 1, content.size(), stdout);
  const bool told = std::fflush(stdout) == 0 && std::ferror(stdout) == 0;
  const std::string reason = std::strerror(errno);
  if (!problems.empty()) throw InputError(problems);
  if (!told) throw std::runtime_error(fmt::format("stdout cannot be written: {}", reason));
}

std::string json_text(const nlohmann::ordered_json& json) {
  return json.dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace ddpsim
