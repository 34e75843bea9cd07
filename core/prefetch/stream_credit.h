// StreamCredit: how much the streams of one thread may still bring in: prefetching must be earned.
// One thread. Starts as zeros (it is in a StreamTable).
//
// An issued page costs one page of credit, each time it is brought in. The tripwire and the page
// behind a window show whether the pages before them were read: a reader that misses these has read
// the others, too (one that skips pages skips these as often). It gets the cost back, and more. How
// much more depends on how many useless pages a read without waiting is worth
// (StreamTable::Miss::gain): at most four where few readers wait for the device, a half where many
// readers keep it and the processors busy. A miss gives an eighth of a page, down to a 64th on
// average where useless pages cost more: a thread that has used up its credit must be able to show
// that readahead pays again. So the pages that are issued but never read stay below a fixed share
// of those asked for, and each takes the place of at most one other page. Whatever the program
// does, readahead that does not pay reads little more than none.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/base/assert.h"

namespace outcore::prefetch {

class StreamCredit {
 public:
  static constexpr double kGainLeast = 0.125, kGainMost = 4, kGainByMany = 0.5;
  static constexpr uint32_t kFewReaders = 8;
  // Counted in 256ths of a page.
  static constexpr int32_t kOfPage = 256, kOfMiss = kOfPage / 8, kOfMissLeast = kOfMiss / 8;
  static constexpr int32_t kFirst = 32 * kOfPage;

  // The credit that a miss gives: an eighth of a page, or nothing, at random, so that the average
  // is right. (With a constant smaller credit, runs of one length would get their page of credit
  // always at the same place, for example the last one, where it is useless.)
  static uint64_t of_miss(double gain, uint64_t chance) {
    OC_ASSERT(gain >= kGainLeast && gain <= kGainMost);
    const auto credit = static_cast<int32_t>(kOfMiss * gain / kGainMost);
    return chance % kOfMiss < static_cast<uint64_t>(std::max(credit, kOfMissLeast)) ? kOfMiss : 0;
  }
  // The credit for pages that were read: `used` of them once paid, `again` paid twice.
  static uint64_t of_use(uint64_t used, uint64_t again, double gain, uint32_t readers) {
    const double more = readers > kFewReaders ? std::min(gain, kGainByMany) : gain;
    return used * (kOfPage + static_cast<uint64_t>(more * kOfPage)) + again * kOfPage;
  }

  // Adds credit, limited to three windows a stream: a reader that was good for long must not cause
  // useless reads for long. streams(): how many there are; called only if the limit matters.
  template <typename F>
  void earn(uint64_t credit, uint32_t window_max, const F& streams) {
    spent_ -= static_cast<int32_t>(std::min<uint64_t>(credit, 1 << 26));
    const auto three = static_cast<int32_t>(window_max * 3 * kOfPage);
    OC_ASSERT(three >= 0);
    if (spent_ >= kFirst - three) return;
    spent_ = std::max(spent_, kFirst - three * static_cast<int32_t>(std::max(streams(), 1u)));
    OC_ASSERT(is_valid());
  }
  void spend(uint32_t pages) { spent_ += static_cast<int32_t>(pages) * kOfPage; }
  // For a reader that has promised to read the pages: credit may become 0, but is not required.
  void spend_at_most_all(uint32_t pages) { spend(pages), spent_ = std::min(spent_, kFirst); }
  uint32_t pages() const { return static_cast<uint32_t>(std::max(kFirst - spent_, 0) / kOfPage); }
  bool is_valid() const { return spent_ <= kFirst; }

 private:
  int32_t spent_;  // of the first credit; negative: there is more
};

}  // namespace outcore::prefetch
