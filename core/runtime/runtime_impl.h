// Runtime impl: what a runtime and a region consist of. The only place where the rooms of the core
// are put together. Any thread, unless a function says otherwise; not on the fault path.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "core/os/kernel_features.h"
#include "core/paging/engine.h"
#include "core/published/sheet.h"
#include "core/runtime/budget_governor.h"
#include "core/runtime/fault_sources.h"
#include "core/runtime/resolved_options.h"
#include "outcore/runtime.h"

namespace outcore {

namespace runtime {
class LearntStarts;
class Mapper;
class RegionChanges;
class RunRecording;
class Sharing;
}  // namespace runtime

struct Reservation::Impl {
  std::byte* address = nullptr;
  uint64_t size_bytes = 0;
  std::weak_ptr<Runtime::Impl> runtime;
  ~Impl();
};

struct Runtime::Impl : std::enable_shared_from_this<Runtime::Impl> {
  RuntimeOptions given;  // what it was started with
  runtime::ResolvedOptions options;
  os::KernelFeatures kernel;
  const std::unique_ptr<runtime::LearntStarts> learnt;  // it outlives the caches
  std::unique_ptr<runtime::FaultSources> sources;
  std::shared_ptr<published::Sheet> sheet;  // where it counts; it outlives the engine
  std::unique_ptr<paging::Engine> engine;
  const std::unique_ptr<runtime::Sharing> sharing;  // it outlives the caches
  const std::unique_ptr<runtime::RunRecording> recording;
  const std::unique_ptr<runtime::Mapper> mapper;
  const std::unique_ptr<runtime::RegionChanges> changes;  // of regions on lent addresses
  const uint64_t generation;  // of the process: a forked child has another

  // Page caches by the identity of their store. The lock makes mapping and unmapping one at a time.
  std::mutex mapping;
  std::map<std::string, std::unique_ptr<paging::PageCache>> caches;
  // Counters of caches that are gone, and of all that belongs to no cache.
  metrics::CounterBlock& ended() const { return sheet->memory().ended; }
  std::unique_ptr<runtime::BudgetGovernor> governor;  // with budget = auto
  std::vector<Reservation::Impl*> reservations;
  std::vector<Region::Impl*> regions;

  // Makes periodic checkpoints beside the runtime, if the options ask for them (see
  // set_checkpoint_maker). Its destructor waits for a checkpoint that is being made.
  struct Checkpointer {
    virtual ~Checkpointer() = default;
  };
  std::unique_ptr<Checkpointer> checkpointer;
  std::atomic<bool> is_reported{false};  // by metrics_at_exit
  // In place of a parent's, whose regions hold it: it may outlive what the program has of it.
  std::atomic<bool> is_stand_in{false};
  // The runtime of an ancestor in whose place it is in this process; nullptr: of none. That is
  // never freed.
  std::atomic<const Impl*> stands_for{nullptr};

  Impl();
  ~Impl();
  static Result<std::shared_ptr<Impl>> start(const RuntimeOptions& options,
                                             bool has_own_budget_beside = false);

  // Addresses of the program (`outcore run`) over whose mapping a region is put: as many bytes as
  // the options say, perhaps none yet. The store may grow to `room_bytes`. The region does not own
  // the addresses.
  struct Lent {
    std::byte* address = nullptr;
    uint64_t size_bytes = 0;
    uint64_t room_bytes = 0;
    bool may_share = false;   // nobody of this process will write the file
    bool must_share = false;  // in a buffer, or not at all: EBUSY
    // To write, with others who hand it back to the kernel together (buffer::HandingBack): not;
    // perhaps as the first; only if others do.
    enum class Together : uint8_t { kNot, kFirst, kJoined } together = Together::kNot;
  };
  Status check_alive(const std::string& what) const;  // EPERM in a forked child
  static const std::shared_ptr<Impl>& of(const Runtime& runtime) { return runtime.impl_; }
  static Runtime handle_of(std::shared_ptr<Impl> impl) { return Runtime(std::move(impl)); }

 private:
  void publish() const;
  Status start_governor();
};

struct Region::Impl {
  std::shared_ptr<Runtime::Impl> runtime;
  paging::PageCache* cache = nullptr;
  region::View* view = nullptr;
  std::string cache_key;
  std::string uri;
  Access access = Access::kReadOnly;
  uint64_t reserve_bytes = 0;  // addresses that the region owns
  bool is_fixed = false;       // inside a Reservation
  bool is_lent = false;        // the addresses are lent by the program
  bool wants_zeros = false;    // on_error=zero was set for this region itself
  // Of the process whose region it is; in a forked child another one, until the region has become
  // the child's own (Inheritance). The other fields are constant while this is.
  std::atomic<uint32_t> generation{0};
};

// Forked children: see fork.cc.
namespace runtime {
uint64_t process_generation();
RegionMetrics metrics_of(const Region::Impl& region);
// What others may see of the cache beside its counts, as it is now. REQUIRES: the mapping lock.
void publish(const paging::PageCache& cache);
// Checkpoints by the runtime's options are made by a product, which registers here the function
// that starts them (core/base/products.h). They end with the Checkpointer.
using CheckpointMaker = Result<std::unique_ptr<Runtime::Impl::Checkpointer>> (*)(
    const std::shared_ptr<Runtime::Impl>& runtime);
// Opens the pool of checkpoints, and closes it; it is made if it does not exist. Errors: what would
// keep checkpoints from being made there.
using PoolOpener = Status (*)(const std::string& uri);
void set_checkpoint_maker(CheckpointMaker maker, PoolOpener opener);
Status open_pool_once(const std::string& uri);
}  // namespace runtime

}  // namespace outcore
