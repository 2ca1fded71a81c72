#pragma once

#include <optional>
#include <vector>

#include "model/base/quantity.hpp"
#include "model/parallel/training.hpp"
#include "python/bindings/python.hpp"

namespace ddpsim {

// Quantities as Python gives them: a text with its unit, as in a scenario ("25 MiB"), or a number
// of bytes, of seconds, of bytes per second. None: absent. Each throws InputError, which names the
// argument, for what is none of these and for what is negative (sizes and rates: or zero), and
// PythonError where a value's own code raises.

std::optional<Bytes> size_given(const char* argument, PyObject* value);
std::optional<std::vector<Bytes>> sizes_given(const char* argument, PyObject* value);
std::optional<Duration> time_given(const char* argument, PyObject* value);
std::optional<Bandwidth> rate_given(const char* argument, PyObject* value);

/// A strategy by its name.
std::optional<Strategy> strategy_given(const char* argument, PyObject* value);
/// A number above zero.
std::optional<double> factor_given(const char* argument, PyObject* value);
/// A number of 1 or more.
std::optional<double> lateness_given(const char* argument, PyObject* value);

}  // namespace ddpsim
