#include "python/bindings/quantities.hpp"

#include <cmath>
#include <cstdint>
#include <limits>

#include <fmt/format.h>

#include "scenarios/reader/input_error.hpp"
#include "scenarios/reader/quantity_text.hpp"

namespace ddpsim {
namespace py = pybind11;

void refuse(const char* argument, const py::handle& value, const char* expected) {
  const py::object shown = py::module_::import("ddpsim._arguments").attr("shown")(value);
  throw InputError(
      fmt::format("{}: expected {}, got {}", argument, expected, shown.cast<std::string>()));
}

std::optional<std::string> text_in(const py::handle& value) {
  Py_ssize_t size = 0;
  const char* text = PyUnicode_AsUTF8AndSize(value.ptr(), &size);
  if (text != nullptr) return std::string(text, static_cast<std::size_t>(size));
  PyErr_Clear();
  return std::nullopt;
}

namespace {

bool is_number(const py::handle& value) {
  return PyFloat_Check(value.ptr()) || (PyLong_Check(value.ptr()) && !PyBool_Check(value.ptr())) ||
         (!PyUnicode_Check(value.ptr()) && !PyBool_Check(value.ptr()) &&
          PyObject_HasAttrString(value.ptr(), "__float__") != 0);
}

/// Not a number, for an object whose __float__ fails: an array of several numbers has one too.
double number_of(const py::handle& value) {
  const double number = PyFloat_AsDouble(value.ptr());
  if (PyErr_Occurred() == nullptr) return number;
  PyErr_Clear();
  return std::numeric_limits<double>::quiet_NaN();
}

Bytes size_of(const char* argument, const py::handle& value) {
  constexpr const char* expected = "a size such as \"25 MiB\", or a number of bytes, above zero";
  constexpr double most = 9e18;
  std::optional<Bytes> size;
  if (PyUnicode_Check(value.ptr())) {
    if (const auto text = text_in(value)) size = parse_bytes(*text);
  } else if (is_number(value)) {
    const double count = number_of(value);
    if (count >= 1 && count < most) size = Bytes{static_cast<std::int64_t>(count)};
  }
  if (!size || size->count <= 0) refuse(argument, value, expected);
  return *size;
}

}  // namespace

std::optional<Bytes> size_given(const char* argument, const py::object& value) {
  if (value.is_none()) return std::nullopt;
  return size_of(argument, value);
}

std::optional<std::vector<Bytes>> sizes_given(const char* argument, const py::object& value) {
  if (value.is_none()) return std::nullopt;
  std::vector<Bytes> sizes;
  if (PyUnicode_Check(value.ptr()) || !py::isinstance<py::sequence>(value))
    refuse(argument, value, "a list of sizes");
  for (const py::handle& each : value) sizes.push_back(size_of(argument, each));
  if (sizes.empty()) refuse(argument, value, "at least one size");
  return sizes;
}

std::optional<Duration> time_given(const char* argument, const py::object& value) {
  if (value.is_none()) return std::nullopt;
  std::optional<Duration> time;
  constexpr double longest = 1e6;  // seconds
  if (PyUnicode_Check(value.ptr())) {
    if (const auto text = text_in(value)) time = parse_duration(*text);
  } else if (is_number(value)) {
    const double seconds = number_of(value);
    if (seconds >= 0 && seconds <= longest) time = from_seconds(seconds);
  }
  if (!time || *time < Duration::zero())
    refuse(argument, value, "a time such as \"5 us\", or a number of seconds");
  return time;
}

std::optional<Bandwidth> rate_given(const char* argument, const py::object& value) {
  if (value.is_none()) return std::nullopt;
  std::optional<Bandwidth> rate;
  if (PyUnicode_Check(value.ptr())) {
    if (const auto text = text_in(value)) rate = parse_bandwidth(*text);
  } else if (is_number(value))
    rate = Bandwidth{number_of(value)};
  if (!rate || !(rate->bytes_per_second > 0) || !std::isfinite(rate->bytes_per_second))
    refuse(argument, value,
           "a rate such as \"450 GB/s\", or a number of bytes per second, above zero");
  return rate;
}

std::optional<double> factor_given(const char* argument, const py::object& value,
                                   const char* expected, double least) {
  if (value.is_none()) return std::nullopt;
  const double factor = is_number(value) ? number_of(value) : 0;
  constexpr double most = 1e6;
  if (!(factor >= least && factor < most)) refuse(argument, value, expected);
  return factor;
}

}  // namespace ddpsim
