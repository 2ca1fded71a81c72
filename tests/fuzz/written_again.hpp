#pragma once

#include <string>
#include <string_view>

#include "scenarios/reader/format/yaml.hpp"
#include "scenarios/reader/text/memory_file.hpp"
#include "tests/fuzz/checks.hpp"

namespace ddpsim::fuzz {

/// Gives a file of `content` to `read`. What is read is written by `write`, read again and written
/// alike; what is refused is refused well. `read` takes a path, `write` what it returns.
template <typename Read, typename Write>
void check_written_again(std::string_view content, Read read, Write write) {
  const MemoryFile file("/no-such-folder/file.yaml", std::string(content));
  std::string text;
  try {
    text = write(read(file.path()));
  } catch (const InputError& problem) {
    check_refusal(problem.what(), file.path().string());
    return;
  }
  const MemoryFile again("/no-such-folder/again.yaml", text);
  try {
    require(write(read(again.path())) == text, "written otherwise the second time", text);
  } catch (const InputError& problem) {
    require(false, problem.what(), text);
  }
}

}  // namespace ddpsim::fuzz
