// StoreCopy: copies and compares stores by their public interface.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "outcore/store.h"

namespace outcore::cli {

// Told the bytes that are done, now and then.
using Progress = std::function<void(uint64_t)>;

// All bytes of `from`, and makes them durable. Zeros that `to` has as holes are left out.
// REQUIRES: to.size_bytes() == from.size_bytes().
Status copy_store(Store& from, Store& to, const Progress& progress);

// Reads all of `store`; nothing, or the first offset at which `other` differs. Without `other` it
// is read only. Errors: of reading.
Result<std::optional<uint64_t>> compare_stores(Store& store, Store* other,
                                               const Progress& progress);

}  // namespace outcore::cli
