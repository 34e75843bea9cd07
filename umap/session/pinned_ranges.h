// PinnedRanges: what umap_fetch_and_pin() pinned of one region.
//
// The core counts pins by page of the store, which outlive the region where another one has the
// same store: a region gives its own back before it ends. Any thread.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <utility>

#include "outcore/region.h"

namespace outcore::umapped {

class PinnedRanges {
 public:
  // Errors: those of Region::pin().
  Status pin(Region& region, uint64_t offset, uint64_t size_bytes);

  // All of them. REQUIRES of both: no other thread is in any of these calls.
  void give_back(Region& region);
  // What was given back, of a region that could not be ended. As with a pin, all of a range or
  // none: of what cannot be pinned again nothing is kept.
  void take_again(Region& region);

 private:
  using Range = std::pair<uint64_t, uint64_t>;  // offset and size
  void forget(const Range& range);

  std::mutex lock_;                      // with signals blocked, and never while a store is read
  std::map<Range, uint64_t> how_often_;  // pins nest
};

}  // namespace outcore::umapped
