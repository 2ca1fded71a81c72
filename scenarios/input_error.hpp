#pragma once

#include <stdexcept>
#include <string>

namespace ddpsim {

/// What the user gave is wrong. The text is one line for the user: "file:line:column: what: expected ...".
class InputError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace ddpsim
