// Claims: who is bringing in which page of a buffer, so that two processes do not read the same.
//
// A claim is a hint: if two processes read the same page nothing goes wrong, because a page is
// installed once, whole, and the second finds it in memory. So a dead member's claims need no
// repair, and of two pages that hash to one entry only one can be claimed. Any thread; the fault
// path.
#pragma once

#include <cstdint>

#include "core/buffer/member.h"
#include "core/os/word.h"

namespace outcore::buffer {

class Claims {
 public:
  enum class Acquired : uint8_t {
    kYes,
    kOthers,   // another thread or process brings in this page
    kNoPlace,  // another page has its entry: the caller brings it in without a claim
  };

  explicit Claims(Member& member) : member_(member) {}
  Acquired acquire(uint64_t page);
  void release(uint64_t page);  // does nothing if this member has not claimed it
  // Sleeps while another member has claimed the page, at most `ns`. Drops a dead member's claim.
  void wait(uint64_t page, uint64_t ns);

 private:
  os::Word<uint64_t>& place_of(uint64_t page) {
    return member_.board().claims[(page * 0x9E3779B97F4A7C15ull >> 32) % Board::kClaims];
  }
  uint64_t word_of(uint64_t page) const { return page << 16 | (member_.index() + 1); }
  Member& member_;
};

}  // namespace outcore::buffer
