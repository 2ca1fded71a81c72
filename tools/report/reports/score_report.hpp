#pragma once

#include <string>
#include <vector>

#include "tools/report/writers/page.hpp"
#include "tools/study/score.hpp"

namespace ddpsim {

/// A table for each file, and the summary.
Page score_page(const std::vector<FileScore>& files, const ScoreSummary& summary);

/// "ddpsim.score/1". `left_out`: files without a row to calibrate on.
Record score_record(const std::vector<FileScore>& files, const std::vector<std::string>& left_out,
                    const ScoreSummary& summary);

/// The rows of one file, for people.
Table rows_table(const FileScore& score);

/// The rows of all files.
Table score_table(const std::vector<FileScore>& files);

}  // namespace ddpsim
