#pragma once

#include "tools/report/pages/html_writer.hpp"
#include "tools/sweep/sweep_results.hpp"

namespace ddpsim {

/// What `ddpsim sweep --report` says: the shortest step, the pictures that fit one or two varied
/// keys (varied_pictures.hpp), and the tables of sweep_page. `best`: the figure they are sorted
/// by. `notes`: what the command says besides.
ReportSection sweep_section(const Sweep& sweep, const PointResults& results,
                            const std::optional<Field>& best, Page tables,
                            const std::vector<std::string>& notes);

}  // namespace ddpsim
