// Products: registers the products with the core. The core does not call products by name. What a
// product offers (kinds of store, checkpoints by a runtime's options) it registers once, before its
// first use.
//
// The function is defined where the set of products is decided, so that nothing depends on the
// order of static objects: in umbrella/products.cc for the library `outcore`, and in
// core/alone/products.cc, which registers none, for outcore_core.
#pragma once

namespace outcore::base {

void register_products();

}  // namespace outcore::base
