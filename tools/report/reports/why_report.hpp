#pragma once

#include <functional>

#include "model/timeline/units.hpp"
#include "sim/predict/loss.hpp"
#include "tools/report/writers/page.hpp"
#include "tools/study/comparison.hpp"

namespace ddpsim {

/// What a step would be without communication; null: not known.
using WithoutCommunication = std::function<const StepMetrics*(const Step&)>;

/// For people: of every step the buckets that are exposed, the largest first, with what held them
/// up.
Page exposed_page(const Scenario& scenario, const std::vector<NamedStep>& steps,
                  const WithoutCommunication& without);

/// What every strategy loses, exposed_page of each, and the steps under each change of
/// sim/predict/what_if.hpp. `losses`: [strategy compared].
Page why_page(const Comparison& comparison, const std::vector<StepLoss>& losses);

/// "12 h.11.mlp.weight +3": the bucket's number, its first parameter and how many more it has; of
/// what is no bucket's, "updated parameters".
std::string bucket_label(const Scenario& scenario, const program::Job& job, std::size_t bucket);

/// "previous 2.100, gradients 1.250": the causes, the largest first.
std::string because(const ExposedBucket& bucket);
/// The field that says how much a cause accounts for.
const Field& field_of(Cause cause);
/// Is it a cause of that collective's kind, whether or not it accounts for anything?
bool is_told_of_units(Cause cause, const UnitCollective& collective);

/// What is exposed of a step: its buckets, and what sends updated parameters behind the optimizer
/// as one more; or its units.
std::vector<ExposedBucket> exposed_groups(const Step& step);

/// Does a bucket have more collectives than one, as of a comm hook or of sparse gradients?
bool has_later_collectives(const Step& step);

/// One record per compared strategy, for "why" in the results of `run --json`.
std::vector<Record> why_records(const Comparison& comparison, const std::vector<StepLoss>& losses);

}  // namespace ddpsim
