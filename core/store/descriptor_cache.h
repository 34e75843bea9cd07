// DescriptorCache: a bounded number of open descriptors by number, for stores of more files than a
// process may open.
//
// Any thread, the fault path too: no lock, no allocation. One word per entry: its key, how many
// hold it, and whether it is being replaced. A descriptor is closed only when nobody holds it.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

namespace outcore::store {

class DescriptorCache {
 public:
  static constexpr unsigned kSets = 32;
  static constexpr unsigned kWays = 8;
  static constexpr unsigned kCountMax = kSets * kWays;

  // A descriptor that stays open until release(). ticket -1: it is in no entry, and closed then.
  struct Lease {
    int fd = -1;
    int ticket = -1;
  };

  DescriptorCache();
  ~DescriptorCache();  // REQUIRES: nothing is held
  DescriptorCache(const DescriptorCache&) = delete;
  DescriptorCache& operator=(const DescriptorCache&) = delete;

  // fd -1 if the key has no entry. REQUIRES: key < 2^47.
  Lease find(uint64_t key);
  // Takes over an open descriptor, held once by the caller; in place of one that nobody holds, if
  // there is one.
  Lease keep(uint64_t key, int fd);
  void release(Lease lease);
  // Closes what nobody holds: descriptors have run out. How many were closed.
  unsigned close_idle();

 private:
  struct Entry {
    std::atomic<uint64_t> word{0};  // key + 1 (48 bits), is being replaced (1), holders (15)
    std::atomic<int> fd{-1};
  };
  std::array<Entry, kCountMax> entries_;
  std::atomic<unsigned> turn_{0};
};

}  // namespace outcore::store
