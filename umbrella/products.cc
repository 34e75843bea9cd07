// The umbrella: the one place that lists all products of the library `outcore`.
#include "core/base/products.h"
#include "checkpoints/capture/of_runtime.h"
#include "checkpoints/store/kinds.h"
#include "far/store/kinds.h"
#include "heaps/persistent/signature.h"

namespace outcore::base {

void register_products() {
  store::add_versioned_kind();
  store::add_far_kinds();
  heap::persistent::add_signature();
  checkpoints::make_those_of_runtimes();
}

}  // namespace outcore::base
