// CoreKinds: the kinds of store that exist without any product: files, folders of segments, scratch
// space, memory.
#pragma once

namespace outcore::store {

// Adds them to the registry. Called once.
void add_core_kinds();

}  // namespace outcore::store
