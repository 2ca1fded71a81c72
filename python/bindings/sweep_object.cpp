#include "python/bindings/sweep_object.hpp"

#include <array>
#include <memory>

#include "python/bindings/request.hpp"
#include "python/bindings/shared_sweep.hpp"

namespace ddpsim {
namespace {

struct Asked {
  Request request;
  SharedSweep sweep;
  explicit Asked(const std::string& json)
      : request(json), sweep(request.question(), request.texts("axes"), request.text("csv")) {}
};

struct Object {
  PyObject_HEAD Asked* asked;
};

SharedSweep& sweep_of(PyObject* self) {
  return reinterpret_cast<Object*>(self)->asked->sweep;
}

PyObject* create_sweep(PyTypeObject* type, PyObject* arguments, PyObject* keywords) {
  return guarded([&]() -> PyObject* {
    std::array<char*, 2> names{const_cast<char*>("request"), nullptr};
    PyObject* text = nullptr;
    if (PyArg_ParseTupleAndKeywords(arguments, keywords, "U:SharedSweep", names.data(), &text) == 0)
      throw PythonError();
    const std::string json = utf8(text);
    std::unique_ptr<Asked> made;
    {
      const Unlocked unlocked;
      made = std::make_unique<Asked>(json);
    }
    Owned self = owned(PyType_GenericAlloc(type, 0));
    reinterpret_cast<Object*>(self.get())->asked = made.release();
    return self.release();
  });
}

void destroy_sweep(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  delete reinterpret_cast<Object*>(self)->asked;
  PyObject_Free(self);
  Py_DECREF(type);
}

std::vector<std::size_t> points_of(PyObject* list) {
  const Py_ssize_t count = PySequence_Size(list);
  if (count < 0) throw PythonError();
  std::vector<std::size_t> points;
  for (Py_ssize_t at = 0; at < count; ++at) {
    points.push_back(PyLong_AsSize_t(owned(PySequence_GetItem(list, at)).get()));
    if (PyErr_Occurred() != nullptr) throw PythonError();
  }
  return points;
}

PyObject* missing(PyObject* self, PyObject*) {
  return guarded([&]() -> PyObject* {
    Owned list = owned(PyList_New(0));
    for (const std::size_t point : sweep_of(self).missing())
      if (PyList_Append(list.get(), owned(PyLong_FromSize_t(point)).get()) != 0)
        throw PythonError();
    return list.release();
  });
}

PyObject* compute(PyObject* self, PyObject* arguments) {
  return guarded([&]() -> PyObject* {
    PyObject* list = nullptr;
    int threads = 1;
    if (PyArg_ParseTuple(arguments, "Oi:compute", &list, &threads) == 0) throw PythonError();
    const std::vector<std::size_t> points = points_of(list);
    std::string rows;
    {
      const Unlocked unlocked;
      rows = sweep_of(self).compute(points, threads);
    }
    return python_text(rows);
  });
}

PyObject* take(PyObject* self, PyObject* csv) {
  return guarded([&]() -> PyObject* {
    sweep_of(self).take(utf8(csv));
    Py_RETURN_NONE;
  });
}

PyObject* save(PyObject* self, PyObject*) {
  return guarded([&]() -> PyObject* {
    sweep_of(self).save();
    Py_RETURN_NONE;
  });
}

PyObject* answer(PyObject* self, PyObject* best) {
  return guarded([&]() -> PyObject* {
    const std::string sorted_by = utf8(best);
    std::string said;
    {
      const Unlocked unlocked;
      said = sweep_of(self).answer(sorted_by);
    }
    return python_text(said);
  });
}

PyObject* points(PyObject* self, void*) {
  return guarded([&] { return PyLong_FromSize_t(sweep_of(self).points()); });
}

PyObject* origin(PyObject* self, void*) {
  return guarded([&] { return python_text(sweep_of(self).origin()); });
}

}  // namespace

PyObject* make_shared_sweep_type() {
  static PyMethodDef methods[] = {{"missing", missing, METH_NOARGS, nullptr},
                                  {"compute", compute, METH_VARARGS, nullptr},
                                  {"take", take, METH_O, nullptr},
                                  {"save", save, METH_NOARGS, nullptr},
                                  {"answer", answer, METH_O, nullptr},
                                  {}};
  static PyGetSetDef properties[] = {{"points", points, nullptr, nullptr, nullptr},
                                     {"origin", origin, nullptr, nullptr, nullptr},
                                     {}};
  PyType_Slot slots[] = {{Py_tp_new, reinterpret_cast<void*>(create_sweep)},
                         {Py_tp_dealloc, reinterpret_cast<void*>(destroy_sweep)},
                         {Py_tp_methods, methods},
                         {Py_tp_getset, properties},
                         {0, nullptr}};
  PyType_Spec spec{"ddpsim._native.SharedSweep", sizeof(Object), 0, Py_TPFLAGS_DEFAULT, slots};
  return PyType_FromSpec(&spec);
}

}  // namespace ddpsim
