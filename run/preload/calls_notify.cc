// timer_create and mq_notify with SIGEV_THREAD: the C library calls the program's function in a
// thread in which every signal is blocked, also those by which faults and trapped system calls are
// answered. So a function of ours runs first and unblocks these. See calls.h.
#include <dlfcn.h>
#include <mqueue.h>
#include <signal.h>
#include <time.h>

#include <new>

#include "core/os/process_lock.h"
#include "run/preload/alt_stack.h"
#include "run/preload/calls.h"
#include "run/preload/window.h"

using namespace outcore::preload;  // NOLINT(google-build-using-namespace): names of this room

namespace {

// A function of the program, and its argument. It is never freed, because we cannot know when the
// function is called for the last time; equal ones are kept once.
struct Notice {
  void (*function)(sigval);
  void* value;
  Notice* next;
};

// A hash table by function and value: some programs have one for each of many requests.
constexpr size_t kChains = 4096;
constinit Notice* notices[kChains] = {};
outcore::os::ProcessLock keeping;  // guards them; locked with signals blocked

Notice* keep(void (*function)(sigval), sigval value) {
  const Inside inside;
  const outcore::os::Locked locked(keeping);
  const auto mixed =
      (reinterpret_cast<uintptr_t>(function) ^ reinterpret_cast<uintptr_t>(value.sival_ptr)) *
      0x9E3779B97F4A7C15ULL;
  Notice*& chain = notices[mixed >> 52];
  for (Notice* n = chain; n != nullptr; n = n->next)
    if (n->function == function && n->value == value.sival_ptr) return n;
  auto* const made = new (std::nothrow) Notice{function, value.sival_ptr, chain};
  if (made != nullptr) chain = made;
  return made;
}

void call_program(sigval given) {
  const Notice notice = *static_cast<const Notice*>(given.sival_ptr);
  let_faults_come();
  AltStack::provide();
  sigval value;
  value.sival_ptr = notice.value;
  notice.function(value);
}

// `how`, or `copy` with our function in place of the program's. nullptr with `how` not null: there
// is no memory for it.
const sigevent* ours(const sigevent* how, sigevent* copy) {
  const bool is_thread =
      how != nullptr && how->sigev_notify == SIGEV_THREAD && how->sigev_notify_function != nullptr;
  if (!is_thread || !Window::is_offered() || is_inside() || is_borrowing()) return how;
  Notice* const notice = keep(how->sigev_notify_function, how->sigev_value);
  if (notice == nullptr) return nullptr;
  *copy = *how;
  copy->sigev_notify_function = call_program;
  copy->sigev_value.sival_ptr = notice;
  return copy;
}

// Both are looked up at each call: they may be in a library that is loaded later than this one.
template <typename Function>
Function next(const char* name) {
  return reinterpret_cast<Function>(::dlsym(RTLD_NEXT, name));
}

}  // namespace

OUTCORE_EXPORT int timer_create(clockid_t clock, sigevent* how, timer_t* timer) noexcept {
  auto* const call = next<int (*)(clockid_t, sigevent*, timer_t*)>("timer_create");
  if (call == nullptr) return fail(ENOSYS);
  sigevent copy;
  const sigevent* const asked = ours(how, &copy);
  if (asked == nullptr && how != nullptr) return fail(EAGAIN);
  return call(clock, const_cast<sigevent*>(asked), timer);
}

OUTCORE_EXPORT int mq_notify(mqd_t queue, const sigevent* how) noexcept {
  auto* const call = next<int (*)(mqd_t, const sigevent*)>("mq_notify");
  if (call == nullptr) return fail(ENOSYS);
  sigevent copy;
  const sigevent* const asked = ours(how, &copy);
  if (asked == nullptr && how != nullptr) return fail(ENOMEM);
  return call(queue, asked);
}
