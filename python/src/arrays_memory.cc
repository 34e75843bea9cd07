#include "python/src/arrays_memory.h"

namespace outcore::python {

namespace nb = nanobind;

namespace {

int get_buffer(PyObject* self, Py_buffer* view, int flags) {
  const ArraysMemory& memory = *nb::inst_ptr<ArraysMemory>(self);
  return PyBuffer_FillInfo(view, self, const_cast<void*>(memory.data),
                           static_cast<Py_ssize_t>(memory.size_bytes), 1, flags);
}

PyType_Slot slots[] = {{Py_bf_getbuffer, reinterpret_cast<void*>(get_buffer)}, {0, nullptr}};

}  // namespace

void add_arrays_memory(nb::module_& m) {
  nb::class_<ArraysMemory>(m, "ArraysMemory", nb::type_slots(slots), nb::is_weak_referenceable());
}

}  // namespace outcore::python
