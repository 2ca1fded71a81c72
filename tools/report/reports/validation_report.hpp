#pragma once

#include <string>
#include <vector>

#include "tools/report/writers/page.hpp"
#include "tools/study/validation.hpp"

namespace ddpsim {

/// Both sides for people: steps, streams, where the difference comes from, buckets, pictures.
Page validation_page(const Validation& validation);

/// Whether gradients are right: of the first strategy under which they are not, how many are wrong
/// and which comes first; else how near they come to the mean.
std::string gradients_text(const Validation& validation);

/// Steps predicted and measured, a row for each strategy and what varies: what `--csv` writes.
Table validation_rows(const Validation& validation);

/// "bucketed, 4 MiB, comm_hook: fp16_compress, no_sync: true": what a row of it is called.
std::string label_of(const ValidatedStep& step);

/// Why the figures are doubtful, a sentence each (machine_doubts.hpp).
std::vector<std::string> doubts_of(const Validation& validation);

/// What is said beside the figures: that measured steps were shorter than `none`, with the largest
/// difference and what it means, and that fewer steps were measured than were wanted.
std::vector<std::string> validation_notes(const Validation& validation);

}  // namespace ddpsim
