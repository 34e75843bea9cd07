// FarKinds: registers the kinds of store on other machines: rbd://, redis://, far://.
#pragma once

namespace outcore::store {

// Adds them to the registry. Call it once.
void add_far_kinds();

}  // namespace outcore::store
