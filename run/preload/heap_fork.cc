// The heap and fork: see heap.h, and heap_copy.h for how the child gets its copy.
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <new>
#include <utility>

#include "core/base/assert.h"
#include "core/base/units.h"
#include "core/os/address_space.h"
#include "core/region/address_map.h"
#include "core/runtime/fork.h"
#include "run/preload/bounce.h"
#include "run/preload/heap.h"
#include "run/preload/program_threads.h"
#include "run/preload/real.h"
#include "run/preload/settings.h"
#include "run/preload/words.h"

namespace outcore::preload {

namespace {

// As long as copying takes: a parent that waits in vain, because its child goes on, loses no more.
uint64_t patience_ns(uint64_t bytes) {
  constexpr uint64_t kNsMin = 100'000'000;
  return std::max(kNsMin, bytes);  // a byte a nanosecond
}

// For the fork() that this thread is about to call; the thread owns it.
thread_local HeapCopy* prepared = nullptr;

// nullptr: errno says why.
std::unique_ptr<HeapCopy> make_copy(const HeapViews& views) {
  try {
    return HeapCopy::prepare(views.store().folder());
  } catch (const std::bad_alloc&) {
    errno = ENOMEM;
    return nullptr;
  }
}

[[noreturn]] void end_child(const char* why) {
  const char* const text[] = {
      "outcore: a forked child touched memory of its parent that --alloc put on scratch space, and "
      "of which it has no copy (",
      why, "): start it by exec or spawn, or raise --alloc\n"};
  for (const char* part : text) say_raw(part, std::strlen(part));
  real()._exit(128 + SIGSEGV);
  __builtin_unreachable();
}

}  // namespace

// Nobody changes the heap from here on until the child has its copy, or needs none. This thread
// waits in fork(). If the program has other threads, their touches wait, too; for that everything
// is written back and evicted first.
void Heap::before_fork() {
  Heap& heap = instance();
  if (span_.load(std::memory_order_acquire) == 0) return;
  const Inside inside;
  if (heap.is_child_) {
    // A grandchild inherits this child's memory. Without a copy, neither of them can have it.
    if (!heap.childs_.empty() && heap.copy_error_ == 0) heap.revive();
  } else {
    heap.prepare_copy();
  }
  heap.lock_.lock();
  // Another thread may have made the first block just now.
  while (!heap.is_child_ && heap.needs_copy()) {
    heap.lock_.unlock();
    heap.prepare_copy();
    heap.lock_.lock();
  }
  OC_ASSERT(!heap.is_forking_);
  heap.is_forking_ = true;
}

void Heap::prepare_copy() {
  {
    const os::Locked locked(lock_);             // held while another thread forks
    OC_ASSERT(copy_ == nullptr && !is_child_);  // that has moved its own out
    copy_error_ = 0;
    if (!needs_copy()) return;
  }
  std::unique_ptr<HeapCopy> ready(std::exchange(prepared, nullptr));
  copy_error_ = views_->stop(has_program_threads());
  if (copy_error_ != 0) return;
  copy_ = std::move(ready);
  if (copy_ == nullptr) copy_ = make_copy(*views_);
  if (copy_ != nullptr && copy_->reserve(views_->shown_bytes())) return;
  copy_error_ = errno;
  copy_ = nullptr;
  views_->resume();
}

// An error other than ENOMEM concerns only a child that touches the heap, not one that calls exec.
bool Heap::prepare_fork() {
  Heap& heap = instance();
  if (!is_used() || heap.is_child_ || is_inside()) return true;
  const Inside inside;
  // If there is one, a signal handler has interrupted fork() and forks: its child gets that one.
  if (prepared == nullptr) prepared = make_copy(*heap.views_).release();
  return prepared != nullptr || errno != ENOMEM;
}

void Heap::drop_prepared() {
  const Inside inside;
  delete std::exchange(prepared, nullptr);
}

void Heap::after_fork_in_parent(bool may_have_failed) {
  Heap& heap = instance();
  if (!heap.is_forking_) return;
  const Inside inside;
  heap.is_forking_ = false;
  const uint64_t live = heap.live_bytes_;
  const std::unique_ptr<HeapCopy> copy = std::move(heap.copy_);  // the next fork() has its own
  heap.lock_.unlock();
  if (copy == nullptr) return;
  int error = ECHILD;  // nobody needs the copy
  if (copy->is_wanted(patience_ns(live), may_have_failed)) {
    try {
      error = heap.views_->copy_to(copy->file(), copy->size_bytes());
    } catch (const std::bad_alloc&) {
      error = ENOMEM;
    }
    if (error != 0)
      say(std::string("no copy of the memory that --alloc put on scratch space could be made for "
                      "a forked child: ") +
              ::strerrordesc_np(error),
          true);
  }
  copy->finish(error);
  heap.views_->resume();
}

void Heap::after_fork_in_child() {
  Heap& heap = instance();
  if (!heap.is_forking_) return;
  const Inside inside;
  heap.is_forking_ = false;
  close();
  if (!heap.is_child_) heap.inherit();
  heap.is_child_ = true;
  heap.lock_.unlock();
}

void Heap::inherit() {
  OC_ASSERT(childs_.empty() && !is_child_);
  if (copy_ == nullptr && copy_error_ == 0) return;  // the heap was empty
  set_needs_bounce();  // the kernel cannot use the memory before the first touch
  if (copy_ != nullptr) copy_->become_childs();
  region::AddressMap::instance().for_each([&](region::View& view) {
    if (!has(view.address) || !view.is_inherited || view.mapped_bytes() == 0) return;
    const int protection = view.is_closed     ? PROT_NONE
                           : view.is_writable ? kHeapProtection
                                              : PROT_READ;
    childs_.push_back({view.address, view.mapped_bytes(), view.offset, protection});
  });
  if (copy_ == nullptr) return;
  for (const Inherited& part : childs_)
    if (copy_error_ == 0) copy_error_ = copy_->lay_over(part.address, part.bytes, part.offset);
  copy_->close_file();
}

// In the child: the memory is there from now on, and the kernel's. Any thread, also in a handler.
void Heap::revive() {
  const Inside inside;
  const os::Locked locked(reviving_);
  OC_CHECK(is_child_);
  if (childs_.empty() || is_revived_.load()) return;
  if (copy_error_ == 0) copy_error_ = copy_->fetch();
  if (copy_error_ == ESRCH) end_child("the parent is gone");
  if (copy_error_ != 0) end_child(::strerrordesc_np(copy_error_));
  for (const Inherited& part : childs_)
    if (real().mprotect(part.address, part.bytes, part.protection) != 0)
      end_child("its mapping is refused");
  static_cast<void>(copy_.release());  // kept: the child's first thread holds a lock in its page
  is_revived_.store(true);
}

// If another thread has revived the memory before, the touch is made again. If that faults, too,
// the program has made the place inaccessible, and the fault is the program's own.
bool Heap::revive_at(const std::byte* address) {
  thread_local const std::byte* last = nullptr;
  Heap& heap = instance();
  if (!has(address) || !heap.is_child_ || heap.childs_.empty()) return false;
  if (!heap.is_revived_.load()) {
    heap.revive();
    return true;
  }
  if (last == address)
    for (const Inherited& part : heap.childs_)
      if (address >= part.address && address < part.address + part.bytes)
        runtime::forget_inherited(part.address, part.bytes);
  last = address;
  return true;
}

// -- what the program does to the memory in the child. The addresses stay reserved: if the kernel
// put another mapping there, has() would say that it is the heap's --

int Heap::unmap_childs(uint64_t from, uint64_t to) {
  revive();
  return -os::make_inaccessible(views_->address() + from, to - from);
}

int Heap::protect_childs(uint64_t from, uint64_t to, int protection) {
  revive();
  return real().mprotect(views_->address() + from, to - from, protection) == 0 ? 0 : errno;
}

int Heap::advise_childs(uint64_t from, uint64_t to, int advice) {
  revive();
  std::byte* const address = views_->address() + from;
  // For the kernel this is a private mapping of a file: it would bring the file's bytes back.
  if (advice == MADV_DONTNEED)
    return real().mmap(address, to - from, kHeapProtection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED,
                       -1, 0) == address
               ? 0
               : errno;
  if (advice == MADV_FREE) return 0;
  return real().madvise(address, to - from, advice) == 0 ? 0 : errno;
}

void* Heap::remap_childs(uint64_t from, uint64_t to, uint64_t bytes, int flags) {
  revive();
  std::byte* const address = views_->address() + from;
  if (bytes <= to - from && (flags & ~MREMAP_MAYMOVE) == 0) {
    if (bytes < to - from) static_cast<void>(unmap_childs(from + bytes, to));
    return address;
  }
  if (flags != MREMAP_MAYMOVE) return errno = ENOMEM, MAP_FAILED;
  void* place = real().mmap(nullptr, bytes, kHeapProtection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (place == MAP_FAILED) return MAP_FAILED;
  std::memcpy(place, address, to - from);
  static_cast<void>(unmap_childs(from, to));
  return place;
}

void Heap::free_childs(void* p) {
  uint64_t from = offset_of(p), to = from;
  {
    const os::Locked locked(lock_);
    const auto at = blocks_.find(from);
    if (at == blocks_.end()) return;
    to = from + at->second.bytes;
    blocks_.erase(at);
  }
  if (childs_.empty())
    static_cast<void>(os::make_inaccessible(views_->address() + from, to - from));
}

}  // namespace outcore::preload
