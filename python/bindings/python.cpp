#include "python/bindings/python.hpp"

#include <new>
#include <stdexcept>

#include "backend/device_error.hpp"
#include "scenarios/reader/text/input_error.hpp"

namespace ddpsim {
namespace {

void set_input_error(const char* text) {
  const Owned module = owned(PyImport_ImportModule("ddpsim._errors"));
  const Owned type = owned(PyObject_GetAttrString(module.get(), "InputError"));
  const Owned error = owned(PyObject_CallMethod(type.get(), "of_text", "s", text));
  PyErr_SetObject(type.get(), error.get());
}

void set_device_error(const char* text) {
  const Owned module = owned(PyImport_ImportModule("ddpsim._errors"));
  const Owned type = owned(PyObject_GetAttrString(module.get(), "DeviceError"));
  PyErr_SetString(type.get(), text);
}

void set_error_of_current_exception() {
  try {
    throw;
  } catch (const PythonError&) {  // it is set
  } catch (const InputError& wrong) {
    set_input_error(wrong.what());
  } catch (const std::invalid_argument& refused) {  // a law refuses what the scenario asks of it
    set_input_error(refused.what());
  } catch (const DeviceError& failed) {
    set_device_error(failed.what());
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  } catch (const std::exception& problem) {
    PyErr_SetString(PyExc_RuntimeError, problem.what());
  }
}

}  // namespace

void set_python_error() noexcept {
  try {
    set_error_of_current_exception();
  } catch (...) {  // importing ddpsim._errors has failed, which has set an exception of its own
    if (PyErr_Occurred() == nullptr) PyErr_SetString(PyExc_RuntimeError, "an unknown exception");
  }
}

}  // namespace ddpsim
