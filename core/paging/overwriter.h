// Overwriter: bytes of a store change by another hand than ours, as by a program's write() to a
// file that it has mapped, and pages that are in memory stay there, with the new bytes.
//
// Calls of the program, one at a time: REQUIRES the runtime's mapping lock.
#pragma once

#include <cstdint>

#include "core/base/function_ref.h"
#include "core/paging/frame_supply.h"
#include "core/paging/pager.h"
#include "core/paging/reshaper.h"
#include "outcore/result.h"

namespace outcore::paging {

class Overwriter {
 public:
  Overwriter(Pager& pager, FrameSupply& supply, Reshaper& reshaper)
      : pager_(pager), supply_(supply), reshaper_(reshaper) {}

  // Runs `change`, which changes nothing of the store but [offset, offset + size). Afterwards
  // everybody sees the new bytes; until then a touch sees the old or the new ones, or waits. Few
  // pages, of a store that no view has ever written, are read again into the memory that they have;
  // others leave it before. Errors: those of Reshaper::evict_and_block. `change` has then
  // run, unless the error came before it; what is in memory may be older than the store.
  Status overwrite(PageCache& cache, uint64_t offset, uint64_t size_bytes,
                   base::FunctionRef<void()> change);
  // The same while none of the pages is in memory.
  Status change_absent(PageCache& cache, uint64_t offset, uint64_t size_bytes,
                       base::FunctionRef<void()> change);

 private:
  static constexpr uint64_t kPagesMax = 64;

  bool are_few(const PageCache& cache, uint64_t first, uint64_t end) const;
  static bool claim_pages(PageCache& cache, uint64_t first, uint64_t end);
  static void release_pages(PageCache& cache, uint64_t first, uint64_t end);
  int read_again(PageCache& cache, uint64_t page, uint64_t from, uint64_t to);

  Pager& pager_;
  FrameSupply& supply_;
  Reshaper& reshaper_;
};

}  // namespace outcore::paging
