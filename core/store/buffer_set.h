// BufferSet: the buffers of this process that io_uring rings may register with the kernel.
//
// Stores lend buffers (BufferLeases); each thread's ring takes a copy of the set when it has
// changed. A buffer that several stores lend is in the set once, until the last of them gives it
// back. Any thread; not on the fault path.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <vector>

#include "core/os/process_lock.h"

namespace outcore::store {

using Buffer = std::span<std::byte>;

class BufferSet {
 public:
  static BufferSet& of_process();

  void add(Buffer buffer);
  void remove(Buffer buffer);
  // Removes everything that overlaps this memory, lent or not. Call it before freeing memory that
  // was lent: a store may outlive the memory, and what is mapped at its address next is not what
  // the kernel has registered.
  void forget(Buffer memory);

  // Changes with each change of the set. 0: the set was never used.
  uint64_t generation() const;
  // Copies the set in ascending order of address, at most `count_max` buffers, and returns its
  // generation.
  uint64_t copy(std::vector<Buffer>& into, size_t count_max) const;

 private:
  struct Entry {
    Buffer buffer;
    size_t lease_count;
  };
  mutable os::ProcessLock lock_;
  std::vector<Entry> entries_;            // ascending by address
  std::atomic<uint64_t> generation_ = 0;  // changed under the lock, read without
};

// BufferLeases: the buffers that one store has lent; its destructor gives them back.
class BufferLeases {
 public:
  BufferLeases() = default;
  ~BufferLeases();
  BufferLeases(const BufferLeases&) = delete;
  BufferLeases& operator=(const BufferLeases&) = delete;

  void lend(Buffer buffer);

 private:
  std::mutex mutex_;
  std::vector<Buffer> lent_;
};

}  // namespace outcore::store
