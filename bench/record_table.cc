#include "bench/record_table.h"

#include <algorithm>
#include <mutex>

#include "bench/check.h"

namespace outcore::bench {

RecordLayout::RecordLayout(uint64_t file_bytes) {
  BENCH_CHECK(file_bytes >= kFileBytesMin && file_bytes <= kFileBytesMax);
  constexpr uint64_t kBytesAPage = sizeof(IndexPage) + IndexPage::kKeysMean * sizeof(Record);
  index_pages = file_bytes / kBytesAPage + 1;
  slots = (file_bytes - index_pages * sizeof(IndexPage)) / sizeof(Record);
  BENCH_CHECK(slots <= index_pages * IndexPage::kKeysMean && record_at(slots) <= file_bytes);
}

RecordTable::RecordTable(const RecordLayout& layout, std::span<std::byte> bytes, RecordLocks& locks)
    : layout_(layout), bytes_(bytes), locks_(locks) {
  BENCH_CHECK(bytes.size() >= layout.record_at(layout.slots));
}

IndexPage& RecordTable::page(uint64_t number) const {
  BENCH_CHECK(number < layout_.index_pages);
  return reinterpret_cast<IndexPage*>(bytes_.data())[number];
}

Record& RecordTable::record(uint64_t slot) const {
  BENCH_CHECK(slot < layout_.slots);
  return *reinterpret_cast<Record*>(bytes_.data() + layout_.record_at(slot));
}

// A slot that a damaged index names and that the table does not have is none.
uint64_t RecordTable::find(uint64_t key) const {
  const uint64_t number = index_page_of(key, layout_.index_pages);
  const std::shared_lock lock(locks_.pages.of(number));
  const IndexPage& at = page(number);
  const uint64_t i = at.lower_bound(key);
  if (i == at.keys().size() || at.keys()[i] != key || at.slot(i) >= layout_.slots) return kNoSlot;
  return at.slot(i);
}

void RecordTable::read_slot(uint64_t slot, Record& into) const {
  const std::shared_lock lock(locks_.records.of(slot));
  into = record(slot);
}

bool RecordTable::read(uint64_t key, Record& into) const {
  const uint64_t slot = find(key);
  if (slot == kNoSlot) return false;
  read_slot(slot, into);
  return true;
}

bool RecordTable::read_entry(const Entry& entry, Record& into) const {
  read_slot(entry.slot, into);
  return true;
}

bool RecordTable::update(uint64_t key) {
  const uint64_t slot = find(key);
  if (slot == kNoSlot) return false;
  const std::lock_guard lock(locks_.records.of(slot));
  Record& at = record(slot);
  at.write(key, at.version() + 1);
  return true;
}

bool RecordTable::read_and_update(uint64_t key, Record& into) {
  const uint64_t slot = find(key);
  if (slot == kNoSlot) return false;
  const std::lock_guard lock(locks_.records.of(slot));
  Record& at = record(slot);
  into = at;
  at.write(key, into.version() + 1);
  return true;
}

// The record is there before its key is: a scan may come by.
bool RecordTable::insert(uint64_t key, uint64_t slot) {
  {
    const std::lock_guard lock(locks_.records.of(slot));
    record(slot).write(key, 0);
  }
  const uint64_t number = index_page_of(key, layout_.index_pages);
  const std::lock_guard lock(locks_.pages.of(number));
  return page(number).insert(key, static_cast<uint32_t>(slot));
}

void RecordTable::scan(uint64_t key, uint64_t count, std::vector<Entry>& entries) const {
  entries.clear();
  for (uint64_t number = index_page_of(key, layout_.index_pages);
       number < layout_.index_pages && entries.size() < count; ++number) {
    const std::shared_lock lock(locks_.pages.of(number));
    const IndexPage& at = page(number);
    const uint64_t size = at.keys().size();
    for (uint64_t i = at.lower_bound(key); i < size && entries.size() < count; ++i)
      if (at.slot(i) < layout_.slots) entries.push_back({at.keys()[i], at.slot(i)});
  }
}

}  // namespace outcore::bench
