#pragma once

#include <string>
#include <vector>

#include "model/scenario/scenario.hpp"
#include "sim/tune/shards.hpp"
#include "tools/report/writers/page.hpp"
#include "tools/study/known_accuracy.hpp"

namespace ddpsim {

/// What `ddpsim tune` prints of a sharded step: the scenario's sharding, the default, the best and
/// the recommended one beside the bound; what each setting does; a verdict, what to paste.
Page shards_page(const Scenario& scenario, const ShardTuning& tuning, const ShardOptions& options,
                 const Knowledge& knowledge);

/// "ddpsim.shards/1"; times in ms, sizes in bytes. `notes`: what is said beside it.
Record shards_record(const Scenario& scenario, const ShardTuning& tuning,
                     const std::vector<std::string>& notes);

/// Every sharding with its step.
Table shards_table(const Scenario& scenario, const ShardTuning& tuning);

/// Where nothing fits the device, a sentence that says so; "" where something does.
std::string no_sharding_fits(const Scenario& scenario, const ShardTuning& tuning);

/// The scenario, sharded as that.
Scenario sharded_as(const Scenario& scenario, const Sharding& sharding);

}  // namespace ddpsim
