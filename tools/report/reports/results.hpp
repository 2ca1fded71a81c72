#pragma once

#include <string>
#include <vector>

#include "model/scenario/scenario.hpp"
#include "scenarios/reader/text/settings.hpp"
#include "tools/report/writers/page.hpp"
#include "tools/study/comparison.hpp"

namespace ddpsim {

/// The keys of settings with their values, as files of results have them.
Texts texts_of(const std::vector<Setting>& settings);

/// One entry of "results"; times in ms, sizes in bytes.
Record record_without_buckets(const Scenario& scenario, const Result& result);
Record result_record(const Scenario& scenario, const Result& result);

/// Sentences as a list of results.
List list_of(const std::vector<std::string>& sentences);

/// "ddpsim.run/1", of those entries. `notes`: what is said beside them (said_notes.hpp).
Record run_record(const Scenario& scenario, const std::vector<std::string>& notes, List results);

/// Is any of the strategies one that shards? Then what crosses ports is said of all.
bool any_shards(const std::vector<Result>& results);
void add_port_bytes(Record& record, const Step& step);

/// The columns of `run --csv`, of which the first seven are those of the CS336 tables, and what
/// stands in a row.
const std::vector<Field>& run_columns();
Record run_row(const Comparison& run, const Result& result);

/// A record of a result with what follows from the length of its step taken from the mean of steps
/// in the long run: the step, exposed, speedup, throughput, cost, and the band.
Record in_the_long_run(Record record, const Comparison& run, const Result& result);
/// Says so below a table.
inline constexpr const char* in_the_long_run_text =
    "post_local_sgd: the step and what follows from its length (exposed, throughput, MFU, cost) "
    "are means over a period, in which models are averaged once; the other columns are of a step "
    "without that averaging\n";

/// The table and the timelines `ddpsim run` prints.
Page run_page(const Scenario& scenario, const std::vector<Result>& results,
              const Knowledge& knowledge);

}  // namespace ddpsim
