#pragma once

#include <optional>
#include <vector>

#include "tools/report/writers/page.hpp"
#include "tools/study/names.hpp"

namespace ddpsim {

/// The exposed buckets of every step, the longest first, each as long as it is exposed and divided
/// by what held it up; none where nothing is exposed. exposed_page has the same as tables.
std::optional<Picture> why_picture(const Scenario& scenario, const std::vector<NamedStep>& steps);

}  // namespace ddpsim
