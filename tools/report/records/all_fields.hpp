#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "tools/report/records/record.hpp"

namespace ddpsim {

/// The fields of one kind of result, or of one kind of object in it.
struct FieldGroup {
  std::string_view name;  ///< "run", "buckets"
  std::span<const Field* const> fields;
};

/// Every field that JSON or CSV of a command holds, as `ddpsim list results` shows them.
const std::vector<FieldGroup>& all_fields();

}  // namespace ddpsim
