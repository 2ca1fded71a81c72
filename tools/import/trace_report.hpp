#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "tools/import/trace_tensors.hpp"
#include "tools/report/writers/page.hpp"

namespace ddpsim {

/// What was found in a trace, as tables for people.
Page trace_page(const TraceFinding& finding, const FoundGradients& gradients,
                const std::string& file);

/// As JSON: {"format": "ddpsim.import/1", "kind": "torch-trace", "steps": [...], "buckets": [...],
/// "others": [...], "notes": [...], "could_not_tell": [...]}; times in ms.
nlohmann::ordered_json trace_json(const TraceFinding& finding, const FoundGradients& gradients,
                                  const std::string& file);

}  // namespace ddpsim
