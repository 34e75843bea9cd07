#include "core/runtime/inheritance.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <exception>
#include <map>
#include <new>
#include <thread>
#include <utility>

#include "core/base/assert.h"
#include "core/base/error.h"
#include "core/os/at_fork.h"
#include "core/os/cancel_block.h"
#include "core/os/file_lock.h"
#include "core/os/wait.h"
#include "core/region/address_map.h"
#include "core/runtime/mapper.h"
#include "core/runtime/sharing.h"
#include "core/store/file_store.h"
#include "outcore/forks.h"

namespace outcore::runtime {

using region::AddressMap;
using region::View;

namespace {

// Held while a region is being attached, and over fork(). It comes before the process's locks.
constinit os::Lock attaching;
// How many placeholders have been replaced in this process.
constinit std::atomic<uint64_t> replaced{0};

// The runtime of this process that stands in for one of its parent's.
struct StandIn {
  std::weak_ptr<Runtime::Impl> runtime;  // it ends with its last region
  Status why_none;                       // it could not be started, and is not tried again
  // Stores that are not files, by the parent's: of a store that says no identity, another object
  // would be another store.
  std::map<const Store*, std::weak_ptr<Store>> reopened;
};
// Of one process: a child of it has others. REQUIRES for all use: the lock.
struct StandIns {
  uint32_t generation = 0;
  std::map<const Runtime::Impl*, StandIn> of;
};
StandIns* stand_ins = nullptr;

// A grandchild may have some regions of its grandparent's runtime, and some of the one that stood
// in for it in its parent: one stands in for both.
const Runtime::Impl& root_of(const Runtime::Impl& parents) {
  const Runtime::Impl* const root = parents.stands_for.load();
  return root == nullptr ? parents : *root;
}

StandIn& stand_in_of(const Runtime::Impl& parents) {
  OC_ASSERT(attaching.is_held());
  if (stand_ins == nullptr || stand_ins->generation != os::process_generation())
    stand_ins = new StandIns{os::process_generation(), {}};  // the other is its parent's, and stays
  return stand_ins->of[&root_of(parents)];
}

void note_stand_in(const Runtime::Impl& parents, Runtime::Impl& made) {
  made.stands_for.store(&root_of(parents));
  made.is_stand_in.store(true);
}

// nullptr: there is none by now.
std::shared_ptr<Runtime::Impl> find_stand_in(const Runtime::Impl& parents) {
  const os::Locked locked(attaching);
  std::shared_ptr<Runtime::Impl> known = stand_in_of(parents).runtime.lock();
  if (known != nullptr) known->is_stand_in.store(true);
  return known;
}

// As the parent's was started, but for what is kept about a run, which is the parent's.
RuntimeOptions options_after(const Runtime::Impl& parents) {
  RuntimeOptions options = parents.given;
  options.buffer = parents.options.buffer;
  options.budget_bytes = parents.options.budget_bytes;  // if all members have ended since
  options.learn_file = options.report_file = options.metrics_at_exit = "none";
  options.checkpoint_every_ms = 0;
  return options;
}

Result<std::shared_ptr<Runtime::Impl>> runtime_after(const Runtime::Impl& parents) {
  StandIn& stand_in = stand_in_of(parents);
  if (!stand_in.why_none.ok()) return stand_in.why_none.error();
  if (std::shared_ptr<Runtime::Impl> known = stand_in.runtime.lock(); known != nullptr)
    return known;
  OC_CHECK(parents.sharing->buffer() != nullptr);
  if (!parents.sharing->buffer()->member().is_found_by_name())
    return stand_in.why_none = Error{EACCES,
                                     "its buffer is not found from here (another user, another "
                                     "root, or its file was removed)"},
           stand_in.why_none.error();
  auto started =
      Runtime::Impl::start(options_after(parents), parents.sharing->has_own_budget_beside());
  if (started) {
    started.value()->stands_for.store(&root_of(parents));
    stand_in.runtime = started.value();
  } else {
    stand_in.why_none = started.error();
  }
  return started;
}

bool is_of(const Store& store, const store::FileVersion& version) {
  const auto* file = dynamic_cast<const store::FileStore*>(&store);
  if (file == nullptr) return false;
  const Result<store::FileVersion> now = file->version();
  return now.ok() && now.value() == version;
}

// The parent's store is not used here: what it shares with the parent (a ring, direct transfers) is
// the parent's. By its descriptor, or, if the program has closed that one, by its name: the file
// must be the same, and unchanged, since another one may have got its number.
Result<std::shared_ptr<Store>> open_again(const store::FileStore& parents,
                                          const store::FileVersion& version, bool is_written) {
  Error first{EBADF, "open " + parents.uri() + " in a forked child"};
  for (const std::string& path :
       {"/proc/self/fd/" + std::to_string(parents.descriptor()), parents.path()}) {
    store::FileStoreOptions options;
    options.path = path;
    options.uri = parents.uri();
    options.open.is_writable = is_written;
    options.refuses_cut = true;
    Result<std::shared_ptr<Store>> opened = store::FileStore::open(options);
    if (opened && opened.value()->identity() == parents.identity() &&
        (path != parents.path() || is_written || is_of(*opened.value(), version)))
      return opened;
    if (!opened) first = opened.error();
  }
  return first;
}

// nullptr: it is another store of known contents.
const store::FileStore* file_of(const View& view) {
  return dynamic_cast<const store::FileStore*>(view.cache->store.load());
}

Result<std::shared_ptr<Store>> open_again(const View& view, const Region::Impl& region) {
  const bool is_written = region.access == Access::kReadWrite;
  const store::FileVersion& version = view.cache->shared->version();
  if (const store::FileStore* const file = file_of(view); file != nullptr)
    return open_again(*file, version, is_written);
  OC_CHECK(!is_written);
  const Store* const parents = view.cache->store.load();
  std::weak_ptr<Store>& known = stand_in_of(*region.runtime).reopened[parents];
  if (std::shared_ptr<Store> store = known.lock(); store != nullptr) return store;
  Result<std::shared_ptr<Store>> opened = parents->reopen();
  if (!opened) return opened;
  const std::string attempt = "open " + region.uri + " in a forked child: ";
  const std::string id = opened.value() == nullptr ? "" : opened.value()->contents_id();
  if (id.empty()) return Error{ESTALE, attempt + "somebody writes it, or may do so"};
  if (store::FileVersion::of_contents(id, opened.value()->size_bytes()) != version)
    return Error{ESTALE, attempt + "it has changed since"};
  known = opened.value();
  return opened;
}

// The handle that the program has becomes one of the new region. REQUIRES: the lock.
void take_over(Region::Impl& region, Region::Impl& made) {
  Runtime::Impl& runtime = *made.runtime;
  // The parent's runtime is not ended here; nor is its view freed, at which another thread of this
  // process may just be looking.
  static_cast<void>(new std::shared_ptr<Runtime::Impl>(std::move(region.runtime)));
  region.runtime = made.runtime;
  region.cache = made.cache;
  region.cache_key = made.cache_key;
  region.view = std::exchange(made.view, nullptr);
  // Of what could not be shared a child of this one has nothing.
  region.view->owner.store(region.cache->shared != nullptr ? &region : nullptr);
  {
    const std::lock_guard<std::mutex> guard(runtime.mapping);
    std::replace(runtime.regions.begin(), runtime.regions.end(), &made, &region);
  }
  region.generation.store(os::process_generation(), std::memory_order_release);
}

// After an error the view and the region are as they were, but for what is mapped at its addresses:
// that may be the buffer's frames, so the runtime, which has their userfaultfd, must live until
// something else is. REQUIRES: the lock; the view is not in the map.
Status attach_view(View& view, Region::Impl& region, std::shared_ptr<Runtime::Impl>* runtime) {
  Result<std::shared_ptr<Store>> store = open_again(view, region);
  if (!store) return store.error();
  Result<std::shared_ptr<Runtime::Impl>> started = runtime_after(*region.runtime);
  if (!started) return started.error();
  *runtime = std::move(started).value();
  MapOptions options;
  options.access = region.access;
  options.offset = view.offset;
  options.size_bytes = view.size_bytes.load();
  options.advice = view.advice.load();
  options.on_error = view.on_error;
  options.page_bytes = view.page_bytes;
  options.delivery = view.cache->delivery;
  Runtime::Impl::Lent lent;
  lent.address = view.address;
  lent.size_bytes = view.reserved_bytes;
  lent.room_bytes = view.cache->page_count() * view.cache->page_bytes;  // of its other views
  lent.may_share = true;
  // Of a file the kernel's mapping is there otherwise. What another store holds is known to be the
  // same by now: pages of the child's own are as right.
  lent.must_share = file_of(view) != nullptr;
  Result<std::unique_ptr<Region::Impl>> made =
      (*runtime)->mapper->map(std::move(store).value(), region.uri, options, &lent);
  if (!made) return made.error();
  take_over(region, *made.value());
  return {};
}

// Each of the two things that may be reported once in a process, which `told_in` notes.
std::atomic<uint32_t> told_of_kernel{0}, told_of_end{0};

void report(std::atomic<uint32_t>& told_in, const std::string& text) {
  if (told_in.exchange(os::process_generation()) == os::process_generation()) return;
  // Not by stdio: the thread that touches the region may hold the lock of that.
  const std::string line = "outcore: " + text + "\n";
  const ssize_t ignored = ::write(STDERR_FILENO, line.data(), line.size());
  static_cast<void>(ignored);
}

// The kernel's mapping in place of the view. False: the file cannot be had any more; or what is in
// memory may be newer.
bool map_by_kernel(const View& view, const Status& why) {
  if (view.cache->shared->is_written()) return false;
  const store::FileStore* const file = file_of(view);
  if (file == nullptr || os::identity_of(file->descriptor()) != file->identity()) return false;
  void* const at = ::mmap(view.address, view.mapped_bytes(), PROT_READ, MAP_SHARED | MAP_FIXED,
                          file->descriptor(), static_cast<off_t>(view.offset));
  if (at != MAP_FAILED)
    report(told_of_kernel,
           "a forked child reads " + file->uri() +
               " through the kernel, outside of its parent's buffer: " + why.message());
  return at != MAP_FAILED;
}

// Whether something else is in the place of the placeholder now. `why_not`: unless this process may
// become a member here. REQUIRES: the lock; it is one, and was offered.
bool replace(View& view, const Status& why_not) {
  auto& region = *static_cast<Region::Impl*>(view.owner.load());
  AddressMap::instance().remove(&view);
  std::shared_ptr<Runtime::Impl> runtime;
  try {
    const Status attached = why_not.ok() ? attach_view(view, region, &runtime) : why_not;
    if (attached.ok() || map_by_kernel(view, attached)) {
      view.owner.store(nullptr);
      replaced.fetch_add(1, std::memory_order_release);
      return true;
    }
    report(told_of_end,
           "a forked child cannot go on with " + region.uri + ": " + attached.message());
  } catch (const std::exception&) {  // the placeholder stays: the child ends with a message
  }
  const void* const at = ::mmap(view.address, view.mapped_bytes(), PROT_NONE,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  static_cast<void>(at);
  view.owner.store(nullptr);
  OC_CHECK(AddressMap::instance().add(&view).ok());  // there was a place for it
  return false;
}

// What a child of vfork() starts would end with it, and leave its parent's memory without: the
// kernel's mapping is right for both.
Status why_not_here() {
  if (!os::is_in_others_memory()) return {};
  return Error{EBUSY, "the first to use it is a child of vfork()"};
}

bool replace_by_a_thread(View& view) {
  const os::CancelBlock uncancelled;
  if (const Status why_not = why_not_here(); !why_not) return replace(view, why_not);
  bool is_replaced = false;
  try {
    std::thread([&] { is_replaced = replace(view, {}); }).join();
    return is_replaced;
  } catch (const std::exception&) {
    return replace(view, Error{EAGAIN, "no thread could be started"});
  }
}

}  // namespace

void Inheritance::note_mapped(Region::Impl& region) {
  region.generation.store(os::process_generation(), std::memory_order_release);
  if (region.cache->shared != nullptr && !region.is_lent)
    region.view->owner.store(&region, std::memory_order_release);
}

void Inheritance::lock() { attaching.lock(); }
void Inheritance::unlock() { attaching.unlock(); }

bool Inheritance::answer(const std::byte* address) {
  static constinit thread_local uint64_t seen_replaced = 0;
  const os::SignalBlock block;
  const os::Locked locked(attaching);
  View* const view = AddressMap::instance().find_and_hold(address);
  const bool is_placeholder = view != nullptr && view->is_inherited.load();
  if (view != nullptr) AddressMap::release(view);
  if (is_placeholder) return view->owner.load() != nullptr && replace_by_a_thread(*view);
  // Another thread may have replaced it since the touch. If not, this is so once for each.
  const uint64_t now = replaced.load(std::memory_order_acquire);
  return std::exchange(seen_replaced, now) != now;
}

bool Inheritance::wait_for_attaching() {
  if (!attaching.is_held()) return false;
  const os::SignalBlock block;
  const os::Locked locked(attaching);
  return true;
}

void Inheritance::attach(Region::Impl& region) {
  const os::SignalBlock block;
  const os::Locked locked(attaching);
  View* const view = region.view;
  if (view != nullptr && view->is_inherited.load() && view->owner.load() == &region)
    static_cast<void>(replace(*view, why_not_here()));
}

void Inheritance::forget(Region::Impl& region) {
  const os::SignalBlock block;
  const os::Locked locked(attaching);
  if (region.view != nullptr && region.view->is_inherited.load()) region.view->owner.store(nullptr);
}

// Started without the lock, as that takes its time and may print: who attaches meanwhile is first.
Result<Runtime> Inheritance::start_in_place_of(const std::shared_ptr<Runtime::Impl>& parents,
                                               RuntimeOptions options) {
  const os::SignalBlock block;
  std::shared_ptr<Runtime::Impl> known = find_stand_in(*parents);
  if (known != nullptr) return Runtime::Impl::handle_of(std::move(known));
  options.checkpoint_every_ms = 0;  // the parent's
  Result<Runtime> started = Runtime::start(options);
  if (!started) return started;
  const std::shared_ptr<Runtime::Impl> made = Runtime::Impl::of(started.value());
  if (made->options.buffer != parents->options.buffer ||
      !parents->sharing->buffer()->member().is_found_by_name())
    return started;
  {
    const os::Locked locked(attaching);
    StandIn& stand_in = stand_in_of(*parents);
    known = stand_in.runtime.lock();
    if (known == nullptr) {
      // It is known by its address, which no other may get.
      static_cast<void>(new std::shared_ptr<Runtime::Impl>(parents));
      note_stand_in(*parents, *made);
      stand_in.runtime = made;
      stand_in.why_none = {};
      return started;
    }
    known->is_stand_in.store(true);
  }
  return Runtime::Impl::handle_of(std::move(known));
}

}  // namespace outcore::runtime

namespace outcore {

Result<Runtime> start_after_fork(const Runtime& parents, const RuntimeOptions& options) {
  const std::shared_ptr<Runtime::Impl> impl = Runtime::Impl::of(parents);
  const bool is_inherited = impl != nullptr && impl->generation != runtime::process_generation();
  if (!is_inherited || impl->sharing->buffer() == nullptr) return Runtime::start(options);
  const os::CancelBlock uncancelled;
  return runtime::Inheritance::start_in_place_of(impl, options);
}

}  // namespace outcore
