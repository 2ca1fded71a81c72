#pragma once

#include "tools/report/pages/html_writer.hpp"
#include "tools/study/score.hpp"

namespace ddpsim {

/// What `ddpsim score --report` says: how far predictions were off, as a sentence, as curves of the
/// share of rows within an error, and as score_page's tables.
ReportSection score_section(const std::vector<FileScore>& files, const ScoreSummary& summary);

}  // namespace ddpsim
