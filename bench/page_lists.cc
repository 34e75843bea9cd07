#include "bench/page_lists.h"

#include <utility>

#include "bench/check.h"
#include "bench/kmer.h"

namespace outcore::bench {

PageLists::PageLists(const KmerIndex& index, uint64_t page_bytes, bool is_top_pinned, Ask ask)
    : index_(index), page_bytes_(page_bytes), is_top_pinned_(is_top_pinned), ask_(std::move(ask)) {
  BENCH_CHECK(page_bytes_ > 0);
}

void PageLists::ask_for(const Read& read) {
  kmers_.clear();
  KmerWindow window;
  for (const uint8_t base : read.bases())
    if (window.push(base)) kmers_.push_back(window.canonical());
  if (!index_.is_two_level() || !is_top_pinned_) {
    for (const uint64_t kmer : kmers_) add(index_.first_step(kmer));
    ask();
  }
  if (!index_.is_two_level()) return;
  for (const uint64_t kmer : kmers_) add(index_.second_step(kmer));
  ask();
}

// Two k-mers of a read seldom lie in one page, unless they follow one another.
void PageLists::add(ByteRange bytes) {
  for (uint64_t page = bytes.first / page_bytes_; page * page_bytes_ < bytes.end; ++page)
    if (pages_.empty() || pages_.back() != page) pages_.push_back(page);
}

void PageLists::ask() {
  if (!pages_.empty()) ask_(pages_);
  pages_.clear();
}

}  // namespace outcore::bench
