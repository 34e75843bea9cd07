// TouchLog: records which parts of a store are brought in, in the order of the first time.
//
// note() is for any thread and the fault path: it allocates nothing, takes no lock and never waits;
// a part that was noted before costs a look at one word. Everything else is not on the fault path.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/base/assert.h"
#include "core/os/address_space.h"
#include "core/prefetch/touches.h"
#include "outcore/result.h"

namespace outcore::prefetch {

class TouchLog {
 public:
  // Makes a log for a store of this size; of a larger one than 64 TiB it covers the first 64.
  // Memory: two bytes a unit, and four for each that is recorded, where touched. Errors: ENOMEM.
  static Result<std::unique_ptr<TouchLog>> make(uint64_t size_bytes);

  // The bytes are in memory. Past the end of the log nothing is recorded.
  void note(uint64_t offset, uint64_t size_bytes) {
    OC_CHECK(size_bytes != 0);
    OC_ASSERT(offset + size_bytes > offset);
    const uint64_t end = offset + size_bytes;
    for (uint64_t unit = offset / kTouchUnitBytes; unit * kTouchUnitBytes < end; ++unit) {
      if (unit >= parts_.count()) return;
      note_unit(static_cast<uint32_t>(unit), parts_of(unit * kTouchUnitBytes, offset, end));
    }
  }

  // Whether it covers as much of a store of this size as a new log would.
  bool has_room_for(uint64_t size_bytes) const {
    return parts_.count() == kTouchUnitEnd || parts_.count() * kTouchUnitBytes >= size_bytes;
  }

  // All that was recorded, in the order of first touches. What is noted meanwhile may be left out.
  std::vector<Touch> touches() const;
  // How many units were noted; at most kTouchedUnitsMax are recorded.
  uint32_t count() const { return count_.load(std::memory_order_relaxed); }

 private:
  TouchLog() = default;

  // Which parts of the unit that begins at `start` overlap the bytes [from, to).
  static uint16_t parts_of(uint64_t start, uint64_t from, uint64_t to) {
    const uint64_t first = from <= start ? 0 : (from - start) / base::kSystemPage;
    const uint64_t end = to - start >= kTouchUnitBytes
                             ? kPartsOfUnit
                             : (to - start + base::kSystemPage - 1) / base::kSystemPage;
    OC_ASSERT(first < end);
    OC_ASSERT(end <= kPartsOfUnit);
    return static_cast<uint16_t>((uint32_t{1} << end) - (uint32_t{1} << first));
  }

  void note_unit(uint32_t unit, uint16_t parts) {
    std::atomic<uint16_t>& known = parts_[unit];
    OC_ASSERT(parts != 0);
    if ((known.load(std::memory_order_relaxed) & parts) == parts) return;
    if (known.fetch_or(parts, std::memory_order_relaxed) != 0) return;
    if (count_.load(std::memory_order_relaxed) >= kTouchedUnitsMax) return;
    const uint32_t place = count_.fetch_add(1, std::memory_order_relaxed);
    if (place < kTouchedUnitsMax) order_[place].store(unit + 1, std::memory_order_release);
  }

  os::Table<std::atomic<uint16_t>> parts_;  // of each unit: those that were noted
  os::Table<std::atomic<uint32_t>> order_;  // unit + 1; 0: not known yet
  std::atomic<uint32_t> count_{0};
};

}  // namespace outcore::prefetch
