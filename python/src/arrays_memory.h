// ArraysMemory: bytes of a container as memory, for as long as a NumPy array is based on it.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <memory>

#include "outcore/arrays.h"

namespace outcore::python {

// Offers a read-only buffer (PEP 3118) of all of them.
struct ArraysMemory {
  std::shared_ptr<Runtime> runtime;  // outlives the mapping: declared before it
  std::shared_ptr<arrays::Mapping> mapping;
  const void* data = nullptr;
  uint64_t size_bytes = 0;
};

void add_arrays_memory(nanobind::module_& m);

}  // namespace outcore::python
