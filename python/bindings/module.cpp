// The module ddpsim._native: what of the program Python calls. Questions and answers are texts of
// JSON, which the package ddpsim makes of objects and makes objects of; python/ddpsim/_native.pyi
// says the types.

#include "backend/version.hpp"
#include "python/bindings/background.hpp"
#include "python/bindings/python.hpp"
#include "python/bindings/request.hpp"
#include "python/bindings/study.hpp"
#include "python/bindings/sweep_object.hpp"
#include "scenarios/reader/catalogue/catalogue.hpp"

namespace ddpsim {
namespace {

PyObject* ask(PyObject*, PyObject* arguments) {
  return guarded([&]() -> PyObject* {
    PyObject *text = nullptr, *progress = nullptr;
    if (PyArg_ParseTuple(arguments, "UO:ask", &text, &progress) == 0) throw PythonError();
    return python_text(in_background(
        [json = utf8(text)](const Tell& tell) { return answer_request(Request(json), tell); },
        progress));
  });
}

PyObject* use_catalogue_of(PyObject*, PyObject* folder) {
  return guarded([&]() -> PyObject* {
    use_catalogue(utf8(folder));
    Py_RETURN_NONE;
  });
}

PyObject* wait(PyObject*, PyObject*) {
  return guarded([]() -> PyObject* {
    wait_for_abandoned_work();
    Py_RETURN_NONE;
  });
}

/// Puts an object, of which it takes the reference, into the module.
bool add(PyObject* module, const char* name, PyObject* made) {
  const Owned object(made);
  return object && PyObject_SetAttrString(module, name, made) == 0;
}

int fill(PyObject* module) {
  return add(module, "__version__", PyUnicode_FromString(version)) &&
                 add(module, "Study", make_study_type()) &&
                 add(module, "SharedSweep", make_shared_sweep_type())
             ? 0
             : -1;
}

PyMethodDef functions[] = {{"ask", ask, METH_VARARGS, nullptr},
                           {"use_catalogue", use_catalogue_of, METH_O, nullptr},
                           {"wait_for_abandoned_work", wait, METH_NOARGS, nullptr},
                           {}};
PyModuleDef_Slot slots[] = {{Py_mod_exec, reinterpret_cast<void*>(fill)}, {0, nullptr}};
PyModuleDef definition{
    PyModuleDef_HEAD_INIT, "_native", nullptr, 0, functions, slots, nullptr, nullptr, nullptr};

}  // namespace
}  // namespace ddpsim

PyMODINIT_FUNC PyInit__native() {
  return PyModuleDef_Init(&ddpsim::definition);
}
