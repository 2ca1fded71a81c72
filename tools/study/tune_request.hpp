#pragma once

#include <string>

#include "model/scenario/scenario.hpp"
#include "sim/tune/shards.hpp"
#include "sim/tune/tune.hpp"

namespace ddpsim {

/// What is asked of a search for buckets, as people write it; "" is what the search does by itself.
struct TuneRequest {
  std::string objective = "step";  ///< step, exposed or memory
  std::string within = "1%";       ///< for the objective memory
  std::string largest_bucket{};    ///< a size
  std::string noise = "1%";        ///< a gain that does not pay
  std::string uncertainty{};       ///< of link and kernels; "": the spread of a calibration
  std::string threads{};           ///< "": all cores
};

/// Throws InputError, which names the flag of `ddpsim tune`.
TuneOptions tune_options(const TuneRequest& request, const Scenario& scenario);

/// The options for a step that shards, which has no buckets to bound and no errors to allow for.
ShardOptions shard_options(const TuneRequest& request, Strategy strategy);

}  // namespace ddpsim
