// VersionedKind: registers versioned:, the kind of store whose objects can be in checkpoints.
#pragma once

namespace outcore::store {

// Adds it to the registry. Call it once.
void add_versioned_kind();

}  // namespace outcore::store
