// PlainMemory: ordinary anonymous memory as the memory of a heap: for comparisons with Outcore's
// heap, and for programs that want a heap without a store.
#pragma once

#include <memory>

#include "heaps/volatile/heap_memory.h"

namespace outcore::heap {

class PlainMemory final : public HeapMemory {
 public:
  static std::unique_ptr<PlainMemory> make(uint64_t reserve_bytes);  // nullptr: no addresses
  ~PlainMemory() override;

  int grow(uint64_t) override { return 0; }
  int reserve(uint64_t, uint64_t) override { return 0; }
  int give_back(uint64_t offset, uint64_t size_bytes) override;
  void zero(uint64_t offset, uint64_t size_bytes) override;
  void expect(uint64_t, uint64_t) override {}

 private:
  PlainMemory() = default;
};

}  // namespace outcore::heap
