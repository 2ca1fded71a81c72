#pragma once

#include <string>

namespace ddpsim {

/// A place in a file and what is wrong there.
struct SyntaxProblem {
  int line = 0, column = 0;  ///< counted from 0
  std::string text;
};

/// What is wrong with a file that is no YAML, in words of what to write. yaml-cpp notices a slip
/// where it can read no further, which may be a line after it: the place is that of the slip.
SyntaxProblem explain_syntax(const std::string& content, const SyntaxProblem& noticed);

}  // namespace ddpsim
