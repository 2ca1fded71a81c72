#pragma once

// Columns of `run --vary`, each described once.

#include "tools/report/step_fields.hpp"

namespace ddpsim::fields {

inline constexpr Field combination =
    text_field("combination", "combination", "The keys that --vary varies, with their values.")
        .with(most)
        .only_for(Audience::people);
inline constexpr Field against_first =
    ratio_field("against_first", "against first",
                "The step over that of the first combination, less 1.", Better::low, signed_percent)
        .with(much)
        .only_for(Audience::people);

}  // namespace ddpsim::fields
