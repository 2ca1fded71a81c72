#pragma once

#include "tests/tools/program.hpp"

namespace ddpsim {

/// The command behind "next: " on stderr; "" if there is none.
inline std::string next_command(const Outcome& outcome) {
  const std::string begin = "next: ";
  for (const std::string& line : lines_of(outcome.err))
    if (line.starts_with(begin)) return line.substr(begin.size());
  return "";
}

/// What it does with these in place of its words in capitals, which are put in in this order.
inline Outcome follow(std::string command, const std::filesystem::path& folder,
                      const std::vector<std::pair<std::string, std::string>>& words) {
  for (const auto& [word, value] : words)
    if (const std::size_t at = command.find(word); at != std::string::npos)
      command.replace(at, word.size(), value);
  const std::string program = "ddpsim";
  if (!command.starts_with(program + " ")) throw std::runtime_error("no command: " + command);
  return execute({"/bin/sh", "-c", DDPSIM_PROGRAM + command.substr(program.size())}, folder);
}

}  // namespace ddpsim
