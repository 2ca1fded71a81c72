#pragma once

#include <map>
#include <string>

#include "tests/golden/drawn_map.hpp"

namespace ddpsim::golden {

using Files = std::map<std::string, std::string>;  ///< name, content

// Parts of a scenario whose values depend on one another, so that the description of the keys alone
// does not draw them. Each returns pins and adds the files that these name.

/// The pinned model of the catalogue, most of the time with fewer layers.
Pins shortened_model(const Draw& draw, const Pins& pins, Files& files);
/// A comm hook of steps of one's own.
Pins own_steps(const Draw& draw, const Pins& pins, Files& files);
/// Explicit buckets of a network whose parameters are known.
Pins named_buckets(const Draw& draw, const Pins& pins, Files& files);
/// Parameters of such a network whose all-reduce is delayed.
Pins delayed_parameters(const Draw& draw, const Pins& pins, Files& files);
/// Rows that were measured.
Pins measured_rows(const Draw& draw, const Pins& pins, Files& files);
/// A workload profile.
Pins drawn_profile(const Draw& draw, const Pins& pins, Files& files);
/// A workload description of a few kernels of any kind.
Pins drawn_description(const Draw& draw, const Pins& pins, Files& files);
/// One of tests/data, of a real network.
Pins shipped_description(const Draw& draw, const Pins& pins, Files& files);
/// A calibration.
Pins drawn_calibration(const Draw& draw, const Pins& pins, Files& files);

}  // namespace ddpsim::golden
