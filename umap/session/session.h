// Session: the regions of umap() in this process, and the one runtime that they share.
//
// The runtime starts with the first region and ends with the last. Any thread. The lock is held
// alone while regions are mapped and unmapped, and shared while they are used, so that none ends
// meanwhile; Settings are outside of it, as a store of the program may ask for them at any time.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <shared_mutex>
#include <span>
#include <string>

#include "outcore/runtime.h"
#include "umap/session/map_request.h"
#include "umap/settings/settings.h"

namespace outcore::umapped {

class Session {
 public:
  explicit Session(Settings& settings);

  // That of this process. A forked child has one of its own, without its parent's regions.
  static Session& of_process();

  // The errors of these are those that outcore/umap.h tells.
  Result<std::byte*> map(const MapRequest& request);
  Status unmap(const std::byte* address);
  Status flush();
  Status prefetch(std::span<const std::byte* const> pages);
  Status pin(const std::byte* address, uint64_t size_bytes);

  // The budget with which the runtime was started, or would start now. Takes no lock.
  uint64_t budget_bytes() const;
  // exit() has been called: regions of files are written back, unless a thread that still maps or
  // unmaps one has the lock for seconds. The regions stay, as other threads may use them.
  void flush_at_exit();

 private:
  struct Mapped {
    Reservation reservation;  // ends after the region, if the program chose the address
    Region region;
    bool has_own_store = false;  // of the program
  };
  using Regions = std::map<const std::byte*, std::unique_ptr<Mapped>>;

  Status start_runtime();
  Result<Reservation> reserve(const MapRequest& request);
  Result<Region> map_best(const std::shared_ptr<Store>& store, MapOptions options);
  Status flush_regions(bool with_own_stores);
  // The region that has the address; nullptr: none. REQUIRES: the lock.
  Mapped* find(const std::byte* address) const;
  void end_if_unused();

  Settings& settings_;
  const uint32_t generation_;  // of processes
  mutable std::shared_timed_mutex lock_;
  std::optional<Runtime> runtime_;
  bool is_delivery_set_ = false;                   // by an option of Outcore's
  std::atomic<uint64_t> running_budget_bytes_{0};  // 0: no runtime
  Regions regions_;                                // by first byte
};

}  // namespace outcore::umapped
