// Linked by occ into a program, for its system calls. Where the kernel cannot wait for an absent
// page (in-thread and mprotect delivery), a transfer to or from dlm data goes through a buffer, and
// the program's own thread touches the pages. With message delivery the calls go to the kernel
// directly.
//
// The linker turns a program's read into __wrap_read, and __real_read into read
// (heaps/occ/main.cc). Calls that shared libraries make themselves do not come here.
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "outcore/dlm.h"

// Little is put on the stack, because threads of programs may have small ones. No datagram is
// longer than kWholeBytesMax.
enum { kNearBytes = 4 << 10, kPieceBytes = 64 << 10, kWholeBytesMax = 256 << 20, kListMax = 1024 };

ssize_t __real_read(int fd, void* into, size_t size);
ssize_t __real_write(int fd, const void* from, size_t size);
ssize_t __real_pread(int fd, void* into, size_t size, off_t offset);
ssize_t __real_pwrite(int fd, const void* from, size_t size, off_t offset);
ssize_t __real_readv(int fd, const struct iovec* list, int count);
ssize_t __real_writev(int fd, const struct iovec* list, int count);
ssize_t __real_recv(int fd, void* into, size_t size, int flags);
ssize_t __real_send(int fd, const void* from, size_t size, int flags);
size_t __real_fread(void* into, size_t size, size_t count, FILE* file);
size_t __real_fwrite(const void* from, size_t size, size_t count, FILE* file);
// The names that the functions above have with -D_FORTIFY_SOURCE. They end the program if the
// buffer is too small.
ssize_t __real___read_chk(int fd, void* into, size_t size, size_t room);
ssize_t __real___pread_chk(int fd, void* into, size_t size, off_t offset, size_t room);
ssize_t __real___recv_chk(int fd, void* into, size_t size, size_t room, int flags);
size_t __real___fread_chk(void* into, size_t room, size_t size, size_t count, FILE* file);

enum kind { kPlain, kAtOffset, kSocket };

struct transfer {
  enum kind kind;
  int fd;
  const struct iovec* list;
  int count;
  off_t offset;
  int flags;
};

// Whether the kernel could read the list itself. In doubt the answer is yes.
static int is_readable(const struct iovec* list, int count) {
  char ignored[1024];
  const size_t size = sizeof *list * (size_t)count;
  if (oc_dlm_must_copy(list, size)) return 1;
  for (size_t done = 0; done < size; done += sizeof ignored) {
    const size_t piece = size - done < sizeof ignored ? size - done : sizeof ignored;
    const struct iovec to = {ignored, piece}, from = {(char*)list + done, piece};
    const long got = syscall(SYS_process_vm_readv, (long)getpid(), &to, 1L, &from, 1L, 0L);
    if (got < 0 && errno != EFAULT) return 1;
    if (got != (long)piece) return 0;
  }
  return 1;
}

// The kernel refuses a list that is wrong.
static int is_any_copied(const struct iovec* list, int count) {
  if (!oc_dlm_must_copy(NULL, SIZE_MAX)) return 0;  // nothing at all needs to be copied
  if (count <= 0 || count > kListMax || !is_readable(list, count)) return 0;
  size_t bytes = 0;
  int is_any = 0;
  for (int i = 0; i < count; ++i) {
    if (__builtin_add_overflow(bytes, list[i].iov_len, &bytes) || bytes > SSIZE_MAX) return 0;
    is_any = is_any || (list[i].iov_len > 0 && oc_dlm_must_copy(list[i].iov_base, list[i].iov_len));
  }
  return is_any;
}

static size_t least(size_t a, size_t b) { return a < b ? a : b; }

static size_t bytes_of(const struct transfer* t) {
  size_t bytes = 0;
  for (int i = 0; i < t->count; ++i) bytes += t->list[i].iov_len;
  return bytes;
}

// Copies between the buffer and the list's bytes from `done` on.
static void copy(const struct transfer* t, size_t done, char* buffer, size_t size, int is_in) {
  for (int i = 0; i < t->count && size > 0; ++i) {
    const size_t length = t->list[i].iov_len;
    if (done >= length) {
      done -= length;
      continue;
    }
    char* at = (char*)t->list[i].iov_base + done;
    const size_t piece = size < length - done ? size : length - done;
    memcpy(is_in ? at : buffer, is_in ? buffer : at, piece);
    buffer += piece;
    size -= piece;
    done = 0;
  }
}

struct buffer {
  char* at;
  size_t size;
};

// `near` itself, if the bytes fit, or if there is no memory for another buffer. Aligned for
// O_DIRECT.
static struct buffer buffer_for(size_t size, char* near) {
  struct buffer buffer = {near, kNearBytes};
  if (size <= kNearBytes) return buffer;
  const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  void* const far = mmap(NULL, size, PROT_READ | PROT_WRITE, flags, -1, 0);
  if (far == MAP_FAILED) return buffer;
  buffer.at = far;
  buffer.size = size;
  return buffer;
}

static void give_back(const struct buffer* buffer, const char* near) {
  if (buffer->at != near) munmap(buffer->at, buffer->size);
}

// Whether one call must carry all of it, because each call is one message.
static int is_whole(const struct transfer* t) {
  struct stat facts;
  int type = 0;
  socklen_t length = sizeof type;
  if (t->kind == kAtOffset) return 0;
  if ((t->flags & (MSG_PEEK | MSG_TRUNC)) != 0) return 1;
  if (t->kind == kPlain && (fstat(t->fd, &facts) != 0 || !S_ISSOCK(facts.st_mode))) return 0;
  return getsockopt(t->fd, SOL_SOCKET, SO_TYPE, &type, &length) == 0 && type != SOCK_STREAM;
}

// Whether a read that got all it asked for may ask for more. Otherwise it might wait where a single
// read of everything would have returned.
static int may_go_on(const struct transfer* t) {
  struct stat facts;
  if (t->kind == kAtOffset) return 1;
  if (t->kind == kSocket) return (t->flags & MSG_WAITALL) != 0;
  return fstat(t->fd, &facts) == 0 && (S_ISREG(facts.st_mode) || S_ISBLK(facts.st_mode));
}

static ssize_t read_piece(const struct transfer* t, size_t done, char* into, size_t size) {
  if (t->kind == kAtOffset) return __real_pread(t->fd, into, size, t->offset + (off_t)done);
  return t->kind == kSocket ? __real_recv(t->fd, into, size, t->flags)
                            : __real_read(t->fd, into, size);
}

static ssize_t write_piece(const struct transfer* t, size_t done, const char* from, size_t size) {
  if (t->kind == kAtOffset) return __real_pwrite(t->fd, from, size, t->offset + (off_t)done);
  return t->kind == kSocket ? __real_send(t->fd, from, size, t->flags)
                            : __real_write(t->fd, from, size);
}

// A message may be longer than what was asked for, and the result may say so (MSG_TRUNC).
static ssize_t read_whole(const struct transfer* t, const struct buffer* buffer, size_t size) {
  if (buffer->size < size) return errno = ENOMEM, -1;
  const ssize_t got = read_piece(t, 0, buffer->at, size);
  if (got > 0) copy(t, 0, buffer->at, least((size_t)got, size), 1);
  return got;
}

static ssize_t read_pieces(const struct transfer* t, const struct buffer* buffer, size_t size) {
  const int goes_on = size <= buffer->size || may_go_on(t);
  size_t done = 0;
  do {
    const size_t piece = least(size - done, buffer->size);
    const ssize_t got = read_piece(t, done, buffer->at, piece);
    if (got < 0) return done > 0 ? (ssize_t)done : got;
    copy(t, done, buffer->at, least((size_t)got, piece), 1);
    done += (size_t)got;
    if ((size_t)got < piece) break;
  } while (done < size && goes_on);
  return (ssize_t)done;
}

static ssize_t write_pieces(const struct transfer* t, const struct buffer* buffer, size_t size) {
  size_t done = 0;
  do {
    const size_t piece = least(size - done, buffer->size);
    copy(t, done, buffer->at, piece, 0);
    const ssize_t put = write_piece(t, done, buffer->at, piece);
    if (put < 0) return done > 0 ? (ssize_t)done : put;
    done += (size_t)put;
    if ((size_t)put < piece) break;
  } while (done < size);
  return (ssize_t)done;
}

static __attribute__((noinline)) ssize_t read_copied(const struct transfer* t) {
  _Alignas(4096) char near[kNearBytes];
  const int whole = is_whole(t);
  const size_t size = whole ? least(bytes_of(t), kWholeBytesMax) : bytes_of(t);
  const struct buffer buffer = buffer_for(whole ? size : least(size, kPieceBytes), near);
  const ssize_t done = whole ? read_whole(t, &buffer, size) : read_pieces(t, &buffer, size);
  give_back(&buffer, near);
  return done;
}

static __attribute__((noinline)) ssize_t write_copied(const struct transfer* t) {
  _Alignas(4096) char near[kNearBytes];
  const size_t size = bytes_of(t);
  const int whole = is_whole(t);
  if (whole && size > kWholeBytesMax) return errno = EMSGSIZE, -1;
  const struct buffer buffer = buffer_for(whole ? size : least(size, kPieceBytes), near);
  ssize_t done = -1;
  if (whole && buffer.size < size)
    errno = ENOMEM;
  else
    done = write_pieces(t, &buffer, size);
  give_back(&buffer, near);
  return done;
}

static ssize_t read_one(enum kind kind, int fd, void* into, size_t size, off_t offset, int flags) {
  const struct iovec one = {into, size};
  const struct transfer t = {kind, fd, &one, 1, offset, flags};
  return read_copied(&t);
}

static ssize_t write_one(enum kind kind, int fd, const void* from, size_t size, off_t offset,
                         int flags) {
  const struct iovec one = {(void*)from, size};
  const struct transfer t = {kind, fd, &one, 1, offset, flags};
  return write_copied(&t);
}

ssize_t __wrap_read(int fd, void* into, size_t size) {
  return oc_dlm_must_copy(into, size) ? read_one(kPlain, fd, into, size, 0, 0)
                                      : __real_read(fd, into, size);
}

ssize_t __wrap_write(int fd, const void* from, size_t size) {
  return oc_dlm_must_copy(from, size) ? write_one(kPlain, fd, from, size, 0, 0)
                                      : __real_write(fd, from, size);
}

ssize_t __wrap_pread(int fd, void* into, size_t size, off_t offset) {
  return oc_dlm_must_copy(into, size) ? read_one(kAtOffset, fd, into, size, offset, 0)
                                      : __real_pread(fd, into, size, offset);
}

ssize_t __wrap_pwrite(int fd, const void* from, size_t size, off_t offset) {
  return oc_dlm_must_copy(from, size) ? write_one(kAtOffset, fd, from, size, offset, 0)
                                      : __real_pwrite(fd, from, size, offset);
}

ssize_t __wrap_pread64(int fd, void* into, size_t size, off_t offset) {
  return __wrap_pread(fd, into, size, offset);
}

ssize_t __wrap_pwrite64(int fd, const void* from, size_t size, off_t offset) {
  return __wrap_pwrite(fd, from, size, offset);
}

ssize_t __wrap_readv(int fd, const struct iovec* list, int count) {
  const struct transfer t = {kPlain, fd, list, count, 0, 0};
  return is_any_copied(list, count) ? read_copied(&t) : __real_readv(fd, list, count);
}

ssize_t __wrap_writev(int fd, const struct iovec* list, int count) {
  const struct transfer t = {kPlain, fd, list, count, 0, 0};
  return is_any_copied(list, count) ? write_copied(&t) : __real_writev(fd, list, count);
}

ssize_t __wrap_recv(int fd, void* into, size_t size, int flags) {
  return oc_dlm_must_copy(into, size) ? read_one(kSocket, fd, into, size, 0, flags)
                                      : __real_recv(fd, into, size, flags);
}

ssize_t __wrap_send(int fd, const void* from, size_t size, int flags) {
  return oc_dlm_must_copy(from, size) ? write_one(kSocket, fd, from, size, 0, flags)
                                      : __real_send(fd, from, size, flags);
}

static __attribute__((noinline)) size_t fread_copied(char* into, size_t size, FILE* file) {
  _Alignas(4096) char near[kNearBytes];
  const struct buffer buffer = buffer_for(least(size, kPieceBytes), near);
  size_t done = 0;
  while (done < size) {
    const size_t piece = least(size - done, buffer.size);
    const size_t got = __real_fread(buffer.at, 1, piece, file);
    memcpy(into + done, buffer.at, got);
    done += got;
    if (got < piece) break;
  }
  give_back(&buffer, near);
  return done;
}

static __attribute__((noinline)) size_t fwrite_copied(const char* from, size_t size, FILE* file) {
  _Alignas(4096) char near[kNearBytes];
  const struct buffer buffer = buffer_for(least(size, kPieceBytes), near);
  size_t done = 0;
  while (done < size) {
    const size_t piece = least(size - done, buffer.size);
    memcpy(buffer.at, from + done, piece);
    const size_t put = __real_fwrite(buffer.at, 1, piece, file);
    done += put;
    if (put < piece) break;
  }
  give_back(&buffer, near);
  return done;
}

size_t __wrap_fread(void* into, size_t size, size_t count, FILE* file) {
  size_t bytes;
  if (__builtin_mul_overflow(size, count, &bytes) || bytes == 0 || !oc_dlm_must_copy(into, bytes))
    return __real_fread(into, size, count, file);
  return fread_copied(into, bytes, file) / size;
}

size_t __wrap_fwrite(const void* from, size_t size, size_t count, FILE* file) {
  size_t bytes;
  if (__builtin_mul_overflow(size, count, &bytes) || bytes == 0 || !oc_dlm_must_copy(from, bytes))
    return __real_fwrite(from, size, count, file);
  return fwrite_copied(from, bytes, file) / size;
}

ssize_t __wrap___read_chk(int fd, void* into, size_t size, size_t room) {
  return size > room ? __real___read_chk(fd, into, size, room) : __wrap_read(fd, into, size);
}

ssize_t __wrap___pread_chk(int fd, void* into, size_t size, off_t offset, size_t room) {
  return size > room ? __real___pread_chk(fd, into, size, offset, room)
                     : __wrap_pread(fd, into, size, offset);
}

ssize_t __wrap___pread64_chk(int fd, void* into, size_t size, off_t offset, size_t room) {
  return __wrap___pread_chk(fd, into, size, offset, room);
}

ssize_t __wrap___recv_chk(int fd, void* into, size_t size, size_t room, int flags) {
  return size > room ? __real___recv_chk(fd, into, size, room, flags)
                     : __wrap_recv(fd, into, size, flags);
}

size_t __wrap___fread_chk(void* into, size_t room, size_t size, size_t count, FILE* file) {
  size_t bytes;
  if (__builtin_mul_overflow(size, count, &bytes) || bytes > room)
    return __real___fread_chk(into, room, size, count, file);
  return __wrap_fread(into, size, count, file);
}
