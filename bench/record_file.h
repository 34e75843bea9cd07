// RecordFile: the file of a RecordTable: makes it, and looks through all of it when a run is over.
#pragma once

#include <cstdint>
#include <string>

#include "bench/data.h"
#include "bench/options.h"
#include "bench/record_table.h"

namespace outcore::bench {

// One thread, in the parent process.
class RecordFile {
 public:
  using Found = YcsbTable::Found;

  // With room for so many records beside those that it is loaded with. REQUIRES: layout().slots >
  // room.
  RecordFile(const Options& options, uint64_t room);

  const RecordLayout& layout() const { return layout_; }
  uint64_t loaded() const { return loaded_; }
  // The key of the n-th record: a hash, no two the same.
  static uint64_t key_of(uint64_t seed, uint64_t number) { return word_at(seed, number); }

  Data& file() { return file_; }
  const Data& file() const { return file_; }
  // The file has its first records, and no other, at version 0. Holds the index in memory
  // meanwhile.
  Status make();
  // By plain reads, outside of any memory that is measured. Right if all records below `records`
  // are whole, and the index has each of them once, in its place, and no other.
  Result<Found> audit(uint64_t records) const;

 private:
  Status write_index(Medium& medium) const;
  Status write_records(Medium& medium) const;
  Status audit_index(Medium& medium, uint64_t records, Found& found) const;
  Status audit_records(Medium& medium, uint64_t records, Found& found) const;

  uint64_t size_bytes_, seed_;
  RecordLayout layout_;
  uint64_t loaded_;
  Data file_;
  std::string tag_;
};

}  // namespace outcore::bench
