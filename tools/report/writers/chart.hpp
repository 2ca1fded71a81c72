#pragma once

#include <string>
#include <vector>

#include "tools/report/writers/page.hpp"
#include "tools/study/names.hpp"

namespace ddpsim {

/// Timelines as text, one scale for all: what the compute and the communication stream of rank 0
/// do. It keeps to the page's width; names that leave too little room for a timeline are cut.
std::string timeline_chart(const std::vector<NamedStep>& steps, PageWidth page = {});

}  // namespace ddpsim
