#include "core/paging/cut_pages.h"

#include <algorithm>

#include "core/base/units.h"

namespace outcore::paging {

CutPages::CutPages(std::span<PageCache* const> all) {
  for (PageCache* space : all)
    if (space->is_writable) spaces.push_back(space);
  std::sort(spaces.begin(), spaces.end(),
            [](const PageCache* a, const PageCache* b) { return a->id < b->id; });
  spaces.erase(std::unique(spaces.begin(), spaces.end()), spaces.end());
}

uint64_t CutPages::space_page_count() const {
  uint64_t pages = 0;
  for (const PageCache* space : spaces) pages += space->page_count();
  return pages;
}

Status CutPages::allocate(uint64_t frame_count) {
  const uint64_t most = std::min(space_page_count(), frame_count);
  OC_CHECK(most != 0);
  uint64_t subpages = 0;
  for (const PageCache* space : spaces)
    if (space->frames->has_write_faults())
      subpages = std::max(subpages, space->page_bytes / base::kSystemPage);
  if (Status s = key.allocate(most); !s) return s;
  if (subpages <= 1) return {};
  words_each = (subpages + 63) / 64;
  return written_bits.allocate(most * words_each);
}

uint64_t CutPages::listed_bytes() const {
  uint64_t bytes = 0;
  for (uint64_t i = 0; i < count; ++i) bytes += space_of(i).page_bytes;
  return bytes;
}

}  // namespace outcore::paging
