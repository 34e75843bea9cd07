// Booking: a capability of stores without a name whose space is reserved piece by piece with
// reserve() and given back with release(): dynamic_cast<Booking*>(&store).
#pragma once

#include <cstdint>

#include "outcore/result.h"

namespace outcore::store {

class Booking {
 public:
  // Bytes that could be reserved now; UINT64_MAX: no limit. Any thread.
  virtual Result<uint64_t> free_bytes() = 0;
  // Space is reserved and given back in multiples of this.
  virtual uint64_t granule_bytes() const = 0;

 protected:
  ~Booking() = default;
};

}  // namespace outcore::store
