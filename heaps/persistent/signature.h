// HeapSignature: how the core recognizes that a store contains a persistent heap.
#pragma once

namespace outcore::heap::persistent {

// Registers it with the core. Call it once.
void add_signature();

}  // namespace outcore::heap::persistent
