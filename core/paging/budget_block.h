// BudgetBlock: ordinary memory that comes from the budget, for as long as this lives.
//
// Any thread that holds no turn.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/paging/keeper.h"
#include "core/paging/pager.h"
#include "outcore/result.h"

namespace outcore::paging {

class BudgetBlock {
 public:
  BudgetBlock(Pager& pager, Keeper& keeper) : pager_(pager), keeper_(keeper) {}
  BudgetBlock(const BudgetBlock&) = delete;
  BudgetBlock& operator=(const BudgetBlock&) = delete;
  ~BudgetBlock();

  // At most `most` bytes, at least `least`, touched; pages are evicted for them. `what` they are
  // for. Once. Errors: ENOMEM.
  Status allocate(uint64_t most, uint64_t least, const char* what);

  std::byte* data() const { return data_; }  // nullptr until allocate() has succeeded
  uint64_t size_bytes() const { return size_bytes_; }

 private:
  Pager& pager_;
  Keeper& keeper_;
  std::byte* data_ = nullptr;
  uint64_t size_bytes_ = 0;
};

}  // namespace outcore::paging
