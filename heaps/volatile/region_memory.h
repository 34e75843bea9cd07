// RegionMemory: a region over a store as the memory of a heap.
#pragma once

#include <memory>

#include "heaps/volatile/heap_memory.h"
#include "heaps/volatile/heap_memory_store.h"
#include "outcore/heap.h"
#include "outcore/region.h"
#include "outcore/runtime.h"

namespace outcore::heap {

class RegionMemory final : public HeapMemory {
 public:
  // Errors: those of the store, EEXIST (it holds something), ENOMEM (addresses), and of
  // Runtime::map.
  static Result<std::unique_ptr<RegionMemory>> make(Runtime& runtime, const HeapOptions& options);
  ~RegionMemory() override;

  int grow(uint64_t end) override;
  int reserve(uint64_t offset, uint64_t size_bytes) override;
  int give_back(uint64_t offset, uint64_t size_bytes) override;
  void zero(uint64_t offset, uint64_t size_bytes) override;
  void expect(uint64_t offset, uint64_t size_bytes) override;

  Region& region() { return region_; }

 private:
  RegionMemory() = default;
  Status map(Runtime& runtime, const HeapOptions& options, const std::shared_ptr<Store>& inner);

  std::shared_ptr<HeapMemoryStore> store_;
  // The store, if it was opened by a URI: the heap owns it and empties it at its end.
  std::shared_ptr<Store> opened_;
  Region region_;               // declared after store_, so that it is destroyed first
  uint64_t granted_bytes_ = 0;  // bytes that have space
};

}  // namespace outcore::heap
