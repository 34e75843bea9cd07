// Signatures: the first bytes of stores whose contents are consistent only when their owner says
// so, so that a copy of them at another moment is useless. Products register theirs
// (core/base/products.h).
#pragma once

#include <array>
#include <cstddef>

#include "outcore/store.h"

namespace outcore::store {

using Signature = std::array<char, 8>;

// Any thread. REQUIRES: at most kSignaturesMax calls.
inline constexpr size_t kSignaturesMax = 8;
void add_signature(const Signature& signature);
// Whether the store begins with a registered signature; false if it cannot be read. Not on the
// fault path.
bool has_signature(Store& store);

}  // namespace outcore::store
