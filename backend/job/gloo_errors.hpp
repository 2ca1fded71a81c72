#pragma once

#include <chrono>
#include <string>

#include <fmt/format.h>
#include <gloo/common/error.h>

#include "backend/device_error.hpp"

namespace ddpsim {

/// Gloo's messages begin with a place in its source and may have several lines: the rest of the
/// first.
inline std::string plain_gloo_message(std::string message) {
  if (message.starts_with('['))
    if (const auto end = message.find("] "); end != std::string::npos) message.erase(0, end + 2);
  return message.substr(0, message.find('\n'));
}

/// Makes `call`; what Gloo throws meanwhile becomes a DeviceError of one line that begins with
/// `what`.
template <typename Call>
void translate_errors(const char* what, std::chrono::milliseconds timeout, Call call) {
  try {
    call();
  } catch (const gloo::Exception& problem) {
    const std::string text = plain_gloo_message(problem.what());
    const bool late = text.find("imed out") != std::string::npos;
    throw DeviceError(fmt::format("{}: {} ({})", what,
                                  late ? fmt::format("a rank did not answer within {:g} s",
                                                     static_cast<double>(timeout.count()) / 1000)
                                       : "lost another rank",
                                  text));
  } catch (const gloo::EnforceNotMet& problem) {
    throw DeviceError(fmt::format("{}: {}", what, plain_gloo_message(problem.what())));
  }
}

}  // namespace ddpsim
