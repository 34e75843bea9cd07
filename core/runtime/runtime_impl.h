// Runtime impl: the rooms put together. Here and nowhere else.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/os/kernel_features.h"
#include "core/paging/engine.h"
#include "core/runtime/fault_sources.h"
#include "core/runtime/resolved_options.h"
#include "core/runtime/writer_claim.h"
#include "outcore/runtime.h"

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
  // Of those that are mapped for writing, as long as they are there.
  std::map<std::string, runtime::WriterClaim> claims;
  uint64_t nameless = 0;
  metrics::CounterBlock ended;  // of spaces that are gone
  std::vector<Reservation::Impl*> reservations;
  std::vector<Region::Impl*> regions;

  // What goes on beside the runtime. Its end waits for what is under way, but in its own thread.
  struct Checkpointer {
    virtual ~Checkpointer() = default;
  };
  std::unique_ptr<Checkpointer> checkpointer;
  std::atomic<bool> is_reported{false};  // metrics_at_exit

  Impl();
  ~Impl();
  static Result<std::shared_ptr<Impl>> start(const RuntimeOptions& options);

  // Addresses of a door's, over whose mapping a region is put: as many bytes of them as the options
  // say, perhaps none yet. The store may come to have `room_bytes`. They stay the door's.
  struct Lent {
    std::byte* address = nullptr;
    uint64_t size_bytes = 0;
    uint64_t room_bytes = 0;
  };
  Status claim(const Store& store, const std::string& uri);
  Result<std::unique_ptr<Region::Impl>> map(std::shared_ptr<Store> store, const std::string& uri,
                                            const MapOptions& options, const Lent* lent = nullptr);
  Status unmap(Region::Impl& region, bool force);

  // Of regions on lent addresses, while the program goes on (reshape.cc). Each takes the mapping
  // lock, and none may be called from inside another's function.
  // Bytes [from, to) of the region cease to be; what is behind them becomes `right`, or, if they
  // are its first ones, the region itself. `between` unmaps them. Errors: EBUSY (pages would be
  // cut, are pinned or touched all the time), those of a write-back; then nothing has changed.
  Status cut(Region::Impl& region, uint64_t from, uint64_t to, std::unique_ptr<Region::Impl>* right,
             const std::function<void()>& between);
  // The store has `store_bytes` now, and the region shows its first `size_bytes`.
  Status extend(Region::Impl& region, uint64_t size_bytes, uint64_t store_bytes);
  // Ends all regions of a store; `place` maps something else there first.
  Status hand_back(const std::vector<Region::Impl*>& all, const std::function<Status()>& place);
  // Bytes of the store change under `between`: none of them is in memory meanwhile.
  Status hold_out(paging::Space& space, uint64_t offset, uint64_t size_bytes,
                  const std::function<void()>& between);
  // The program may from now on read or write the region, or not; `tell` tells the kernel so.
  Status protect(Region::Impl& region, bool is_readable, bool is_writable,
                 const std::function<Status(bool, bool)>& tell);
  Status check_alive(const std::string& what) const;  // EPERM in a forked child

 private:
  Result<paging::Space*> space_for(std::shared_ptr<Store> store, const std::string& uri,
                                   const MapOptions& options, uint64_t end_bytes,
                                   uint64_t room_bytes, std::string* key);
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
  bool is_lent = false;        // the addresses are a door's
  bool wants_zeros = false;    // on_error=zero was said for this region
};

// Forked children: see fork.cc.
namespace runtime {
uint64_t process_generation();
RegionMetrics metrics_of(const Region::Impl& region);
// Checkpoints by the runtime's options: a product's work, which registers here who begins it
// (core/base/products.h). It goes on until the checkpointer ends.
using CheckpointMaker = Result<std::unique_ptr<Runtime::Impl::Checkpointer>> (*)(
    const std::shared_ptr<Runtime::Impl>& runtime);
void set_checkpoint_maker(CheckpointMaker maker);
}  // namespace runtime

}  // namespace outcore
