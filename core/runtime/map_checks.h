// Map checks: what is asked of a map, looked at before anything is done. Not the fault path.
#pragma once

#include <cstdint>
#include <string>

#include "outcore/region.h"
#include "outcore/result.h"
#include "outcore/store.h"

namespace outcore::runtime {

inline constexpr const char* kNoZeros =
    "on_error=zero with write access: zeros that stand for bytes which could not be read would be "
    "stored in their place. Map it read-only, or with on_error=signal or abort";

// Under which the runtime keeps the cache of a store: its identity, or its address if it has none.
inline std::string key_of(const Store& store) {
  const std::string identity = store.identity();
  if (!identity.empty()) return identity;
  return "object " + std::to_string(reinterpret_cast<uintptr_t>(&store));
}

inline Error refuse(int code, const std::string& uri, const std::string& why) {
  return {code, "map " + uri + ": " + why};
}

// EINVAL: more addresses, or a larger offset, than there can be.
Status check_size(const std::string& uri, const MapOptions& o);
// EINVAL: the numbers do not fit a store of so many bytes, or one another. `is_lent`: the program
// has made the addresses itself, perhaps past the store's end.
Status check_map(const std::string& uri, const MapOptions& o, uint64_t store_bytes, bool is_lent);

}  // namespace outcore::runtime
