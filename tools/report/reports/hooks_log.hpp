#pragma once

#include <string>
#include <vector>

#include "model/scenario/scenario.hpp"
#include "sim/predict/step.hpp"

namespace ddpsim {

/// A step whose hooks are logged.
struct LoggedStep {
  std::string strategy;  ///< "bucketed, 1+25 MiB"
  std::string source;    ///< "predicted", "measured"
  const Step* step = nullptr;
};

/// Every hook of each step (rank 0's), in the order they fired: the user's by their names, DDP's
/// own, and what fires under `overlap`, as "ddp". A CSV with a header, or, `json`, an array of
/// objects under "hooks". Position counts from 0 in each step; times from its start: when the host
/// came to the hook, and when what it was fired for (a gradient, or a layer's output) was ready on
/// the device, after the hooks before it on the same gradient. Nothing: a layer's hook has no
/// parameter, and where nothing is reduced there is no bucket.
std::string hooks_log(const Scenario& scenario, const std::vector<LoggedStep>& steps, bool json);

/// Does a path ask for JSON by its name?
bool wants_json(const std::string& path);

}  // namespace ddpsim
