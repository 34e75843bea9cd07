#include "core/store/buffer_set.h"

#include <algorithm>

#include "core/base/assert.h"

namespace outcore::store {
namespace {

bool is_same(Buffer a, Buffer b) { return a.data() == b.data() && a.size() == b.size(); }

}  // namespace

BufferSet& BufferSet::of_process() {
  static BufferSet* const set =
      new BufferSet;  // never destroyed: threads may outlive static destruction
  return *set;
}

void BufferSet::add(Buffer buffer) {
  OC_CHECK(!buffer.empty());
  const os::SignalBlock block;
  const os::Locked locked(lock_);
  const auto at = std::find_if(entries_.begin(), entries_.end(),
                               [&](const Entry& e) { return e.buffer.data() >= buffer.data(); });
  if (at != entries_.end() && is_same(at->buffer, buffer))
    ++at->lease_count;
  else
    entries_.insert(at, Entry{buffer, 1});
  // Also if it was there already: it may be new memory at an old address.
  generation_.fetch_add(1, std::memory_order_release);
}

void BufferSet::remove(Buffer buffer) {
  const os::SignalBlock block;
  const os::Locked locked(lock_);
  const auto at = std::find_if(entries_.begin(), entries_.end(),
                               [&](const Entry& e) { return is_same(e.buffer, buffer); });
  OC_CHECK(at == entries_.end() || at->lease_count != 0);
  if (at == entries_.end() || --at->lease_count > 0) return;
  entries_.erase(at);
  generation_.fetch_add(1, std::memory_order_release);
}

uint64_t BufferSet::generation() const { return generation_.load(std::memory_order_acquire); }

uint64_t BufferSet::copy(std::vector<Buffer>& into, size_t count_max) const {
  const os::SignalBlock block;
  const os::Locked locked(lock_);
  into.clear();
  for (const Entry& entry : entries_)
    if (into.size() < count_max) into.push_back(entry.buffer);
  OC_CHECK(into.size() <= count_max);
  return generation();
}

void BufferSet::forget(Buffer memory) {
  const os::SignalBlock block;
  const os::Locked locked(lock_);
  const auto is_overlapping = [&](const Entry& e) {
    return e.buffer.data() < memory.data() + memory.size() &&
           memory.data() < e.buffer.data() + e.buffer.size();
  };
  if (std::erase_if(entries_, is_overlapping) > 0)
    generation_.fetch_add(1, std::memory_order_release);
}

BufferLeases::~BufferLeases() {
  for (const Buffer buffer : lent_) BufferSet::of_process().remove(buffer);
}

void BufferLeases::lend(Buffer buffer) {
  if (buffer.empty()) return;
  const std::lock_guard lock(mutex_);
  const auto is_it = [&](Buffer lent) { return is_same(lent, buffer); };
  const bool is_lent = std::any_of(lent_.begin(), lent_.end(), is_it);
  BufferSet::of_process().add(buffer);
  if (is_lent)
    BufferSet::of_process().remove(buffer);
  else
    lent_.push_back(buffer);
}

}  // namespace outcore::store
