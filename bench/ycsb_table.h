// YcsbTable: records that are found by their keys: what clients of YCSB work on. Any number of
// threads.
#pragma once

#include <cstdint>
#include <vector>

#include "bench/record.h"

namespace outcore::bench {

class YcsbTable {
 public:
  // A key, and where its record is, as far as the table numbers its places.
  struct Entry {
    uint64_t key;
    uint64_t slot;
  };
  // What an audit found.
  struct Found {
    uint64_t updates = 0;  // of all records: the sum of their versions
    uint64_t entries = 0;  // of the index
    uint64_t wrong_records = 0, wrong_entries = 0;
  };

  virtual ~YcsbTable() = default;

  // Copies the record, as it is at one time. False if there is none.
  virtual bool read(uint64_t key, Record& into) const = 0;
  // Writes the next version of all fields. False if there is no such record.
  virtual bool update(uint64_t key) = 0;
  // Copies the record, and writes the next version. Nobody else comes between. False likewise.
  virtual bool read_and_update(uint64_t key, Record& into) = 0;
  // Version 0 of a record. REQUIRES: nobody else inserts in this slot. False if there is a record
  // of this key, or no room.
  virtual bool insert(uint64_t key, uint64_t slot) = 0;
  // The next `count` entries from the first key that is not less; fewer at the end of the table.
  virtual void scan(uint64_t key, uint64_t count, std::vector<Entry>& entries) const = 0;
  // The record of an entry. False if there is none.
  virtual bool read_entry(const Entry& entry, Record& into) const = 0;
};

}  // namespace outcore::bench
