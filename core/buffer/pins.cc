#include "core/buffer/pins.h"

#include <algorithm>
#include <cerrno>

#include "core/base/assert.h"

namespace outcore::buffer {
namespace {

constexpr uint64_t kTimes = 0xFFFF;  // of a pin's word; the page above

uint64_t word_of(uint64_t page, uint64_t times) {
  return times == 0 ? 0 : (page + 1) << 16 | times;
}
bool is_of(uint64_t word, uint64_t page) { return word >> 16 == page + 1; }

}  // namespace

bool Pins::has(const MemberRecord& member, uint64_t page) {
  if (member.pin_count.load(std::memory_order_seq_cst) == 0) return false;
  const uint32_t first = first_of(page);
  for (uint32_t i = first; i < first + MemberRecord::kPinWays; ++i)
    if (is_of(member.pins[i].load(std::memory_order_seq_cst), page)) return true;
  return false;
}

// One time more, or less. Two threads may both begin a word for a page: then it has two, and each
// counts.
bool Pins::change(uint64_t page, bool is_more) {
  OC_CHECK(page < uint64_t{1} << 48);
  MemberRecord& m = member_.record();
  const uint32_t first = first_of(page);
  OC_CHECK(first + MemberRecord::kPinWays <= m.pins.size());
  for (const bool is_known : {true, false}) {
    if (!is_known && !is_more) break;
    for (uint32_t i = first; i < first + MemberRecord::kPinWays; ++i) {
      uint64_t word = m.pins[i].load();
      while (is_known ? is_of(word, page) : word == 0) {
        const uint64_t times = word & kTimes;
        if (is_more && times == kTimes) break;
        if (m.pins[i].compare_exchange_weak(word, word_of(page, is_more ? times + 1 : times - 1),
                                            std::memory_order_seq_cst))
          return true;
      }
    }
  }
  return false;
}

bool Pins::reserve(uint64_t pages) {
  OC_CHECK(pages != 0);
  const Board& board = member_.board();
  if (pages > board.limit_bytes.load() / kPage) return false;
  member_.record().pin_count.fetch_add(static_cast<uint32_t>(pages), std::memory_order_seq_cst);
  const Kept kept = kept_by_members(board);
  const uint64_t limit = board.limit_bytes.load();
  if (kept.pinned_bytes <= (limit - std::min(limit, kept.private_bytes)) / 2) return true;
  unreserve(pages);
  return false;
}

void Pins::unreserve(uint64_t pages) {
  lower(member_.record().pin_count, static_cast<uint32_t>(pages));
}

int Pins::add(uint64_t page) {
  if (!change(page, true)) {
    unreserve(1);
    return -ENOMEM;
  }
  if (member_.wait_for_punchers(page, 1)) return 0;
  drop(page);
  return -ETIMEDOUT;
}

void Pins::drop(uint64_t page) {
  if (change(page, false)) unreserve(1);
}

void Pins::drop_all(uint64_t first_page, uint64_t count) {
  if (member_.record().pin_count.load() == 0) return;
  for (os::Word<uint64_t>& pin : member_.record().pins) {
    const uint64_t word = pin.load(), page = (word >> 16) - 1;
    if (word == 0 || page < first_page || page - first_page >= count) continue;
    pin.store(0);
    unreserve(word & kTimes);
  }
}

}  // namespace outcore::buffer
