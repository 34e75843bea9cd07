// Session: the regions of umap() in this process, and the one runtime that they share.
//
// The runtime starts with the first region and ends with the last. Any thread. No lock is held
// while a region is mapped, called or ended, because its store may be the program's: RegionTable
// keeps a region alive while it is called. Settings have no lock of the session, because a store of
// the program may ask for them at any time.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "outcore/runtime.h"
#include "umap/session/claims.h"
#include "umap/session/map_request.h"
#include "umap/session/region_table.h"
#include "umap/session/shared_runtime.h"
#include "umap/settings/settings.h"

namespace outcore::umapped {

class Session {
 public:
  explicit Session(Settings& settings);

  // That of this process. A forked child has one of its own, without its parent's regions.
  static Session& of_process();

  // Errors: see outcore/umap.h.
  Result<std::byte*> map(const MapRequest& request);
  Status unmap(const std::byte* address);
  Status flush();
  Status prefetch(std::span<const std::byte* const> pages);
  Status pin(const std::byte* address, uint64_t size_bytes);

  // The budget with which the runtime was started, or would start now. Takes no lock.
  uint64_t budget_bytes() const { return runtime_.budget_bytes(); }
  // Called within exit(): writes back regions of files. The regions stay, as other threads may use
  // them. Failures are printed on stderr.
  void flush_at_exit();

 private:
  Status claim_pages(const MapRequest& request, MappedRegion* mapped);
  Result<bool> place(const MapRequest& request, const std::shared_ptr<Store>& store,
                     const MapOptions& options, MappedRegion* mapped);
  Status end(std::unique_ptr<MappedRegion> leaving);

  Settings& settings_;
  const uint32_t generation_;  // of processes
  SharedRuntime runtime_;
  Claims claims_;
  RegionTable table_;
};

}  // namespace outcore::umapped
