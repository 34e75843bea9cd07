// CatalogText: what is in a record of the catalog's journal, as CBOR.
#pragma once

#include <span>
#include <vector>

#include "arrays/container/catalog.h"

namespace outcore::arrays {

std::vector<uint8_t> encode(const Change& change);
// EINVAL: it is not as encode() makes them.
Result<Change> decode(std::span<const uint8_t> record);

// The bytes that the shape says are there, and in the container; a name that can be one.
bool is_sound(const Entry& entry);

}  // namespace outcore::arrays
