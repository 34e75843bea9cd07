// Options: converts the option structs of the C API to those of C++. Any thread.
#pragma once

#include "outcore/options.h"
#include "outcore/outcore.h"
#include "outcore/result.h"

namespace outcore::c {

// `from` may be NULL. Errors: EINVAL, E2BIG (the struct, see sized_struct.h; or a value outside of
// its enumeration).
Status take_options(const oc_options* from, RuntimeOptions* into);
Status take_options(const oc_map_options* from, MapOptions* into);
Status take_advice(uint32_t value, Advice* into);

}  // namespace outcore::c
