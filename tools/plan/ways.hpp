#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/plan/plan.hpp"

namespace ddpsim {

// What the name of a way ends with, for each thing in which it is not the strategy as it is by
// itself.
inline constexpr std::string_view mixed_precision = ", bf16";
inline constexpr std::string_view replicas = ", HSDP";
inline constexpr std::string_view no_reshard = ", no reshard";
inline constexpr std::string_view checkpoints = ", AC";
inline constexpr std::string_view some_checkpoints = ", AC 2";

/// Do the settings say the key, by itself or in a mapping?
bool is_said(const std::vector<Setting>& set, std::string_view key);

/// The ways that a plan tries: each strategy; `fsdp` with and without resharding after forward, and
/// as the scenario's file reshards if that is neither, in mixed precision where the scenario
/// computes in bf16 and keeps parameters in fp32, and with a replica on each node where one of the
/// sizes has several (in mixed precision alone, where that is tried); a ZeRO that has a policy with
/// and without mixed precision likewise; and all of these without activation checkpoints, with
/// every block as one, and with every second block as one, where the model's blocks can be. What
/// `request.set` says stays, and so do a mixed precision, replicas and checkpoints that the
/// scenario's file says.
std::vector<PlannedWay> ways_of(const PlanRequest& request, const Scenario& base,
                                const std::vector<PlannedSize>& sizes);

/// The settings of a way at that size; none: it is not tried there.
std::optional<std::vector<Setting>> settings_at(const PlannedWay& way, const PlannedSize& size);

/// What the ends of names mean, of those that some of the names have: a clause each, with "; "
/// between them.
std::string ends_explained(const std::vector<std::string>& names);

}  // namespace ddpsim
