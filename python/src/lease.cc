#include "python/src/lease.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <new>
#include <utility>

#include "cli/assert.h"

namespace outcore::python {

namespace nb = nanobind;

namespace {

// What a Py_buffer points to while it is out: shapes may change under it, by resize.
struct Exported {
  nb::object region;
  RegionHandle* handle;
  std::vector<Py_ssize_t> shape, strides;
  std::string format;
};

int refuse(Py_buffer* view, const char* why) {
  view->obj = nullptr;
  PyErr_SetString(PyExc_BufferError, why);
  return -1;
}

bool is_ordered(const Exported& e, Py_ssize_t item_bytes, bool is_fortran) {
  Py_ssize_t expected = item_bytes;
  const size_t n = e.shape.size();
  CLI_CHECK(e.strides.size() == n);
  for (size_t i = 0; i < n; ++i) {
    const size_t axis = is_fortran ? i : n - 1 - i;
    if (e.shape[axis] == 0) return true;
    if (e.shape[axis] != 1 && e.strides[axis] != expected) return false;
    expected *= e.shape[axis];
  }
  return true;
}

int lease_get_buffer(PyObject* self, Py_buffer* view, int flags) {
  return nb::inst_ptr<Lease>(self)->fill(self, view, flags);
}
int memory_get_buffer(PyObject* self, Py_buffer* view, int flags) {
  try {
    return nb::inst_ptr<Memory>(self)->fill(self, view, flags);
  } catch (nb::python_error& error) {
    error.restore();
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  }
  view->obj = nullptr;
  return -1;
}
void memory_release_buffer(PyObject*, Py_buffer* view) { Memory::release(view); }

PyType_Slot lease_slots[] = {{Py_bf_getbuffer, reinterpret_cast<void*>(lease_get_buffer)},
                             {0, nullptr}};
PyType_Slot memory_slots[] = {{Py_bf_getbuffer, reinterpret_cast<void*>(memory_get_buffer)},
                              {Py_bf_releasebuffer, reinterpret_cast<void*>(memory_release_buffer)},
                              {0, nullptr}};

}  // namespace

Lease::Lease(nb::object region, uint64_t offset)
    : region_(std::move(region)), handle_(nb::cast<RegionHandle*>(region_)), offset_(offset) {
  handle_->check("use");
  if (offset_ > handle_->region().size_bytes()) throw nb::value_error("lease past the end");
  handle_->add_export();
}

Lease::~Lease() { handle_->drop_export(); }

int Lease::fill(PyObject* self, Py_buffer* view, int flags) const {
  return PyBuffer_FillInfo(view, self, data(),
                           static_cast<Py_ssize_t>(handle_->region().size_bytes() - offset_),
                           handle_->is_writable() ? 0 : 1, flags);
}

void Memory::bind(nb::object region, uint64_t offset, std::vector<Py_ssize_t> shape,
                  std::vector<Py_ssize_t> strides, Py_ssize_t item_bytes, nb::object format) {
  region_ = std::move(region);
  handle_ = nb::cast<RegionHandle*>(region_);
  offset_ = offset;
  shape_ = std::move(shape);
  strides_ = std::move(strides);
  item_bytes_ = item_bytes;
  has_format_ = !format.is_none();
  format_ = has_format_ ? nb::cast<std::string>(format) : "";
}

int Memory::fill(PyObject* self, Py_buffer* view, int flags) {
  if (handle_ == nullptr) return refuse(view, "the array is not open");
  if (handle_->is_inherited()) nb::getattr(self, "_region");  // maps it anew, if it may
  handle_->check("use");
  if (!has_format_) return refuse(view, "this dtype has no buffer format: use numpy.asarray");
  const bool is_writable = handle_->is_writable();
  if ((flags & PyBUF_WRITABLE) != 0 && !is_writable) return refuse(view, "the array is read-only");
  auto e = std::make_unique<Exported>(Exported{region_, handle_, shape_, strides_, format_});
  const bool is_c = is_ordered(*e, item_bytes_, false), is_f = is_ordered(*e, item_bytes_, true);
  const bool has_strides = (flags & PyBUF_STRIDES) == PyBUF_STRIDES;
  if (((flags & PyBUF_C_CONTIGUOUS) == PyBUF_C_CONTIGUOUS && !is_c) ||
      ((flags & PyBUF_F_CONTIGUOUS) == PyBUF_F_CONTIGUOUS && !is_f) ||
      ((flags & PyBUF_ANY_CONTIGUOUS) == PyBUF_ANY_CONTIGUOUS && !is_c && !is_f) ||
      (!has_strides && !is_c))
    return refuse(view, "the array's order is not the one asked for");
  Py_ssize_t count = 1;
  for (const Py_ssize_t n : e->shape) count *= n;
  *view = {};
  view->buf = handle_->region().data() + offset_;
  view->len = count * item_bytes_;
  view->itemsize = item_bytes_;
  view->readonly = is_writable ? 0 : 1;
  view->ndim = static_cast<int>(e->shape.size());
  view->format = (flags & PyBUF_FORMAT) != 0 ? e->format.data() : nullptr;
  view->shape = (flags & PyBUF_ND) != 0 ? e->shape.data() : nullptr;
  view->strides = has_strides ? e->strides.data() : nullptr;
  view->internal = e.release();
  handle_->add_export();
  Py_INCREF(self);
  view->obj = self;
  return 0;
}

void Memory::release(Py_buffer* view) {
  const std::unique_ptr<Exported> e(static_cast<Exported*>(view->internal));
  CLI_CHECK(e != nullptr);
  e->handle->drop_export();
}

void add_lease(nb::module_& m) {
  // As the data of an __array_interface__ a lease is both things that the protocol allows there: an
  // object with a buffer, which NumPy keeps, and the pair of address and "is read-only".
  nb::class_<Lease>(m, "Lease", nb::type_slots(lease_slots), nb::is_weak_referenceable())
      .def(nb::init<nb::object, uint64_t>(), nb::arg("region"), nb::arg("offset") = 0)
      .def_prop_ro("region", [](const Lease& l) { return l.object(); })
      .def("__len__", [](const Lease&) { return 2; })
      .def("__getitem__", [](const Lease& l, int i) -> nb::object {
        if (i == 0 || i == -2) return nb::int_(reinterpret_cast<uintptr_t>(l.data()));
        if (i == 1 || i == -1) return nb::bool_(!l.region().is_writable());
        throw nb::index_error();
      });
  nb::class_<Memory>(m, "Memory", nb::type_slots(memory_slots), nb::is_weak_referenceable(),
                     nb::dynamic_attr())
      .def(nb::init<>())
      .def("_bind", &Memory::bind, nb::arg("region"), nb::arg("offset"), nb::arg("shape"),
           nb::arg("strides"), nb::arg("item_bytes"), nb::arg("format").none());
}

}  // namespace outcore::python
