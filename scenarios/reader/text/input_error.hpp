#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

#include "model/base/printable.hpp"

namespace ddpsim {

/// What the user gave is wrong. The text is one line for the user: "file:line:column: what:
/// expected ...".
class InputError : public std::runtime_error {
 public:
  explicit InputError(std::string_view text) : std::runtime_error(error_line(text)) {}
};

/// What was given, short enough for an error: at most 60 bytes, characters whole.
std::string shown(const std::string& text);

}  // namespace ddpsim
