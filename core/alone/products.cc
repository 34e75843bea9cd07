// The core without any product. Only in the library outcore_core.
#include "core/base/products.h"

namespace outcore::base {

void register_products() {}

}  // namespace outcore::base
