#pragma once

#include <string>

#include "model/cluster/collective_choice.hpp"
#include "tools/report/records/record.hpp"

namespace ddpsim {

/// Adds how a collective runs and what bounds it, as far as that is known.
void add_choice(Record& record, const CollectiveChoice& choice);

}  // namespace ddpsim
