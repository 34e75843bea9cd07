// Region: the calls on one mapping. Each checks its range, blocks signals, and calls the engine.
#include "outcore/region.h"
#include "core/base/assert.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>

#include "core/base/error.h"
#include "core/base/units.h"
#include "core/os/cancel_block.h"
#include "core/paging/transfer_error.h"
#include "core/runtime/inheritance.h"
#include "core/runtime/last_writer.h"
#include "core/runtime/mapper.h"
#include "core/runtime/region_call.h"
#include "core/runtime/runtime_impl.h"
#include "core/store/store_calls.h"

namespace outcore {

using base::kSystemPage;
using base::round_up;
using paging::PageCache;

namespace {

const char* name_of(Access a) {
  return a == Access::kReadOnly ? "read-only" : a == Access::kReadWrite ? "read-write" : "private";
}
const char* name_of(Delivery d) {
  return d == Delivery::kInThread   ? "in-thread"
         : d == Delivery::kMessages ? "messages"
                                    : "mprotect";
}

}  // namespace

namespace runtime {

void publish(const paging::PageCache& cache) {
  published::StoreSlot& slot = *cache.entry;
  slot.page_bytes = cache.page_bytes;
  slot.store_bytes = cache.store_bytes.load();
  slot.is_writable = cache.is_writable.load();
  slot.is_shared = cache.shared != nullptr;
  slot.delivery.set(name_of(cache.delivery));
  slot.frames.set(cache.frames->kind() == FrameKind::kShared ? "shared" : "private");
  slot.uri.set(cache.uri);
  slot.is_described.store(true, std::memory_order_release);
}

RegionMetrics metrics_of(const Region::Impl& region) {
  RegionMetrics m;
  m.uri = region.uri;
  m.address = reinterpret_cast<uint64_t>(region.view->address);
  m.size_bytes = region.view->size_bytes.load();
  m.page_bytes = region.cache->page_bytes;
  m.resident_bytes = region.cache->resident_bytes.load();
  m.access = name_of(region.access);
  m.delivery = name_of(region.cache->delivery);
  m.frames = region.cache->frames->kind() == FrameKind::kShared ? "shared" : "private";
  m.is_degraded = region.cache->is_degraded();
  m.is_unreplicated = region.cache->store.load()->is_unreplicated();
  m.counters = region.cache->counters.sum();
  m.fetches = region.cache->fetches.counts.metrics();
  m.fault_latency = region.cache->counters.fault_latency();
  return m;
}

}  // namespace runtime

using runtime::Call;

Region::Region() = default;
Region::Region(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Region::Region(Region&&) noexcept = default;

Region& Region::operator=(Region&& other) noexcept {
  if (this != &other) {
    Region ended(std::move(*this));
    impl_ = std::move(other.impl_);
  }
  return *this;
}

Region::~Region() {
  const os::CancelBlock uncancelled;
  if (impl_ == nullptr || impl_->view == nullptr) return;
  runtime::Inheritance::forget(*impl_);
  if (!impl_->runtime->check_alive("unmap").ok()) return;
  if (const Status s = unmap(true); !s)
    std::fprintf(stderr, "outcore: unmap lost bytes: %s\n", s.message().c_str());
}

bool Region::is_mapped() const { return impl_ != nullptr && impl_->view != nullptr; }
std::byte* Region::data() const { return is_mapped() ? impl_->view->address : nullptr; }
uint64_t Region::size_bytes() const { return is_mapped() ? impl_->view->size_bytes.load() : 0; }
uint64_t Region::page_bytes() const { return is_mapped() ? impl_->cache->page_bytes : 0; }
Access Region::access() const { return impl_ == nullptr ? Access::kReadOnly : impl_->access; }
Delivery Region::delivery() const { return is_mapped() ? impl_->cache->delivery : Delivery::kAuto; }
FrameKind Region::frames() const {
  return is_mapped() ? impl_->cache->frames->kind() : FrameKind::kAuto;
}
bool Region::is_shared() const { return is_mapped() && impl_->cache->shared != nullptr; }
const std::string& Region::uri() const {
  static const std::string none;
  return impl_ == nullptr ? none : impl_->uri;
}

Status Region::pin(uint64_t offset, uint64_t size_bytes) {
  const Call call(impl_.get(), "pin", offset, size_bytes);
  if (!call.status.ok() || size_bytes == 0) return call.status;
  const os::SignalBlock block;
  return impl_->runtime->engine->pin(*impl_->view, call.from, size_bytes);
}

Status Region::unpin(uint64_t offset, uint64_t size_bytes) {
  const Call call(impl_.get(), "unpin", offset, size_bytes);
  if (!call.status.ok() || size_bytes == 0) return call.status;
  const os::SignalBlock block;
  return impl_->runtime->engine->unpin(*impl_->view, call.from, size_bytes);
}

Status Region::prefetch(uint64_t offset, uint64_t size_bytes) {
  const Call call(impl_.get(), "prefetch", offset, size_bytes);
  if (!call.status.ok()) return call.status;
  const os::SignalBlock block;
  impl_->runtime->engine->prefetch(*impl_->view, call.first, 1, call.end - call.first);
  return {};
}

Status Region::prefetch(std::span<const uint64_t> pages) {
  const Call call(impl_.get(), "prefetch", 0, 0);
  if (!call.status.ok()) return call.status;
  const uint64_t base = impl_->view->first_page(), count = impl_->view->end_page() - base;
  for (const uint64_t page : pages)
    if (page >= count)
      return Error{EINVAL, "prefetch page " + std::to_string(page) + " of " + impl_->uri +
                               ": it has " + std::to_string(count) + " pages"};
  const os::SignalBlock block;
  for (size_t i = 0; i < pages.size();) {  // neighbours in the list are prefetched together
    size_t n = 1;
    while (i + n < pages.size() && pages[i + n] == pages[i] + n) ++n;
    impl_->runtime->engine->prefetch(*impl_->view, base + pages[i], 1, n);
    i += n;
  }
  return {};
}

Status Region::prefault(uint64_t offset, uint64_t size_bytes) {
  const Call call(impl_.get(), "prefault", offset, size_bytes);
  if (!call.status.ok()) return call.status;
  const os::SignalBlock block;
  paging::Engine& engine = *impl_->runtime->engine;
  engine.prefetch(*impl_->view, call.first, 1, call.end - call.first);
  for (uint64_t page = call.first; page < call.end; ++page) {
    const int result = engine.bring_in(*impl_->view, page);
    if (result != 0)
      return paging::transfer_error(*impl_->cache, result,
                                    "prefault page " + std::to_string(page) + " of " + impl_->uri,
                                    paging::WriteStall::remedy(result));
  }
  return {};
}

Status Region::prepare(uint64_t offset, uint64_t size_bytes) {
  const Call call(impl_.get(), "prepare", offset, size_bytes);
  if (!call.status.ok()) return call.status;
  const os::SignalBlock block;
  impl_->runtime->engine->prepare(*impl_->view, call.first, call.end);
  return {};
}

Status Region::advise(uint64_t offset, uint64_t size_bytes, Advice advice) {
  const Call call(impl_.get(), "advise", offset, size_bytes);
  if (!call.status.ok()) return call.status;
  const os::SignalBlock block;
  paging::Engine& engine = *impl_->runtime->engine;
  switch (advice) {
    case Advice::kNormal:
    case Advice::kRandom:
    // These apply to the whole region: readahead follows the reader, not the range.
    case Advice::kSequential:
      impl_->view->advice = advice;
      return {};
    case Advice::kWillNeed:
      engine.prefetch(*impl_->view, call.first, 1, call.end - call.first);
      return {};
    case Advice::kDontNeed:
      return engine.evict(*impl_->cache, call.first, call.end);
    case Advice::kCold:
      engine.make_cold(*impl_->cache, call.first, call.end);
      return {};
  }
  return Error{EINVAL, "advise: unknown advice"};
}

Status Region::flush(uint64_t offset, uint64_t size_bytes) {
  const Call call(impl_.get(), "flush", offset, size_bytes);
  if (!call.status.ok()) return call.status;
  if (impl_->access != Access::kReadWrite) return {};
  const os::SignalBlock block;
  Status s = impl_->runtime->engine->flush(*impl_->cache, call.first, call.end);
  return s.ok() ? runtime::check_committable(*impl_) : s;
}

Status Region::flush() { return flush(0, is_mapped() ? impl_->view->mapped_bytes() : 0); }

Status Region::sync() {
  const os::CancelBlock uncancelled;
  if (Status s = flush(); !s) return s;
  if (impl_->access != Access::kReadWrite) return {};
  const int result = store::sync(*impl_->cache->store.load());
  if (result == 0) return {};
  return paging::transfer_error(*impl_->cache, result, "sync " + impl_->uri);
}

Status Region::discard(uint64_t offset, uint64_t size_bytes) {
  const Call call(impl_.get(), "discard", offset, size_bytes);
  if (!call.status.ok()) return call.status;
  if (impl_->access == Access::kReadOnly)
    return Error{EACCES, "discard in " + impl_->uri + ": the region is read-only"};
  if (offset % kSystemPage != 0 || size_bytes % kSystemPage != 0)
    return Error{EINVAL,
                 "discard in " + impl_->uri + ": offset and size must be multiples of 4096"};
  // Whole pages are discarded; parts of pages at either end are overwritten with zeros.
  const uint64_t page_bytes = impl_->cache->page_bytes, start = impl_->view->offset;
  const uint64_t from = start + offset, to = from + size_bytes;
  // Those that others may just be writing are overwritten, too.
  const bool is_shared = impl_->cache->shared != nullptr;
  const uint64_t first = is_shared ? to : std::min(round_up(from, page_bytes), to),
                 last = std::max(base::round_down(to, page_bytes), first);
  const std::vector<std::byte> zeros(kSystemPage);
  for (const auto& [a, b] : {std::pair{from, first}, std::pair{last, to}})
    for (uint64_t at = a; at < b; at += kSystemPage)
      if (Status s = write(at - start, zeros); !s) return s;
  OC_CHECK(first <= last);
  if (first == last) return {};
  const os::SignalBlock block;
  return impl_->runtime->engine->discard(*impl_->cache, first, last - first);
}

Status Region::grow(uint64_t size_bytes) {
  const os::CancelBlock uncancelled;
  const Call call(impl_.get(), "grow", 0, 0);
  if (!call.status.ok()) return call.status;
  region::View& view = *impl_->view;
  if (impl_->access != Access::kReadWrite)
    return Error{EACCES, "grow " + impl_->uri + ": the region is not read-write"};
  if (size_bytes < view.size_bytes.load() || size_bytes > impl_->reserve_bytes)
    return Error{EINVAL, "grow " + impl_->uri + " to " + std::to_string(size_bytes) +
                             " bytes: from " + std::to_string(view.size_bytes.load()) + " to " +
                             std::to_string(impl_->reserve_bytes) +
                             " (reserve_bytes of the map) will do"};
  const std::lock_guard<std::mutex> guard(impl_->runtime->mapping);
  PageCache& cache = *impl_->cache;
  if (cache.shared != nullptr && view.offset + size_bytes > cache.store_bytes.load())
    return Error{EBUSY, "grow " + impl_->uri + ": others share its pages as they were"};
  Store& store = *cache.store.load();
  const uint64_t store_bytes = view.offset + size_bytes;
  if (store_bytes > store.size_bytes())
    if (const int result = store::resize(store, store_bytes); result != 0)
      return base::system_error(
          result, "grow " + impl_->uri + " to " + std::to_string(store_bytes) + " bytes");
  const os::SignalBlock block;
  return impl_->runtime->engine->extend_view(cache, &view, size_bytes, store_bytes);
}

Status Region::retry_failed() {
  const Call call(impl_.get(), "retry", 0, is_mapped() ? impl_->view->mapped_bytes() : 0);
  if (!call.status.ok()) return call.status;
  const os::SignalBlock block;
  impl_->runtime->engine->retry_failed(*impl_->cache, call.first, call.end);
  return impl_->runtime->engine->retry_zeroed(*impl_->cache, call.first, call.end);
}

RegionMetrics Region::metrics() const {
  return is_mapped() ? runtime::metrics_of(*impl_) : RegionMetrics{};
}

UncountedWaits::UncountedWaits() { paging::CallWait::leave_out_this_thread(true); }
UncountedWaits::~UncountedWaits() { paging::CallWait::leave_out_this_thread(false); }

Status Region::unmap(bool force) {
  const os::CancelBlock uncancelled;
  const Call call(impl_.get(), "unmap", 0, 0);
  if (!call.status.ok()) return call.status;
  return impl_->runtime->mapper->unmap(*impl_, force);
}

}  // namespace outcore
