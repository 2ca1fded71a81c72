#pragma once

#include <string>
#include <vector>

#include "tools/command/command.hpp"

namespace ddpsim {

/// A flag of a command, as its --help lists it.
struct ListedFlag {
  std::string name;     ///< without the dashes: "quiet"
  std::string letter;   ///< likewise, its short form: "q"; "": there is none
  std::string value;    ///< what it takes: "FILE|-"; "": nothing
  std::string meaning;  ///< a few words
};

/// What a command's --help prints, flags in its order. Of `describe`'s flags there is --help alone:
/// Python reads the others.
struct CommandHelp {
  Usage usage;
  std::vector<ListedFlag> flags;
};
CommandHelp help_of(const Command& command);

int completion_command(const std::vector<std::string>& arguments);

}  // namespace ddpsim
