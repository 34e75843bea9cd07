// POSIX' aio. The C library carries it out in threads of its own by calls that nobody sees: what
// concerns us is done here, at once, by the calls that know of us; the rest is the C library's. See
// calls.h.
#include <aio.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <memory>
#include <new>

#include "run/preload/as_program.h"
#include "run/preload/bounce.h"
#include "run/preload/calls.h"
#include "run/preload/descriptor_table.h"
#include "run/preload/later_writes.h"

using namespace outcore::preload;  // NOLINT(google-build-using-namespace): names of this room

namespace {

// From a pipe bytes may never come, and whoever asked for them so does not wait for them.
bool waits_for_others(int fd) {
  struct stat about;
  return ::fstat(fd, &about) != 0 || !(S_ISREG(about.st_mode) || S_ISBLK(about.st_mode));
}

bool is_ours(const aiocb* request) {
  if (request == nullptr || !Door::is_any_taken() || is_inside()) return false;
  if (waits_for_others(request->aio_fildes)) return false;
  return DescriptorTable::file_of(request->aio_fildes) != nullptr ||
         concerns(const_cast<const void*>(request->aio_buf), request->aio_nbytes);
}

// As if a thread of the C library had just done it.
void carry_out(aiocb* request, bool is_write) {
  void* buffer = const_cast<void*>(request->aio_buf);
  const int saved_errno = errno;
  const ssize_t moved = is_write ? as_program::pwrite(request->aio_fildes, buffer,
                                                      request->aio_nbytes, request->aio_offset)
                                 : as_program::pread(request->aio_fildes, buffer,
                                                     request->aio_nbytes, request->aio_offset);
  request->__return_value = moved;
  __atomic_store_n(&request->__error_code, moved < 0 ? errno : 0, __ATOMIC_RELEASE);
  errno = saved_errno;
}

// A list of none has ended at once, and the C library says so in the way that is asked for.
int tell(sigevent* how) { return real().lio_listio(LIO_NOWAIT, nullptr, 0, how); }

int one(aiocb* request, bool is_write, int (*real_one)(aiocb*)) {
  if (!is_ours(request)) return real_one(request);
  carry_out(request, is_write);
  return tell(&request->aio_sigevent);
}

}  // namespace

OUTCORE_EXPORT int aio_read(aiocb* request) noexcept {
  return one(request, false, real().aio_read);
}
OUTCORE_EXPORT int aio_write(aiocb* request) noexcept {
  return one(request, true, real().aio_write);
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

OUTCORE_EXPORT int lio_listio(int mode, aiocb* const* list, int count, sigevent* how) noexcept {
  bool is_any_ours = false;
  for (int i = 0; i < count; ++i) is_any_ours = is_any_ours || is_ours(list[i]);
  const bool is_known = mode == LIO_WAIT || mode == LIO_NOWAIT;
  if (!is_any_ours || !is_known) return real().lio_listio(mode, list, count, how);
  const std::unique_ptr<aiocb*[]> rest(new (std::nothrow) aiocb*[static_cast<size_t>(count)]);
  if (rest == nullptr) return fail(EAGAIN);
  int rest_count = 0;
  bool has_failed = false;
  for (int i = 0; i < count; ++i) {
    aiocb* const request = list[i];
    const bool moves = request != nullptr && request->aio_lio_opcode != LIO_NOP;
    if (!moves || !is_ours(request)) {
      rest[static_cast<size_t>(rest_count++)] = request;
      continue;
    }
    carry_out(request, request->aio_lio_opcode == LIO_WRITE);
    has_failed = has_failed || request->__error_code != 0;
    static_cast<void>(tell(&request->aio_sigevent));
  }
  const int result = real().lio_listio(mode, rest.get(), rest_count, how);
  return result == 0 && mode == LIO_WAIT && has_failed ? fail(EIO) : result;
}

// The same structure under another name.
extern "C" {
#define OUTCORE_SAME(result, name, parameters, target) \
  __attribute__((visibility("default"), alias(#target))) result name parameters noexcept
OUTCORE_SAME(int, aio_read64, (aiocb64*), aio_read);
OUTCORE_SAME(int, aio_write64, (aiocb64*), aio_write);
OUTCORE_SAME(int, aio_fsync64, (int, aiocb64*), aio_fsync);
OUTCORE_SAME(int, lio_listio64, (int, aiocb64* const*, int, sigevent*), lio_listio);
#undef OUTCORE_SAME
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
