// The library's own beginning and end in a process.
#include <signal.h>
#include <unistd.h>
#include <unwind.h>

#include <string>
#include <string_view>

#include "core/os/descriptor_place.h"
#include "core/os/signal_delivery.h"
#include "run/preload/alt_stack.h"
#include "run/preload/calls.h"
#include "run/preload/fork.h"
#include "run/preload/heap.h"
#include "run/preload/joining_open.h"
#include "run/preload/last_store.h"
#include "run/preload/own_descriptors.h"
#include "run/preload/requests.h"
#include "run/preload/sandbox.h"
#include "run/preload/settings.h"
#include "run/preload/window.h"

namespace outcore::preload {
namespace {

// Protects the descriptor of the memory that `outcore run` has left open for all reports.
void keep_report() {
  const int fd = settings().report_fd;
  char path[64];
  const ssize_t n =
      ::readlink(("/proc/self/fd/" + std::to_string(fd)).c_str(), path, sizeof path - 1);
  if (n > 0 && std::string_view(path, static_cast<size_t>(n)).starts_with("/memfd:outcore-run"))
    OwnDescriptors::mark(fd);
}

// Registered first, so it runs last: the program's own functions may still need the heap's memory.
void retire_at_quick_exit() { LastStore::run(LastStore::What::kStoreAndRetire); }

void store_before_a_crash() { LastStore::run(LastStore::What::kStore); }

// pthread_cancel() ends a thread with the unwinder of the system's libgcc. In its steps through our
// frames it also uses this library's copy, which must make its tables now, or it would abort.
void prepare_unwinding() {
  ::_Unwind_Backtrace([](_Unwind_Context*, void*) { return _URC_END_OF_STACK; }, nullptr);
}

__attribute__((constructor)) void begin() {
  static_cast<void>(real());
  Window::answer_traps();
  prepare_unwinding();
  os::place_descriptor = OwnDescriptors::keep;
  os::set_last_words(store_before_a_crash);
  os::set_block_query(thinks_blocked);
  prepare_fork();
  ReleaseLink::prepare();
  keep_requests_from_children();
  Door::instance().begin();
  keep_report();
  JoiningOpen::prepare();
  Heap::prepare();
  ::at_quick_exit(retire_at_quick_exit);
  // An inherited mask may block signals that must never be blocked.
  sigset_t faults;
  sigemptyset(&faults);
  for (const int signal : {SIGBUS, SIGSEGV}) sigaddset(&faults, signal);
  if (Window::is_offered()) {
    sigaddset(&faults, SIGSYS);
    AltStack::provide();
  }
  real().pthread_sigmask(SIG_UNBLOCK, &faults, nullptr);
}

__attribute__((destructor)) void end() {
  end_of_process();
  Heap::retire();
}

}  // namespace

void end_of_process() {
  if (are_all_restricted()) return;
  static std::atomic<pid_t> ending{0};  // the process that ends; a forked child ends by itself
  Door& door = Door::instance();
  if (door.is_of_another_process()) return;
  const pid_t self = ::getpid();
  // A second thread that ends the process waits until the first one's bytes are stored.
  if (ending.exchange(self) == self) return LastStore::run(LastStore::What::kStore);
  static_cast<void>(is_ready([&] { door.leave_buffer(); }));
  LastStore::store_and_report();
}

}  // namespace outcore::preload
