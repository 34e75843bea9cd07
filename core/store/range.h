// Range: whether bytes lie inside a store, as the functions of Store require.
#pragma once

#include <cstdint>

namespace outcore::store {

constexpr bool is_range_of(uint64_t offset, uint64_t size_bytes, uint64_t store_bytes) {
  return offset <= store_bytes && size_bytes <= store_bytes - offset;
}

}  // namespace outcore::store
