#include "run/preload/cache_room.h"

#include <algorithm>
#include <thread>

#include "core/base/assert.h"
#include "core/base/units.h"
#include "core/buffer/buffer.h"
#include "core/os/memory_limit.h"
#include "core/runtime/sharing.h"

namespace outcore::preload {

uint64_t CacheRoom::most_of(uint64_t budget_bytes, unsigned processors) {
  constexpr uint64_t kLeast = 2 << 20, kEach = 512 << 10, kMost = 16 << 20, kShareMost = 4;
  return std::min({kLeast + processors * kEach, kMost, budget_bytes / kShareMost});
}

void CacheRoom::begin(const Runtime::Impl& runtime, const std::string& root) {
  forget();
  if (runtime.governor != nullptr) return;
  const uint64_t own_bytes = runtime.engine->budget_bytes();
  const uint64_t shared_bytes =
      runtime.sharing->buffer() == nullptr ? 0 : runtime.sharing->buffer()->room().limit_bytes();
  const uint64_t limit_bytes = os::memory_available(root).limit_bytes;
  if (limit_bytes == 0 || limit_bytes >= 2 * std::max(own_bytes, shared_bytes)) return;
  most_bytes_ =
      base::round_down(most_of(own_bytes, std::thread::hardware_concurrency()), kPieceBytes);
}

void CacheRoom::note_written(Runtime::Impl& runtime, uint64_t bytes) {
  written_bytes_ = std::min(most_bytes_, written_bytes_ + std::min(bytes, most_bytes_));
  if (written_bytes_ < given_bytes_ + kPieceBytes) return;
  if (runtime.engine->lend(kPieceBytes) == 0)
    given_bytes_ += kPieceBytes;
  else
    most_bytes_ = written_bytes_ = given_bytes_;
  OC_CHECK(given_bytes_ <= most_bytes_);
}

void CacheRoom::return_all(Runtime::Impl& runtime) {
  if (given_bytes_ != 0) runtime.engine->return_lent(given_bytes_);
  written_bytes_ = given_bytes_ = 0;
}

}  // namespace outcore::preload
