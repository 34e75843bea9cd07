#include "python/src/errors.h"

#include <cerrno>

#include "outcore/store_kind.h"

namespace outcore::python {

namespace nb = nanobind;

std::string file_name_of(const std::string& uri) {
  const StoreKind* const kind = kind_of_scheme(uri);
  const bool is_of_path = kind != nullptr && kind->place != StoreKind::Place::kElsewhere &&
                          kind->checkpoints == StoreKind::Checkpoints::kNone;
  if (!is_of_path || kind->dies_with_process || !uri.starts_with(kind->scheme + ":")) return uri;
  std::string path = uri.substr(kind->scheme.size() + 1);
  if (const size_t question = path.rfind('?'); question != std::string::npos) path.resize(question);
  if (path.starts_with("///")) path.erase(0, 2);
  return path;
}

void raise(const Error& error, const std::string& uri, Blame blame) {
  PyObject* const message =
      PyUnicode_DecodeUTF8(error.message.data(), error.message.size(), "replace");
  if (message == nullptr) throw nb::python_error();
  const nb::object text = nb::steal(message);
  if (error.code == EINVAL && blame == Blame::kArgument) {
    PyErr_SetObject(PyExc_ValueError, text.ptr());
    throw nb::python_error();
  }
  const std::string file_name = file_name_of(uri);
  PyObject* const name =
      PyUnicode_DecodeFSDefaultAndSize(file_name.data(), static_cast<Py_ssize_t>(file_name.size()));
  if (name == nullptr) throw nb::python_error();
  PyObject* const exception =
      PyObject_CallFunction(PyExc_OSError, "iON", error.code, text.ptr(), name);
  if (exception == nullptr) throw nb::python_error();
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(exception)), exception);
  Py_DECREF(exception);
  throw nb::python_error();
}

}  // namespace outcore::python
