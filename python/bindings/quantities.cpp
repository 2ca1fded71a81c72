#include "python/bindings/quantities.hpp"

#include <cmath>
#include <cstdint>
#include <limits>
#include <ranges>

#include <fmt/format.h>

#include "scenarios/reader/text/input_error.hpp"
#include "scenarios/reader/text/quantity_text.hpp"

namespace ddpsim {
namespace {

constexpr double largest_factor = 1e6;

[[noreturn]] void refuse(const char* argument, PyObject* value, const char* expected) {
  const Owned module = owned(PyImport_ImportModule("ddpsim._arguments"));
  const Owned shown = owned(PyObject_CallMethod(module.get(), "shown", "O", value));
  throw InputError(fmt::format("{}: expected {}, got {}", argument, expected, utf8(shown.get())));
}

bool is_number(PyObject* value) {
  return PyFloat_Check(value) || (PyLong_Check(value) && !PyBool_Check(value)) ||
         (!PyUnicode_Check(value) && !PyBool_Check(value) &&
          PyObject_HasAttrString(value, "__float__") != 0);
}

/// The value as a number; NaN if Python cannot convert it.
double number_of(PyObject* value) {
  const double number = PyFloat_AsDouble(value);
  if (number != -1 || PyErr_Occurred() == nullptr) return number;
  PyErr_Clear();
  return std::numeric_limits<double>::quiet_NaN();
}

/// The text that a value is; "" for one that UTF-8 cannot write, which no quantity is.
std::string text_in(PyObject* value) {
  try {
    return utf8(value);
  } catch (const PythonError&) {
    PyErr_Clear();
    return "";
  }
}

Bytes size_of(const char* argument, PyObject* value) {
  constexpr const char* expected = "a size such as \"25 MiB\", or a number of bytes, above zero";
  constexpr double most = 9e18;
  std::optional<Bytes> size;
  if (PyUnicode_Check(value)) {
    size = parse_bytes(text_in(value));
  } else if (is_number(value)) {
    const double count = number_of(value);
    if (count >= 1 && count < most) size = Bytes{static_cast<std::int64_t>(count)};
  }
  if (!size || size->count <= 0) refuse(argument, value, expected);
  return *size;
}

}  // namespace

std::optional<Strategy> strategy_given(const char* argument, PyObject* value) {
  if (value == Py_None) return std::nullopt;
  std::optional<Strategy> strategy;
  if (PyUnicode_Check(value)) strategy = strategy_named(text_in(value));
  if (!strategy)
    refuse(
        argument, value,
        fmt::format("one of {}",
                    fmt::join(strategy_facts | std::views::transform(&StrategyFacts::name), ", "))
            .c_str());
  return strategy;
}

std::optional<Bytes> size_given(const char* argument, PyObject* value) {
  if (value == Py_None) return std::nullopt;
  return size_of(argument, value);
}

std::optional<std::vector<Bytes>> sizes_given(const char* argument, PyObject* value) {
  if (value == Py_None) return std::nullopt;
  std::vector<Bytes> sizes;
  if (PyUnicode_Check(value) || PySequence_Check(value) == 0)
    refuse(argument, value, "a list of sizes");
  const Py_ssize_t count = PySequence_Size(value);
  if (count < 0) throw PythonError();
  for (Py_ssize_t at = 0; at < count; ++at)
    sizes.push_back(size_of(argument, owned(PySequence_GetItem(value, at)).get()));
  if (sizes.empty()) refuse(argument, value, "at least one size");
  return sizes;
}

std::optional<Duration> time_given(const char* argument, PyObject* value) {
  if (value == Py_None) return std::nullopt;
  std::optional<Duration> time;
  constexpr double longest = 1e6;  // seconds
  if (PyUnicode_Check(value)) {
    time = parse_duration(text_in(value));
  } else if (is_number(value)) {
    const double seconds = number_of(value);
    if (seconds >= 0 && seconds <= longest) time = from_seconds(seconds);
  }
  if (!time || *time < Duration::zero())
    refuse(argument, value, "a time such as \"5 us\", or a number of seconds");
  return time;
}

std::optional<Bandwidth> rate_given(const char* argument, PyObject* value) {
  if (value == Py_None) return std::nullopt;
  std::optional<Bandwidth> rate;
  if (PyUnicode_Check(value))
    rate = parse_bandwidth(text_in(value));
  else if (is_number(value))
    rate = Bandwidth{number_of(value)};
  if (!rate || !(rate->bytes_per_second > 0) || !std::isfinite(rate->bytes_per_second))
    refuse(argument, value,
           "a rate such as \"450 GB/s\", or a number of bytes per second, above zero");
  return rate;
}

std::optional<double> factor_given(const char* argument, PyObject* value) {
  if (value == Py_None) return std::nullopt;
  const double factor = is_number(value) ? number_of(value) : 0;
  if (!(factor > 0 && factor < largest_factor)) refuse(argument, value, "a factor above zero");
  return factor;
}

std::optional<double> lateness_given(const char* argument, PyObject* value) {
  if (value == Py_None) return std::nullopt;
  const double factor = is_number(value) ? number_of(value) : 0;
  if (!(factor >= 1 && factor < largest_factor)) refuse(argument, value, "a factor of 1 or more");
  return factor;
}

}  // namespace ddpsim
