// PlainGround: ordinary anonymous memory: what Outcore's heap is compared with, and where a program
// may want one without a store.
#pragma once

#include <memory>

#include "heaps/volatile/ground.h"

namespace outcore::heap {

class PlainGround final : public Ground {
 public:
  static std::unique_ptr<PlainGround> make(uint64_t reserve_bytes);  // nullptr: no addresses
  ~PlainGround() override;

  int grow(uint64_t) override { return 0; }
  int reserve(uint64_t, uint64_t) override { return 0; }
  int give_back(uint64_t offset, uint64_t size_bytes) override;
  void zero(uint64_t offset, uint64_t size_bytes) override;
  void expect(uint64_t, uint64_t) override {}

 private:
  PlainGround() = default;
};

}  // namespace outcore::heap
