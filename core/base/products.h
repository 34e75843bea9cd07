// Products: what stands on the core, made known to it. The core calls down only; what a product
// offers (kinds of store, who makes checkpoints) it registers with the core, once, before the first
// use of either.
//
// Defined where it is settled which products there are, so that nothing depends on the order of
// static objects: umbrella/products.cc for the library `outcore`, core/alone/products.cc, where
// there is none, for outcore_core.
#pragma once

namespace outcore::base {

void register_products();

}  // namespace outcore::base
