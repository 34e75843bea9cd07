// VersionedKind: the kind of store whose objects have checkpoints: versioned:.
#pragma once

namespace outcore::store {

// Adds it to the registry. Once.
void add_versioned_kind();

}  // namespace outcore::store
