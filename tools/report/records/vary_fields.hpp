#pragma once

// Columns of `run --vary`, each described once.

#include "tools/report/records/step_fields.hpp"

namespace ddpsim::fields {

/// A key that is varied. `key` and `label` must outlive what is made of the field.
constexpr Field key_field(std::string_view key, std::string_view label) {
  return text_field(key, label, "A key of the scenario, as --vary gives it.").with(most);
}
inline constexpr Field against_first =
    ratio_field("against_first", "against first",
                "The step over that of the first combination under the same strategy, less 1.",
                Better::low, signed_percent)
        .with(much)
        .only_for(Audience::people);

}  // namespace ddpsim::fields
