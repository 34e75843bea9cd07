// ArraysModule: containers of named arrays, for outcore/arrays.py, and outcore/drains.py.
#pragma once

#include <nanobind/nanobind.h>

namespace outcore::python {

void add_arrays(nanobind::module_& m);
void add_drain(nanobind::module_& m);

}  // namespace outcore::python
