#pragma once

#include "python/bindings/python.hpp"

namespace ddpsim {

/// The type ddpsim._native.Study, a WhatIfs (what_ifs.hpp): a new reference, null with Python's
/// exception set where it cannot be made. Study(request) reads and prices the scenario of a
/// request; `step_ms` takes keywords alone, and each may be None.
PyObject* make_study_type();

}  // namespace ddpsim
