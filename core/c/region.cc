// Mapping, and the functions for regions, of the C API. See outcore.h.
#include "outcore/region.h"

#include <memory>
#include <span>

#include "core/c/handles.h"
#include "core/c/options.h"
#include "core/c/outcome.h"
#include "outcore/outcore.h"

using outcore::Access;
using outcore::Advice;
using outcore::MapOptions;
using outcore::Region;
using outcore::Result;
using outcore::Status;
using namespace outcore::c;

namespace {

int no_region(const char* function) { return fail_null(function, "region"); }

// Maps with `map`, and makes a handle that is registered with its runtime.
template <typename Map>
int map_by(oc_runtime* runtime, const oc_map_options* options, oc_region** region, Map&& map) {
  MapOptions taken;
  if (const Status status = take_options(options, &taken); !status) return outcome(status);
  auto handle = std::make_unique<oc_region>();
  Result<Region> mapped = map(taken);
  if (!mapped) return outcome(mapped.error());
  handle->owner = runtime;
  handle->region = std::move(mapped).value();
  handle->address = reinterpret_cast<uintptr_t>(handle->region.data());
  const outcore::os::Locked locked(runtime->mutex);
  runtime->regions.push_back(handle.get());
  *region = handle.release();
  return 0;
}

}  // namespace

int oc_map(oc_runtime* runtime, const char* uri, const oc_map_options* options,
           oc_region** region) {
  if (region == nullptr) return fail_null("oc_map", "region");
  *region = nullptr;
  if (runtime == nullptr) return fail_null("oc_map", "runtime");
  if (uri == nullptr) return fail_null("oc_map", "uri");
  return guarded("oc_map", [&] {
    return map_by(runtime, options, region,
                  [&](const MapOptions& taken) { return runtime->runtime.map(uri, taken); });
  });
}

int oc_map_store(oc_runtime* runtime, oc_store* store, const oc_map_options* options,
                 oc_region** region) {
  if (region == nullptr) return fail_null("oc_map_store", "region");
  *region = nullptr;
  if (runtime == nullptr) return fail_null("oc_map_store", "runtime");
  if (store == nullptr) return fail_null("oc_map_store", "store");
  return guarded("oc_map_store", [&] {
    return map_by(runtime, options, region, [&](const MapOptions& taken) -> Result<Region> {
      if (taken.access == Access::kReadWrite && !store->is_writable)
        return outcore::Error{EACCES, "map " + store->store->uri() +
                                          " read-write: its oc_store_calls have no write; use "
                                          "OC_READ_ONLY or OC_PRIVATE"};
      return runtime->runtime.map(store->store, taken);
    });
  });
}

int oc_unmap(oc_region* region, int force) {
  if (region == nullptr) return no_region("oc_unmap");
  return guarded("oc_unmap", [&] {
    oc_runtime& owner = *region->owner;
    const Status status = region->region.unmap(force != 0);
    // A forked child has nothing to unmap; with force the handle is freed anyway.
    if (!status.ok() && force == 0) return outcome(status);
    {
      const outcore::os::Locked locked(owner.mutex);
      std::erase(owner.regions, region);
    }
    delete region;
    return outcome(status);
  });
}

void* oc_data(const oc_region* region) {
  return region == nullptr ? nullptr : region->region.data();
}

uint64_t oc_size(const oc_region* region) {
  return region == nullptr ? 0 : region->region.size_bytes();
}

uint64_t oc_page_size(const oc_region* region) {
  return region == nullptr ? 0 : region->region.page_bytes();
}

const char* oc_uri(const oc_region* region) {
  return region == nullptr ? "" : region->region.uri().c_str();
}

uint32_t oc_access_of(const oc_region* region) {
  return region == nullptr ? 0 : static_cast<uint32_t>(region->region.access());
}

uint32_t oc_delivery_of(const oc_region* region) {
  return region == nullptr ? 0 : static_cast<uint32_t>(region->region.delivery()) + 1;
}

uint32_t oc_frames_of(const oc_region* region) {
  return region == nullptr ? 0 : static_cast<uint32_t>(region->region.frames()) + 1;
}

int oc_pin(oc_region* region, uint64_t offset, uint64_t size_bytes) {
  if (region == nullptr) return no_region("oc_pin");
  return guarded("oc_pin", [&] { return outcome(region->region.pin(offset, size_bytes)); });
}

int oc_unpin(oc_region* region, uint64_t offset, uint64_t size_bytes) {
  if (region == nullptr) return no_region("oc_unpin");
  return guarded("oc_unpin", [&] { return outcome(region->region.unpin(offset, size_bytes)); });
}

int oc_prefetch(oc_region* region, uint64_t offset, uint64_t size_bytes) {
  if (region == nullptr) return no_region("oc_prefetch");
  return guarded("oc_prefetch",
                 [&] { return outcome(region->region.prefetch(offset, size_bytes)); });
}

int oc_prefetch_list(oc_region* region, const uint64_t* pages, size_t count) {
  if (region == nullptr) return no_region("oc_prefetch_list");
  if (pages == nullptr && count > 0) return fail_null("oc_prefetch_list", "pages");
  return guarded("oc_prefetch_list",
                 [&] { return outcome(region->region.prefetch(std::span(pages, count))); });
}

int oc_prefault(oc_region* region, uint64_t offset, uint64_t size_bytes) {
  if (region == nullptr) return no_region("oc_prefault");
  return guarded("oc_prefault",
                 [&] { return outcome(region->region.prefault(offset, size_bytes)); });
}

int oc_advise(oc_region* region, uint64_t offset, uint64_t size_bytes, uint32_t advice) {
  if (region == nullptr) return no_region("oc_advise");
  return guarded("oc_advise", [&] {
    Advice taken;
    if (const Status status = take_advice(advice, &taken); !status)
      return fail(status.code(), "oc_advise: " + status.message());
    return outcome(region->region.advise(offset, size_bytes, taken));
  });
}

int oc_flush(oc_region* region) {
  if (region == nullptr) return no_region("oc_flush");
  return guarded("oc_flush", [&] { return outcome(region->region.flush()); });
}

int oc_flush_range(oc_region* region, uint64_t offset, uint64_t size_bytes) {
  if (region == nullptr) return no_region("oc_flush_range");
  return guarded("oc_flush_range",
                 [&] { return outcome(region->region.flush(offset, size_bytes)); });
}

int oc_sync(oc_region* region) {
  if (region == nullptr) return no_region("oc_sync");
  return guarded("oc_sync", [&] { return outcome(region->region.sync()); });
}

int oc_discard(oc_region* region, uint64_t offset, uint64_t size_bytes) {
  if (region == nullptr) return no_region("oc_discard");
  return guarded("oc_discard", [&] { return outcome(region->region.discard(offset, size_bytes)); });
}

int oc_grow(oc_region* region, uint64_t size_bytes) {
  if (region == nullptr) return no_region("oc_grow");
  return guarded("oc_grow", [&] { return outcome(region->region.grow(size_bytes)); });
}

int oc_read(const oc_region* region, uint64_t offset, void* into, size_t size_bytes) {
  if (region == nullptr) return no_region("oc_read");
  if (into == nullptr && size_bytes > 0) return fail_null("oc_read", "into");
  return guarded("oc_read", [&] {
    return outcome(region->region.read(offset, {static_cast<std::byte*>(into), size_bytes}));
  });
}

int oc_write(oc_region* region, uint64_t offset, const void* from, size_t size_bytes) {
  if (region == nullptr) return no_region("oc_write");
  if (from == nullptr && size_bytes > 0) return fail_null("oc_write", "from");
  return guarded("oc_write", [&] {
    return outcome(region->region.write(offset, {static_cast<const std::byte*>(from), size_bytes}));
  });
}

int oc_retry_failed(oc_region* region) {
  if (region == nullptr) return no_region("oc_retry_failed");
  return guarded("oc_retry_failed", [&] { return outcome(region->region.retry_failed()); });
}
