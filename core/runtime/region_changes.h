// RegionChanges: changes of regions on lent addresses while the program runs, for `outcore run`.
//
// Any thread. Each function takes the mapping lock; none may be called from inside another's
// callback.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "core/base/function_ref.h"
#include "core/paging/page_cache.h"
#include "core/runtime/runtime_impl.h"

namespace outcore::runtime {

class RegionChanges {
 public:
  explicit RegionChanges(Runtime::Impl& runtime) : runtime_(runtime) {}

  // Removes the bytes [from, to) of the region; the part behind them becomes `right`, or, if they
  // are the first bytes, the region itself. `between` unmaps them. Errors: EBUSY (a page would be
  // cut, is pinned, or is touched all the time), those of a write-back; after an error nothing has
  // changed.
  Status cut(Region::Impl& region, uint64_t from, uint64_t to, std::unique_ptr<Region::Impl>* right,
             const std::function<void()>& between);
  // Gives all of the region, whole pages, to the kernel, while the program uses them: `prepare` may
  // read them in the store, and `place` then maps what it likes there; who touches them meanwhile
  // waits. The region has no view any more. Errors, after which it is as it was: as cut(), those of
  // the two, and EBUSY: the cache would have no view.
  Status give(Region::Impl& region, base::FunctionRef<Status()> prepare,
              base::FunctionRef<Status()> place);
  // The store now has `store_bytes`, and the region shows its first `size_bytes`.
  Status extend(Region::Impl& region, uint64_t size_bytes, uint64_t store_bytes);
  // Ends all regions of a store; `place` maps something else over them first.
  Status hand_back(const std::vector<Region::Impl*>& all, const std::function<Status()>& place);
  // Runs `between`, which changes bytes of the store, while none of them is in memory.
  Status with_blocked_range(paging::PageCache& cache, uint64_t offset, uint64_t size_bytes,
                            base::FunctionRef<void()> between);
  // Runs `change`, which changes bytes of the store: what is in memory has them afterwards. Errors:
  // as Overwriter::overwrite.
  Status overwrite(paging::PageCache& cache, uint64_t offset, uint64_t size_bytes,
                   base::FunctionRef<void()> change);
  // Changes whether the program may read or write the region; the function does so in the kernel.
  Status protect(Region::Impl& region, bool is_readable, bool is_writable,
                 const std::function<Status(bool, bool)>& protect_in_kernel);

 private:
  void show(Region::Impl& region, std::span<region::View* const> parts,
            std::unique_ptr<Region::Impl>* right);

  Runtime::Impl& runtime_;
};

}  // namespace outcore::runtime
