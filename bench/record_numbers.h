// RecordNumbers: which records are there, while threads insert more. Any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "bench/check.h"

namespace outcore::bench {

// Inserts end in another order than they began; whoever wants the latest record needs one that is
// there, and so are all before it (YCSB's AcknowledgedCounterGenerator).
class RecordNumbers {
 public:
  RecordNumbers(uint64_t loaded, uint64_t room)
      : loaded_(loaded),
        room_(room),
        next_(loaded),
        count_(loaded),
        is_inserted_(std::make_unique<std::atomic<bool>[]>(room)) {}

  // All records of lower numbers are there.
  uint64_t count() const { return count_.load(); }
  // The number of a record that the caller inserts.
  uint64_t claim() {
    const uint64_t number = next_.fetch_add(1);
    BENCH_CHECK(number < loaded_ + room_);
    return number;
  }
  // The record is there. Of two threads that end at once, one sees that both have.
  void publish(uint64_t number) {
    BENCH_CHECK(number >= loaded_ && number < loaded_ + room_);
    is_inserted_[number - loaded_].store(true);
    uint64_t at = count_.load();
    while (at < loaded_ + room_ && is_inserted_[at - loaded_].load())
      if (count_.compare_exchange_weak(at, at + 1)) ++at;
  }

 private:
  const uint64_t loaded_, room_;
  std::atomic<uint64_t> next_, count_;
  std::unique_ptr<std::atomic<bool>[]> is_inserted_;
};

}  // namespace outcore::bench
