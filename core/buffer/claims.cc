#include "core/buffer/claims.h"

#include "core/base/assert.h"
#include "core/os/wait.h"

namespace outcore::buffer {

Claims::Acquired Claims::acquire(uint64_t page) {
  OC_CHECK(page < uint64_t{1} << 48);
  OC_CHECK(member_.index() < kMembersMax);
  uint64_t seen = 0;
  if (place_of(page).compare_exchange_strong(seen, word_of(page))) return Acquired::kYes;
  return seen >> 16 == page ? Acquired::kOthers : Acquired::kNoPlace;
}

void Claims::release(uint64_t page) {
  OC_CHECK(page < uint64_t{1} << 48);
  uint64_t mine = word_of(page);
  if (!place_of(page).compare_exchange_strong(mine, 0)) return;
  Board& board = member_.board();
  if (board.claim_waiters.load(std::memory_order_seq_cst) != 0)
    os::wake_between_processes(reinterpret_cast<os::Word<uint32_t>*>(&place_of(page)));
}

void Claims::wait(uint64_t page, uint64_t ns) {
  os::Word<uint64_t>& place = place_of(page);
  Board& board = member_.board();
  board.claim_waiters.fetch_add(1, std::memory_order_seq_cst);
  uint64_t seen = place.load(std::memory_order_seq_cst);
  // The lower half has the owner, and so changes whenever the page is dropped.
  if (seen != 0 && seen >> 16 == page)
    os::wait_between_processes(reinterpret_cast<os::Word<uint32_t>*>(&place),
                               static_cast<uint32_t>(seen), ns);
  board.claim_waiters.fetch_sub(1);
  if (seen == 0 || seen >> 16 != page || place.load() != seen) return;
  const auto owner = static_cast<uint32_t>(seen & 0xFFFF);
  OC_CHECK(owner != 0 && owner <= kMembersMax);
  if (!member_.is_alive(owner - 1)) place.compare_exchange_strong(seen, 0);
}

}  // namespace outcore::buffer
