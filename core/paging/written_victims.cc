#include "core/paging/written_victims.h"

#include "core/base/assert.h"
#include "core/base/units.h"

namespace outcore::paging {

using region::PageState;

int WrittenVictims::ask(uint32_t i) {
  OC_CHECK(i < shard_.victim_count);
  const Victim& victim = shard_.victim[i];
  const PageCache& cache = *victim.cache;
  OC_ASSERT(word_of(victim).glance() == PageState::kUnmapping);
  shard_.written = {};
  if (!cache.frames->reports_written()) {
    shard_.written.add_range(0, cache.page_bytes / base::kSystemPage);
    return 0;
  }
  const bool is_unmapped = !cache.frames->leaving_is_readable();
  if (is_unmapped && cache.page_bytes == base::kSystemPage) {
    if (!is_known(victim)) ask_run(i);
    if (is_known(victim)) {
      if (shard_.written_run.has(victim.page - first_)) shard_.written.add(0);
      return 0;
    }
  }
  return cache.collect_written(victim.page, !is_unmapped, &shard_.written);
}

// Of this victim and those that follow it, as far as they are neighbours. One alone is asked for by
// itself, and so is each after an error, once its run has been asked for again.
void WrittenVictims::ask_run(uint32_t i) {
  const Victim& first = shard_.victim[i];
  uint32_t end = i + 1;
  while (end < shard_.victim_count && shard_.victim[end].cache == first.cache &&
         shard_.victim[end].page == first.page + (end - i) && !shard_.victim[end].is_out &&
         word_of(shard_.victim[end]).load().state() == PageState::kUnmapping)
    ++end;
  if (end - i < 2) return;
  shard_.written_run = {};
  cache_ = nullptr;
  const uint64_t end_page = first.page + (end - i);
  if (first.cache->ask_written_between(first.page, end_page, false, &shard_.written_run) != 0)
    return;
  cache_ = first.cache;
  first_ = first.page;
  end_ = end_page;
}

}  // namespace outcore::paging
