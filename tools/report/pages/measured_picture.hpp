#pragma once

#include <optional>
#include <vector>

#include "tools/report/writers/page.hpp"
#include "tools/study/score.hpp"

namespace ddpsim {

/// Predicted above measured: two bars for each row, file by file; of many rows those that are most
/// off. None where there is no row.
std::optional<Picture> measured_picture(const std::vector<FileScore>& files);

}  // namespace ddpsim
