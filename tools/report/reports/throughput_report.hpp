#pragma once

#include <vector>

#include "tools/report/records/record.hpp"
#include "tools/study/comparison.hpp"
#include "tools/study/scaling.hpp"

namespace ddpsim {

/// The share of a step that goes away without communication, where it takes as long as `none`:
/// exposed over step, unless the step or `none` waits for batches.
double communication_share(Duration step, Duration none);

/// What a step amounts to: throughput, MFU, scaling, cost. Every field of fields::of_throughput, in
/// that order; what is not known has no value.
Record throughput_record(const Scenario& scenario, const Result& result);
/// What steps that take as long as `step` amount to.
Record throughput_record(const Scenario& scenario, const Result& result, Duration step);

/// Makes the column of what fits stay on any page where a row of the table does not fit.
void keep_what_does_not_fit(Table& table);

/// The throughput as a table: a row for each result, without columns that hold nothing.
Table throughput_table(const Scenario& scenario, const std::vector<Result>& results);

/// A curve for programs, and several as one table.
List scaling_records(const ScalingCurve& curve);
Table scaling_table(const std::vector<ScalingCurve>& curves);

}  // namespace ddpsim
