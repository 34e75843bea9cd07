// Runtime impl: the rooms put together. Here and nowhere else.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "os/kernel_features.h"
#include "outcore/runtime.h"
#include "paging/engine.h"
#include "runtime/fault_sources.h"
#include "runtime/resolved_options.h"

namespace outcore {

struct Reservation::Impl {
  std::byte* address = nullptr;
  uint64_t size_bytes = 0;
  std::weak_ptr<Runtime::Impl> runtime;
  ~Impl();
};

struct Runtime::Impl : std::enable_shared_from_this<Runtime::Impl> {
  runtime::ResolvedOptions options;
  os::KernelFeatures kernel;
  std::unique_ptr<runtime::FaultSources> sources;
  std::unique_ptr<paging::Engine> engine;
  const uint64_t generation;  // of the process: a forked child has another

  // Spaces by the identity of their store; mapping and unmapping are one at a time.
  std::mutex mapping;
  std::map<std::string, std::unique_ptr<paging::Space>> spaces;
  uint64_t nameless = 0;
  metrics::CounterBlock ended;  // of spaces that are gone
  std::vector<Reservation::Impl*> reservations;
  std::vector<Region::Impl*> regions;

  Impl();
  ~Impl();

  Result<std::unique_ptr<Region::Impl>> map(std::shared_ptr<Store> store, const std::string& uri,
                                            const MapOptions& options);
  Status unmap(Region::Impl& region, bool force);
  Status check_alive(const std::string& what) const;  // EPERM in a forked child

 private:
  Result<paging::Space*> space_for(std::shared_ptr<Store> store, const std::string& uri,
                                   const MapOptions& options, uint64_t end_bytes, std::string* key);
  Status join(paging::Space& space, const std::shared_ptr<Store>& store, const MapOptions& options,
              uint64_t page_bytes);
  Status share_frames(paging::Space& space) const;
  Status make_frames(paging::Space& space, const runtime::Mechanism& mechanism) const;
  Result<std::byte*> place(const MapOptions& options, uint64_t reserve_bytes, uint64_t page_bytes);
  void give_place_back(const Region::Impl& region);
  void drop_space(const std::string& key);
};

struct Region::Impl {
  std::shared_ptr<Runtime::Impl> runtime;
  paging::Space* space = nullptr;
  region::View* view = nullptr;
  std::string space_key;
  std::string uri;
  Access access = Access::kReadOnly;
  uint64_t reserve_bytes = 0;  // address space that is ours
  bool is_fixed = false;       // inside a Reservation
};

// Forked children: see fork.cc.
namespace runtime {
uint64_t process_generation();
RegionMetrics metrics_of(const Region::Impl& region);
}  // namespace runtime

}  // namespace outcore
