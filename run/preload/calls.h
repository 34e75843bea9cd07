// Calls: what the files that take over the program's calls have in common.
//
// Each call looks first whether anything of ours is concerned, by one or two words of memory; if
// not, it is the real call. They set errno as the real ones do.
#pragma once

#include <signal.h>

#include <cerrno>
#include <cstddef>
#include <new>

#include "run/preload/door.h"
#include "run/preload/inside.h"
#include "run/preload/real.h"

#define OUTCORE_EXPORT extern "C" __attribute__((visibility("default")))
// Another name of the same function.
#define OUTCORE_ALIAS(result, name, parameters, target) \
  extern "C" __attribute__((visibility("default"), alias(#target))) result name parameters

namespace outcore::preload {

// The call is the kernel's alone: nothing of the program is taken, or the caller is ours.
inline bool is_plain() { return !Door::is_any_taken() || is_inside(); }

inline bool concerns(const void* address, size_t size_bytes) {
  if (!Door::is_any_taken() || is_inside() || !Door::may_concern(address, size_bytes)) return false;
  Door::revive_range(address, size_bytes);
  return true;
}

// By these faults come, and system calls that point into the window: they are never blocked.
inline constexpr int kFaultSignals[] = {SIGBUS, SIGSEGV, SIGSYS};
// Unblocks them in this thread, whose mask is somebody else's.
void let_faults_come();
// The program has blocked one of them in this thread, as it thinks.
bool thinks_blocked(int signal);

// This process only shares the memory that our state is in, as a child of vfork does: its calls
// change none of that state. A system call: asked where state would change.
inline bool is_borrowing() { return Door::instance().is_of_another_process(); }

// What the kernel is about to read to start a program may be ours, where it cannot wait for it.
void bring_in(const char* path, char* const* arguments, char* const* names);

// siginterrupt() says of a signal what signal() makes of it.
void note_interrupting(int signal, bool is_interrupting);

// prctl() or seccomp() that makes the program restrict its own system calls. -1 and ENOMEM: what
// that asks of us first has no memory.
struct SystemCall {
  long number, a, b, c, d, e;
};
long into_sandbox(const SystemCall& call);

// syscall() of utime, utimes, futimesat or utimensat.
long set_times(long number, long a, long b, long c, long d);

// Runs a call on the door. A list of ours that is too large for the memory that is left is ENOMEM.
template <typename Call>
auto or_no_memory(const Call& call, decltype(call()) otherwise) {
  try {
    return call();
  } catch (const std::bad_alloc&) {
    errno = ENOMEM;
    return otherwise;
  }
}

inline int fail(int error) {
  errno = error;
  return -1;
}

// Runs a call that gives 0 or an errno, as the answer of one that gives 0, or -1 and errno.
template <typename Call>
int by_errno(const Call& call) {
  const int error = or_no_memory(call, ENOMEM);
  return error == 0 ? 0 : fail(error);
}

// Runs what must come before a call. False, and errno is ENOMEM: there was no memory for it, and
// the call must not be made.
template <typename Call>
bool is_ready(const Call& call) {
  return or_no_memory(
      [&] {
        call();
        return true;
      },
      false);
}

// -1 and errno: what must come before the call has no memory, or says (false) that others could not
// store what they have written.
template <typename Before>
int prepare(const Before& before) {
  bool is_possible = true;
  if (!is_ready([&] { is_possible = before(); })) return -1;
  return is_possible ? 0 : fail(EIO);
}

// Runs what follows a call that has been made: it changes neither the answer nor errno.
template <typename Call>
void afterwards(const Call& call) {
  const int saved_errno = errno;
  static_cast<void>(is_ready(call));
  errno = saved_errno;
}

inline constexpr off_t kHere = -1;  // no offset: at the descriptor's own position
// Where a transfer of these bytes begins; `flags` are those of pwritev2.
uint64_t position_of(int fd, off_t offset, bool is_write, int flags = 0);

// Bytes of a taken file change under `call`, whose answer and errno these are. -1 and ENOMEM: there
// was no memory to prepare for it, and nothing has changed; EIO: others write it, and cannot store
// what they have.
template <typename Offset, typename Call>
auto change_file(TakenFile& file, const Offset& offset, uint64_t size_bytes, const Call& call) {
  decltype(call()) result = -1;
  int error = ENOMEM;
  bool is_called = false;
  static_cast<void>(is_ready([&] {
    Door::instance().around_write(file, offset, size_bytes, [&] {
      is_called = true;
      result = call();
      error = errno;
      return result > 0 ? static_cast<uint64_t>(result) : 0;
    });
    if (!is_called) error = EIO;
  }));
  errno = error;
  return result;
}

}  // namespace outcore::preload
