// Periodic checkpoints of a runtime: everything that it has mapped for writing.
//
// A region of the pool costs as much as has changed. For any other store the pool has a copy, to
// which the parts are written that have changed according to the cache's log. Long work is done in
// slices, between which the program may map and unmap; during the cut itself it must wait.
#include "checkpoints/capture/of_runtime.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "checkpoints/capture/copies.h"
#include "checkpoints/capture/parts.h"
#include "checkpoints/capture/periodic_thread.h"
#include "core/base/assert.h"
#include "core/base/error.h"
#include "core/store/registry.h"
#include "core/store/signatures.h"

namespace outcore::checkpoints {
namespace {

using paging::PageCache;
using std::chrono::steady_clock;

constexpr auto kSlice = std::chrono::milliseconds(20), kBetween = std::chrono::milliseconds(1);
constexpr uint64_t kFlushBytes = 16 << 20;
constexpr int kTriesMax = 5;
constexpr size_t kNameBytesMax = 255;

// The name of the store's copy.
std::string name_for(const Store& store) {
  std::string name = without_file_scheme(store.uri());
  if (name.empty()) name = "region";
  if (name.size() > kNameBytesMax) {
    const std::string end = name.substr(name.size() - (kNameBytesMax - 24));
    name = std::to_string(std::hash<std::string>()(name)) + " " + end;
  }
  OC_CHECK(!name.empty() && name.size() <= kNameBytesMax);
  return name;
}

class OfRuntime {
 public:
  explicit OfRuntime(const std::shared_ptr<Runtime::Impl>& runtime)
      : runtime_(runtime), pool_uri_(runtime->options.checkpoint_pool) {}

  Status begin() { return pool_uri_ == "none" ? Status() : note_pool(open_own_target()); }
  static Status open_once(const std::string& pool) { return note_pool(open_target(pool).status()); }

  Result<CheckpointReport> make(const std::string& name,
                                std::shared_ptr<CheckpointTarget>* target) {
    const std::shared_ptr<Runtime::Impl> runtime = runtime_.lock();
    if (runtime == nullptr) return CheckpointReport{};
    if (pool_uri_ != "none")
      if (Status s = open_own_target(); !s) return s.error();
    std::vector<PreCopy> all;
    {
      const std::lock_guard<std::mutex> guard(runtime->mapping);
      const Parts parts = gather(*runtime);
      if (parts.caches.empty()) return CheckpointReport{};
      if (Status s = check(parts); !s) return s.error();
      *target = parts.target;
      all = list(*runtime, parts);
    }
    const std::lock_guard<std::mutex> making((*target)->making());
    if (Status s = pre_copy(*runtime, all, **target); !s) return s.error();
    // It must not wait for another cut while it holds the mapping lock: that cut may need the lock.
    for (int tries = 1;; ++tries) {
      const auto made = cut(*runtime, **target, name);
      if (made.code() != EAGAIN || tries == kTriesMax) return made;
      std::this_thread::sleep_for(kSlice);
    }
  }

  // Prints one line for each kind of error.
  void tell(const Status& all) {
    std::string line = left_out_;
    left_out_.clear();
    if (!line.empty()) std::fprintf(stderr, "outcore: checkpoints leave out %s\n", line.c_str());
    if (all.ok())
      told_ = 0;
    else if (all.code() != told_) {
      told_ = all.code();
      std::fprintf(stderr, "outcore: %s\n", all.message().c_str());
    }
  }

 private:
  // EBUSY means to try later: another process has the pool now.
  static Status note_pool(const Status& s) { return s.code() == EBUSY ? Status() : s; }
  Status open_own_target() {
    if (target_ != nullptr) return {};
    auto target = open_target(pool_uri_);
    if (!target) return target.status();
    target_ = std::move(target).value();
    return {};
  }

  Result<CheckpointReport> cut(Runtime::Impl& runtime, const CheckpointTarget& target,
                               const std::string& name) {
    const std::lock_guard<std::mutex> guard(runtime.mapping);
    Parts parts = gather(runtime);
    if (parts.caches.empty() || parts.target == nullptr || !parts.target->is_same(target))
      return CheckpointReport{};
    if (Status s = check(parts); !s) return s.error();
    parts.may_wait = false;
    return checkpoints::make(name, parts, {});
  }

  Status check(const Parts& parts) const {
    if (parts.target == nullptr)
      return Error{EINVAL,
                   "make checkpoints: no region is of a versioned: pool or an rbd:// image: say "
                   "checkpoint_pool=versioned:FOLDER (OUTCORE_CHECKPOINT_POOL)"};
    if (has_heap_)
      return Error{
          EBUSY,
          "make checkpoints: a persistent heap lies in the same pool, and would be in them "
          "as it is between two of its calls: use PeriodicCheckpoints with a quiesce "
          "function, or another checkpoint_pool"};
    return {};
  }

  // REQUIRES: the mapping lock is held.
  Parts gather(Runtime::Impl& runtime) {
    Parts parts;
    parts.runtime = runtime.shared_from_this();
    std::vector<PageCache*> held, heaps;
    for (const auto& [key, cache] : runtime.caches) {
      if (!cache->is_writable || cache->is_handed_to_kernel.load()) continue;
      Store& store = *cache->store.load();
      if (key.starts_with("private ")) continue;  // changes that the program wants to be gone
      if (cache->is_of_addresses || store::dies_with_process(store.uri())) {
        leave_out(store, "its addresses end with the process");
        continue;
      }
      if (store::has_signature(store)) {
        heaps.push_back(cache.get());
        leave_out(store, "a heap is a part of PeriodicCheckpoints, with a quiesce function");
        continue;
      }
      held.push_back(cache.get());
    }
    // The first anchor stays the anchor as long as it is mapped, so that its series of checkpoints
    // goes on.
    std::stable_partition(held.begin(), held.end(), [&](const PageCache* cache) {
      return cache->store.load()->identity() == anchor_;
    });
    parts.target = target_;
    if (target_ == nullptr)
      if (auto target = target_of(std::vector<const PageCache*>(held.begin(), held.end())))
        parts.target = std::move(target).value();
    if (parts.target != nullptr && anchor_.empty())
      for (const PageCache* cache : held)
        if (anchor_.empty() && parts.target->has(*cache->store.load()))
          anchor_ = cache->store.load()->identity();
    const auto is_of_target = [&](const PageCache* cache) {
      return parts.target != nullptr && parts.target->has(*cache->store.load());
    };
    has_heap_ = parts.target != nullptr && parts.target->commits_all() &&
                std::any_of(heaps.begin(), heaps.end(), is_of_target);
    std::set<std::string> names;
    std::vector<PageCache*> foreign;
    for (PageCache* cache : held) {
      if (!is_of_target(cache)) {
        foreign.push_back(cache);
        continue;
      }
      Store& store = *cache->store.load();
      std::string name = parts.target->object_of(store);
      if (!names.insert(name).second) names.insert(name = store.uri());  // of another Ceph pool
      parts.caches.push_back(cache);
      parts.members.push_back({name, &store});
    }
    for (PageCache* cache : foreign) {
      std::string name = name_for(*cache->store.load());
      for (int n = 2; !names.insert(name).second; ++n)
        name =
            name_for(*cache->store.load()).substr(0, kNameBytesMax - 8) + " " + std::to_string(n);
      parts.caches.push_back(cache);
      parts.foreign.push_back({name, cache, cache->uri});
    }
    return parts;
  }

  void leave_out(Store& store, const std::string& why) {
    if (!known_.insert(store.uri()).second) return;
    left_out_ += (left_out_.empty() ? "" : "; ") + store.uri() + " (" + why + ")";
  }

  // A page cache whose dirty pages are written, or copied into the pool, before the cut.
  struct PreCopy {
    std::string key;
    PageCache* cache = nullptr;
    std::string copy;  // the object's name; empty: the store belongs to the pool
  };

  // REQUIRES: the mapping lock is held.
  static std::vector<PreCopy> list(const Runtime::Impl& runtime, const Parts& parts) {
    std::vector<PreCopy> all;
    for (const auto& [key, cache] : runtime.caches) {
      if (std::find(parts.caches.begin(), parts.caches.end(), cache.get()) == parts.caches.end())
        continue;
      all.push_back({key, cache.get(), {}});
      for (const Foreign& part : parts.foreign)
        if (part.cache == cache.get()) all.back().copy = part.name;
    }
    return all;
  }

  // Writes most of the dirty pages to the stores, and copies most of what has changed there into
  // the pool, while the program goes on and may map and unmap.
  static Status pre_copy(Runtime::Impl& runtime, const std::vector<PreCopy>& all,
                         CheckpointTarget& target) {
    for (const PreCopy& one : all) {
      if (Status s = flush_in_slices(runtime, one); !s) return s;
      if (one.copy.empty()) continue;
      if (Status s = copy_in_slices(runtime, one, target); !s) return s;
    }
    return target.sync_copies();  // no commit: the copies are not of one moment
  }

  // Locks the mapping lock, if the cache still exists; otherwise returns no lock.
  static std::unique_lock<std::mutex> slice(Runtime::Impl& runtime, const PreCopy& one) {
    std::this_thread::sleep_for(kBetween);  // so that whoever waits for the lock gets it
    std::unique_lock<std::mutex> guard(runtime.mapping);
    const auto found = runtime.caches.find(one.key);
    if (found == runtime.caches.end() || found->second.get() != one.cache) guard.unlock();
    return guard;
  }

  static Status flush_in_slices(Runtime::Impl& runtime, const PreCopy& one) {
    OC_CHECK(one.cache != nullptr);
    const os::SignalBlock block;
    Status s;
    for (uint64_t page = 0, end = 1; page < end && s.ok();) {
      const auto guard = slice(runtime, one);
      if (!guard.owns_lock()) return {};
      end = one.cache->stored_pages();
      const uint64_t at_once = std::max<uint64_t>(kFlushBytes / one.cache->page_bytes, 1);
      const auto until = steady_clock::now() + kSlice;
      for (; page < end && s.ok() && steady_clock::now() < until; page += at_once)
        s = runtime.engine->flush_aside(*one.cache, page, std::min(page + at_once, end));
    }
    return s;
  }

  // Copies as much as has changed now, and no more: if a store is written faster than it is copied,
  // the cut copies the rest.
  static Status copy_in_slices(Runtime::Impl& runtime, const PreCopy& one,
                               CheckpointTarget& target) {
    for (uint64_t copied = 0;;) {
      const auto guard = slice(runtime, one);
      if (!guard.owns_lock()) return {};
      Store& store = *one.cache->store.load();
      OC_CHECK(!one.copy.empty());
      const auto copy = target.copy_for(one.copy, store.size_bytes());
      if (!copy) return copy.status();
      uint64_t written = 0;
      const auto until = steady_clock::now() + kSlice;
      const auto is_done =
          copy_store(copy.value(), store, *one.cache->changes.load(), &written, [&] {
            copied += kPieceBytes;
            return steady_clock::now() < until;
          });
      if (!is_done || is_done.value() || copied >= copy->store->size_bytes())
        return is_done.status();
    }
  }

  const std::weak_ptr<Runtime::Impl> runtime_;
  const std::string pool_uri_;
  std::shared_ptr<CheckpointTarget> target_;  // the one that the option names
  std::string anchor_;                        // the identity of the store that is the anchor
  std::set<std::string> known_;
  std::string left_out_;
  bool has_heap_ = false;  // a heap that lies in the pool was left out
  int told_ = 0;
};

struct RuntimeCheckpointer : Runtime::Impl::Checkpointer {
  std::unique_ptr<PeriodicThread> thread;
};

Result<std::unique_ptr<Runtime::Impl::Checkpointer>> start(
    const std::shared_ptr<Runtime::Impl>& runtime) {
  const auto of = std::make_shared<OfRuntime>(runtime);
  if (Status s = of->begin(); !s) return s.error();
  PeriodicThread::Plan plan;
  plan.every_ms = runtime->options.checkpoint_every_ms;
  plan.keep.last = runtime->options.checkpoint_keep;
  plan.name = "periodic";
  plan.make = [of](const std::string& name, std::shared_ptr<CheckpointTarget>* target) {
    return of->make(name, target);
  };
  plan.told = [of](const Result<CheckpointReport>&, const Status& all) { of->tell(all); };
  auto checkpointer = std::make_unique<RuntimeCheckpointer>();
  auto thread = PeriodicThread::start("make checkpoints", std::move(plan));
  if (!thread) return thread.error();
  checkpointer->thread = std::move(thread).value();
  return std::unique_ptr<Runtime::Impl::Checkpointer>(std::move(checkpointer));
}

}  // namespace

void make_those_of_runtimes() { runtime::set_checkpoint_maker(start, OfRuntime::open_once); }

}  // namespace outcore::checkpoints
