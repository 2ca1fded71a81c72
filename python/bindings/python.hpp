#pragma once

// What the module takes from Python: its limited API of 3.9, so that one file serves this release
// and every later one. Objects of Python are owned by `Owned`, and its lock is given up by
// `Unlocked`.

#include <memory>
#include <string>

#define PY_SSIZE_T_CLEAN
#include <Python.h>

namespace ddpsim {

/// Thrown where a call of Python has failed and left its exception set.
struct PythonError {};

struct Release {
  void operator()(PyObject* object) const { Py_DECREF(object); }
};
using Owned = std::unique_ptr<PyObject, Release>;

/// Owns a new reference. Throws PythonError if there is none.
inline Owned owned(PyObject* made) {
  if (made == nullptr) throw PythonError();
  return Owned(made);
}

/// A new text of Python, from UTF-8.
inline PyObject* python_text(const std::string& text) {
  return PyUnicode_FromStringAndSize(text.data(), static_cast<Py_ssize_t>(text.size()));
}

/// A text of Python as UTF-8. Throws PythonError if `text` is none, or UTF-8 cannot write it.
inline std::string utf8(PyObject* text) {
  const Owned bytes = owned(PyUnicode_AsUTF8String(text));
  char* data = nullptr;
  Py_ssize_t size = 0;
  if (PyBytes_AsStringAndSize(bytes.get(), &data, &size) != 0) throw PythonError();
  return {data, static_cast<std::size_t>(size)};
}

/// Gives Python's lock to other threads while it lives.
class Unlocked {
 public:
  Unlocked() : state_(PyEval_SaveThread()) {}
  ~Unlocked() { PyEval_RestoreThread(state_); }
  Unlocked(const Unlocked&) = delete;
  Unlocked& operator=(const Unlocked&) = delete;

 private:
  PyThreadState* state_;
};

/// Sets the exception of Python for the one that is being handled: InputError and
/// std::invalid_argument are ddpsim.InputError, with the place that the text begins with; others
/// are a RuntimeError or a MemoryError. Call within `catch`.
void set_python_error() noexcept;

/// What `call` returns; a null pointer, with Python's exception set, where it throws.
template <typename Call>
PyObject* guarded(const Call& call) noexcept {
  try {
    return call();
  } catch (...) {
    set_python_error();
    return nullptr;
  }
}

}  // namespace ddpsim
