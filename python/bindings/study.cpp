#include "python/bindings/study.hpp"

#include <array>
#include <memory>
#include <string>

#include "python/bindings/quantities.hpp"
#include "python/bindings/request.hpp"
#include "python/bindings/what_ifs.hpp"

namespace ddpsim {
namespace {

struct Study {
  PyObject_HEAD WhatIfs* what_ifs;
};

WhatIfs& what_ifs_of(PyObject* self) {
  return *reinterpret_cast<Study*>(self)->what_ifs;
}

PyObject* create_study(PyTypeObject* type, PyObject* arguments, PyObject* keywords) {
  return guarded([&]() -> PyObject* {
    std::array<char*, 2> names{const_cast<char*>("request"), nullptr};
    PyObject* text = nullptr;
    if (PyArg_ParseTupleAndKeywords(arguments, keywords, "U:Study", names.data(), &text) == 0)
      throw PythonError();
    const std::string json = utf8(text);
    std::unique_ptr<WhatIfs> made;
    {
      const Unlocked unlocked;
      made = std::make_unique<WhatIfs>(Request(json).question());
    }
    Owned self = owned(PyType_GenericAlloc(type, 0));
    reinterpret_cast<Study*>(self.get())->what_ifs = made.release();
    return self.release();
  });
}

void destroy_study(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  delete reinterpret_cast<Study*>(self)->what_ifs;
  PyObject_Free(self);
  Py_DECREF(type);
}

/// Python's own words for an argument that is none do not say which there are.
void check_names(PyObject* arguments, PyObject* keywords, const std::array<char*, 9>& names) {
  const auto refuse = [](const std::string& why) {
    PyErr_SetString(PyExc_TypeError, why.c_str());
    throw PythonError();
  };
  if (PyTuple_Size(arguments) > 0)
    refuse("step_ms takes arguments by name, such as bucket_cap='25 MiB'");
  PyObject* key = nullptr;
  for (Py_ssize_t at = 0; keywords != nullptr && PyDict_Next(keywords, &at, &key, nullptr) != 0;) {
    const std::string given = utf8(key);
    std::string known;
    bool found = false;
    for (const char* name : names) {
      if (name == nullptr) break;
      found = found || given == name;
      known.append(known.empty() ? "" : ", ").append(name);
    }
    if (!found) refuse("step_ms has no argument " + given + "; it has " + known);
  }
}

PyObject* step_ms(PyObject* self, PyObject* arguments, PyObject* keywords) {
  return guarded([&]() -> PyObject* {
    static std::array<char*, 9> names{const_cast<char*>("strategy"),
                                      const_cast<char*>("bucket_cap"),
                                      const_cast<char*>("first_bucket_cap"),
                                      const_cast<char*>("bucket_caps"),
                                      const_cast<char*>("latency"),
                                      const_cast<char*>("bandwidth"),
                                      const_cast<char*>("compute"),
                                      const_cast<char*>("slowest_rank"),
                                      nullptr};
    check_names(arguments, keywords, names);
    PyObject *strategy = Py_None, *cap = Py_None, *first_cap = Py_None, *caps = Py_None,
             *latency = Py_None, *bandwidth = Py_None, *compute = Py_None, *slowest = Py_None;
    if (PyArg_ParseTupleAndKeywords(arguments, keywords, "|$OOOOOOOO:step_ms", names.data(),
                                    &strategy, &cap, &first_cap, &caps, &latency, &bandwidth,
                                    &compute, &slowest) == 0)
      throw PythonError();
    Differences differences;
    differences.strategy = strategy_given("strategy", strategy);
    differences.bucket_cap = size_given("bucket_cap", cap);
    differences.first_bucket_cap = size_given("first_bucket_cap", first_cap);
    differences.bucket_caps = sizes_given("bucket_caps", caps);
    differences.latency = time_given("latency", latency);
    differences.bandwidth = rate_given("bandwidth", bandwidth);
    differences.compute = factor_given("compute", compute).value_or(1);
    differences.slowest_rank = lateness_given("slowest_rank", slowest);
    double step = 0;
    {
      const Unlocked unlocked;
      step = in_ms(what_ifs_of(self).step(differences));
    }
    return PyFloat_FromDouble(step);
  });
}

PyObject* name(PyObject* self, void*) {
  return guarded([&] { return python_text(what_ifs_of(self).scenario().name); });
}

PyObject* ranks(PyObject* self, void*) {
  return guarded([&] { return PyLong_FromLong(what_ifs_of(self).scenario().cluster.ranks()); });
}

}  // namespace

PyObject* make_study_type() {
  const auto with_keywords = reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(step_ms));
  static PyMethodDef methods[] = {{"step_ms", with_keywords, METH_VARARGS | METH_KEYWORDS, nullptr},
                                  {}};
  static PyGetSetDef properties[] = {
      {"name", name, nullptr, nullptr, nullptr}, {"ranks", ranks, nullptr, nullptr, nullptr}, {}};
  PyType_Slot slots[] = {{Py_tp_new, reinterpret_cast<void*>(create_study)},
                         {Py_tp_dealloc, reinterpret_cast<void*>(destroy_study)},
                         {Py_tp_methods, methods},
                         {Py_tp_getset, properties},
                         {0, nullptr}};
  PyType_Spec spec{"ddpsim._native.Study", sizeof(Study), 0, Py_TPFLAGS_DEFAULT, slots};
  return PyType_FromSpec(&spec);
}

}  // namespace ddpsim
