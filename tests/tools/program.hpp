#pragma once

#include <algorithm>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <nlohmann/json.hpp>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/scenarios/reader/scratch.hpp"

namespace ddpsim {

using Json = nlohmann::ordered_json;

/// What a program did.
struct Outcome {
  int code = -1;  ///< 128 + signal if it was killed
  std::string out, err;

  Json json() const { return Json::parse(out); }
};

using Environment = std::vector<std::pair<std::string, std::string>>;

/// A program under way: `arguments[0]` with the rest, in `folder` (if given), with `environment`
/// added to ours. Killed if it takes longer than three minutes, or when this object ends.
class Running {
 public:
  explicit Running(const std::vector<std::string>& arguments,
                   const std::filesystem::path& folder = {}, const Environment& environment = {})
      : out_(scratch_.path("out").string()), err_(scratch_.path("err").string()), child_(fork()) {
    if (child_ < 0) throw std::runtime_error("fork failed");
    if (child_ != 0) return;
    std::vector<char*> words;
    for (const std::string& argument : arguments)
      words.push_back(const_cast<char*>(argument.c_str()));
    words.push_back(nullptr);
    const int mode = O_WRONLY | O_CREAT | O_TRUNC;
    if (!folder.empty() && chdir(folder.c_str()) != 0) _exit(126);
    if (dup2(open(out_.c_str(), mode, 0600), STDOUT_FILENO) < 0) _exit(126);
    if (dup2(open(err_.c_str(), mode, 0600), STDERR_FILENO) < 0) _exit(126);
    for (const auto& [name, value] : environment) setenv(name.c_str(), value.c_str(), 1);
    alarm(180);
    execvp(words[0], words.data());
    _exit(127);
  }
  ~Running() {
    if (child_ <= 0) return;
    kill(child_, SIGKILL);
    waitpid(child_, nullptr, 0);
  }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

  pid_t pid() const { return child_; }
  std::string err_so_far() const { return content_of(err_); }

  Outcome wait() {
    int status = 0;
    if (waitpid(child_, &status, 0) != child_) throw std::runtime_error("waitpid failed");
    child_ = 0;
    return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), content_of(out_),
            content_of(err_)};
  }

 private:
  Scratch scratch_;
  std::string out_, err_;
  pid_t child_;
};

/// Runs a program to its end.
inline Outcome execute(const std::vector<std::string>& arguments,
                       const std::filesystem::path& folder = {},
                       const Environment& environment = {}) {
  return Running(arguments, folder, environment).wait();
}

/// Runs ddpsim itself.
inline Outcome ddpsim(std::vector<std::string> arguments,
                      const std::filesystem::path& folder = {}) {
  arguments.insert(arguments.begin(), DDPSIM_PROGRAM);
  return execute(arguments, folder);
}

/// A shipped file, such as "examples/first.yaml".
inline std::string shipped(const std::string& name) {
  return (std::filesystem::path(DDPSIM_SCENARIOS) / name).string();
}
inline const std::string first_example = shipped("examples/first.yaml");

/// The shipped scenarios of a folder ("examples", "seeds", "measured"), sorted.
inline std::vector<std::string> shipped_files(const std::string& folder) {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(shipped(folder)))
    if (entry.path().extension() == ".yaml") files.push_back(entry.path().string());
  std::sort(files.begin(), files.end());
  return files;
}

inline std::vector<std::string> keys_of(const Json& object) {
  std::vector<std::string> keys;
  for (const auto& item : object.items()) keys.push_back(item.key());
  return keys;
}

inline std::vector<std::string> lines_of(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

}  // namespace ddpsim
