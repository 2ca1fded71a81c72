#pragma once

#include <array>
#include <string_view>
#include <vector>

#include "model/scenario/scenario.hpp"
#include "sim/predict/step.hpp"

namespace ddpsim {

/// The kinds of memory that pictures and traces tell apart, in the order in which they lie on one
/// another: `parameters` are all that stays whatever the step does (frozen ones too, buffers of
/// modules, the batch, workspaces), `working` is what an operation takes for a while.
inline constexpr std::array<std::string_view, 7> shown_memory_kinds{
    "parameters", "optimizer", "buckets", "gradients", "activations", "hooks", "working"};

/// What a rank holds from an instant on.
struct ShownMemory {
  Instant at{};
  std::array<Bytes, shown_memory_kinds.size()> bytes{};

  Bytes sum() const;
  bool operator==(const ShownMemory&) const = default;
};

/// The memory of one of Step::ranks along the step, its peak among it. Of each instant at which
/// some comes or goes: the highest, and what is there in the end where that is less; but changes of
/// less than a thousandth of the peak are left out until they add up.
std::vector<ShownMemory> shown_memory(const Scenario& scenario, const Step& step,
                                      std::size_t index);

}  // namespace ddpsim
