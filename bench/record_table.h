// RecordTable: a table of records in mapped memory, and their index. Any number of threads.
//
// Both lie in one file that every memory maps alike, which the containers of Outcore's heap would
// not: the rivals could not open it. First come the index's pages, then the records in the order in
// which they were inserted, and the room for those to come; the order of the keys, in which scans
// go, is that of the index alone, as in a database whose rows lie in a heap.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <shared_mutex>
#include <span>
#include <vector>

#include "bench/index_page.h"
#include "bench/record.h"
#include "bench/ycsb_table.h"

namespace outcore::bench {

// What lies where in a file of this size.
struct RecordLayout {
  static constexpr uint64_t kFileBytesMin = uint64_t{64} << 10;
  static constexpr uint64_t kFileBytesMax = uint64_t{4} << 40;  // a slot's number has 32 bits

  // REQUIRES: kFileBytesMin <= file_bytes <= kFileBytesMax.
  explicit RecordLayout(uint64_t file_bytes);
  uint64_t record_at(uint64_t slot) const {
    return index_pages * sizeof(IndexPage) + slot * sizeof(Record);
  }
  uint64_t index_pages, slots;
};

// Locks of one set are shared by all pages or records with the same remainder. Lies outside of the
// table: what is mapped is data only.
class StripedLocks {
 public:
  static constexpr uint64_t kLocks = 1024;
  std::shared_mutex& of(uint64_t number) { return locks_[number % kLocks].mutex; }

 private:
  struct alignas(64) Lock {
    std::shared_mutex mutex;
  };
  std::unique_ptr<Lock[]> locks_ = std::make_unique<Lock[]>(kLocks);
};

struct RecordLocks {
  StripedLocks pages, records;
};

class RecordTable final : public YcsbTable {
 public:
  // The locks outlive it. Updates and inserts need memory that can be written.
  RecordTable(const RecordLayout& layout, std::span<std::byte> bytes, RecordLocks& locks);

  bool read(uint64_t key, Record& into) const override;
  bool update(uint64_t key) override;
  bool read_and_update(uint64_t key, Record& into) override;
  bool insert(uint64_t key, uint64_t slot) override;
  void scan(uint64_t key, uint64_t count, std::vector<Entry>& entries) const override;
  bool read_entry(const Entry& entry, Record& into) const override;

 private:
  static constexpr uint64_t kNoSlot = UINT64_MAX;
  void read_slot(uint64_t slot, Record& into) const;
  uint64_t find(uint64_t key) const;
  IndexPage& page(uint64_t number) const;
  Record& record(uint64_t slot) const;

  RecordLayout layout_;
  std::span<std::byte> bytes_;
  RecordLocks& locks_;
};

}  // namespace outcore::bench
