#pragma once

#include <optional>
#include <string>
#include <vector>

#include <pybind11/pybind11.h>

#include "model/base/quantity.hpp"

namespace ddpsim {

// Quantities as Python gives them: a text with its unit, as in a scenario ("25 MiB"), or a number
// of bytes, of seconds, of bytes per second. None: absent. Each throws InputError, which names the
// argument, for what is none of these and for what is negative (sizes and rates: or zero).

std::optional<Bytes> size_given(const char* argument, const pybind11::object& value);
std::optional<std::vector<Bytes>> sizes_given(const char* argument, const pybind11::object& value);
std::optional<Duration> time_given(const char* argument, const pybind11::object& value);
std::optional<Bandwidth> rate_given(const char* argument, const pybind11::object& value);
/// A number without a unit, from `least` to 10^6.
std::optional<double> factor_given(const char* argument, const pybind11::object& value,
                                   const char* expected, double least);

/// A text; none for what is no text, or one that UTF-8 cannot write.
std::optional<std::string> text_in(const pybind11::handle& value);

/// Throws InputError: "latency: expected a time such as "5 us", got 'soon'".
[[noreturn]] void refuse(const char* argument, const pybind11::handle& value, const char* expected);

}  // namespace ddpsim
