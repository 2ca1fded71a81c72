#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

namespace ddpsim {

/// `text` on one line of a terminal: control characters, and what Unicode takes for a line break,
/// become '?'.
std::string printable(std::string_view text);

/// What the user gave is wrong. The text is one line for the user: "file:line:column: what:
/// expected ...".
class InputError : public std::runtime_error {
 public:
  explicit InputError(std::string_view text) : std::runtime_error(printable(text)) {}
};

}  // namespace ddpsim
