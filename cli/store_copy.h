// StoreCopy: copies and compares stores by their public interface.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "outcore/store.h"

namespace outcore::cli {

// Told the bytes that are done, now and then.
using Progress = std::function<void(uint64_t)>;

// All bytes of `from`, and makes them durable; their checksum, as "xxh3:0123456789abcdef". Zeros
// that `to` has as holes are left out. REQUIRES: to.size_bytes() == from.size_bytes().
Result<std::string> copy_store(Store& from, Store& to, const Progress& progress);

// The same into what the URI names, which is made; replaced only if it may be, or is incomplete. A
// file that is not complete is not left there; of another store the error tells what is
// (CopyTarget). The checksum is kept, where that can be. Interrupts are caught from then on. Errors
// also: EEXIST, EINTR, ENODATA (nothing to copy), EINVAL (a copy onto itself).
Result<std::string> copy_store_to(Store& from, const std::string& uri, bool may_replace,
                                  const Progress& progress);

struct Comparison {
  std::optional<uint64_t> first_difference;
  std::string checksum;  // of all of `store`; of no use if there is a difference
};

// Reads all of `store`, and compares it with `other`, if there is one. Errors: of reading.
Result<Comparison> compare_stores(Store& store, Store* other, const Progress& progress);

}  // namespace outcore::cli
