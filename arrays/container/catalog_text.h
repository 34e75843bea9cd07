// CatalogText: encodes and decodes a record of the catalog's journal, in CBOR.
#pragma once

#include <span>
#include <vector>

#include "arrays/container/catalog.h"

namespace outcore::arrays {

std::vector<uint8_t> encode(const Change& change);
// EINVAL: the record is damaged or forged: encode() never makes such a one.
Result<Change> decode(std::span<const uint8_t> record);

// Whether the entry's bytes fit its shape and lie inside of the container, and its name is allowed.
bool is_sound(const Entry& entry);

}  // namespace outcore::arrays
