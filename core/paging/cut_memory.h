// CutMemory: ordinary memory that belongs to a cut, and its copies. The thread of the cut.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "core/paging/budget_block.h"
#include "core/paging/keeper.h"
#include "core/paging/pager.h"
#include "outcore/result.h"

namespace outcore::paging {

class CutMemory {
 public:
  // `memory` outlives this.
  CutMemory(Pager& pager, Keeper& keeper, const std::vector<std::span<const std::byte>>& memory)
      : memory_(memory), copies_(pager, keeper) {}

  // Room for the copies; once there is, it stays. Errors: ENOMEM, EFAULT (some of the memory is not
  // there).
  Status allocate();
  bool is_any() const { return copies_.data() != nullptr; }  // there is room, and memory to copy
  // Threads are stopped: allocates nothing.
  void copy();
  bool is_as_copied() const;
  // One behind the other.
  std::span<const std::byte> copies() const { return {copies_.data(), copies_.size_bytes()}; }

 private:
  const std::vector<std::span<const std::byte>>& memory_;
  BudgetBlock copies_;
};

}  // namespace outcore::paging
