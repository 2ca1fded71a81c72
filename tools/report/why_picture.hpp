#pragma once

#include <optional>

#include "tools/report/page.hpp"
#include "tools/study/comparison.hpp"

namespace ddpsim {

/// The exposed buckets of every strategy, the longest first, each as long as it is exposed and
/// divided by what held it up; none where nothing is exposed. why_page has the same as a table.
std::optional<Picture> why_picture(const Comparison& comparison);

}  // namespace ddpsim
