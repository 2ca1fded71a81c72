#pragma once

#include <string>

namespace ddpsim {

/// Gloo's messages begin with a place in its source and may have several lines: the rest of the
/// first.
inline std::string plain_gloo_message(std::string message) {
  if (message.starts_with('['))
    if (const auto end = message.find("] "); end != std::string::npos) message.erase(0, end + 2);
  return message.substr(0, message.find('\n'));
}

}  // namespace ddpsim
