// read, write and related calls. See calls.h.
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/sendfile.h>
#include <sys/stat.h>

#include <algorithm>
#include <climits>

#include "core/base/assert.h"
#include "core/base/function_ref.h"
#include "run/preload/bounce.h"
#include "run/preload/calls.h"
#include "run/preload/descriptor_table.h"
#include "run/preload/own_descriptors.h"

using namespace outcore::preload;  // NOLINT(google-build-using-namespace): names of this room

namespace {

constexpr off_t kHere = -1;  // at the descriptor's own position

// One transfer: its list of buffers, and the real call, which may get another list in its place.
struct Transfer {
  int fd = -1;
  const iovec* list = nullptr;
  int count = 0;
  off_t offset = kHere;
  bool is_write = false;
  outcore::base::FunctionRef<ssize_t(const iovec*, int, off_t)> call;
  int flags = 0;  // of preadv2 and pwritev2
};

bool is_regular(int fd) {
  struct stat about;
  return ::fstat(fd, &about) == 0 && (S_ISREG(about.st_mode) || S_ISBLK(about.st_mode));
}

bool has_ours(const Transfer& t) {
  return std::any_of(t.list, t.list + t.count,
                     [](const iovec& v) { return concerns(v.iov_base, v.iov_len); });
}

bool must_bounce(const Transfer& t, const TakenFile* file) {
  if (!has_ours(t)) return false;
  if (needs_bounce() || (file != nullptr && t.is_write)) return true;
  const int flags = real().fcntl(t.fd, F_GETFL);
  return flags >= 0 && (flags & O_DIRECT) != 0 && !t.is_write;
}

// Transfers in pieces, through memory that is not managed. A short piece ends the transfer, as the
// real call would end. So does the first piece of a read from anything but a file, because no more
// bytes may come.
ssize_t bounce(const Transfer& t) {
  const size_t total = total_of(t.list, t.count);
  Bounce buffer(std::max<size_t>(total, 1));
  if (!buffer.is_there()) return fail(ENOMEM);
  const bool is_file = is_regular(t.fd);
  size_t done = 0;
  do {
    const size_t n = std::min(buffer.size(), total - done);
    if (t.is_write && !gather(t.list, t.count, done, buffer.data(), n))
      return done != 0 ? static_cast<ssize_t>(done) : fail(EFAULT);
    const iovec one{buffer.data(), n};
    const off_t at = t.offset == kHere ? kHere : t.offset + static_cast<off_t>(done);
    const ssize_t moved = t.call(&one, 1, at);
    if (moved < 0) return done != 0 ? static_cast<ssize_t>(done) : moved;
    OC_CHECK(static_cast<size_t>(moved) <= n);
    if (!t.is_write && !scatter(t.list, t.count, done, buffer.data(), static_cast<size_t>(moved)))
      return done != 0 ? static_cast<ssize_t>(done) : fail(EFAULT);
    done += static_cast<size_t>(moved);
    if (static_cast<size_t>(moved) < n || (!t.is_write && !is_file)) break;
  } while (done < total);
  return static_cast<ssize_t>(done);
}

// Where a transfer begins. Bytes are appended at the end whatever offset is given: Linux does so
// with pwrite, too.
uint64_t position_of(int fd, off_t offset, bool is_write, int flags = 0) {
  constexpr int kNoAppend = 0x20;  // RWF_NOAPPEND, Linux 6.9
  struct stat about;
  const bool appends =
      is_write && ((flags & RWF_APPEND) != 0 ||
                   ((flags & kNoAppend) == 0 && (real().fcntl(fd, F_GETFL) & O_APPEND) != 0));
  if (appends && ::fstat(fd, &about) == 0) return static_cast<uint64_t>(about.st_size);
  if (offset != kHere) return static_cast<uint64_t>(offset);
  return static_cast<uint64_t>(std::max<off_t>(real().lseek(fd, 0, SEEK_CUR), 0));
}

// Of a file that is written together with other processes: writes by the mapping that all of them
// see. False: it cannot be written so, and the kernel must write it.
bool write_together(const Transfer& t, TakenFile& file, ssize_t* written) {
  const size_t total = total_of(t.list, t.count);
  const int flags = real().fcntl(t.fd, F_GETFL);
  constexpr int kOthers = O_APPEND | O_DIRECT | O_DSYNC;
  if (total == 0 || t.flags != 0 || flags < 0 || (flags & kOthers) != 0 ||
      (flags & O_ACCMODE) == O_RDONLY)
    return false;
  ::pthread_testcancel();
  Bounce buffer(total);
  if (!buffer.is_there()) return false;
  uint64_t at = t.offset == kHere ? 0 : static_cast<uint64_t>(t.offset);
  size_t done = 0;
  const bool is_here = t.offset == kHere;
  const auto move = [&](size_t forwards, size_t backwards) {
    const auto by = static_cast<off_t>(forwards) - static_cast<off_t>(backwards);
    if (is_here) static_cast<void>(real().lseek(t.fd, by, SEEK_CUR));
  };
  while (done < total) {
    const size_t n = std::min(buffer.size(), total - done);
    if (!gather(t.list, t.count, done, buffer.data(), n)) break;
    // The place of all bytes is the call's before another thread asks for its own.
    const auto place = [&] {
      return is_here && done == 0 ? at = position_of(t.fd, kHere, true) : at;
    };
    const auto taken = [&] { done == 0 ? move(total, 0) : void(); };
    if (!Door::instance().write_by_face(file, {place, taken}, {buffer.data(), n}, total - done))
      break;
    at += n;
    done += n;
  }
  if (done != 0) move(0, total - done);
  *written = static_cast<ssize_t>(done);
  return done != 0;
}

ssize_t carry_out(Transfer t) {
  TakenFile* file = DescriptorTable::file_of(t.fd);
  ssize_t written = 0;
  if (file != nullptr && t.is_write && file->may_be_together && write_together(t, *file, &written))
    return written;
  const bool is_bounced = must_bounce(t, file);
  if (file != nullptr && !t.is_write) {
    const uint64_t at = position_of(t.fd, t.offset, false);
    if (Door::instance().before_read(*file, at, total_of(t.list, t.count)) != 0) return fail(EIO);
  }
  // The position is looked up under the lock, so that writers of this process come one after the
  // other. Managed buffers were copied before, because a touch of them may have to wait.
  const auto change = [file, fd = t.fd, flags = t.flags, call = t.call](const iovec* list,
                                                                        int count, off_t offset) {
    return change_file(
        *file, [&] { return position_of(fd, offset, true, flags); }, total_of(list, count),
        [&] { return call(list, count, offset); });
  };
  if (file != nullptr && t.is_write) {
    ::pthread_testcancel();  // here, because the call itself will be no cancellation point
    t.call = change;
  }
  return is_bounced ? bounce(t) : t.call(t.list, t.count, t.offset);
}

ssize_t run(const Transfer& t) {
  return or_no_memory([&] { return carry_out(t); }, -1);
}

// Inlined, because g++ would think that a buffer which read() is to fill is read here.
[[gnu::always_inline]] inline bool is_plain(int fd, const void* p, size_t n) {
  return !Door::is_any_taken() || is_inside() ||
         (DescriptorTable::file_of(fd) == nullptr && !concerns(p, n));
}

// An invalid list is left to the kernel, which refuses it.
bool is_plain_list(int fd, const iovec* list, int count) {
  if (count < 0 || count > IOV_MAX) return true;
  if (!Door::is_any_taken() || is_inside()) return true;
  if (DescriptorTable::file_of(fd) != nullptr) return false;
  for (int i = 0; i < count; ++i)
    if (concerns(list[i].iov_base, list[i].iov_len)) return false;
  return true;
}

}  // namespace

OUTCORE_EXPORT ssize_t read(int fd, void* p, size_t n) {
  if (is_plain(fd, p, n)) return real().read(fd, p, n);
  const iovec one{p, n};
  return run({fd, &one, 1, kHere, false, [fd](const iovec* v, int, off_t) {
                return real().read(fd, v->iov_base, v->iov_len);
              }});
}
OUTCORE_EXPORT ssize_t __read_chk(int fd, void* p, size_t n, size_t) { return read(fd, p, n); }

OUTCORE_EXPORT ssize_t write(int fd, const void* p, size_t n) {
  if (is_plain(fd, p, n)) return real().write(fd, p, n);
  const iovec one{const_cast<void*>(p), n};
  return run({fd, &one, 1, kHere, true, [fd](const iovec* v, int, off_t) {
                return real().write(fd, v->iov_base, v->iov_len);
              }});
}

OUTCORE_EXPORT ssize_t pread(int fd, void* p, size_t n, off_t at) {
  if (is_plain(fd, p, n) || at < 0) return real().pread(fd, p, n, at);
  const iovec one{p, n};
  return run({fd, &one, 1, at, false, [fd](const iovec* v, int, off_t o) {
                return real().pread(fd, v->iov_base, v->iov_len, o);
              }});
}
OUTCORE_ALIAS(ssize_t, pread64, (int, void*, size_t, off_t), pread);
OUTCORE_EXPORT ssize_t __pread_chk(int fd, void* p, size_t n, off_t at, size_t) {
  return pread(fd, p, n, at);
}
OUTCORE_ALIAS(ssize_t, __pread64_chk, (int, void*, size_t, off_t, size_t), __pread_chk);

OUTCORE_EXPORT ssize_t pwrite(int fd, const void* p, size_t n, off_t at) {
  if (is_plain(fd, p, n) || at < 0) return real().pwrite(fd, p, n, at);
  const iovec one{const_cast<void*>(p), n};
  return run({fd, &one, 1, at, true, [fd](const iovec* v, int, off_t o) {
                return real().pwrite(fd, v->iov_base, v->iov_len, o);
              }});
}
OUTCORE_ALIAS(ssize_t, pwrite64, (int, const void*, size_t, off_t), pwrite);

OUTCORE_EXPORT ssize_t readv(int fd, const iovec* list, int count) {
  if (is_plain_list(fd, list, count)) return real().readv(fd, list, count);
  return run({fd, list, count, kHere, false,
              [fd](const iovec* v, int n, off_t) { return real().readv(fd, v, n); }});
}

OUTCORE_EXPORT ssize_t writev(int fd, const iovec* list, int count) {
  if (is_plain_list(fd, list, count)) return real().writev(fd, list, count);
  return run({fd, list, count, kHere, true,
              [fd](const iovec* v, int n, off_t) { return real().writev(fd, v, n); }});
}

OUTCORE_EXPORT ssize_t preadv2(int fd, const iovec* list, int count, off_t at, int flags) {
  if (is_plain_list(fd, list, count)) return real().preadv2(fd, list, count, at, flags);
  return run(
      {fd, list, count, at, false,
       [fd, flags](const iovec* v, int n, off_t o) { return real().preadv2(fd, v, n, o, flags); },
       flags});
}
OUTCORE_ALIAS(ssize_t, preadv64v2, (int, const iovec*, int, off_t, int), preadv2);

OUTCORE_EXPORT ssize_t pwritev2(int fd, const iovec* list, int count, off_t at, int flags) {
  if (is_plain_list(fd, list, count)) return real().pwritev2(fd, list, count, at, flags);
  return run(
      {fd, list, count, at, true,
       [fd, flags](const iovec* v, int n, off_t o) { return real().pwritev2(fd, v, n, o, flags); },
       flags});
}
OUTCORE_ALIAS(ssize_t, pwritev64v2, (int, const iovec*, int, off_t, int), pwritev2);

OUTCORE_EXPORT ssize_t preadv(int fd, const iovec* list, int count, off_t at) {
  if (at < 0) return fail(EINVAL);
  return preadv2(fd, list, count, at, 0);
}
OUTCORE_ALIAS(ssize_t, preadv64, (int, const iovec*, int, off_t), preadv);

OUTCORE_EXPORT ssize_t pwritev(int fd, const iovec* list, int count, off_t at) {
  if (at < 0) return fail(EINVAL);
  return pwritev2(fd, list, count, at, 0);
}
OUTCORE_ALIAS(ssize_t, pwritev64, (int, const iovec*, int, off_t), pwritev);

namespace {

// Transfers from one descriptor to another, within the kernel.
template <typename Call>
ssize_t between(int from, const off_t* from_at, int to, const off_t* to_at, size_t n,
                const Call& call) {
  TakenFile* source = DescriptorTable::file_of(from);
  TakenFile* target = DescriptorTable::file_of(to);
  Door& door = Door::instance();
  if (source != nullptr) {
    const uint64_t at = position_of(from, from_at == nullptr ? kHere : *from_at, false);
    const auto is_stored = [&] { return door.before_read(*source, at, n) == 0; };
    if (!or_no_memory(is_stored, false)) return fail(EIO);
  }
  if (target == nullptr) return call();
  return change_file(
      *target, [&] { return position_of(to, to_at == nullptr ? kHere : *to_at, true); }, n, call);
}

// A copy of the program's offset that the kernel can always reach: during the calls below, an
// absent page would stay absent.
class Offset {
 public:
  explicit Offset(off_t* theirs) : theirs_(theirs), own_(theirs == nullptr ? 0 : *theirs) {}
  ~Offset() {
    if (theirs_ != nullptr && *theirs_ != own_) *theirs_ = own_;
  }
  Offset(const Offset&) = delete;
  Offset& operator=(const Offset&) = delete;
  off_t* get() { return theirs_ == nullptr ? nullptr : &own_; }

 private:
  off_t* const theirs_;
  off_t own_;
};

bool is_plain_pair(int a, int b) {
  return !Door::is_any_taken() || is_inside() ||
         (DescriptorTable::file_of(a) == nullptr && DescriptorTable::file_of(b) == nullptr);
}

}  // namespace

OUTCORE_EXPORT ssize_t sendfile(int to, int from, off_t* at, size_t n) noexcept {
  if (is_plain_pair(to, from)) return real().sendfile(to, from, at, n);
  Offset own(at);
  return between(from, own.get(), to, nullptr, n,
                 [&] { return real().sendfile(to, from, own.get(), n); });
}
OUTCORE_ALIAS(ssize_t, sendfile64, (int, int, off_t*, size_t), sendfile);

OUTCORE_EXPORT ssize_t copy_file_range(int from, off_t* from_at, int to, off_t* to_at, size_t n,
                                       unsigned flags) {
  if (is_plain_pair(to, from)) return real().copy_file_range(from, from_at, to, to_at, n, flags);
  Offset own_from(from_at), own_to(to_at);
  return between(from, own_from.get(), to, own_to.get(), n, [&] {
    return real().copy_file_range(from, own_from.get(), to, own_to.get(), n, flags);
  });
}

namespace {

// A pipe of ours, which exists as long as the program may be waiting.
struct SparePipe {
  int ends[2] = {-1, -1};
  SparePipe() {
    if (::pipe2(ends, O_CLOEXEC) != 0) return;
    for (int& end : ends) end = OwnDescriptors::keep(end);
  }
  ~SparePipe() {
    for (const int end : ends) {
      OwnDescriptors::forget(end);
      if (end >= 0) real().close(end);
    }
  }
  SparePipe(const SparePipe&) = delete;
  SparePipe& operator=(const SparePipe&) = delete;
};

// Waits, as splice() would, until a pipe has bytes or nobody writes to it any more. It does so by
// tee(), which leaves the bytes in the pipe. 0, or -1 and errno. A cancellation point, as splice()
// is.
int wait_for_bytes(int pipe) {
  const SparePipe spare;
  if (spare.ends[1] < 0) {  // no descriptor is left
    pollfd wanted{pipe, POLLIN, 0};
    return ::poll(&wanted, 1, -1) < 0 ? -1 : 0;
  }
  const ssize_t n = ::tee(pipe, spare.ends[1], 1, 0);
  return n >= 0 || errno == EINVAL ? 0 : -1;  // no pipe: splice() itself will say so
}

}  // namespace

// A pipe may stay empty for ever, so we wait for its bytes before anything is locked.
OUTCORE_EXPORT ssize_t splice(int from, off_t* from_at, int to, off_t* to_at, size_t n,
                              unsigned flags) {
  if (is_plain_pair(to, from)) return real().splice(from, from_at, to, to_at, n, flags);
  Offset own_from(from_at), own_to(to_at);
  const auto call = [&](unsigned f) {
    return real().splice(from, own_from.get(), to, own_to.get(), n, f);
  };
  const bool is_into_file = DescriptorTable::file_of(to) != nullptr && n != 0;
  const bool may_wait = is_into_file && (flags & SPLICE_F_NONBLOCK) == 0 &&
                        (real().fcntl(from, F_GETFL) & O_NONBLOCK) == 0;
  if (!may_wait)
    return between(from, own_from.get(), to, own_to.get(), n, [&] { return call(flags); });
  for (;;) {
    if (wait_for_bytes(from) != 0) return -1;
    const ssize_t moved = between(from, own_from.get(), to, own_to.get(), n,
                                  [&] { return call(flags | SPLICE_F_NONBLOCK); });
    if (moved >= 0 || errno != EAGAIN) return moved;  // EAGAIN: another thread was faster
  }
}
