#include "core/paging/budget_block.h"

#include <algorithm>
#include <cerrno>

#include "core/base/assert.h"
#include "core/base/error.h"
#include "core/base/units.h"
#include "core/os/address_space.h"
#include "core/os/wait.h"
#include "core/os/wait_limit.h"

namespace outcore::paging {

BudgetBlock::~BudgetBlock() {
  if (data_ == nullptr) return;
  os::free_table(data_, size_bytes_);
  pager_.budget.release(size_bytes_);
}

Status BudgetBlock::allocate(uint64_t most, uint64_t least, const char* what) {
  OC_CHECK(data_ == nullptr);
  OC_CHECK(least != 0);
  OC_CHECK(most >= least);
  budget::Budget& budget = pager_.budget;
  uint64_t bytes = most;
  os::WaitLimit limit(pager_.options.wait_ns_max);
  for (uint32_t changes = budget.changes(); !budget.try_acquire(bytes);
       changes = budget.changes()) {
    if (bytes > least) {
      bytes = std::max(least, base::round_down(bytes / 2, base::kSystemPage));
      continue;
    }
    const bool is_over = limit.is_over();
    if (bytes <= budget.limit() && keeper_.help(Caller::kThread, 0)) continue;
    if (bytes > budget.limit() || is_over || limit.is_over_after_work())
      return Error{ENOMEM, "cut: no " + base::format_bytes(bytes) +
                               " of the budget became free for " + what + "; raise the budget"};
    keeper_.call_keepers();
    budget.wait_for_change(changes, 2'000'000);
  }
  Result<std::byte*> memory = os::allocate_table(bytes);
  if (!memory) {
    budget.release(bytes);
    return memory.status();
  }
  // Touched now: the first touch of memory costs more than the copy.
  for (uint64_t at = 0; at < bytes; at += base::kSystemPage) memory.value()[at] = std::byte{0};
  data_ = memory.value();
  size_bytes_ = bytes;
  return {};
}

}  // namespace outcore::paging
