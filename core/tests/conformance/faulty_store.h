// FaultyStore: a store in memory that fails, waits and counts as a test orders.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstring>
#include <functional>
#include <mutex>
#include <new>
#include <span>
#include <string>
#include <vector>

#include "outcore/store.h"

namespace outcore::scene {

class FaultyStore : public Store {
 public:
  explicit FaultyStore(std::vector<std::byte> bytes, StoreTraits traits = safe())
      : bytes_(std::move(bytes)), traits_(traits) {}

  static StoreTraits safe() {
    StoreTraits traits;
    traits.is_fault_safe = true;
    traits.is_volatile = true;
    return traits;
  }
  static StoreTraits unsafe() {
    StoreTraits traits;
    traits.is_volatile = true;
    return traits;
  }

  // Orders: any thread, at any time. An errno, or 0 for none.
  std::atomic<int> read_error{0};
  std::atomic<int> write_error{0};
  std::atomic<int> discard_error{0};
  // Such errors are thrown, as std::bad_alloc.
  std::atomic<bool> throws{false};
  // Only transfers that touch the byte at this offset fail; ~0: all.
  std::atomic<uint64_t> error_offset{~uint64_t{0}};
  // While set, writes wait.
  std::atomic<bool> holds_writes{false};
  // Called by each discard, with the discarded range. Set it before the store is used.
  std::function<void(uint64_t offset, uint64_t size_bytes)> while_discarding;

  // Counts.
  std::atomic<uint64_t> reads{0}, writes{0}, discards{0};
  std::atomic<uint64_t> read_sum{0}, written_sum{0};  // bytes
  // Reads that touch the watched range. Set the range before the store is mapped.
  std::atomic<uint64_t> watched_reads{0};
  uint64_t watched_offset = 0, watched_size = 0;
  std::atomic<int> readers_max{0}, writers_max{0}, writers{0};

  uint64_t size_bytes() const override { return bytes_.size(); }

  int read(uint64_t offset, std::span<std::byte> into) override {
    const Inside inside(readers_, readers_max);
    ++reads;
    read_sum += into.size();
    if (offset < watched_offset + watched_size && watched_offset < offset + into.size())
      ++watched_reads;
    if (const int error = read_error; error != 0 && is_meant(offset, into.size()))
      return fail(error);
    // As a client library does: it allocates, and takes a lock of the program.
    if (!traits_.is_fault_safe) {
      const std::lock_guard<std::mutex> guard(lock_);
      std::vector<std::byte> copy(bytes_.begin() + static_cast<ptrdiff_t>(offset),
                                  bytes_.begin() + static_cast<ptrdiff_t>(offset + into.size()));
      std::memcpy(into.data(), copy.data(), into.size());
      return 0;
    }
    std::memcpy(into.data(), bytes_.data() + offset, into.size());
    return 0;
  }

  int write(uint64_t offset, std::span<const std::byte> from) override {
    const Inside inside(writers, writers_max);
    ++writes;
    holds_writes.wait(true);
    if (const int error = write_error; error != 0 && is_meant(offset, from.size()))
      return fail(error);
    written_sum += from.size();
    std::memcpy(bytes_.data() + offset, from.data(), from.size());
    return 0;
  }

  int discard(uint64_t offset, uint64_t size_bytes) override {
    ++discards;
    if (while_discarding) while_discarding(offset, size_bytes);
    if (const int error = discard_error; error != 0 && is_meant(offset, size_bytes))
      return fail(error);
    std::memset(bytes_.data() + offset, 0, size_bytes);
    return 0;
  }

  StoreTraits traits() const override { return traits_; }
  std::string uri() const override { return "faulty:store"; }

  // The bytes themselves. REQUIRES: no transfer runs on them.
  std::vector<std::byte>& bytes() { return bytes_; }

 private:
  struct Inside {
    Inside(std::atomic<int>& count, std::atomic<int>& most) : count_(count) {
      const int now = ++count_;
      int highest = most;
      while (now > highest && !most.compare_exchange_weak(highest, now)) {
      }
    }
    ~Inside() { --count_; }
    std::atomic<int>& count_;
  };
  int fail(int error) const {
    if (throws) throw std::bad_alloc();
    return -error;
  }
  bool is_meant(uint64_t offset, uint64_t size_bytes) const {
    const uint64_t at = error_offset;
    return at == ~uint64_t{0} || (at >= offset && at < offset + size_bytes);
  }

  std::vector<std::byte> bytes_;
  const StoreTraits traits_;
  std::mutex lock_;
  std::atomic<int> readers_{0};
};

}  // namespace outcore::scene
