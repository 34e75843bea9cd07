// CutPages: the pages that a cut found written, of several caches; once frozen, in the order in
// which they are stored.
//
// Everything is allocated beforehand. The thread of the cut.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/base/assert.h"
#include "core/os/address_space.h"
#include "core/paging/page_cache.h"
#include "outcore/result.h"

namespace outcore::paging {

struct CutPages {
  // Of the caches that are writable, in the order of their numbers, none twice.
  explicit CutPages(std::span<PageCache* const> all);

  // Room for all pages that can be in memory, which are as many as there are frames at most.
  // REQUIRES: cache_page_count() != 0.
  Status allocate(uint64_t frame_count);
  uint64_t cache_page_count() const;  // in memory or not
  uint64_t listed_bytes() const;

  // A page of the list: which of the caches, and which page.
  static uint64_t key_of(uint32_t index, uint64_t page) {
    OC_CHECK(page >> 48 == 0);
    OC_CHECK(index >> 16 == 0);
    return uint64_t{index} << 48 | page;
  }
  static uint32_t index_of(uint64_t key) { return static_cast<uint32_t>(key >> 48); }
  static uint64_t page_of(uint64_t key) { return key & ((uint64_t{1} << 48) - 1); }
  PageCache& cache_of(uint64_t i) const { return *caches[index_of(key[i])]; }
  region::PageWord& word_of(uint64_t i) const { return cache_of(i).words[page_of(key[i])]; }

  std::vector<PageCache*> caches;  // in ordinary memory
  os::Table<uint64_t> key;
  uint64_t count = 0;
  // Of private frames with larger pages: what was written when they were protected.
  os::Table<uint64_t> written_bits;
  uint64_t words_each = 0;
};

}  // namespace outcore::paging
