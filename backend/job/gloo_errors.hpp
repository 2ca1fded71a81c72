#pragma once

#include <string>

namespace ddpsim {

/// Gloo's messages begin with places in its source and may have several lines: the rest of the
/// first.
inline std::string plain_gloo_message(std::string message) {
  while (message.starts_with('[')) {
    const auto end = message.find("] ");
    if (end == std::string::npos) break;
    message.erase(0, end + 2);
  }
  return message.substr(0, message.find('\n'));
}

/// What people can read of a failed check of Gloo's, "rv != -1. -1 vs -1. Too many open files": the
/// last sentence.
inline std::string plain_gloo_check(const std::string& message) {
  const std::string text = plain_gloo_message(message);
  const auto last = text.rfind(". ");
  return last == std::string::npos ? text : text.substr(last + 2);
}

}  // namespace ddpsim
