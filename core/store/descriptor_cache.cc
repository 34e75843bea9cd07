#include "core/store/descriptor_cache.h"

#include <unistd.h>

#include "core/base/assert.h"

namespace outcore::store {
namespace {

constexpr uint64_t kHoldersMask = 0x7fff;
constexpr uint64_t kIsBeingReplaced = 0x8000;
constexpr unsigned kKeyShift = 16;

uint64_t word_of(uint64_t key) { return (key + 1) << kKeyShift; }
unsigned set_of(uint64_t key) {
  return static_cast<unsigned>((key * 0x9e3779b97f4a7c15u) >> 59) % DescriptorCache::kSets;
}

}  // namespace

DescriptorCache::DescriptorCache() = default;

DescriptorCache::~DescriptorCache() {
  for (Entry& entry : entries_) {
    OC_CHECK((entry.word & kHoldersMask) == 0);
    OC_CHECK((entry.word & kIsBeingReplaced) == 0);
    if (entry.fd >= 0) ::close(entry.fd);
  }
}

DescriptorCache::Lease DescriptorCache::find(uint64_t key) {
  OC_CHECK(key >> 47 == 0);
  const unsigned first = set_of(key) * kWays;
  for (unsigned i = first; i < first + kWays; ++i) {
    Entry& entry = entries_[i];
    uint64_t word = entry.word.load(std::memory_order_acquire);
    while ((word & ~kHoldersMask) == word_of(key) && (word & kHoldersMask) < kHoldersMask)
      if (entry.word.compare_exchange_weak(word, word + 1, std::memory_order_acq_rel))
        return {entry.fd.load(std::memory_order_acquire), static_cast<int>(i)};
  }
  return {};
}

DescriptorCache::Lease DescriptorCache::keep(uint64_t key, int fd) {
  OC_CHECK(key >> 47 == 0);
  OC_CHECK(fd >= 0);
  const unsigned first = set_of(key) * kWays;
  const unsigned turn = turn_.fetch_add(1, std::memory_order_relaxed);
  for (const bool may_replace : {false, true}) {
    for (unsigned way = 0; way < kWays; ++way) {
      const unsigned i = first + (turn + way) % kWays;
      Entry& entry = entries_[i];
      uint64_t word = entry.word.load(std::memory_order_acquire);
      if (word != 0 && (!may_replace || (word & (kHoldersMask | kIsBeingReplaced)) != 0)) continue;
      if (!entry.word.compare_exchange_strong(word, word_of(key) | kIsBeingReplaced)) continue;
      const int old = entry.fd.exchange(fd, std::memory_order_acq_rel);
      if (old >= 0) ::close(old);
      entry.word.store(word_of(key) | 1, std::memory_order_release);
      return {fd, static_cast<int>(i)};
    }
  }
  return {fd, -1};  // all entries are in use
}

void DescriptorCache::release(Lease lease) {
  if (lease.fd < 0) return;
  if (lease.ticket < 0) {
    ::close(lease.fd);
    return;
  }
  OC_CHECK(lease.ticket < static_cast<int>(kCountMax));
  Entry& entry = entries_[static_cast<unsigned>(lease.ticket)];
  OC_ASSERT(entry.fd.load() == lease.fd);
  const uint64_t before = entry.word.fetch_sub(1, std::memory_order_acq_rel);
  OC_CHECK((before & kHoldersMask) != 0);
  OC_CHECK((before & kIsBeingReplaced) == 0);
}

unsigned DescriptorCache::close_idle() {
  unsigned closed_count = 0;
  for (Entry& entry : entries_) {
    uint64_t word = entry.word.load(std::memory_order_acquire);
    if (word == 0 || (word & (kHoldersMask | kIsBeingReplaced)) != 0) continue;
    if (!entry.word.compare_exchange_strong(word, word | kIsBeingReplaced)) continue;
    ::close(entry.fd.exchange(-1, std::memory_order_acq_rel));
    entry.word.store(0, std::memory_order_release);
    ++closed_count;
  }
  return closed_count;
}

}  // namespace outcore::store
