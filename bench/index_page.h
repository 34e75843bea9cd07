// IndexPage: the place of each record by its key, in pages that are mapped. A hash index in the
// order of the keys.
//
// The keys of YCSB are hashes of the records' numbers, so that their leading bits serve as a hash
// function: they choose the page on which a key stands. Pages therefore follow each other in the
// order of the keys, and a scan goes from page to page. On a page the keys are sorted. There is no
// other level: one lookup, one page. Pages are never split; they are so many that on average two
// thirds of a page are used when the table is full, and it is 7 standard deviations to a full one.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "bench/check.h"
#include "bench/options.h"

namespace outcore::bench {

class IndexPage {
 public:
  static constexpr uint32_t kKeysMax = 340;
  static constexpr uint32_t kKeysMean = 224;  // of a full table

  std::span<const uint64_t> keys() const { return {keys_, count()}; }
  // Of the key at this place. REQUIRES: i < keys().size().
  uint32_t slot(uint64_t i) const {
    BENCH_CHECK(i < count());
    return slots_[i];
  }
  // The place of the first key that is not less.
  uint64_t lower_bound(uint64_t key) const {
    return static_cast<uint64_t>(std::lower_bound(keys_, keys_ + count(), key) - keys_);
  }
  // False if the page is full, or has the key.
  bool insert(uint64_t key, uint32_t slot) {
    const uint64_t at = lower_bound(key), end = count();
    if (end == kKeysMax || (at < end && keys_[at] == key)) return false;
    std::copy_backward(keys_ + at, keys_ + end, keys_ + end + 1);
    std::copy_backward(slots_ + at, slots_ + end, slots_ + end + 1);
    keys_[at] = key;
    slots_[at] = slot;
    count_ = end + 1;
    return true;
  }

 private:
  // What was read of a damaged file must not lead beyond the page.
  uint64_t count() const { return std::min<uint64_t>(count_, kKeysMax); }

  uint64_t count_;
  uint64_t keys_[kKeysMax];
  uint32_t slots_[kKeysMax + 2];  // the last two are unused: they fill the page
};

static_assert(sizeof(IndexPage) == kUnitBytes);

// The page, of so many, on which a key stands.
inline uint64_t index_page_of(uint64_t key, uint64_t pages) {
  return static_cast<uint64_t>((static_cast<unsigned __int128>(key) * pages) >> 64);
}

}  // namespace outcore::bench
