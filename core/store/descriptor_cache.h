// DescriptorCache: a bounded number of open file descriptors, for stores that have more files than
// a process may open.
//
// Any thread, the fault path: no lock, no allocation. An entry is one word: its key, the number of
// its users, and whether it is being replaced. A descriptor is closed only when it has no user.
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

  // A descriptor that stays open until release(). ticket -1: it is in no entry, and release()
  // closes it.
  struct Lease {
    int fd = -1;
    int ticket = -1;
  };

  DescriptorCache();
  ~DescriptorCache();  // REQUIRES: no lease is left
  DescriptorCache(const DescriptorCache&) = delete;
  DescriptorCache& operator=(const DescriptorCache&) = delete;

  // fd -1 if the key has no entry. REQUIRES: key < 2^47.
  Lease find(uint64_t key);
  // Takes over an open descriptor, with one lease for the caller. It replaces a descriptor without
  // users, if there is one.
  Lease keep(uint64_t key, int fd);
  void release(Lease lease);
  // Closes all descriptors without users, when the process has run out of descriptors. Returns how
  // many.
  unsigned close_idle();

 private:
  struct Entry {
    std::atomic<uint64_t> word{0};  // key + 1 (48 bits), is being replaced (1), users (15)
    std::atomic<int> fd{-1};
  };
  std::array<Entry, kCountMax> entries_;
  std::atomic<unsigned> turn_{0};
};

}  // namespace outcore::store
