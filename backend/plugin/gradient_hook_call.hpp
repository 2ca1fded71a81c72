#pragma once

#include <functional>
#include <span>
#include <string>

#include "backend/plugin/plugins.hpp"

namespace ddpsim {

/// A gradient that a plugin's hook asks for by the name of its parameter.
struct OtherGradient {
  std::span<float> values;
  /// Empty, or: which parameter that is and why nobody may read its gradient now.
  std::string problem;
};
using FindGradient = std::function<OtherGradient(const std::string& name)>;

/// Calls the user's code on a gradient, whose call-backs this sets. Returns what went wrong, in one
/// line: the code failed, threw, or asked for a gradient that `find` does not give; empty: nothing.
std::string call_gradient_hook(const Plugins::GradientHook& hook, ddpsim_gradient& gradient,
                               const FindGradient& find);

}  // namespace ddpsim
