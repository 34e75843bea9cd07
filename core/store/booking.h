// Booking: a store without a name whose space is on other machines, and is promised piece by piece
// with reserve(). A capability: dynamic_cast<Booking*>(&store).
#pragma once

#include <cstdint>

#include "outcore/result.h"

namespace outcore::store {

class Booking {
 public:
  // Bytes that could be promised now; UINT64_MAX: there is no limit. Any thread.
  virtual Result<uint64_t> free_bytes() = 0;
  // Space is promised and given back in multiples of this.
  virtual uint64_t granule_bytes() const = 0;

 protected:
  ~Booking() = default;
};

}  // namespace outcore::store
