// read, write and related calls. See calls.h.
#include <fcntl.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <climits>
#include <optional>
#include <utility>

#include "core/base/assert.h"
#include "core/base/function_ref.h"
#include "run/preload/bounce.h"
#include "run/preload/calls.h"
#include "run/preload/descriptor_table.h"
#include "run/preload/held_position.h"

using namespace outcore::preload;  // NOLINT(google-build-using-namespace): names of this room

namespace {

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

bool is_long_of_socket(const Transfer& t) {
  struct stat about;
  return t.flags == 0 && t.offset == kHere && total_of(t.list, t.count) > Bounce::kBytesMax &&
         ::fstat(t.fd, &about) == 0 && S_ISSOCK(about.st_mode);
}

// Transfers in pieces, through memory that is not managed. A short piece ends the transfer, as the
// real call would end. So does the first piece of a read from anything but a file, because no more
// bytes may come.
ssize_t bounce(const Transfer& t) {
  const size_t total = total_of(t.list, t.count);
  const size_t there = total > Bounce::kBytesMax && !t.is_write ? bytes_to_read(t.fd) : 0;
  const bool is_large = there > Bounce::kBytesMax;
  Bounce buffer(is_large ? std::min(total, there) : std::max<size_t>(total, 1),
                is_large ? Bounce::Size::kWhole : Bounce::Size::kPiece);
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

}  // namespace

namespace outcore::preload {

// Bytes are appended at the end whatever offset is given: Linux does so with pwrite, too.
uint64_t position_of(int fd, off_t offset, bool is_write, int flags) {
  constexpr int kNoAppend = 0x20;  // RWF_NOAPPEND, Linux 6.9
  struct stat about;
  const bool appends =
      is_write && ((flags & RWF_APPEND) != 0 ||
                   ((flags & kNoAppend) == 0 && (real().fcntl(fd, F_GETFL) & O_APPEND) != 0));
  if (appends && ::fstat(fd, &about) == 0) return static_cast<uint64_t>(about.st_size);
  if (offset != kHere) return static_cast<uint64_t>(offset);
  return static_cast<uint64_t>(std::max<off_t>(real().lseek(fd, 0, SEEK_CUR), 0));
}

}  // namespace outcore::preload

namespace {

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
  bool is_moved = false;
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
    const auto taken = [&] {
      if (!std::exchange(is_moved, true)) move(total, 0);
    };
    if (!Door::instance().write_by_face(file, {place, taken}, {buffer.data(), n}, total - done))
      break;
    at += n;
    done += n;
  }
  if (is_moved) move(0, total - done);  // also if none could be written
  *written = static_cast<ssize_t>(done);
  return done != 0;
}

ssize_t carry_out(Transfer t) {
  TakenFile* file = DescriptorTable::file_of(t.fd);
  const bool is_bounced = must_bounce(t, file);  // asked as the program's call, which it is no more
  std::optional<HeldPosition> held;
  if (file != nullptr && t.offset == kHere && (t.is_write || file->is_writable)) {
    ::pthread_testcancel();  // here, because nothing below will be a cancellation point
    held.emplace(*file);
  }
  ssize_t written = 0;
  if (file != nullptr && t.is_write && file->may_be_together && write_together(t, *file, &written))
    return written;
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
  if (!is_bounced) return t.call(t.list, t.count, t.offset);
  if (is_long_of_socket(t)) {  // it knows of messages, and of what ends a stream
    msghdr message{};
    message.msg_iov = const_cast<iovec*>(t.list);
    message.msg_iovlen = static_cast<size_t>(t.count);
    // A write is a record of those sockets that have them, and says nothing to others.
    return t.is_write ? sendmsg(t.fd, &message, MSG_EOR) : recvmsg(t.fd, &message, 0);
  }
  return bounce(t);
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
