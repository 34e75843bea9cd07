#include "run/preload/alt_stack.h"

#include <pthread.h>
#include <sys/mman.h>

#include <atomic>
#include <cerrno>

#include "core/base/assert.h"
#include "run/preload/ranges.h"
#include "run/preload/real.h"
#include "run/preload/sandbox.h"
#include "run/preload/window.h"

namespace outcore::preload {
namespace {

// Large, because handlers of the program run there that had the thread's whole stack before. Only
// pages that are touched take memory.
constexpr size_t kOwnBytes = 1 << 20, kGuardBytes = 4096;
// The most that a thread has at a time. Some programs make coroutines of them, whose frames must
// stay.
constexpr int kStacksMax = 8;
constexpr int kPoolMax = 64;

struct Replaced {
  void* programs = nullptr;
  size_t programs_bytes = 0;
  std::byte* ours = nullptr;
};
constinit thread_local Replaced replaced[kStacksMax];
constinit thread_local bool is_noted = false;

// Stacks of threads that have ended.
constinit std::atomic<std::byte*> pool[kPoolMax];

std::byte* take_stack() {
  for (std::atomic<std::byte*>& slot : pool)
    if (std::byte* p = slot.exchange(nullptr); p != nullptr) return p;
  void* p = real().mmap(nullptr, kGuardBytes + kOwnBytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) return nullptr;
  real().mprotect(p, kGuardBytes, PROT_NONE);
  return static_cast<std::byte*>(p) + kGuardBytes;
}

void give_stack_back(std::byte* stack) {
  OC_ASSERT(stack != nullptr);
  for (std::atomic<std::byte*>& slot : pool) {
    std::byte* none = nullptr;
    if (slot.compare_exchange_strong(none, stack)) return;
  }
  real().munmap(stack - kGuardBytes, kGuardBytes + kOwnBytes);
}

// The thread ends. The kernel must not keep a stack that another thread may get.
void end_thread(void*) {
  if (are_all_restricted()) return;  // a filter may forbid our calls: the stacks are not freed
  stack_t off{};
  off.ss_flags = SS_DISABLE;
  real().sigaltstack(&off, nullptr);
  for (Replaced& r : replaced) {
    if (r.ours != nullptr) give_stack_back(r.ours);
    r = {};
  }
  is_noted = false;
}

// Makes the thread call end_thread() when it ends. False: its stacks would never be freed.
bool note_thread() {
  static pthread_key_t key;
  static const bool has_key = ::pthread_key_create(&key, end_thread) == 0;
  if (!is_noted) is_noted = has_key && ::pthread_setspecific(key, &is_noted) == 0;
  return is_noted;
}

Replaced* find(const void* programs, size_t bytes) {
  for (Replaced& r : replaced)
    if (r.ours != nullptr && r.programs == programs && r.programs_bytes == bytes) return &r;
  return nullptr;
}

Replaced* find_or_make(const stack_t& now) {
  if (Replaced* found = find(now.ss_sp, now.ss_size); found != nullptr) return found;
  for (Replaced& r : replaced) {
    if (r.ours != nullptr) continue;
    if (!note_thread()) return nullptr;
    std::byte* ours = take_stack();
    if (ours == nullptr) return nullptr;
    r = {now.ss_sp, now.ss_size, ours};
    return &r;
  }
  return nullptr;
}

void show_programs(stack_t* stack) {
  for (const Replaced& r : replaced) {
    if (r.ours == nullptr || r.ours != stack->ss_sp) continue;
    stack->ss_sp = r.programs;
    stack->ss_size = r.programs_bytes;
    if (r.programs == nullptr) stack->ss_flags = SS_DISABLE;  // by provide(), not by the program
  }
}

}  // namespace

namespace {

// In the window each system call of a handler would be trapped, those of our own handler included.
// On memory that the program has allocated the kernel may find an absent page when it begins a
// handler, and what lies beside it in a page may be written meanwhile, so that none can be left.
bool is_fit(const stack_t& programs) {
  return programs.ss_size >= AltStack::kBytesMin &&
         !Window::covers(programs.ss_sp, programs.ss_size) &&
         !is_heap_without_messages(programs.ss_sp, programs.ss_size);
}

// If there is no memory, the kernel keeps the stack that the program has set.
void put_ours_in_place_of(const stack_t& programs) {
  const Replaced* const r = find_or_make(programs);
  if (r == nullptr) return;
  const stack_t ours{r->ours, programs.ss_flags, kOwnBytes};
  real().sigaltstack(&ours, nullptr);
}

}  // namespace

int AltStack::exchange(const stack_t* now, stack_t* before) {
  stack_t found{}, asked{};
  const int saved_errno = errno;
  // Copied: if `now` were in the window, the call would be trapped, and the kernel changes no stack
  // while the handler runs on it.
  if (now != nullptr) now = &(asked = *now);
  const bool is_kept =
      now != nullptr && (now->ss_flags & SS_DISABLE) == 0 && is_fit(*now) && !are_all_restricted();
  if (is_kept && leave_stack(now->ss_sp, now->ss_size) != 0) return errno = ENOMEM, -1;
  if (const int result = real().sigaltstack(now, &found); result != 0) return result;
  show_programs(&found);
  if (before != nullptr) *before = found;
  if (now == nullptr || are_all_restricted()) return 0;
  if ((now->ss_flags & SS_DISABLE) != 0) {
    if (find(nullptr, 0) != nullptr) provide();
  } else if (!is_fit(*now)) {
    put_ours_in_place_of(*now);  // the kernel has accepted `now`, so it accepts ours
  }
  errno = saved_errno;
  return 0;
}

void AltStack::provide() {
  const int saved_errno = errno;
  stack_t now{};
  if (real().sigaltstack(nullptr, &now) == 0 && (now.ss_flags & SS_DISABLE) != 0)
    put_ours_in_place_of({});
  errno = saved_errno;
}

}  // namespace outcore::preload
