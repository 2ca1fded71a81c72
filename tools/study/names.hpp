#pragma once

#include <optional>
#include <string>
#include <vector>

#include "model/scenario/scenario.hpp"
#include "sim/predict/fit.hpp"
#include "sim/predict/step.hpp"
#include "tools/study/grid.hpp"

namespace ddpsim {

/// "a", "a and b", "a, b and c".
std::string enumerated(const std::vector<std::string>& names);

/// "rank 5", "a rank of node 3": one of those that are this exception.
std::string name_of_one(const RankException& exception);

/// The name of each of so many ranks that were measured, "" for one that is no exception.
std::vector<std::string> names_of_real_ranks(const Cluster& cluster, std::size_t ranks);

/// What to call each rank of a step's timeline where some are exceptions: "rank 5", "a rank of node
/// 3", "the slowest rank", and "" for a typical one. Empty: there are none.
std::vector<std::string> names_of_ranks(const Scenario& scenario, const Step& step);

/// A step and what to call it in pictures and traces.
struct NamedStep {
  std::string name;
  const Step* step = nullptr;
};

/// "auto", "true", "false" or a number: as a scenario has reshard_after_forward.
std::string reshard_text(const std::optional<Reshard>& reshard);

/// Is a cap what makes the buckets, rather than a list of caps, groups, or the buckets themselves?
bool has_one_cap(const Training& training);

/// ... and is the first bucket's cap, or with `last_bucket_cap` the last one's, another?
bool has_own_first_cap(const Training& training);

/// "bucketed, 25 MiB", "bucketed, 1+25 MiB" (the first bucket ends at 1 MiB), "naive": a row's
/// name for people.
std::string strategy_label(const Training& training);

/// The label of a strategy in a narrow table, which names the buckets only where they are not DDP's
/// default, and no comm hook: "bucketed", "bucketed, 50 MiB".
std::string short_strategy_label(const Training& training);

/// Does that name say the value of this key of a scenario?
bool is_in_label(const std::string& key, const Training& training);

/// "comm_hook: fp16_compress": the last part of each key says enough in a table.
std::string short_label(const std::vector<Setting>& settings);

/// "bucket 2", or a unit's name.
std::string name_of_group(const program::Job& job, std::size_t group);

/// What a task of the step's job does, for people and traces: "layers.3 attn.q_proj", "all-reduce
/// bucket 2".
std::string task_label(const Scenario& scenario, const Step& step, const program::Task& task);

/// "ring simple, 24 channels, 8 NICs, nic": for people. Empty: nothing is known.
std::string choice_text(const CollectiveChoice& choice);

/// A fit in one line: "forward x 1.13, backward x 1.13, -8.6 us per collective, interference x 1".
std::string describe(const Fit& fit);

/// The text for a command that predicts: where the figures come from, and the fit's notes.
std::string describe_calibration(const Fit& fit);

}  // namespace ddpsim
