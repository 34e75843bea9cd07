// Options: what Python says by keywords, as the structs of outcore/options.h.
#pragma once

#include <nanobind/nanobind.h>

#include "outcore/options.h"

namespace outcore::python {

// Each takes a dict with the names of the struct's fields; None is "not set". Raises TypeError for
// a name that is not a field, ValueError for a word that is not one of its values. REQUIRES: the
// GIL.
RuntimeOptions runtime_options_of(const nanobind::dict& from);
MapOptions map_options_of(const nanobind::dict& from);

Advice advice_of(const std::string& word);
const char* word_of(Access access);
const char* word_of(Delivery delivery);
const char* word_of(FrameKind frames);

}  // namespace outcore::python
