// Pins: pages that stay in memory.
//
// Calls of the program, with signals blocked.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/paging/fault_path.h"
#include "core/paging/pager.h"
#include "core/paging/remapper.h"
#include "core/paging/shared_filler.h"
#include "core/paging/shared_writer.h"
#include "outcore/result.h"

namespace outcore::paging {

class Pins {
 public:
  Pins(Pager& pager, Remapper& remapper, FaultPath& fault_path, SharedFiller& shared,
       SharedWriter& writer)
      : pager_(pager),
        remapper_(remapper),
        fault_path_(fault_path),
        shared_(shared),
        writer_(writer) {}

  // Errors: ENOMEM (the budget cannot hold it, with the least that would do), those of fills.
  Status pin(region::View& view, const std::byte* from, uint64_t size_bytes);
  Status unpin(region::View& view, const std::byte* from, uint64_t size_bytes);
  // Pins one page, and shows it, while the caller copies. Not for the kernel's writes, which need
  // pin().
  int pin_page(region::View& view, uint64_t page, std::byte* address, bool is_write);
  void unpin_page(PageCache& cache, uint64_t page);

 private:
  int pin_shared_page(region::View& view, uint64_t page, bool is_write);
  Status pin_shared(region::View& view, uint64_t first, uint64_t end);
  Status claim_pins(const PageCache& cache, uint64_t first, uint64_t end, uint64_t* claimed_bytes);

  Pager& pager_;
  Remapper& remapper_;
  FaultPath& fault_path_;
  SharedFiller& shared_;
  SharedWriter& writer_;
};

}  // namespace outcore::paging
