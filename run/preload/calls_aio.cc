// POSIX aio. The C library carries it out in its own threads, by calls that we do not see. So
// requests for taken files or managed memory are carried out here, at once, by our functions; the C
// library carries out the others. See calls.h.
#include <aio.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <new>

#include "core/base/clock.h"
#include "core/os/wait.h"
#include "run/preload/as_program.h"
#include "run/preload/bounce.h"
#include "run/preload/calls.h"
#include "run/preload/descriptor_table.h"
#include "run/preload/later_writes.h"
#include "run/preload/own_threads.h"
#include "run/preload/window.h"

using namespace outcore::preload;  // NOLINT(google-build-using-namespace): names of this room

namespace {

// Whether the transfer may wait for others. A pipe may never have bytes, and a program that uses
// aio does not expect the call to wait for them.
bool waits_for_others(int fd) {
  struct stat about;
  return ::fstat(fd, &about) != 0 || !(S_ISREG(about.st_mode) || S_ISBLK(about.st_mode));
}

// In a thread of the C library a call that points into the window would end the process.
bool is_in_window(const aiocb& request) {
  return Window::covers(const_cast<const void*>(request.aio_buf), 1);
}

bool is_ours(const aiocb* request) {
  if (request == nullptr || is_inside()) return false;
  if (is_in_window(*request)) return true;
  if (!Door::is_any_taken() || waits_for_others(request->aio_fildes)) return false;
  return DescriptorTable::file_of(request->aio_fildes) != nullptr ||
         concerns(const_cast<const void*>(request->aio_buf), request->aio_nbytes);
}

// As in the C library, the offset is ignored where the descriptor has no positions (a pipe).
ssize_t move(const aiocb& request, bool is_write) {
  void* const buffer = const_cast<void*>(request.aio_buf);
  const int fd = request.aio_fildes;
  const size_t n = request.aio_nbytes;
  const ssize_t moved = is_write ? as_program::pwrite(fd, buffer, n, request.aio_offset)
                                 : as_program::pread(fd, buffer, n, request.aio_offset);
  if (moved >= 0 || errno != ESPIPE) return moved;
  return is_write ? as_program::write(fd, buffer, n) : as_program::read(fd, buffer, n);
}

// Carries the request out, and leaves the result as a thread of the C library would.
void do_now(aiocb* request, bool is_write) {
  const int saved_errno = errno;
  const ssize_t moved = move(*request, is_write);
  request->__return_value = moved;
  __atomic_store_n(&request->__error_code, moved < 0 ? errno : 0, __ATOMIC_RELEASE);
  errno = saved_errno;
}

// Notifies the program as it asked for: an empty list ends at once, and the C library reports that.
int tell(sigevent* how) { return real().lio_listio(LIO_NOWAIT, nullptr, 0, how); }

// How many requests threads of ours wait for, of which the C library does not know; and how many of
// these have ended, modulo 2^32.
constinit std::atomic<uint32_t> waiting_count{0}, ended_count{0};

struct Waiting {
  aiocb* request;
  bool is_write;
};

void* wait_for_it(void* given) {
  const Waiting waiting = *static_cast<Waiting*>(given);
  delete static_cast<Waiting*>(given);
  sigevent how = waiting.request->aio_sigevent;  // copied: the program may reuse the request
  do_now(waiting.request, waiting.is_write);
  waiting_count.fetch_sub(1);
  ended_count.fetch_add(1);
  outcore::os::wake_all(&ended_count);
  static_cast<void>(tell(&how));
  return nullptr;
}

// Starts a thread of ours in which system calls may be trapped (SIGSYS is not blocked). 0 or an
// errno.
int start_thread(void* (*function)(void*), void* argument) {
  pthread_attr_t attributes;
  if (::pthread_attr_init(&attributes) != 0) return EAGAIN;
  ::pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  sigset_t all, before;
  sigfillset(&all);
  for (const int fault : kFaultSignals) sigdelset(&all, fault);
  real().pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_t thread;
  const int error = OwnThreads::start(&thread, &attributes, function, argument);
  real().pthread_sigmask(SIG_SETMASK, &before, nullptr);
  ::pthread_attr_destroy(&attributes);
  return error;
}

// Carries the request out in a thread of ours, because it may wait for ever.
int wait_in_thread(aiocb* request, bool is_write) {
  auto* const waiting = new (std::nothrow) Waiting{request, is_write};
  if (waiting == nullptr) return fail(EAGAIN);
  request->__error_code = EINPROGRESS;
  waiting_count.fetch_add(1);
  if (start_thread(wait_for_it, waiting) == 0) return 0;
  delete waiting;
  waiting_count.fetch_sub(1);
  request->__error_code = EAGAIN;
  request->__return_value = -1;
  return fail(EAGAIN);
}

// 0, or -1 and errno. `is_awaited`: the caller waits for the list, so no request of it notifies.
int carry_out(aiocb* request, bool is_write, bool is_awaited) {
  if (is_awaited) request->aio_sigevent.sigev_notify = SIGEV_NONE;
  if (waits_for_others(request->aio_fildes)) return wait_in_thread(request, is_write);
  do_now(request, is_write);
  return is_awaited ? 0 : tell(&request->aio_sigevent);
}

int one(aiocb* request, bool is_write, int (*real_one)(aiocb*)) {
  return is_ours(request) ? carry_out(request, is_write, false) : real_one(request);
}

}  // namespace

OUTCORE_EXPORT int aio_read(aiocb* request) noexcept {
  return one(request, false, real().aio_read);
}
OUTCORE_EXPORT int aio_write(aiocb* request) noexcept {
  return one(request, true, real().aio_write);
}

// Waits here if there are requests of ours, because the C library treats a request that it does not
// know as one that has ended.
OUTCORE_EXPORT int aio_suspend(const aiocb* const* list, int count, const timespec* limit) {
  constexpr int64_t kSecondNs = 1'000'000'000, kSliceNs = kSecondNs / 100;
  if (waiting_count.load() == 0 || is_inside()) return real().aio_suspend(list, count, limit);
  const auto now = [] { return static_cast<int64_t>(outcore::base::now_ns()); };
  const int64_t end_ns =
      limit == nullptr
          ? INT64_MAX
          : now() + std::min<int64_t>(limit->tv_sec, kSecondNs) * kSecondNs + limit->tv_nsec;
  for (;;) {
    const uint32_t ended = ended_count.load();
    for (int i = 0; i < count; ++i)
      if (list[i] != nullptr && ::aio_error(list[i]) != EINPROGRESS) return 0;
    const int64_t left_ns = end_ns - now();
    if (left_ns <= 0) return fail(EAGAIN);
    // We are not notified when requests of the C library end, so we look at them in slices of time.
    const timespec slice{0, std::min(left_ns, kSliceNs)};
    ::pthread_testcancel();
    if (real().syscall(SYS_futex, &ended_count, FUTEX_WAIT_PRIVATE, ended, &slice, nullptr, 0) <
            0 &&
        errno == EINTR)
      return -1;
  }
}

OUTCORE_EXPORT int aio_fsync(int operation, aiocb* request) noexcept {
  TakenFile* file = !Door::is_any_taken() || is_inside()
                        ? nullptr
                        : DescriptorTable::file_of(request->aio_fildes);
  const auto is_stored = [&] {
    return Door::instance().before_read(*file, 0, UINT64_MAX / 2) == 0;
  };
  if (file != nullptr && !or_no_memory(is_stored, false)) return fail(EIO);
  return real().aio_fsync(operation, request);
}

namespace {

// A list with requests that wait in threads of ours. The thread that notifies the program of its
// end waits for all of them first.
struct ListEnd {
  std::unique_ptr<aiocb*[]> all;
  int count = 0;
  sigevent how{};
};

bool moves(const aiocb* request) {
  return request != nullptr && request->aio_lio_opcode != LIO_NOP;
}

// False, and errno: a signal has interrupted it.
bool wait_for_all(aiocb* const* list, int count) {
  for (int i = 0; i < count; ++i)
    while (moves(list[i]) && ::aio_error(list[i]) == EINPROGRESS)
      if (aio_suspend(&list[i], 1, nullptr) != 0) return false;
  return true;
}

void* tell_of_end(void* given) {
  const std::unique_ptr<ListEnd> end(static_cast<ListEnd*>(given));
  while (!wait_for_all(end->all.get(), end->count)) continue;
  static_cast<void>(tell(&end->how));
  return nullptr;
}

}  // namespace

OUTCORE_EXPORT int lio_listio(int mode, aiocb* const* list, int count, sigevent* how) noexcept {
  bool is_any_ours = false, is_any_waiting = false;
  for (int i = 0; i < count; ++i) {
    const bool is_one = moves(list[i]) && is_ours(list[i]);
    is_any_ours = is_any_ours || is_one;
    is_any_waiting = is_any_waiting || (is_one && waits_for_others(list[i]->aio_fildes));
  }
  const bool is_known = mode == LIO_WAIT || mode == LIO_NOWAIT;
  if (!is_any_ours || !is_known) return real().lio_listio(mode, list, count, how);
  const auto size = static_cast<size_t>(count);
  const std::unique_ptr<aiocb*[]> rest(new (std::nothrow) aiocb*[size]);
  if (rest == nullptr) return fail(EAGAIN);
  std::unique_ptr<ListEnd> end;  // exists if the program is notified of the end later
  if (mode == LIO_NOWAIT && is_any_waiting && how != nullptr && how->sigev_notify != SIGEV_NONE) {
    end.reset(new (std::nothrow) ListEnd{nullptr, count, *how});
    if (end != nullptr) end->all.reset(new (std::nothrow) aiocb*[size]);
    if (end == nullptr || end->all == nullptr) return fail(EAGAIN);
    std::copy_n(list, count, end->all.get());
  }
  int rest_count = 0;
  for (int i = 0; i < count; ++i) {
    aiocb* const request = list[i];
    if (!moves(request) || !is_ours(request)) {
      rest[static_cast<size_t>(rest_count++)] = request;
      continue;
    }
    if (carry_out(request, request->aio_lio_opcode == LIO_WRITE, mode == LIO_WAIT) != 0) return -1;
  }
  if (end != nullptr) {
    if (real().lio_listio(LIO_NOWAIT, rest.get(), rest_count, nullptr) != 0) return -1;
    if (start_thread(tell_of_end, end.get()) != 0) return fail(EAGAIN);
    static_cast<void>(end.release());
    return 0;
  }
  if (mode == LIO_NOWAIT) return real().lio_listio(mode, rest.get(), rest_count, how);
  if (real().lio_listio(LIO_NOWAIT, rest.get(), rest_count, nullptr) != 0) return -1;
  if (!wait_for_all(list, count)) return -1;
  for (int i = 0; i < count; ++i)
    if (moves(list[i]) && ::aio_error(list[i]) != 0) return fail(EIO);
  return 0;
}

// aiocb64 is aiocb under another name.
extern "C" {
#define OUTCORE_SAME(result, name, parameters, target) \
  __attribute__((visibility("default"), alias(#target))) result name parameters noexcept
OUTCORE_SAME(int, aio_read64, (aiocb64*), aio_read);
OUTCORE_SAME(int, aio_write64, (aiocb64*), aio_write);
OUTCORE_SAME(int, aio_fsync64, (int, aiocb64*), aio_fsync);
OUTCORE_SAME(int, lio_listio64, (int, aiocb64* const*, int, sigevent*), lio_listio);
#undef OUTCORE_SAME
__attribute__((visibility("default"), alias("aio_suspend"))) int aio_suspend64(
    const aiocb64* const* list, int count, const timespec* limit);
}

// -- libaio's set-up, which makes the system call by an instruction of its own --

OUTCORE_EXPORT int io_setup(int events, void** context) {
  if (!is_ready(before_later_writes)) return -ENOMEM;
  const int saved_errno = errno;
  const long result = real().syscall(SYS_io_setup, events, context);
  const int error = errno;
  errno = saved_errno;
  return result < 0 ? -error : 0;
}
