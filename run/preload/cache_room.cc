#include "run/preload/cache_room.h"

#include <algorithm>
#include <thread>

#include "core/base/assert.h"
#include "core/base/units.h"
#include "core/os/memory_limit.h"

namespace outcore::preload {

uint64_t CacheRoom::most_of(uint64_t budget_bytes, unsigned processors) {
  constexpr uint64_t kLeast = 2 << 20, kEach = 512 << 10, kMost = 16 << 20, kShareMost = 4;
  return std::min({kLeast + processors * kEach, kMost, budget_bytes / kShareMost});
}

// Whether the limit leaves the page cache less than the budget has. A budget that follows what is
// available leaves room by itself.
bool CacheRoom::is_tight(const Runtime::Impl& runtime) const {
  if (runtime.governor != nullptr) return false;
  const uint64_t limit_bytes = os::memory_available(root_).limit_bytes;
  return limit_bytes != 0 && limit_bytes < 2 * runtime.engine->budget_bytes();
}

void CacheRoom::note_written(Runtime::Impl& runtime, uint64_t bytes) {
  if (has_enough_) return;
  written_bytes_ += bytes;
  if (written_bytes_ < given_bytes_ + kPieceBytes) return;
  if (given_bytes_ == 0) has_enough_ = !is_tight(runtime);
  const uint64_t most =
      most_of(runtime.engine->budget_bytes(), std::thread::hardware_concurrency());
  while (!has_enough_ && written_bytes_ >= given_bytes_ + kPieceBytes) {
    has_enough_ = given_bytes_ + kPieceBytes > most || runtime.engine->lend(kPieceBytes) != 0;
    if (!has_enough_) given_bytes_ += kPieceBytes;
  }
  OC_CHECK(given_bytes_ <= most);
}

void CacheRoom::take_back(Runtime::Impl& runtime) {
  if (given_bytes_ != 0) runtime.engine->take_back(given_bytes_);
  forget();
}

}  // namespace outcore::preload
