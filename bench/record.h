// Record: one row of the table of the Yahoo! Cloud Serving Benchmark: ten fields of 100 bytes.
// Plain memory; whoever shares one locks it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "bench/random.h"

namespace outcore::bench {

// The bytes of each field are computed from key, version and the field's number, so that a record
// of which a part is of another record, or of another version, is known for one.
class Record {
 public:
  static constexpr unsigned kFields = 10, kFieldBytes = 100;

  uint64_t key() const { return key_; }
  uint64_t version() const { return version_; }  // how often it was updated

  // Writes all fields (YCSB's writeallfields=true).
  void write(uint64_t key, uint64_t version) {
    key_ = key;
    version_ = version;
    unused_ = 0;
    for (unsigned i = 0; i < kFields; ++i) {
      const Field field = field_of(key, version, i);
      std::memcpy(fields_[i], &field, kFieldBytes);
    }
  }
  // True if all fields are of this key, and of one version.
  bool is_whole(uint64_t key) const {
    bool is_so = key_ == key && unused_ == 0;
    for (unsigned i = 0; i < kFields; ++i) {
      const Field field = field_of(key_, version_, i);
      is_so &= std::memcmp(fields_[i], &field, kFieldBytes) == 0;
    }
    return is_so;
  }

 private:
  static constexpr unsigned kFieldWords = kFieldBytes / sizeof(uint64_t) + 1;
  struct Field {
    uint64_t words[kFieldWords];  // the last is half used
  };

  static Field field_of(uint64_t key, uint64_t version, unsigned number) {
    const uint64_t base = mix(mix(key) + version * kFields + number);
    Field field;
    for (unsigned i = 0; i < kFieldWords; ++i) field.words[i] = base + i * 0x9E3779B97F4A7C15;
    return field;
  }

  uint64_t key_, version_, unused_;
  std::byte fields_[kFields][kFieldBytes];
};

static_assert(sizeof(Record) == 1024, "four records a page, and none on two");

}  // namespace outcore::bench
