#include "backend/plugin/gradient_hook_call.hpp"

#include <cctype>
#include <exception>

#include <fmt/format.h>

namespace ddpsim {
namespace {

/// What the call-backs find behind ddpsim_gradient::host. The first problem counts.
struct Call {
  const FindGradient& find;
  std::string problem;

  OtherGradient gradient(const char* name) const {
    return name == nullptr ? OtherGradient{{}, "no parameter at all"} : find(name);
  }
};

Call& of(const ddpsim_gradient* gradient) {
  return *static_cast<Call*>(gradient->host);
}

int is_ready(const ddpsim_gradient* gradient, const char* name) noexcept try {
  return of(gradient).gradient(name).problem.empty() ? 1 : 0;
} catch (...) {
  return 0;
}

const float* other(const ddpsim_gradient* gradient, const char* name, std::int64_t* count) noexcept
    try {
  Call& call = of(gradient);
  if (count != nullptr) *count = 0;
  const OtherGradient found = call.gradient(name);
  if (!found.problem.empty()) {
    if (call.problem.empty()) call.problem = "asked for the gradient of " + found.problem;
    return nullptr;
  }
  if (count != nullptr) *count = static_cast<std::int64_t>(found.values.size());
  return found.values.data();
} catch (...) {
  return nullptr;
}

void fail(const ddpsim_gradient* gradient, const char* message) noexcept try {
  Call& call = of(gradient);
  if (!call.problem.empty()) return;
  call.problem = message == nullptr ? "failed" : std::string(message).substr(0, 400);
} catch (...) {
}

}  // namespace

std::string call_gradient_hook(const Plugins::GradientHook& hook, ddpsim_gradient& gradient,
                               const FindGradient& find) {
  Call call{find, {}};
  gradient.is_ready = is_ready;
  gradient.other = other;
  gradient.fail = fail;
  gradient.host = &call;
  try {
    hook.call(hook.state, &gradient);
  } catch (const std::exception& problem) {
    call.problem = fmt::format("threw: {}", std::string(problem.what()).substr(0, 400));
  } catch (...) {
    call.problem = "threw an exception";
  }
  for (char& c : call.problem)
    if (std::iscntrl(static_cast<unsigned char>(c)) != 0) c = ' ';
  return call.problem;
}

}  // namespace ddpsim
