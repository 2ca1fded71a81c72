#pragma once

#include "tools/report/pages/html_writer.hpp"
#include "tools/study/validation.hpp"

namespace ddpsim {

/// What `ddpsim validate --report` says: how far the predictions were off, the timelines with
/// predicted above measured, and validation_page's tables.
ReportSection validate_section(const Validation& validation);

}  // namespace ddpsim
