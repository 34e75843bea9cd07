// CoreKinds: the kinds of store that are there without any product: files, folders of segments,
// scratch space, memory.
#pragma once

namespace outcore::store {

// Adds them to the registry. Once.
void add_core_kinds();

}  // namespace outcore::store
