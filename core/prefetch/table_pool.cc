#include "core/prefetch/table_pool.h"

#include <sys/mman.h>

#include <type_traits>

#include "core/base/assert.h"

namespace outcore::prefetch {
namespace {

static_assert(std::is_trivially_destructible_v<TablePool::Slot>);
constexpr size_t kBytes = TablePool::kSets * TablePool::kWays * sizeof(TablePool::Slot);

bool try_acquire(TablePool::Slot& slot) {
  uint32_t nobody = 0;
  return slot.is_taken.compare_exchange_strong(nobody, 1, std::memory_order_acquire);
}

}  // namespace

TablePool::TablePool() {
  void* const memory = ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory != MAP_FAILED) slots_ = static_cast<Slot*>(memory);
}

TablePool::~TablePool() {
  if (slots_ != nullptr) ::munmap(slots_, kBytes);
}

TablePool::Slot* TablePool::acquire(uint32_t thread) {
  OC_ASSERT(thread != 0);
  if (slots_ == nullptr) return nullptr;
  const uint64_t now = misses_.fetch_add(1, std::memory_order_relaxed) + 1;
  Slot* const set = slots_ + thread * 0x9E3779B1u % kSets * kWays;
  OC_ASSERT(set + kWays <= slots_ + kSets * kWays);
  Slot* oldest = nullptr;
  for (Slot* slot = set; slot < set + kWays; ++slot) {
    if (slot->thread.load(std::memory_order_relaxed) == thread) {
      // Another thread may have taken it meanwhile.
      if (!try_acquire(*slot)) return nullptr;
      slot->used.store(now, std::memory_order_relaxed);
      if (slot->thread.load(std::memory_order_relaxed) == thread) return slot;
      slot->is_taken.store(0, std::memory_order_release);
      return nullptr;
    }
    if (slot->is_taken.load(std::memory_order_relaxed) != 0) continue;
    const uint64_t used = slot->used.load(std::memory_order_relaxed);
    if (oldest == nullptr || used < oldest->used.load(std::memory_order_relaxed)) oldest = slot;
  }
  if (oldest == nullptr) return nullptr;
  const uint64_t used = oldest->used.load(std::memory_order_relaxed);
  if ((used != 0 && now - used < kIdleMisses) || !try_acquire(*oldest)) return nullptr;
  OC_CHECK(oldest->is_taken.load(std::memory_order_relaxed) == 1);
  oldest->thread.store(thread, std::memory_order_relaxed);
  oldest->used.store(now, std::memory_order_relaxed);
  oldest->round = 0;
  oldest->table = StreamTable{};
  return oldest;
}

}  // namespace outcore::prefetch
