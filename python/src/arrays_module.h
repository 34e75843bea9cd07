// ArraysModule: containers of named arrays, for outcore/arrays.py.
#pragma once

#include <nanobind/nanobind.h>

namespace outcore::python {

void add_arrays(nanobind::module_& m);

}  // namespace outcore::python
