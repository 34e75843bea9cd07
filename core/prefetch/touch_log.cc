#include "core/prefetch/touch_log.h"

#include <algorithm>

namespace outcore::prefetch {

Result<std::unique_ptr<TouchLog>> TouchLog::make(uint64_t size_bytes) {
  std::unique_ptr<TouchLog> log(new TouchLog);
  const uint64_t units = std::clamp<uint64_t>(
      base::round_up(size_bytes, kTouchUnitBytes) / kTouchUnitBytes, 1, kTouchUnitEnd);
  if (Status s = log->parts_.allocate(units); !s) return s.error();
  if (Status s = log->order_.allocate(kTouchedUnitsMax); !s) return s.error();
  return log;
}

std::vector<Touch> TouchLog::touches() const {
  const uint32_t recorded = std::min(count(), kTouchedUnitsMax);
  std::vector<Touch> all;
  all.reserve(recorded);
  for (uint32_t place = 0; place < recorded; ++place) {
    const uint32_t numbered = order_[place].load(std::memory_order_acquire);
    if (numbered == 0) continue;  // its thread is about to say which
    const uint32_t unit = numbered - 1;
    OC_CHECK(unit < parts_.count());
    const uint16_t parts = parts_[unit].load(std::memory_order_relaxed);
    OC_CHECK(parts != 0);
    all.push_back({unit, parts});
  }
  return all;
}

}  // namespace outcore::prefetch
