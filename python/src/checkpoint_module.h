// CheckpointModule: checkpoint(), restart() and the catalog, for outcore/checkpoints.py.
#pragma once

#include <nanobind/nanobind.h>

namespace outcore::python {

void add_checkpoints(nanobind::module_& m);

}  // namespace outcore::python
