#pragma once

namespace ddpsim {

/// The exit code of a command whose median error `--tolerance` holds in bounds, with a line on
/// stderr where the error is beyond it. Shares; below zero: no tolerance was given.
int held_to_tolerance(double median_error, double tolerance);

}  // namespace ddpsim
