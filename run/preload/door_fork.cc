// The door in a forked child. See fork.h.
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "core/base/assert.h"
#include "core/os/at_fork.h"
#include "core/runtime/fork.h"
#include "core/runtime/inheritance.h"
#include "core/runtime/runtime_impl.h"
#include "run/preload/descriptor_table.h"
#include "run/preload/door.h"
#include "run/preload/fork.h"
#include "run/preload/heap.h"
#include "run/preload/last_store.h"
#include "run/preload/leaving.h"
#include "run/preload/own_descriptors.h"
#include "run/preload/own_memory.h"
#include "run/preload/own_threads.h"
#include "run/preload/real.h"
#include "run/preload/settings.h"
#include "run/preload/watch.h"
#include "run/preload/window.h"
#include "run/preload/words.h"

namespace outcore::preload {

std::atomic<bool> Door::has_inherited_{false};

namespace {

bool adopt(const region::View& view) { return Door::instance().adopt(view); }
bool on_touch(const std::byte* address) {
  // The heap first: it does not need the door's lock, which this thread may have within fork().
  return Heap::revive_at(address) || Door::instance().revive(address);
}

// No code of the program runs between these: neither its handlers for fork(), nor those of signals.
void before_fork() {
  ++inside_depth;
  Heap::lock_start();  // first: a thread that starts the heap then locks the door
  Door::instance().before_fork();
  Heap::before_fork();
}

void after_fork_in_parent(bool may_have_failed) {
  Door::instance().after_fork_in_parent();
  Heap::unlock_start();
  Heap::after_fork_in_parent(may_have_failed);
  OC_CHECK(inside_depth != 0);
  --inside_depth;
}

void after_fork_in_child() {
  OwnThreads::after_fork_in_child();
  Heap::after_fork_in_child();
  Door::instance().after_fork_in_child();
  Heap::unlock_start();
  OC_CHECK(inside_depth != 0);
  --inside_depth;
}

}  // namespace

void prepare_fork() {
  static const bool is_prepared = [] {
    const Inside inside;
    runtime::set_fork_hooks(
        {before_fork, after_fork_in_parent, after_fork_in_child, adopt, on_touch});
    os::at_fork(os::ForkOrder::kOwnMemory, OwnMemory::before_fork, OwnMemory::after_fork,
                OwnMemory::after_fork);
    static_cast<void>(runtime::process_generation());
    return true;
  }();
  static_cast<void>(is_prepared);
}

void Door::begin() {
  owner_ = ::getpid();
  note_standard_error();
}

bool Door::is_of_another_process() const {
  const pid_t owner = owner_.load(std::memory_order_relaxed);
  return owner != 0 && owner != ::getpid();
}

void Door::before_fork() { lock_.lock(); }
void Door::after_fork_in_parent() { lock_.unlock(); }

namespace {

// Whether the child takes the file at its first touch. It does if the pages are in a buffer, of
// which the child then becomes a member; until then there is a placeholder. Where a system call
// could meet that unseen, the mapping is the kernel's at once.
bool is_taken_when_touched(const TakenFile& file) {
  const paging::PageCache* const cache = file.cache();
  return !file.is_writable && cache != nullptr && cache->shared != nullptr &&
         cache->delivery == Delivery::kInThread && Window::is_ready();
}

}  // namespace

// In the child, within fork(): read-only mappings become the kernel's, unless the child may share
// them as its parent does.
bool Door::adopt(const region::View& view) {
  const Mapping* m = mapping_covering(view.address);
  if (m != nullptr && m->is_face && !m->file->is_writable)  // it keeps pages, for the parent alone
    return real().munmap(m->address, m->size_bytes) == 0;
  return m != nullptr && !m->file->is_writable && !is_taken_when_touched(*m->file) &&
         map_by_kernel(*m);
}

void Door::after_fork_in_child() {
  owner_ = ::getpid();
  Watch::instance().forget_in_child();
  LastStore::forget_in_child();
  forget_leaving_in_child();
  // The parent's runtime cannot be used here, and must not be ended either, so it is never freed.
  static_cast<void>(new std::shared_ptr<Runtime::Impl>(std::move(runtime_)));
  runtime_ = nullptr;
  has_tried_runtime_ = shares_writes_ = false;
  not_taken_ = {};
  cache_room_.forget();
  kept_ = Kept::kNothing;
  has_idle_.store(false);
  // A thread that is not in the child may have held it.
  for (const auto& file : inherited_) std::construct_at(&file->position);
  for (auto& [identity, file] : files_) {
    std::construct_at(&file->position);
    if (file->mappings.empty()) continue;
    file->idle_since_ns = 0;
    // The region is the parent's: it is never freed.
    if (Mapping* const face = file->is_writable ? nullptr : face_of(*file); face != nullptr)
      static_cast<void>(file->mappings.extract(face->address).mapped().release());
    if (file->is_writable || is_taken_when_touched(*file)) {
      OC_CHECK(taken_count_.load() != 0);
      if (!file->is_writable) DescriptorTable::forget_file(file.get());  // calls only read it
      inherited_.push_back(std::move(file));
      has_inherited_.store(true, std::memory_order_release);
      continue;
    }
    taken_count_.fetch_sub(1);
    DescriptorTable::forget_file(file.get());
    static_cast<void>(file.release());
  }
  std::erase_if(files_, [](const auto& f) { return f.second == nullptr; });
  mappings_.clear();
  lock_.unlock();
}

namespace {

const char* reason_of(ReleaseLink::Answer answer) {
  switch (answer) {
    case ReleaseLink::Answer::kRefused:
      return "its bytes could not be stored";
    case ReleaseLink::Answer::kUnknown:
      return "it does not know the file";
    default:
      return "it does not answer";
  }
}

}  // namespace

// A process that is gone has stored everything when it ended.
void release_or_end(const TakenFile& file, void (*meanwhile)()) {
  const ReleaseLink::Answer answer = ReleaseLink::ask(file.link, {file.identity, true}, meanwhile);
  if (answer == ReleaseLink::Answer::kReleased || answer == ReleaseLink::Answer::kGone) return;
  say("the parent process (" + std::to_string(file.owner) + ") cannot hand " + file.path +
          " back to the kernel, as " + reason_of(answer) + ": this child cannot go on",
      true);
  ::_exit(128 + SIGSEGV);
}

// A file of the parent that is written becomes the kernel's in both processes. One that is only
// read is taken by this process, as if the program had just mapped it. REQUIRES: `lock_` is locked.
void Door::revive_file(TakenFile& file) {
  // A child of vfork() takes nothing: what it starts for that would end with it.
  const paging::PageCache* const cache = file.cache();
  const bool can_join = !file.is_writable && !is_of_another_process() && cache != nullptr &&
                        cache->shared != nullptr &&
                        cache->shared->buffer().member().is_found_by_name();
  if (!can_join) {
    map_inherited(file);
    return;
  }
  std::vector<NewMapping> made;
  for (const auto& [address, m] : file.mappings)
    made.push_back(
        {address, m->size_bytes, m->protection, m->flags, file.fd_of(*m), m->offset, m->pattern});
  // Other threads that touch it meanwhile wait for this lock.
  runtime::Inheritance::lock();
  map_inherited(file);
  try {
    std::thread([&] {  // because this may be a signal handler on a small stack
      const Inside inside;
      try {
        for (const NewMapping& mapping : made) take_locked(mapping);
      } catch (const std::bad_alloc&) {  // the rest are the kernel's
      }
    })
        .join();
  } catch (const std::exception&) {  // no thread can be started: they are the kernel's
  }
  runtime::Inheritance::unlock();
}

// The file of that identity, if it is the parent's still. REQUIRES: `lock_` is locked.
void Door::revive_inherited(const Identity& identity, bool is_only_if_written) {
  for (const auto& file : inherited_)
    if (file->identity == identity && (file->is_writable || !is_only_if_written))
      return revive_file(*file);
}

// Revives the inherited files that are only read, which this process would otherwise take at their
// first touch: from now on they can be no placeholders. REQUIRES: `lock_` is locked.
void Door::revive_what_is_read() {
  const auto is_read = [](const std::unique_ptr<TakenFile>& file) { return !file->is_writable; };
  for (;;) {
    const auto file = std::find_if(inherited_.begin(), inherited_.end(), is_read);
    if (file == inherited_.end()) return;
    revive_file(**file);
  }
}

namespace {

bool is_open_as(int fd, const Identity& identity) {
  struct stat about;
  return ::fstat(fd, &about) == 0 && identity_of(about) == identity;
}

}  // namespace

// This process waits for another one, with the door's lock; that may wait for this one to hand back
// another file. REQUIRES: as above.
void Door::hand_back_meanwhile() {
  if (!shares_writes_ || is_of_another_process() || !is_any_wanted_back()) return;
  try {
    std::thread([this] {  // because this may be a signal handler on a small stack
      const Inside inside;
      try {
        hand_back_wanted_but(nullptr);
      } catch (const std::bad_alloc&) {  // it is tried again
      }
    })
        .join();
  } catch (const std::exception&) {  // likewise
  }
}

// The parent may have ended before those with whom it wrote the file.
void Door::ask_others_in_child(const Identity& identity) {
  if (!settings().shares_writes || is_of_another_process()) return;
  try {
    std::thread([&] {  // because this may be a signal handler on a small stack
      const Inside inside;
      std::string why;
      try {
        if (start_runtime(&why)) ask_others_back(identity, true);
      } catch (const std::bad_alloc&) {
        say("a child could not look who else writes a file of its parent", true);
      }
    })
        .join();
  } catch (const std::exception&) {
    say("a child could not look who else writes a file of its parent", true);
  }
}

// Puts the kernel's mappings in place of the placeholders. REQUIRES: `lock_` is locked.
void Door::map_inherited(TakenFile& file) {
  OC_ASSERT(!file.mappings.empty());
  if (file.is_writable) release_or_end(file, [] { Door::instance().hand_back_meanwhile(); });
  if (file.is_writable) ask_others_in_child(file.identity);
  for (const auto& [address, m] : file.mappings) {
    if (m->is_face) {
      real().munmap(address, m->size_bytes);
      runtime::forget_inherited(address, m->size_bytes);
      continue;
    }
    // The program may have closed the descriptor since, and its number may be another file's.
    if (!is_open_as(file.fd_of(*m), file.identity) || !map_by_kernel(*m)) {
      say("this child has closed " + file.path + ", which it reads: it cannot go on", true);
      ::_exit(128 + SIGSEGV);
    }
    runtime::forget_inherited(address, m->size_bytes);
  }
  DescriptorTable::forget_file(&file);
  OC_CHECK(taken_count_.load() != 0);
  taken_count_.fetch_sub(1);
  // Another thread may have found the file before, and wait for the lock: it must see that nothing
  // of it is taken any more. The regions and our descriptors are not closed: they belong to the
  // parent.
  static_cast<void>(new auto(std::move(file.mappings)));
  file.mappings.clear();
  file.is_written_by_calls = false;
  file.fd = file.read_fd = -1;
  for (auto& entry : inherited_)
    if (entry.get() == &file) static_cast<void>(entry.release());
  std::erase(inherited_, nullptr);
  if (inherited_.empty()) has_inherited_.store(false, std::memory_order_release);
}

bool Door::revive(const std::byte* address) {
  const Inside inside;
  const os::Locked locked(lock_);
  for (const auto& file : inherited_)
    for (const auto& [at, m] : file->mappings)
      if (address >= at && address < m->end()) {
        revive_file(*file);
        return true;
      }
  return false;
}

void Door::revive_all(const std::byte* address, uint64_t size_bytes) {
  if (is_of_another_process()) return;  // a child of vfork changes nothing of ours
  const Inside inside;
  const os::Locked locked(lock_);
  const auto touches = [&](const std::unique_ptr<TakenFile>& file) {
    return std::any_of(file->mappings.begin(), file->mappings.end(), [&](const auto& entry) {
      return entry.first < address + size_bytes && address < entry.second->end();
    });
  };
  for (;;) {
    const auto file = std::find_if(inherited_.begin(), inherited_.end(), touches);
    if (file == inherited_.end()) return;
    revive_file(**file);
  }
}

TakenFile* Door::file_of_parent_or_ours(const Identity& identity) {
  {
    const Inside inside;
    const os::Locked locked(lock_);
    for (const auto& file : inherited_)
      if (file->identity == identity) return file.get();
  }
  return file_of_identity(identity);
}

// Whether the file is still the parent's: then it is revived before the call goes on. REQUIRES:
// `lock_` is locked.
bool Door::is_inherited(TakenFile& file) {
  for (const auto& entry : inherited_)
    if (entry.get() == &file) {
      revive_file(file);
      return true;
    }
  return false;
}

}  // namespace outcore::preload
