#pragma once

#include "python/bindings/python.hpp"

namespace ddpsim {

/// The type ddpsim._native.SharedSweep, a SharedSweep (shared_sweep.hpp): a new reference, null
/// with Python's exception set where it cannot be made. SharedSweep(request) plans the sweep of a
/// request with "axes" and "csv", whose texts in place of files live as long as the object.
PyObject* make_shared_sweep_type();

}  // namespace ddpsim
