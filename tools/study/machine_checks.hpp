#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "backend/measure/pace.hpp"

namespace ddpsim {

/// How a part of this machine was found to be.
enum class Health : std::uint8_t {
  good,
  doubtful,  ///< it is there, and what is measured with it may mislead
  missing    ///< something cannot be done without it
};
const char* name_of(Health health);

/// What was found of a part of this machine.
struct MachineCheck {
  std::string part;  ///< "memory"
  Health health = Health::good;
  std::string found;     ///< in a few words, with units
  std::string advice{};  ///< what to do about it; empty: nothing
};

/// Something that people do with this program, and whether it can be done here.
struct Ability {
  std::string what;
  std::string missing{};  ///< why not; empty: it can
  std::string except{};   ///< what of it cannot, where the rest can; empty: nothing
};

/// What this machine has for predicting and for measuring.
struct MachineReport {
  std::vector<MachineCheck> checks;
  std::vector<Ability> abilities;
  std::optional<Pace> pace;              ///< none: it was not asked for
  std::optional<double> stolen_share{};  ///< while the pace was measured (steal.hpp)
};

/// What `run` and `tune` need and this machine lacks, in a line with what to do about it. Ranks,
/// GPUs and Python are no part of that.
struct Lack {
  enum class Extent : std::uint8_t { nothing, some, all };
  Extent extent = Extent::nothing;  ///< some: single files
  std::string text{};
};
Lack what_predictions_lack(const MachineReport& report);

/// What the checks may take.
struct CheckLimits {
  std::chrono::milliseconds pace{5000};      ///< to watch the pace; 0: not at all
  std::chrono::milliseconds timeout{10000};  ///< for ranks, and for Python to answer
};

/// Looks at processors, memory, catalogue, backends, Python and networks. What cannot be found out
/// is part of the report: never throws for it. Starts processes and threads of its own, which have
/// ended with the call; call it before any thread has been started. `begun` hears what is looked at
/// next, and which part of the whole is done, from 0 to 1.
MachineReport check_machine(const CheckLimits& limits,
                            const std::function<void(const std::string&, double)>& begun = {});

}  // namespace ddpsim
