// CutWriter: brings the frozen pages of a cut to their stores, by way of a side buffer, and lets
// the program have each again as soon as its bytes are copied.
//
// The thread of the cut, with signals blocked.
#pragma once

#include <cstdint>

#include "core/paging/budget_block.h"
#include "core/paging/cut_calls.h"
#include "core/paging/cut_pages.h"
#include "core/paging/keeper.h"
#include "core/paging/pager.h"
#include "outcore/result.h"

namespace outcore::paging {

class CutWriter {
 public:
  CutWriter(Pager& pager, Keeper& keeper, CutPages& pages, CutReport& report)
      : pager_(pager), pages_(pages), report_(report), buffer_(pager, keeper) {}

  // A side buffer for what is likely to be left, inside the budget: at least one page, at most a
  // sixteenth. Once there is one it stays. Errors: ENOMEM.
  Status allocate_buffer();
  // Everything that is frozen, through the buffer, as often as it takes. Afterwards nothing is
  // frozen. Errors: those of the stores.
  Status store();
  // What is frozen is as it was.
  void undo(uint64_t first, uint64_t end);
  bool is_idle() const { return request_count_ == 0; }

 private:
  static constexpr uint32_t kRequestsMax = 256;

  os::SubpageSet written_of(uint64_t i);
  bool copy(uint64_t i);
  bool queue_piece(uint64_t i, const os::Piece& piece, uint64_t to);
  uint64_t copy_run(uint64_t i);
  void show(uint64_t i, bool is_stored);
  void write_out();
  void fail(const StoreRequest& request, PageCache& cache);

  Pager& pager_;
  CutPages& pages_;
  CutReport& report_;
  BudgetBlock buffer_;  // frozen bytes on their way to the stores
  uint64_t buffer_used_ = 0;
  StoreRequest request_[kRequestsMax];
  uint32_t request_index_[kRequestsMax];  // of the cache
  uint32_t request_count_ = 0;
  int error_ = 0;
  StoreRequest failed_;
  uint32_t failed_index_ = 0;
};

}  // namespace outcore::paging
