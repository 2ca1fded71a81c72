#pragma once

#include "tools/report/pages/html_writer.hpp"
#include "tools/study/run_variants.hpp"

namespace ddpsim {

/// What `ddpsim run --vary --report` says: the shortest step, the pictures that fit one or two
/// varied keys (varied_pictures.hpp), and varied_page. `best`: the figure that is sorted by.
/// `notes`: what the command says besides.
ReportSection varied_section(const Variants& variants, const Grid& grid,
                             const std::optional<Field>& best,
                             const std::vector<std::string>& notes);

}  // namespace ddpsim
