#pragma once

#include <array>
#include <string_view>
#include <vector>

#include "model/parallel/training.hpp"
#include "sim/predict/step_model.hpp"

namespace ddpsim {

/// One thing that could be better, all else being the same.
enum class Change : std::uint8_t {
  /// Every link and NIC has twice its bandwidth (CostModel::double_links).
  link_twice_as_fast,
  no_latency,       ///< what of a collective moves no bytes takes no time
  free_launch,      ///< the host takes no time for kernels, hooks, collectives and handovers
  no_interference,  ///< kernels and collectives do not slow each other
  even_ranks,       ///< no rank is slower than the others
  no_exceptions,    ///< no rank and no NIC is another than the cluster says (RankException)
};
inline constexpr std::array all_changes{Change::link_twice_as_fast, Change::no_latency,
                                        Change::free_launch,        Change::no_interference,
                                        Change::even_ranks,         Change::no_exceptions};
std::string_view name_of(Change change);

/// What a step costs under a change. But for faster links, broadcasts of DDP's buffers stay; on a
/// synchronous device a kernel's launch is part of its time, and stays too.
CostModel with(CostModel costs, Change change);

struct WhatIf {
  Change change = Change::no_latency;
  Duration step{};
};

/// The step under each change that changes the costs (`even_ranks`: only where ranks compute
/// differently; `no_exceptions`: only where there are some). Buckets stay the same.
std::vector<WhatIf> what_if(const StepModel& model, const Training& training);

}  // namespace ddpsim
