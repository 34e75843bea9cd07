// The one product of this program, which is linked without the umbrella.
#include "core/base/products.h"
#include "checkpoints/store/kinds.h"

namespace outcore::base {

void register_products() { store::add_versioned_kind(); }

}  // namespace outcore::base
