// Claims: who is bringing in which page of a buffer, so that two processes do not read the same.
//
// A hint: nothing is wrong if two do, because a page comes into the memory file once, whole, and
// the second finds it there. So what a dead member claimed needs no repair, and two pages that fall
// on one place simply cannot be claimed both. Any thread; the fault path.
#pragma once

#include <cstdint>

#include "core/buffer/member.h"
#include "core/os/word.h"

namespace outcore::buffer {

class Claims {
 public:
  enum class Acquired : uint8_t {
    kYes,
    kOthers,   // somebody brings in this page
    kNoPlace,  // another page is in its place: nobody is kept from bringing it in
  };

  explicit Claims(Member& member) : member_(member) {}
  Acquired acquire(uint64_t page);
  void release(uint64_t page);  // if it is this member's
  // Sleeps while another has claimed the page, at most `ns`; one whose owner is dead is dropped.
  void wait(uint64_t page, uint64_t ns);

 private:
  os::Word<uint64_t>& place_of(uint64_t page) {
    return member_.board().claims[(page * 0x9E3779B97F4A7C15ull >> 32) % Board::kClaims];
  }
  uint64_t word_of(uint64_t page) const { return page << 16 | (member_.index() + 1); }
  Member& member_;
};

}  // namespace outcore::buffer
