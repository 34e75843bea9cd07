// Bytes: the bytes of a Python object, which stay where they are while it lives.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>

namespace outcore::python {

// With the GIL. Throws what the object raises that does not give them so.
class Bytes {
 public:
  // `flags` of the buffer protocol: PyBUF_SIMPLE …
  Bytes(nanobind::handle object, int flags) {
    if (PyObject_GetBuffer(object.ptr(), &buffer_, flags) != 0) throw nanobind::python_error();
  }
  Bytes(const Bytes&) = delete;
  Bytes& operator=(const Bytes&) = delete;
  ~Bytes() { PyBuffer_Release(&buffer_); }
  void* data() const { return buffer_.buf; }
  uint64_t size_bytes() const { return static_cast<uint64_t>(buffer_.len); }

 private:
  Py_buffer buffer_{};
};

}  // namespace outcore::python
