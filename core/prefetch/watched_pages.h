// WatchedPages: pages that are watched to learn whether they will be missed, and what the
// answer is evidence of. And the clock by which a watch lasts: pages that have come in. Any thread;
// the fault path: no lock; of two pages with one slot the later is watched.
#pragma once

#include <atomic>
#include <bit>
#include <cstdint>

#include "core/base/assert.h"
#include "core/os/address_space.h"
#include "core/prefetch/use_evidence.h"
#include "outcore/result.h"

namespace outcore::prefetch {

class WatchedPages {
 public:
  static constexpr uint64_t kPages = 8192, kPlacesMax = 1 << 14, kSitesMax = 1 << 8;

  // Where a page lies, seen from a miss: in which ring of each kind; 0: in none.
  struct Rings {
    uint32_t around = 0, ahead = 0;
    bool is_none() const { return around == 0 && ahead == 0; }
    // REQUIRES: not the same page.
    static Rings between(uint64_t page, uint64_t other) {
      OC_CHECK(page != other);
      const auto ring = [](uint64_t distance) {
        const auto of = static_cast<uint32_t>(std::bit_width(distance));
        return of < UseEvidence::kRings ? of : 0;
      };
      return {ring(page ^ other), other > page ? ring(other - page) : 0};
    }
  };
  struct Note {
    uint64_t since = 0;  // the clock; watch() sets it
    uint32_t place = 0, site = 0;
    Rings rings;            // in none: a page of the sample of what leaves
    bool is_extra = false;  // it was left out of a cluster; of the sample: it has not left yet
  };

  // A number of the page; not 0.
  static uint64_t key_of(uint64_t cache_id, uint64_t page) {
    const uint64_t key = mix(page * 0x9E3779B97F4A7C15ull + cache_id + 1);
    return key == 0 ? 1 : key;
  }
  static uint64_t mix(uint64_t x) {
    x ^= x >> 32, x *= 0xD6E8FEB86659FD93ull;
    x ^= x >> 32, x *= 0xD6E8FEB86659FD93ull;
    return x ^ x >> 32;
  }

  Status allocate() { return slots_.allocate(kPages); }
  uint64_t touched() const { return slots_.touched(); }

  void note_brought_in(uint32_t pages) { clock_.fetch_add(pages, std::memory_order_relaxed); }
  uint64_t now() const { return clock_.load(std::memory_order_relaxed); }
  // Pages that have come in since the watch began.
  uint64_t age_of(const Note& note) const { return (now() - note.since) % kTimes; }

  // From now on, whatever the note says of that. REQUIRES: place < kPlacesMax, site < kSitesMax.
  void watch(uint64_t cache_id, uint64_t page, const Note& note) {
    OC_CHECK(note.place < kPlacesMax && note.site < kSitesMax);
    const uint64_t key = key_of(cache_id, page);
    Slot& slot = slots_[key % kPages];
    slot.key.store(0, std::memory_order_relaxed);  // whoever sees the new note ends nothing by it
    slot.note.store(now() << kTimeShift | uint64_t{note.place} << kPlaceShift |
                        uint64_t{note.site} << kSiteShift | uint64_t{note.rings.ahead} << 4 |
                        uint64_t{note.rings.around} << 1 | (note.is_extra ? 1 : 0),
                    std::memory_order_release);
    slot.key.store(key, std::memory_order_release);
  }
  bool has(uint64_t cache_id, uint64_t page) const {
    const uint64_t key = key_of(cache_id, page);
    return slots_[key % kPages].key.load(std::memory_order_relaxed) == key;
  }
  // Of a page that has() says is watched; another page's, if that has just taken the slot.
  Note note_of(uint64_t cache_id, uint64_t page) const {
    return unpack(slots_[key_of(cache_id, page) % kPages].note.load(std::memory_order_relaxed));
  }
  // False: nobody watches the page, or another thread was faster.
  bool end(uint64_t cache_id, uint64_t page, Note* note) {
    uint64_t key = key_of(cache_id, page);
    Slot& slot = slots_[key % kPages];
    if (slot.key.load(std::memory_order_acquire) != key) return false;
    *note = unpack(slot.note.load(std::memory_order_acquire));
    return slot.key.compare_exchange_strong(key, 0, std::memory_order_relaxed);
  }

 private:
  struct Slot {
    std::atomic<uint64_t> key;   // cache and page; 0: free
    std::atomic<uint64_t> note;  // a Note: from below is_extra, rings, site, place, since
  };
  static constexpr unsigned kSiteShift = 7, kPlaceShift = 15, kTimeShift = 29;
  static constexpr uint64_t kTimes = uint64_t{1} << (64 - kTimeShift);
  static_assert(kPlacesMax == 1 << (kTimeShift - kPlaceShift));
  static_assert(kSitesMax == 1 << (kPlaceShift - kSiteShift) && UseEvidence::kRings <= 1 << 3);

  static Note unpack(uint64_t word) {
    return {word >> kTimeShift,
            static_cast<uint32_t>(word >> kPlaceShift & (kPlacesMax - 1)),
            static_cast<uint32_t>(word >> kSiteShift & (kSitesMax - 1)),
            {static_cast<uint32_t>(word >> 1 & 7), static_cast<uint32_t>(word >> 4 & 7)},
            (word & 1) != 0};
  }

  os::Table<Slot> slots_;
  std::atomic<uint64_t> clock_{0};
};

}  // namespace outcore::prefetch
