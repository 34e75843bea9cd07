// Checkpoints by a runtime's own options: of everything that it has mapped for writing.
//
// A region of the pool costs what changed. Of any other store the pool keeps a copy, of which the
// parts are written that the space's log says have changed. What is long is done in slices, between
// which the program may map and unmap; the cut itself holds them off.
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "base/error.h"
#include "checkpoints/copies.h"
#include "checkpoints/parts.h"
#include "checkpoints/periodic_thread.h"
#include "heap/persistent_format.h"
#include "store/registry.h"

namespace outcore::checkpoints {
namespace {

using paging::Space;
using std::chrono::steady_clock;

constexpr auto kSlice = std::chrono::milliseconds(20), kBetween = std::chrono::milliseconds(1);
constexpr uint64_t kFlushBytes = 16 << 20;
constexpr int kTriesMax = 5;
constexpr size_t kNameBytesMax = 255;

bool is_heap(Store& store) {
  char magic[sizeof heap::persistent::kHeaderMagic] = {};
  if (store.size_bytes() < base::kSystemPage) return false;
  std::byte page[base::kSystemPage];
  if (store.read(0, page) != 0) return false;
  std::memcpy(magic, page, sizeof magic);
  return std::memcmp(magic, heap::persistent::kHeaderMagic, sizeof magic) == 0;
}

// What a copy of the store is called: its address without "file:".
std::string name_for(const Store& store) {
  std::string name = store.uri();
  if (name.starts_with("file:")) name = name.substr(5);
  if (name.empty()) name = "region";
  if (name.size() > kNameBytesMax) {
    const std::string end = name.substr(name.size() - (kNameBytesMax - 24));
    name = std::to_string(std::hash<std::string>()(name)) + " " + end;
  }
  return name;
}

class OfRuntime {
 public:
  explicit OfRuntime(const std::shared_ptr<Runtime::Impl>& runtime)
      : runtime_(runtime), pool_uri_(runtime->options.checkpoint_pool) {}

  // EBUSY is for later: another process has the pool now.
  Status begin() {
    if (pool_uri_ == "none") return {};
    const Status s = open_pool();
    return s.code() == EBUSY ? Status() : s;
  }

  Result<CheckpointReport> make(const std::string& name, std::shared_ptr<versioned::Pool>* pool) {
    const std::shared_ptr<Runtime::Impl> runtime = runtime_.lock();
    if (runtime == nullptr) return CheckpointReport{};
    if (pool_uri_ != "none")
      if (Status s = open_pool(); !s) return s.error();
    {
      const std::lock_guard<std::mutex> guard(runtime->mapping);
      const Parts parts = gather(*runtime);
      if (parts.spaces.empty()) return CheckpointReport{};
      *pool = parts.pool;
    }
    if (*pool == nullptr)
      return Error{EINVAL,
                   "make checkpoints: no region is of a versioned: pool: say "
                   "checkpoint_pool=versioned:FOLDER (OUTCORE_CHECKPOINT_POOL)"};
    const std::lock_guard<std::mutex> making((*pool)->making());
    if (Status s = go_ahead(*runtime, **pool); !s) return s.error();
    // Never does one wait for another cut with the mapping lock in hand: that cut may need it.
    for (int tries = 1;; ++tries) {
      const auto made = cut(*runtime, *pool, name);
      if (made.code() != EAGAIN || tries == kTriesMax) return made;
      std::this_thread::sleep_for(kSlice);
    }
  }

  // A line a kind of trouble.
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
  Status open_pool() {
    if (pool_ != nullptr) return {};
    auto pool = pool_named(pool_uri_);
    if (!pool) return pool.status();
    pool_ = std::move(pool).value();
    return {};
  }

  Result<CheckpointReport> cut(Runtime::Impl& runtime, const std::shared_ptr<versioned::Pool>& pool,
                               const std::string& name) {
    const std::lock_guard<std::mutex> guard(runtime.mapping);
    Parts parts = gather(runtime);
    if (parts.spaces.empty() || parts.pool != pool) return CheckpointReport{};
    parts.may_wait = false;
    if (has_heap_)
      return Error{
          EBUSY,
          "make checkpoints: a persistent heap lies in the same pool, and would be in them "
          "as it is between two of its calls: use PeriodicCheckpoints with a quiesce "
          "function, or another checkpoint_pool"};
    return checkpoints::make(name, parts, {});
  }

  // REQUIRES: the mapping lock.
  Parts gather(Runtime::Impl& runtime) {
    Parts parts;
    parts.runtime = runtime.shared_from_this();
    parts.pool = pool_;
    std::set<std::string> names;
    std::vector<Space*> foreign;
    has_heap_ = false;
    for (const auto& [key, space] : runtime.spaces) {
      if (!space->is_writable || space->is_given_up.load()) continue;
      Store& store = *space->store.load();
      if (key.starts_with("private ")) continue;  // changes that the program wants to be gone
      if (space->is_of_addresses || store::dies_with_process(store.uri())) {
        leave_out(store, "its addresses end with the process");
        continue;
      }
      auto* const of_pool = dynamic_cast<store::VersionedStore*>(&store);
      if (is_heap(store)) {
        has_heap_ = has_heap_ || (of_pool != nullptr &&
                                  (parts.pool == nullptr || of_pool->share_pool() == parts.pool));
        leave_out(store, "a heap is a part of PeriodicCheckpoints, with a quiesce function");
        continue;
      }
      if (of_pool != nullptr) {
        if (parts.pool == nullptr) parts.pool = of_pool->share_pool();
        if (of_pool->share_pool() == parts.pool) {
          parts.spaces.push_back(space.get());
          names.insert(of_pool->object().name());
          continue;
        }
      }
      foreign.push_back(space.get());
    }
    for (Space* space : foreign) {
      std::string name = name_for(*space->store.load());
      for (int n = 2; !names.insert(name).second; ++n)
        name =
            name_for(*space->store.load()).substr(0, kNameBytesMax - 8) + " " + std::to_string(n);
      parts.spaces.push_back(space);
      parts.foreign.push_back({name, space, space->uri});
    }
    return parts;
  }

  void leave_out(Store& store, const std::string& why) {
    if (!known_.insert(store.uri()).second) return;
    left_out_ += (left_out_.empty() ? "" : "; ") + store.uri() + " (" + why + ")";
  }

  struct Ahead {
    std::string key;
    Space* space = nullptr;
    std::string copy;  // the object's name; empty: it is of the pool
  };

  // Most of what is dirty goes to the stores, and most of what changed there into the pool, while
  // the program goes on and may map and unmap.
  Status go_ahead(Runtime::Impl& runtime, versioned::Pool& pool) {
    std::vector<Ahead> all;
    {
      const std::lock_guard<std::mutex> guard(runtime.mapping);
      const Parts parts = gather(runtime);
      for (const auto& [key, space] : runtime.spaces) {
        if (std::find(parts.spaces.begin(), parts.spaces.end(), space.get()) == parts.spaces.end())
          continue;
        all.push_back({key, space.get(), {}});
        for (const Foreign& part : parts.foreign)
          if (part.space == space.get()) all.back().copy = part.name;
      }
    }
    for (const Ahead& one : all) {
      if (Status s = flush_in_slices(runtime, one); !s) return s;
      if (one.copy.empty()) continue;
      if (Status s = copy_in_slices(runtime, one, pool); !s) return s;
    }
    return pool.sync_data();  // no commit: it would be of many moments
  }

  // The lock, if the space is there still: else none.
  static std::unique_lock<std::mutex> slice(Runtime::Impl& runtime, const Ahead& one) {
    std::this_thread::sleep_for(kBetween);  // whoever waits for the lock has it now
    std::unique_lock<std::mutex> guard(runtime.mapping);
    const auto found = runtime.spaces.find(one.key);
    if (found == runtime.spaces.end() || found->second.get() != one.space) guard.unlock();
    return guard;
  }

  static Status flush_in_slices(Runtime::Impl& runtime, const Ahead& one) {
    const os::SignalBlock block;
    Status s;
    for (uint64_t page = 0, end = 1; page < end && s.ok();) {
      const auto guard = slice(runtime, one);
      if (!guard.owns_lock()) return {};
      end = one.space->stored_pages();
      const uint64_t at_once = std::max<uint64_t>(kFlushBytes / one.space->page_bytes, 1);
      const auto until = steady_clock::now() + kSlice;
      for (; page < end && s.ok() && steady_clock::now() < until; page += at_once)
        s = runtime.engine->flush_aside(*one.space, page, std::min(page + at_once, end));
    }
    return s;
  }

  // As much as there is of it, and no more: of a store that is written faster than it is copied the
  // cut copies the rest.
  static Status copy_in_slices(Runtime::Impl& runtime, const Ahead& one, versioned::Pool& pool) {
    for (uint64_t copied = 0;;) {
      const auto guard = slice(runtime, one);
      if (!guard.owns_lock()) return {};
      Store& store = *one.space->store.load();
      auto object = object_for(pool, one.copy, store.size_bytes());
      if (!object) return object.status();
      uint64_t written = 0;
      const auto until = steady_clock::now() + kSlice;
      const auto is_done =
          copy_store(pool, object.value(), store, *one.space->changes.load(), &written, [&] {
            copied += kPieceBytes;
            return steady_clock::now() < until;
          });
      if (!is_done || is_done.value() || copied >= object.value()->size_bytes())
        return is_done.status();
    }
  }

  const std::weak_ptr<Runtime::Impl> runtime_;
  const std::string pool_uri_;
  std::shared_ptr<versioned::Pool> pool_;
  std::set<std::string> known_;
  std::string left_out_;
  bool has_heap_ = false;  // in the pool, and left out
  int told_ = 0;
};

struct Companion : Runtime::Impl::Companion {
  std::unique_ptr<PeriodicThread> thread;
};

}  // namespace
}  // namespace outcore::checkpoints

namespace outcore::runtime {

Result<std::unique_ptr<Runtime::Impl::Companion>> start_checkpoints(
    const std::shared_ptr<Runtime::Impl>& runtime) {
  using checkpoints::PeriodicThread;
  const auto of = std::make_shared<checkpoints::OfRuntime>(runtime);
  if (Status s = of->begin(); !s) return s.error();
  PeriodicThread::Plan plan;
  plan.every_ms = runtime->options.checkpoint_every_ms;
  plan.keep.last = runtime->options.checkpoint_keep;
  plan.name = "periodic";
  plan.make = [of](const std::string& name, std::shared_ptr<versioned::Pool>* pool) {
    return of->make(name, pool);
  };
  plan.told = [of](const Result<CheckpointReport>&, const Status& all) { of->tell(all); };
  auto companion = std::make_unique<checkpoints::Companion>();
  auto thread = PeriodicThread::start("make checkpoints", std::move(plan));
  if (!thread) return thread.error();
  companion->thread = std::move(thread).value();
  return std::unique_ptr<Runtime::Impl::Companion>(std::move(companion));
}

}  // namespace outcore::runtime
