// HeapTable: records in hash tables of a heap, by their keys. Any number of threads.
//
// As a program has it whose threads share a hash table: the leading bits of a key choose one of
// 1024 maps, each with a lock that readers share. So the maps follow each other in the order of the
// keys. Within one only a set of its keys has this order; it is there for scans, as the sorted set
// is in which YCSB keeps the keys that it stores in Redis.
#pragma once

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <exception>
#include <mutex>
#include <set>
#include <shared_mutex>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "bench/check.h"
#include "bench/index_page.h"
#include "bench/record.h"
#include "bench/record_file.h"
#include "bench/record_table.h"
#include "bench/threads.h"
#include "bench/ycsb_table.h"
#include "outcore/result.h"

namespace outcore::bench {

// How a record lies in a hash table of which it is the value, and which set of keys goes with it.
template <typename HashMap, typename KeySet>
struct InlineRecords {
  using Map = HashMap;
  using Order = KeySet;
  static Record& record_of(Record& value) { return value; }
  // Version 0 of a record. False if the key is there. Throws what the map throws if it is full.
  static bool insert(Map& map, uint64_t key) {
    Record record{};
    record.write(key, 0);
    return map.try_emplace(key, record).second;
  }
};
// In the program's own memory.
using PlainRecords = InlineRecords<std::unordered_map<uint64_t, Record>, std::set<uint64_t>>;

// The maps, and the sets of their keys, of which there are none where nobody scans.
template <typename Records>
struct HeapParts {
  static constexpr uint64_t kCount = StripedLocks::kLocks;
  std::span<typename Records::Map> maps;
  std::span<typename Records::Order> orders;
};

template <typename Records>
class HeapTable final : public YcsbTable {
 public:
  using Parts = HeapParts<Records>;

  // What the parts refer to outlives it.
  explicit HeapTable(const Parts& parts) : parts_(parts) {
    BENCH_CHECK(parts.maps.size() == Parts::kCount);
    BENCH_CHECK(parts.orders.empty() || parts.orders.size() == Parts::kCount);
  }

  bool read(uint64_t key, Record& into) const override {
    const std::shared_lock lock(lock_of(key));
    const Record* const at = find(key);
    if (at != nullptr) into = *at;
    return at != nullptr;
  }
  bool update(uint64_t key) override {
    const std::lock_guard lock(lock_of(key));
    Record* const at = find(key);
    if (at != nullptr) at->write(key, at->version() + 1);
    return at != nullptr;
  }
  bool read_and_update(uint64_t key, Record& into) override {
    const std::lock_guard lock(lock_of(key));
    Record* const at = find(key);
    if (at == nullptr) return false;
    into = *at;
    at->write(key, into.version() + 1);
    return true;
  }
  bool insert(uint64_t key, uint64_t) override {
    const std::lock_guard lock(lock_of(key));
    try {
      if (!Records::insert(parts_.maps[part_of(key)], key)) return false;
      if (has_order()) parts_.orders[part_of(key)].insert(key);
      return true;
    } catch (const std::exception& error) {  // as containers tell that there is no room
      note(error.what());
      return false;
    }
  }
  void scan(uint64_t key, uint64_t count, std::vector<Entry>& entries) const override {
    entries.clear();
    if (!has_order()) return;
    for (uint64_t part = part_of(key); part < Parts::kCount && entries.size() < count; ++part) {
      const std::shared_lock lock(locks_.of(part));
      const auto& order = parts_.orders[part];
      for (auto at = order.lower_bound(key); at != order.end() && entries.size() < count; ++at)
        entries.push_back({*at, 0});
    }
  }
  bool read_entry(const Entry& entry, Record& into) const override { return read(entry.key, into); }

  // Inserts the records 0 … count - 1 of the seed, by several threads. Errors: ENOSPC, as an insert
  // said it; EEXIST (two have one key).
  Status load(uint64_t seed, uint64_t count) {
    std::atomic<bool> is_done{true};
    const unsigned threads = making_threads();
    on_threads(threads, [&](unsigned thread) {
      for (uint64_t number = thread; number < count && is_done; number += threads)
        if (!insert(RecordFile::key_of(seed, number), number)) is_done = false;
    });
    if (Status s = failure(); !s) return s;
    return is_done ? Status() : Status(Error{EEXIST, "two records have one key"});
  }
  // What it has of the records 0 … count - 1, by several threads. REQUIRES: nobody writes.
  Found audit(uint64_t seed, uint64_t count) const {
    std::atomic<uint64_t> updates{0}, wrong_records{0}, wrong_entries{0};
    const unsigned threads = making_threads();
    on_threads(threads, [&](unsigned thread) {
      Record record{};
      for (uint64_t number = thread; number < count; number += threads) {
        const uint64_t key = RecordFile::key_of(seed, number);
        const bool is_right = read(key, record) && record.is_whole(key);
        if (is_right) updates += record.version();
        if (!is_right) ++wrong_records;
        if (has_order() && parts_.orders[part_of(key)].count(key) == 0) ++wrong_entries;
      }
    });
    uint64_t entries = 0, ordered = 0;
    for (const auto& map : parts_.maps) entries += map.size();
    for (const auto& order : parts_.orders) ordered += order.size();
    if (has_order() && ordered > count) wrong_entries += ordered - count;
    return {updates, entries, wrong_records, wrong_entries};
  }

  // ENOSPC: an insert failed, for want of room: what the heap said first.
  Status failure() const {
    const std::lock_guard lock(mutex_);
    return failure_.empty() ? Status() : Status(Error{ENOSPC, failure_});
  }

 private:
  static uint64_t part_of(uint64_t key) { return index_page_of(key, Parts::kCount); }
  std::shared_mutex& lock_of(uint64_t key) const { return locks_.of(part_of(key)); }
  bool has_order() const { return !parts_.orders.empty(); }
  // REQUIRES: the lock of the key is held.
  Record* find(uint64_t key) const {
    auto& map = parts_.maps[part_of(key)];
    const auto at = map.find(key);
    return at == map.end() ? nullptr : &Records::record_of(at->second);
  }
  void note(const std::string& why) {
    const std::lock_guard lock(mutex_);
    if (failure_.empty()) failure_ = why;
  }

  Parts parts_;
  mutable StripedLocks locks_;
  mutable std::mutex mutex_;
  std::string failure_;  // of an insert; empty: none failed
};

}  // namespace outcore::bench
