// Fork: what a forked child finds. Children do not inherit regions (MADV_DONTFORK). In the child
// their addresses become inaccessible placeholders, so that nothing else is mapped there, and a
// touch ends the child with a message instead of returning wrong bytes; or, where the pages are in
// a buffer, it makes the region the child's own (inheritance.h).
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>

#include "core/os/at_fork.h"
#include "core/os/mapping_count.h"
#include "core/os/process_lock.h"
#include "core/published/sheet.h"
#include "core/region/address_map.h"
#include "core/runtime/fork.h"
#include "core/runtime/inheritance.h"
#include "core/runtime/runtime_impl.h"

namespace outcore::runtime {
namespace {

ForkHooks hooks;
struct sigaction segv_before {};
thread_local int errno_before = 0;

[[noreturn]] void end_child() {
  static const char text[] =
      "outcore: a forked child touched a region of its parent, which it does not inherit: map it "
      "in the child, or exec\n";
  const ssize_t ignored = ::write(STDERR_FILENO, text, sizeof text - 1);
  static_cast<void>(ignored);
  ::_exit(128 + SIGSEGV);
}

bool is_placeholder(const std::byte* address) {
  bool is_found = false;
  region::AddressMap::instance().for_each([&](region::View& view) {
    is_found = is_found || (view.is_inherited.load() && address >= view.address &&
                            address < view.address + view.reserved_bytes);
  });
  return is_found;
}

void on_child_touch(int signal, siginfo_t* info, void* context) {
  if (info->si_code > 0) {  // by the kernel: a touch
    const int error = errno;
    const auto* const address = static_cast<const std::byte*>(info->si_addr);
    const bool is_answered = Inheritance::answer(address);
    errno = error;
    if (is_answered) return;
    if (is_placeholder(address)) end_child();
  }
  if ((segv_before.sa_flags & SA_SIGINFO) != 0 && segv_before.sa_sigaction != nullptr) {
    segv_before.sa_sigaction(signal, info, context);
    return;
  }
  ::sigaction(SIGSEGV, &segv_before, nullptr);  // the touch is repeated
}

// Locks are held until fork() has returned here: no handler that needs one may run in between.
void before_fork() {
  if (hooks.before != nullptr) hooks.before();
  Inheritance::lock();
  os::ProcessLock::lock_all();
  errno_before = errno;
  errno = 0;  // afterwards it tells whether fork() succeeded
}

void after_fork_in_parent() {
  const bool may_have_failed = errno != 0;
  if (!may_have_failed) errno = errno_before;
  os::ProcessLock::unlock_all();
  Inheritance::unlock();
  if (hooks.after_in_parent != nullptr) hooks.after_in_parent(may_have_failed);
}

void after_fork_in_child() {
  errno = errno_before;
  os::ProcessLock::unlock_all();
  Inheritance::unlock();
  os::MappingCount::forget_in_child();
  published::Sheet::leave_all_in_child();
  bool has_regions = false;
  region::AddressMap::instance().for_each([&](region::View& view) {
    has_regions = true;
    view.users.store(0);  // threads of the parent, in the midst of faults
    // In a grandchild: its parent has already put something in place of the region, and that is
    // inherited.
    if (view.is_inherited.load()) return;
    if (hooks.adopt != nullptr && hooks.adopt(view)) {
      region::AddressMap::instance().forget_in_child(view);
      return;
    }
    view.is_inherited.store(true);
    const uint64_t size_bytes = base::round_up(view.reserved_bytes, base::kSystemPage);
    // If this fails, the addresses are unmapped, which ends a touch just as well.
    const void* ignored = ::mmap(view.address, size_bytes, PROT_NONE,
                                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    static_cast<void>(ignored);
  });
  if (hooks.after_in_child != nullptr) hooks.after_in_child();
  static bool is_installed = false;  // set in a parent that was itself a child
  // With hooks, the handler of `outcore run` stays installed, and calls answer_inherited().
  if (!has_regions || is_installed || hooks.on_touch != nullptr) return;
  is_installed = true;
  struct sigaction action {};
  action.sa_sigaction = on_child_touch;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigfillset(&action.sa_mask);
  // Threads that are started in the handler (Inheritance) are to hear of faults of their own.
  for (const int fault : {SIGBUS, SIGSEGV, SIGILL, SIGFPE, SIGTRAP, SIGSYS})
    sigdelset(&action.sa_mask, fault);
  ::sigaction(SIGSEGV, &action, &segv_before);
}

}  // namespace

void set_fork_hooks(const ForkHooks& now) { hooks = now; }

void forget_inherited(const std::byte* address, uint64_t size_bytes) {
  region::AddressMap::instance().forget_inherited(address, size_bytes);
}

bool answer_inherited(const std::byte* address) {
  if (hooks.on_touch != nullptr && hooks.on_touch(address)) return true;
  if (Inheritance::answer(address)) return true;
  // Another thread that touched it at the same time may have caused the replacement meanwhile.
  if (!is_placeholder(address)) return true;
  end_child();
}

uint64_t process_generation() {
  static const bool is_registered = [] {
    static_cast<void>(region::AddressMap::instance());
    os::at_fork(os::ForkOrder::kRuntime, before_fork, after_fork_in_parent, after_fork_in_child);
    return true;
  }();
  static_cast<void>(is_registered);
  return os::process_generation();
}

}  // namespace outcore::runtime
