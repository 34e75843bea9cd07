// TouchedGroups: which groups of a store's pages ever left the state Absent. All pages of the
// others are absent, and whoever goes through many pages need not look at their words: of a large
// store that is hardly used these are nearly all, and to read a word that was never written takes a
// page fault for each 512 of them. A group never leaves. Any threads; the fault path.
#pragma once

#include <atomic>
#include <bit>
#include <cstdint>

#include "core/os/address_space.h"
#include "outcore/result.h"

namespace outcore::region {

class TouchedGroups {
 public:
  static constexpr uint64_t kPages = 512;  // of a group: their words fill a page of the kernel's

  // REQUIRES: called once, before use.
  Status allocate(uint64_t pages) { return groups_.allocate(pages / kPages / kBits + 1); }

  // Before the page's word changes. Who looks afterwards at what was in memory before finds it.
  void add(uint64_t page) {
    std::atomic<uint64_t>& bits = groups_[page / kPages / kBits];
    const uint64_t bit = uint64_t{1} << page / kPages % kBits;
    if ((bits.load(std::memory_order_seq_cst) & bit) == 0)
      bits.fetch_or(bit, std::memory_order_seq_cst);
  }
  // The first page of [page, end) whose group is touched; `end`: there is none.
  uint64_t next(uint64_t page, uint64_t end) const {
    while (page < end) {
      const uint64_t group = page / kPages;
      const uint64_t later =
          groups_[group / kBits].load(std::memory_order_seq_cst) >> group % kBits;
      if ((later & 1) != 0) return page;
      const uint64_t found = later != 0 ? group + static_cast<uint64_t>(std::countr_zero(later))
                                        : (group / kBits + 1) * kBits;
      page = found * kPages;
    }
    return end;
  }

 private:
  static constexpr uint64_t kBits = 64;

  os::Table<std::atomic<uint64_t>> groups_;
};

}  // namespace outcore::region
