#pragma once

#include <optional>
#include <vector>

#include "tools/report/writers/page.hpp"
#include "tools/study/known_accuracy.hpp"
#include "tools/study/scaling.hpp"

namespace ddpsim {

/// The curves as pictures: the step against the number of ranks, with the band that half of the
/// predictions of this kind kept to, where that is known; and the scaling efficiency.
void add_scaling_pictures(Page& page, const std::vector<ScalingCurve>& curves,
                          const Knowledge& knowledge);

}  // namespace ddpsim
