// Lease: the right to use a region's memory. While one lives, its region is not closed.
//
// NumPy keeps a Lease as the base of every array that is made of a region. Memory is the base class
// of outcore.Array: what asks it for a buffer (PEP 3118) gets a lease of the same kind.
#pragma once

#include <nanobind/nanobind.h>

#include <string>
#include <vector>

#include "python/src/region.h"

namespace outcore::python {

class Lease {
 public:
  // Of the bytes from `offset` on. Raises as RegionHandle::check.
  Lease(nanobind::object region, uint64_t offset);
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;
  ~Lease();
  const RegionHandle& region() const { return *handle_; }
  std::byte* data() const { return handle_->region().data() + offset_; }
  const nanobind::object& object() const { return region_; }
  int fill(PyObject* self, Py_buffer* view, int flags) const;

 private:
  nanobind::object region_;
  RegionHandle* handle_;
  uint64_t offset_;
};

class Memory {
 public:
  void bind(nanobind::object region, uint64_t offset, std::vector<Py_ssize_t> shape,
            std::vector<Py_ssize_t> strides, Py_ssize_t item_bytes, nanobind::object format);
  int fill(PyObject* self, Py_buffer* view, int flags);
  static void release(Py_buffer* view);

 private:
  nanobind::object region_;
  RegionHandle* handle_ = nullptr;
  uint64_t offset_ = 0;
  std::vector<Py_ssize_t> shape_, strides_;
  Py_ssize_t item_bytes_ = 1;
  std::string format_;
  bool has_format_ = false;
};

void add_lease(nanobind::module_& m);

}  // namespace outcore::python
