// Sharing: what is mapped read-only, and known to be the same for all, has its pages in a buffer,
// with other processes (core/buffer); files also if they are written. And what the runtime has of
// the buffer's limit for itself.
//
// Under the mapping lock, but for what says otherwise.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "core/budget/bounce_pool.h"
#include "core/buffer/buffer.h"
#include "core/paging/page_cache.h"
#include "core/runtime/fault_sources.h"
#include "core/runtime/runtime_impl.h"

namespace outcore::runtime {

class Sharing {
 public:
  explicit Sharing(Runtime::Impl& runtime) : runtime_(runtime) {}

  // Joins the buffer of the option `buffer`, if there is one. Once, at the start: with
  // `has_own_budget_beside` the buffer is for what is shared alone, and other pages have the budget
  // beside it.
  Status join(bool has_own_budget_beside);
  // Gives back what it has of the limit, when nothing uses it any more.
  void release_private_memory();
  // In a forked child: its place in the buffer is the parent's, and must not be given up.
  void leave_to_parent();

  // nullptr: without one. Constant once joined; any thread.
  const std::shared_ptr<buffer::Buffer>& buffer() const { return buffer_; }
  bool has_own_budget_beside() const { return has_own_budget_beside_; }
  uint64_t pages_bytes() const;  // for pages that are not in a buffer
  budget::BouncePool::Shape bounce_shape() const;

  // Whether it is shared now. An error: it must not be mapped otherwise.
  Result<bool> try_to_share(paging::PageCache& cache, const MapOptions& options,
                            const Runtime::Impl::Lent* lent, const Mechanism& mechanism) const;
  // Whether another view, of this store, may be added.
  static Status may_join(const paging::PageCache& cache, const Store& store,
                         const MapOptions& options);
  // REQUIRES: nobody maps it here any more.
  void leave(paging::PageCache& cache) const;
  // EBUSY: others write it in the buffer, with the size that it has. Any thread.
  Status may_enlarge(const Store& store, uint64_t bytes) const;
  Status may_enlarge(const std::string& uri, uint64_t bytes) const;
  // EBUSY: others have it in the buffer, and would lose what is cut off.
  Status may_shorten(const Store& store) const;
  // For the first region whose pages are the process's own: memory for them, of the buffer's limit.
  // As much as can be had, in halves, until the runtime ends.
  Status acquire_private_memory();

 private:
  bool can_share(const paging::PageCache& cache, const MapOptions& options,
                 const Runtime::Impl::Lent* lent) const;
  Status share(paging::PageCache& cache, const Mechanism& mechanism, uint64_t pages_least,
               const Runtime::Impl::Lent* lent) const;

  Runtime::Impl& runtime_;
  std::shared_ptr<buffer::Buffer> buffer_;
  bool has_own_budget_beside_ = false;
  uint64_t private_bytes_ = 0;       // what this runtime has of the buffer's limit for itself
  bool has_private_memory_ = false;  // also for pages that are not shared
};

}  // namespace outcore::runtime
