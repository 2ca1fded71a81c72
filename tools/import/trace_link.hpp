#pragma once

#include <optional>
#include <string>
#include <vector>

#include "model/cluster/cluster.hpp"
#include "tools/import/torch_trace.hpp"
#include "tools/import/trace_tensors.hpp"

namespace ddpsim {

/// The link profile of a trace: how long its all-reduces of gradients took, by size, in the median
/// over the steps, of each the mean over buckets of one size. What overlaps an earlier all-reduce
/// counts from that one's end, for predictions run them one after the other; one that ends no later
/// than that one does not count, and a size of which none counts has no row.
///
/// In one rank's trace an all-reduce counts from that rank's arrival, so that waiting for the other
/// ranks is in it. With the traces of other ranks (`others`) it counts from the last arrival: the
/// shortest of the ranks' times of one all-reduce, for the last to arrive waits for nobody; so the
/// ranks' clocks need not agree. Steps are matched by their names. Notes in `finding` what the
/// times are.
///
/// Nothing, and a last note that says why, where no row is left or the times are no link's
/// (why_no_link()). Throws InputError, naming `file` or one of `other_files`, if one rank was
/// alone, if sizes are not known, if another rank's steps have other all-reduces, or no step in
/// common.
std::optional<Link> link_of(TraceFinding& finding, const FoundGradients& gradients,
                            const std::string& file, const std::vector<TraceFinding>& others,
                            const std::vector<std::string>& other_files);

}  // namespace ddpsim
