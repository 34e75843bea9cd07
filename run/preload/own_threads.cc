#include "run/preload/own_threads.h"

#include <errno.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cstdint>
#include <iterator>
#include <new>
#include <string>
#include <string_view>

#include "core/base/assert.h"
#include "core/os/kernel_text.h"
#include "core/os/process_stat.h"
#include "core/os/wait.h"
#include "run/preload/real.h"

namespace outcore::preload {
namespace {

// A thread that adds to one of them looks at the other afterwards: so one of two sees the other.
std::atomic<uint32_t> starting{0}, filters{0};
constinit thread_local uint32_t filters_here = 0;  // those of this thread

constexpr uint64_t kPatienceNs = 2'000'000'000;

struct Start {
  void* (*function)(void*);
  void* argument;
  sigset_t mask;  // of the thread that starts it
};

// The numbers of our threads; 0: the place is free. Threads beyond 64 are not waited for.
std::atomic<pid_t> threads[64];

std::atomic<pid_t>* add_this_thread() {
  const auto number = static_cast<pid_t>(real().syscall(SYS_gettid));
  for (std::atomic<pid_t>& slot : threads) {
    pid_t none = 0;
    if (slot.compare_exchange_strong(none, number)) return &slot;
  }
  return nullptr;
}

// How often the thread has run, if it sleeps; UINT64_MAX: it does not sleep.
uint64_t turns_of_sleeper(pid_t number) {
  const std::string folder = "/proc/self/task/" + std::to_string(number);
  char text[os::KernelText::kBytesMax];
  const os::ProcessStat stat(os::KernelText(folder + "/stat").read(text));
  if (stat.state() == 0) return 0;  // it has ended
  if (stat.state() != 'S') return UINT64_MAX;
  const std::string_view turns = os::KernelText(folder + "/schedstat").read(text);
  const size_t last = turns.rfind(' ');
  uint64_t count = 0;
  if (last != turns.npos)
    std::from_chars(turns.data() + last + 1, turns.data() + turns.size(), count);
  return count;
}

void rest() {
  constexpr timespec kPause{0, 50'000};
  ::nanosleep(&kPause, nullptr);
}

// No destructor runs here when the thread is unwound.
void* begin(void* given) {
  const Start start = *static_cast<Start*>(given);
  delete static_cast<Start*>(given);
  OC_CHECK(start.function != nullptr);
  real().pthread_sigmask(SIG_SETMASK, &start.mask, nullptr);
  os::rest_when_told();
  std::atomic<pid_t>* const slot = add_this_thread();
  const uint32_t before = starting.fetch_sub(1);
  OC_CHECK(before != 0);
  void* const result = start.function(start.argument);
  if (slot != nullptr) slot->store(0);
  return result;
}

void enter_starting() {
  const uint64_t end_ns = os::now_ns() + kPatienceNs;
  for (;;) {
    starting.fetch_add(1);
    // A handler of the program may have interrupted this thread while it installs a filter.
    if (filters.load() == filters_here || os::now_ns() > end_ns) return;
    starting.fetch_sub(1);
    rest();
  }
}

}  // namespace

// Signals are blocked: a handler that interrupted this function after it has counted, and installed
// a filter, would wait for itself.
int OwnThreads::start(pthread_t* thread, const pthread_attr_t* attributes, void* (*function)(void*),
                      void* argument) {
  OC_ASSERT(thread != nullptr && function != nullptr);
  auto* const given = new (std::nothrow) Start{function, argument, {}};
  if (given == nullptr) return EAGAIN;
  sigset_t all;
  sigfillset(&all);
  for (const int fault : {SIGSEGV, SIGBUS, SIGSYS}) sigdelset(&all, fault);
  real().pthread_sigmask(SIG_BLOCK, &all, &given->mask);
  const sigset_t before = given->mask;
  enter_starting();
  const int error = real().pthread_create(thread, attributes, begin, given);
  if (error != 0) {
    starting.fetch_sub(1);
    delete given;
  }
  real().pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return error;
}

// The threads rest if they sleep each time at two looks, and have not run in between.
void OwnThreads::let_rest() {
  constexpr int kLooksMax = 200;
  constexpr timespec kPause{0, 1'000'000}, kWithoutLooking{0, 50'000'000};
  if (::access("/proc/self/task", X_OK) != 0) {
    ::nanosleep(&kWithoutLooking, nullptr);
    return;
  }
  uint64_t seen[std::size(threads)];
  std::fill(std::begin(seen), std::end(seen), UINT64_MAX);
  for (int look = 0; look < kLooksMax; ++look) {
    bool are_resting = true;
    for (size_t i = 0; i < std::size(threads); ++i) {
      const pid_t number = threads[i].load();
      const uint64_t now = number == 0 ? 0 : turns_of_sleeper(number);
      are_resting = are_resting && now != UINT64_MAX && now == seen[i];
      seen[i] = now;
    }
    if (are_resting) return;
    ::nanosleep(&kPause, nullptr);
  }
}

OwnThreads::NoneStarting::NoneStarting() {
  ++filters_here;
  filters.fetch_add(1);
  // The wait is bounded: this thread may hold a lock that a starting thread needs, if a signal has
  // interrupted malloc, say.
  const uint64_t end_ns = os::now_ns() + kPatienceNs;
  while (starting.load() != 0 && os::now_ns() < end_ns) rest();
}

OwnThreads::NoneStarting::~NoneStarting() {
  OC_ASSERT(filters_here != 0);
  --filters_here;
  const uint32_t before = filters.fetch_sub(1);
  OC_CHECK(before != 0);
}

void OwnThreads::after_fork_in_child() {
  starting.store(0);
  filters.store(filters_here);
  for (std::atomic<pid_t>& slot : threads) slot.store(0);
}

}  // namespace outcore::preload
