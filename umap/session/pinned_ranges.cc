#include "umap/session/pinned_ranges.h"

#include <iterator>

#include "core/base/assert.h"
#include "core/os/wait.h"

namespace outcore::umapped {

Status PinnedRanges::pin(Region& region, uint64_t offset, uint64_t size_bytes) {
  const Range range{offset, size_bytes};
  {  // noted first, as there may be no memory for it
    const os::SignalBlock block;
    const std::lock_guard<std::mutex> guard(lock_);
    ++how_often_[range];
  }
  Status status = region.pin(offset, size_bytes);
  if (!status.ok()) forget(range);
  return status;
}

void PinnedRanges::forget(const Range& range) {
  const os::SignalBlock block;
  const std::lock_guard<std::mutex> guard(lock_);
  const auto at = how_often_.find(range);
  OC_CHECK(at != how_often_.end());
  if (--at->second == 0) how_often_.erase(at);
}

void PinnedRanges::give_back(Region& region) {
  for (const auto& [range, count] : how_often_)
    for (uint64_t i = 0; i < count; ++i)  // nobody else unpins
      static_cast<void>(region.unpin(range.first, range.second));
}

void PinnedRanges::take_again(Region& region) {
  for (auto at = how_often_.begin(); at != how_often_.end();) {
    uint64_t count = 0;
    while (count < at->second && region.pin(at->first.first, at->first.second).ok()) ++count;
    at->second = count;
    at = count == 0 ? how_often_.erase(at) : std::next(at);
  }
}

}  // namespace outcore::umapped
