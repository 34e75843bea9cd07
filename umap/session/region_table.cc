#include "umap/session/region_table.h"

#include <iterator>
#include <utility>

#include "core/base/assert.h"
#include "core/os/wait.h"

namespace outcore::umapped {

bool MappedRegion::contains(const std::byte* address) const {
  const std::byte* const first = region.data();
  OC_CHECK(first != nullptr);
  return address >= first && static_cast<uint64_t>(address - first) < region.size_bytes();
}

RegionTable::Use::Use(Use&& other) noexcept
    : of_(std::exchange(other.of_, nullptr)), entry_(other.entry_) {}

RegionTable::Use& RegionTable::Use::operator=(Use&& other) noexcept {
  if (this == &other) return *this;
  end();
  of_ = std::exchange(other.of_, nullptr);
  entry_ = other.entry_;
  return *this;
}

void RegionTable::Use::end() {
  if (of_ == nullptr) return;
  const os::SignalBlock block;
  const std::lock_guard<std::mutex> guard(of_->lock_);
  OC_CHECK(entry_->second.users != 0);
  --entry_->second.users;
  of_->changed_.notify_all();
  of_ = nullptr;
}

void RegionTable::add(std::unique_ptr<MappedRegion> mapped) {
  const std::byte* const first = mapped->region.data();
  OC_CHECK(first != nullptr);
  const os::SignalBlock block;
  const std::lock_guard<std::mutex> guard(lock_);
  const bool is_new = entries_.emplace(first, Entry{std::move(mapped)}).second;
  OC_CHECK(is_new);
}

// REQUIRES: the lock.
RegionTable::Use RegionTable::begin_use(Entries::iterator entry) {
  if (entry == entries_.end() || entry->second.is_leaving) return {};
  ++entry->second.users;
  return {this, entry};
}

RegionTable::Use RegionTable::use_with(const std::byte* address) {
  const os::SignalBlock block;
  const std::lock_guard<std::mutex> guard(lock_);
  const auto after = entries_.upper_bound(address);
  if (after == entries_.begin()) return {};
  const auto entry = std::prev(after);
  return entry->second.mapped->contains(address) ? begin_use(entry) : Use();
}

RegionTable::Use RegionTable::use_at(const std::byte* address) {
  const os::SignalBlock block;
  const std::lock_guard<std::mutex> guard(lock_);
  return begin_use(entries_.find(address));
}

RegionTable::Use RegionTable::use_after(const std::byte* address) {
  const os::SignalBlock block;
  const std::lock_guard<std::mutex> guard(lock_);
  auto entry = entries_.upper_bound(address);
  while (entry != entries_.end() && entry->second.is_leaving) ++entry;
  return begin_use(entry);
}

std::unique_ptr<MappedRegion> RegionTable::take_out(Use use) {
  OC_CHECK(use.of_ == this);
  const os::SignalBlock block;
  std::unique_lock<std::mutex> guard(lock_);
  Entry& entry = use.entry_->second;
  if (entry.is_leaving) {
    guard.unlock();  // the use ends with the lock
    return nullptr;
  }
  entry.is_leaving = true;
  changed_.wait(guard, [&] { return entry.users == 1; });
  std::unique_ptr<MappedRegion> mapped = std::move(entry.mapped);
  entries_.erase(use.entry_);
  use.of_ = nullptr;  // it went with the entry
  return mapped;
}

}  // namespace outcore::umapped
