#pragma once

#include "tools/report/writers/page.hpp"

namespace ddpsim {

/// How wide a page on stdout is: as many columns as the environment variable COLUMNS says, else as
/// the terminal has. None where stdout is no terminal, so that a file holds everything.
PageWidth page_width();

}  // namespace ddpsim
