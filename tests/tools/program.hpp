#pragma once

#include <algorithm>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

#include <fcntl.h>
#include <nlohmann/json.hpp>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/scenarios/scratch.hpp"

namespace ddpsim {

using Json = nlohmann::ordered_json;

/// What a program did.
struct Outcome {
  int code = -1;  ///< 128 + signal if it was killed
  std::string out, err;

  Json json() const { return Json::parse(out); }
};

/// Runs `arguments[0]` with the rest, in `folder` (if given), and waits. A program that takes
/// longer than three minutes is killed.
inline Outcome execute(const std::vector<std::string>& arguments,
                       const std::filesystem::path& folder = {}) {
  const Scratch scratch;
  const std::string out = scratch.path("out").string(), err = scratch.path("err").string();
  const pid_t child = fork();
  if (child < 0) throw std::runtime_error("fork failed");
  if (child == 0) {
    std::vector<char*> words;
    for (const std::string& argument : arguments)
      words.push_back(const_cast<char*>(argument.c_str()));
    words.push_back(nullptr);
    const int mode = O_WRONLY | O_CREAT | O_TRUNC;
    if (!folder.empty() && chdir(folder.c_str()) != 0) _exit(126);
    if (dup2(open(out.c_str(), mode, 0600), STDOUT_FILENO) < 0) _exit(126);
    if (dup2(open(err.c_str(), mode, 0600), STDERR_FILENO) < 0) _exit(126);
    alarm(180);
    execv(words[0], words.data());
    _exit(127);
  }
  int status = 0;
  if (waitpid(child, &status, 0) != child) throw std::runtime_error("waitpid failed");
  return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), content_of(out),
          content_of(err)};
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
