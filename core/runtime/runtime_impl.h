// Runtime impl: what a runtime and a region consist of. The only place where the rooms of the core
// are put together. Any thread, unless a function says otherwise; not on the fault path.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/base/function_ref.h"
#include "core/buffer/buffer.h"
#include "core/os/kernel_features.h"
#include "core/paging/engine.h"
#include "core/published/sheet.h"
#include "core/recording/recorder.h"
#include "core/runtime/budget_governor.h"
#include "core/runtime/fault_sources.h"
#include "core/runtime/learner.h"
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
  RuntimeOptions given;  // what it was started with
  runtime::ResolvedOptions options;
  os::KernelFeatures kernel;
  // They outlive the caches, which note in their logs.
  std::vector<std::unique_ptr<runtime::Learner>> learners;
  std::unique_ptr<runtime::FaultSources> sources;
  std::shared_ptr<published::Sheet> sheet;  // where it counts; it outlives the engine
  std::unique_ptr<paging::Engine> engine;
  // With the option `buffer`. It outlives the caches.
  std::shared_ptr<buffer::Buffer> shared_buffer;
  // The buffer is for what is shared alone: other pages have the budget beside it.
  bool has_own_budget_beside = false;
  uint64_t private_bytes = 0;       // what this runtime has of the buffer's limit for itself
  bool has_private_memory = false;  // also for pages that are not shared
  const uint64_t generation;        // of the process: a forked child has another

  // Page caches by the identity of their store. The lock makes mapping and unmapping one at a time.
  std::mutex mapping;
  std::map<std::string, std::unique_ptr<paging::PageCache>> caches;
  // Of the stores that are mapped for writing, as long as they are.
  std::map<std::string, runtime::WriterClaim> claims;
  uint64_t nameless = 0;
  // Counters of caches that are gone, and of what is no cache's.
  metrics::CounterBlock& ended() const { return sheet->memory().ended; }
  std::unique_ptr<runtime::BudgetGovernor> governor;  // with budget = auto
  // Not nullptr: it is being recorded. Changes under the mapping lock.
  std::unique_ptr<recording::Recorder> recorder;
  std::string record_path;           // constant once started
  bool is_recorded_to_file = false;  // by the option `report`, until the end; constant once started
  std::vector<Reservation::Impl*> reservations;
  std::vector<Region::Impl*> regions;

  // Makes periodic checkpoints beside the runtime, if the options ask for them (see
  // set_checkpoint_maker). Its destructor waits for a checkpoint that is being made.
  struct Checkpointer {
    virtual ~Checkpointer() = default;
  };
  std::unique_ptr<Checkpointer> checkpointer;
  std::atomic<bool> is_reported{false};  // by metrics_at_exit
  std::atomic<bool> is_recorded{false};  // its record is written, or being written

  // Profiles of learnt starts (learning.cc).
  bool learns_by_option = false;  // the first learner is the option's; constant once it has started
  // Of which the option's profile brings something in. Any thread, without the lock.
  std::atomic<uint64_t> replayed_files{0};
  std::atomic<bool> keeps_learnt_at_exit{false};

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
  };
  Status claim(const Store& store, const std::string& uri);
  Result<std::unique_ptr<Region::Impl>> map(std::shared_ptr<Store> store, const std::string& uri,
                                            const MapOptions& options, const Lent* lent = nullptr);
  Status unmap(Region::Impl& region, bool force);

  // Functions for regions on lent addresses, while the program runs (reshape.cc). Each takes the
  // mapping lock; none may be called from inside another's callback.
  // Removes the bytes [from, to) of the region; the part behind them becomes `right`, or, if they
  // are the first bytes, the region itself. `between` unmaps them. Errors: EBUSY (a page would be
  // cut, is pinned, or is touched all the time), those of a write-back; after an error nothing has
  // changed.
  Status cut(Region::Impl& region, uint64_t from, uint64_t to, std::unique_ptr<Region::Impl>* right,
             const std::function<void()>& between);
  // The store now has `store_bytes`, and the region shows its first `size_bytes`.
  Status extend(Region::Impl& region, uint64_t size_bytes, uint64_t store_bytes);
  // Ends all regions of a store; `place` maps something else over them first.
  Status hand_back(const std::vector<Region::Impl*>& all, const std::function<Status()>& place);
  // Runs `between`, which changes bytes of the store, while none of them is in memory.
  Status with_blocked_range(paging::PageCache& cache, uint64_t offset, uint64_t size_bytes,
                            base::FunctionRef<void()> between);
  // Runs `change`, which changes bytes of the store: what is in memory has them afterwards. Errors:
  // as Overwriter::overwrite.
  Status overwrite(paging::PageCache& cache, uint64_t offset, uint64_t size_bytes,
                   base::FunctionRef<void()> change);
  // Changes whether the program may read or write the region; the function does so in the kernel.
  Status protect(Region::Impl& region, bool is_readable, bool is_writable,
                 const std::function<Status(bool, bool)>& protect_in_kernel);
  // Records of the run: recording.cc. Takes the mapping lock. EBUSY: it is recorded already.
  Status record();
  // Ends the recording: the record, as one line. Once.
  std::string record_of(recording::Recorder& of, const Metrics& metrics) const;
  Status check_alive(const std::string& what) const;  // EPERM in a forked child
  // EBUSY: others write it in the buffer, with the size that it has.
  Status may_resize(const Store& store, uint64_t bytes) const;
  Status may_resize(const std::string& uri, uint64_t bytes) const;

  // Learnt starts: learning.cc. Brings in ahead what the profile has of the bytes [from, to) of the
  // region's store, and records from now on. REQUIRES: the mapping lock. Errors: see Region::learn.
  Status learn(Region::Impl& region, const std::string& profile, uint64_t from, uint64_t to);
  // What is wrong with the profile of the option `learn`; empty: nothing, or there is none.
  std::string learn_complaint();
  // Adds to the profiles what was learnt since that was last done; with `may_wait` false it does
  // not wait long for who maps or unmaps. Takes the mapping lock, not for the files. Errors: those
  // of the files; EAGAIN (at another time it may do).
  Status keep_learnt(bool may_wait);

 private:
  void publish() const;
  void start_learning();
  void learn_by_option(Region::Impl& region);
  void count_replayed_files();
  void end_learning(const paging::PageCache& cache);
  Status start_governor();
  Status start_recording();
  // Pages in a buffer: sharing.cc.
  Status join_buffer();
  uint64_t pages_bytes() const;  // for pages that are no buffer's
  budget::BouncePool::Shape buffer_bounce() const;
  bool can_share(const paging::PageCache& cache, const MapOptions& options, const Lent* lent) const;
  Status share(paging::PageCache& cache, const runtime::Mechanism& mechanism,
               uint64_t pages_least) const;
  // Whether it is shared now. An error: it must not be mapped otherwise.
  Result<bool> try_to_share(paging::PageCache& cache, const MapOptions& options, const Lent* lent,
                            const runtime::Mechanism& mechanism) const;
  // Whether another view, of this store, may be added.
  static Status may_join_shared(const paging::PageCache& cache, const Store& store,
                                const MapOptions& options);
  void leave_shared(paging::PageCache& cache) const;
  Status enlarge(Store& store, const std::string& uri, const MapOptions& options) const;
  Status acquire_private_memory();
  Result<paging::PageCache*> cache_for(std::shared_ptr<Store> store, const std::string& uri,
                                       const MapOptions& options, uint64_t end_bytes,
                                       const Lent* lent, std::string* key);
  Result<std::unique_ptr<paging::PageCache>> make_cache(std::shared_ptr<Store> store,
                                                        const std::string& uri,
                                                        const MapOptions& options,
                                                        uint64_t end_bytes, const Lent* lent);
  Status join(paging::PageCache& cache, const std::shared_ptr<Store>& store,
              const MapOptions& options, uint64_t page_bytes);
  Status share_frames(paging::PageCache& cache) const;
  static void set_delivery(paging::PageCache& cache, Delivery delivery);
  Status make_frames(paging::PageCache& cache, const runtime::Mechanism& mechanism) const;
  Result<std::byte*> place(const MapOptions& options, uint64_t reserve_bytes, uint64_t page_bytes);
  void release_place(const Region::Impl& region);
  void drop_cache(const std::string& key);
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
