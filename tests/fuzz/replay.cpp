// Gives every target each file of its corpus once, with any compiler and without fuzzing.
//
//     fuzz_replay CORPUS [TARGET...]
//
// CORPUS is a folder with a folder for each target. A target that finds something aborts; a target
// without a corpus is a failure too.

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "tests/fuzz/targets.hpp"

namespace {

int replayed(const std::filesystem::path& folder, void (*run)(std::string_view)) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  for (const auto& file : files) {
    std::ifstream stream(file, std::ios::binary);
    const std::string content{std::istreambuf_iterator<char>(stream), {}};
    std::fprintf(stderr, "%s\n", file.c_str());  // the last one before a failure
    run(content);
  }
  return static_cast<int>(files.size());
}

}  // namespace

int main(int count, char** words) {
  const std::vector<std::string> arguments(words + 1, words + count);
  if (arguments.empty()) return 2;
  int failures = 0;
  for (const ddpsim::fuzz::Target& target : ddpsim::fuzz::all_targets) {
    const auto asked = arguments.begin() + 1;
    if (asked != arguments.end() &&
        std::find(asked, arguments.end(), target.name) == arguments.end())
      continue;
    const int files = replayed(std::filesystem::path(arguments[0]) / target.name, target.run);
    std::printf("%-12s %d files\n", std::string(target.name).c_str(), files);
    if (files == 0) ++failures;
  }
  return failures == 0 ? 0 : 1;
}
