// RegionGround: a region over a store, as the ground of a heap.
#pragma once

#include <memory>
#include <string>

#include "heaps/volatile/ground.h"
#include "heaps/volatile/ground_store.h"
#include "outcore/heap.h"
#include "outcore/region.h"
#include "outcore/runtime.h"

namespace outcore::heap {

class RegionGround final : public Ground {
 public:
  // Errors: those of the store, EEXIST (it holds something), ENOMEM (addresses), and of
  // Runtime::map.
  static Result<std::unique_ptr<RegionGround>> make(Runtime& runtime, const HeapOptions& options);
  ~RegionGround() override;

  int grow(uint64_t end) override;
  int reserve(uint64_t offset, uint64_t size_bytes) override;
  int give_back(uint64_t offset, uint64_t size_bytes) override;
  void zero(uint64_t offset, uint64_t size_bytes) override;
  void expect(uint64_t offset, uint64_t size_bytes) override;

  Region& region() { return region_; }

 private:
  RegionGround() = default;
  Status map(Runtime& runtime, const HeapOptions& options, const std::shared_ptr<Store>& inner);

  std::shared_ptr<GroundStore> store_;
  std::shared_ptr<Store> opened_;  // by a URI: it is the heap's, and emptied when that ends
  Region region_;                  // after store_: it goes first
  uint64_t granted_bytes_ = 0;     // with space
};

}  // namespace outcore::heap
