// Region: copies between it and ordinary memory.
#include <algorithm>
#include <cstring>

#include "core/base/assert.h"
#include "core/base/units.h"
#include "core/os/wait.h"
#include "core/paging/transfer_error.h"
#include "core/runtime/region_call.h"
#include "core/runtime/runtime_impl.h"
#include "outcore/region.h"

namespace outcore {

using base::kSystemPage;
using runtime::Call;

namespace {

// What a call copies is brought in by transfers of many pages, a part at a time: page by page each
// would wait for one of its own.
class Ahead {
 public:
  Ahead(Region::Impl& region, const Call& call)
      : region_(region), next_(call.first), end_(call.end) {}

  // Before the bytes at `at` are copied.
  void reach(const std::byte* at) {
    const uint64_t page = region_.view->page_of(at);
    if (page < next_ || page + 1 >= end_) return;  // the last one alone comes in as it is copied
    const os::SignalBlock block;
    next_ = region_.runtime->engine->bring_in_for_call(*region_.view, page, end_);
    OC_CHECK(next_ > page);
  }

 private:
  Region::Impl& region_;
  uint64_t next_, end_;
};

// Copies through a buffer of our own while the page is pinned, because the caller's memory may be
// managed, too.
Status copy_held(Region::Impl& r, std::byte* at, std::byte* buffer, uint64_t size_bytes,
                 bool is_write) {
  const uint64_t page = r.view->page_of(at);
  OC_CHECK(r.view->contains(at));
  OC_CHECK(size_bytes <= kSystemPage);
  paging::Engine& engine = *r.runtime->engine;
  const os::SignalBlock block;
  if (const int result = engine.pin_page(*r.view, page, at, is_write); result != 0)
    return paging::transfer_error(
        *r.cache, result,
        std::string(is_write ? "write" : "read") + " page " + std::to_string(page) + " of " + r.uri,
        paging::WriteStall::remedy(result));
  if (is_write)
    std::memcpy(at, buffer, size_bytes);
  else
    std::memcpy(buffer, at, size_bytes);
  engine.unpin_page(*r.cache, page);
  return {};
}

}  // namespace

Status Region::read(uint64_t offset, std::span<std::byte> into) const {
  const Call call(impl_.get(), "read", offset, into.size());
  if (!call.status.ok()) return call.status;
  std::byte buffer[kSystemPage];
  Ahead ahead(*impl_, call);
  for (size_t done = 0; done < into.size();) {
    std::byte* at = call.from + done;
    ahead.reach(at);
    const size_t n = std::min<size_t>(into.size() - done,
                                      kSystemPage - reinterpret_cast<uint64_t>(at) % kSystemPage);
    if (Status s = copy_held(*impl_, at, buffer, n, false); !s) return s;
    std::memcpy(into.data() + done, buffer, n);
    done += n;
  }
  return {};
}

Status Region::write(uint64_t offset, std::span<const std::byte> from) {
  const Call call(impl_.get(), "write", offset, from.size());
  if (!call.status.ok()) return call.status;
  if (impl_->access == Access::kReadOnly)
    return Error{EACCES, "write to " + impl_->uri + ": the region is read-only"};
  std::byte buffer[kSystemPage];
  Ahead ahead(*impl_, call);
  for (size_t done = 0; done < from.size();) {
    std::byte* at = call.from + done;
    ahead.reach(at);
    const size_t n = std::min<size_t>(from.size() - done,
                                      kSystemPage - reinterpret_cast<uint64_t>(at) % kSystemPage);
    std::memcpy(buffer, from.data() + done, n);
    if (Status s = copy_held(*impl_, at, buffer, n, true); !s) return s;
    done += n;
  }
  return {};
}

}  // namespace outcore
