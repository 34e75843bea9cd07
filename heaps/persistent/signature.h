// HeapSignature: by which the core knows a store that is a persistent heap.
#pragma once

namespace outcore::heap::persistent {

// Tells the core. Once.
void add_signature();

}  // namespace outcore::heap::persistent
