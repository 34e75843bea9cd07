#include "core/paging/cut_pages.h"

#include <algorithm>

#include "core/base/units.h"

namespace outcore::paging {

CutPages::CutPages(std::span<PageCache* const> all) {
  for (PageCache* cache : all)
    if (cache->is_writable) caches.push_back(cache);
  std::sort(caches.begin(), caches.end(),
            [](const PageCache* a, const PageCache* b) { return a->id < b->id; });
  caches.erase(std::unique(caches.begin(), caches.end()), caches.end());
}

uint64_t CutPages::cache_page_count() const {
  uint64_t pages = 0;
  for (const PageCache* cache : caches) pages += cache->page_count();
  return pages;
}

Status CutPages::allocate(uint64_t frame_count) {
  const uint64_t most = std::min(cache_page_count(), frame_count);
  OC_CHECK(most != 0);
  uint64_t subpages = 0;
  for (const PageCache* cache : caches)
    if (cache->frames->has_write_faults())
      subpages = std::max(subpages, cache->page_bytes / base::kSystemPage);
  if (Status s = key.allocate(most); !s) return s;
  if (subpages <= 1) return {};
  words_each = (subpages + 63) / 64;
  return written_bits.allocate(most * words_each);
}

uint64_t CutPages::listed_bytes() const {
  uint64_t bytes = 0;
  for (uint64_t i = 0; i < count; ++i) bytes += cache_of(i).page_bytes;
  return bytes;
}

}  // namespace outcore::paging
