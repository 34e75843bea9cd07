#include "core/paging/shared_writes.h"

#include "core/buffer/board.h"

namespace outcore::paging {

using buffer::PageReport;

namespace {

constexpr uint64_t kAgainNs = 100'000'000;

}  // namespace

bool is_any_stored(const SharedWrites& writes, uint64_t first, uint64_t end) {
  const PageReport run(writes.storing.load(std::memory_order_seq_cst));
  return run.bits() != 0 && end > run.first_page() && first < run.first_page() + run.count();
}

Storing::Storing(SharedWrites& writes, uint64_t first, uint64_t count) : writes_(writes) {
  const uint64_t run = PageReport::of(first, count, false).bits();
  for (;;) {
    const uint32_t seen = writes_.changes.load(std::memory_order_seq_cst);
    uint64_t none = 0;
    if (writes_.storing.compare_exchange_strong(none, run, std::memory_order_seq_cst)) break;
    wait_for_change(writes_, seen, kAgainNs);
  }
  // They are few instructions, and one look at those who punch.
  while (writes_.marking.load(std::memory_order_seq_cst) != 0) os::yield();
}

Storing::~Storing() {
  writes_.storing.store(0, std::memory_order_seq_cst);
  writes_.changes.fetch_add(1, std::memory_order_seq_cst);
  if (writes_.waiters.load(std::memory_order_seq_cst) != 0) os::wake_all(&writes_.changes);
}

// Who changes it does so first, and then looks for who waits; the kernel looks for a change after
// we have said that we wait.
void wait_for_change(SharedWrites& writes, uint32_t seen, uint64_t wait_ns) {
  writes.waiters.fetch_add(1, std::memory_order_seq_cst);
  os::wait(&writes.changes, seen, wait_ns);
  writes.waiters.fetch_sub(1, std::memory_order_seq_cst);
}

void note_cleaned(SharedWrites& writes, uint64_t pages) {
  const auto more = static_cast<uint32_t>(pages);
  const uint32_t before = writes.cleaned.fetch_add(more, std::memory_order_seq_cst);
  if (before / kCleanedTogether == (before + more) / kCleanedTogether) return;
  writes.cleanings.fetch_add(1, std::memory_order_seq_cst);
  if (writes.share_waiters.load(std::memory_order_seq_cst) != 0) os::wake_all(&writes.cleanings);
}

void begin_marking(SharedWrites& writes, uint64_t page) {
  for (;;) {
    writes.marking.fetch_add(1, std::memory_order_seq_cst);
    if (!is_any_stored(writes, page, page + 1)) return;
    writes.marking.fetch_sub(1, std::memory_order_seq_cst);
    const uint32_t seen = writes.changes.load(std::memory_order_seq_cst);
    if (is_any_stored(writes, page, page + 1)) wait_for_change(writes, seen, kAgainNs);
  }
}

}  // namespace outcore::paging
