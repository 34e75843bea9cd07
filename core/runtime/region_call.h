// RegionCall: what a call on a range of a region checks first. The calls of Region.
#pragma once

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <string>

#include "core/base/assert.h"
#include "core/runtime/inheritance.h"
#include "core/runtime/runtime_impl.h"
#include "outcore/region.h"

namespace outcore::runtime {

// A call on the bytes [offset, offset + size) of a region: checks them, and converts them to pages
// of the cache.
struct Call {
  Status status;
  std::byte* from = nullptr;
  uint64_t first = 0, end = 0;  // pages

  Call(Region::Impl* r, const char* what, uint64_t offset, uint64_t size_bytes) {
    if (r != nullptr && r->generation.load(std::memory_order_acquire) != process_generation())
      Inheritance::attach(*r);
    if (r == nullptr || r->view == nullptr) {
      status = Error{EINVAL, std::string(what) + ": the region is not mapped"};
      return;
    }
    status = r->runtime->check_alive(what);
    if (!status.ok()) return;
    const uint64_t mapped = r->view->mapped_bytes();
    if (offset > mapped || size_bytes > mapped - offset) {
      status =
          Error{EINVAL, std::string(what) + " " + std::to_string(size_bytes) + " bytes at " +
                            std::to_string(offset) + " of " + r->uri + ": the region ends at " +
                            std::to_string(r->view->size_bytes.load())};
      return;
    }
    from = r->view->address + offset;
    first = r->view->page_of(from);
    end = size_bytes == 0 ? first : r->view->page_of(from + size_bytes - 1) + 1;
    OC_CHECK(first <= end);
    OC_ASSERT(end <= r->cache->page_count());
  }
};

}  // namespace outcore::runtime
