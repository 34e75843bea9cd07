// Transfers from one descriptor to another, within the kernel. See calls.h.
#include <fcntl.h>
#include <poll.h>
#include <sys/sendfile.h>
#include <unistd.h>

#include <optional>

#include "run/preload/calls.h"
#include "run/preload/descriptor_table.h"
#include "run/preload/held_position.h"
#include "run/preload/own_descriptors.h"

using namespace outcore::preload;  // NOLINT(google-build-using-namespace): names of this room

namespace {

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
  off_t* get() { return theirs_ == nullptr && !is_position_ ? nullptr : &own_; }
  bool is_given() const { return theirs_ != nullptr; }
  off_t given() const { return is_given() ? own_ : kHere; }
  // The program gives none: the call begins there, whatever other threads do to the position of the
  // descriptor, and moves that afterwards, as the kernel does.
  void begin_at(uint64_t position) {
    is_position_ = true;
    own_ = static_cast<off_t>(position);
  }
  void move(int fd) const {
    if (is_position_) static_cast<void>(real().lseek(fd, own_, SEEK_SET));
  }

 private:
  off_t* const theirs_;
  off_t own_;
  bool is_position_ = false;
};

// The transfer that `call` makes.
template <typename Call>
ssize_t between(int from, Offset& from_at, int to, const Offset& to_at, size_t n,
                const Call& call) {
  TakenFile* source = DescriptorTable::file_of(from);
  TakenFile* target = DescriptorTable::file_of(to);
  Door& door = Door::instance();
  if (source != nullptr) {
    const uint64_t at = position_of(from, from_at.given(), false);
    if (!from_at.is_given() && source->is_writable) from_at.begin_at(at);
    const auto is_stored = [&] { return door.before_read(*source, at, n) == 0; };
    if (!or_no_memory(is_stored, false)) return fail(EIO);
  }
  std::optional<HeldPosition> held;
  if (target != nullptr && !to_at.is_given()) held.emplace(*target);
  const auto place = [&] { return position_of(to, to_at.given(), true); };
  const ssize_t moved = target == nullptr ? call() : change_file(*target, place, n, call);
  if (moved > 0) from_at.move(from);
  return moved;
}

bool is_plain_pair(int a, int b) {
  return !Door::is_any_taken() || is_inside() ||
         (DescriptorTable::file_of(a) == nullptr && DescriptorTable::file_of(b) == nullptr);
}

}  // namespace

OUTCORE_EXPORT ssize_t sendfile(int to, int from, off_t* at, size_t n) noexcept {
  if (is_plain_pair(to, from)) return real().sendfile(to, from, at, n);
  Offset own(at);
  return between(from, own, to, Offset(nullptr), n,
                 [&] { return real().sendfile(to, from, own.get(), n); });
}
OUTCORE_ALIAS(ssize_t, sendfile64, (int, int, off_t*, size_t), sendfile);

OUTCORE_EXPORT ssize_t copy_file_range(int from, off_t* from_at, int to, off_t* to_at, size_t n,
                                       unsigned flags) {
  if (is_plain_pair(to, from)) return real().copy_file_range(from, from_at, to, to_at, n, flags);
  Offset own_from(from_at), own_to(to_at);
  return between(from, own_from, to, own_to, n, [&] {
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
  if (!may_wait) return between(from, own_from, to, own_to, n, [&] { return call(flags); });
  for (;;) {
    if (wait_for_bytes(from) != 0) return -1;
    const ssize_t moved =
        between(from, own_from, to, own_to, n, [&] { return call(flags | SPLICE_F_NONBLOCK); });
    if (moved >= 0 || errno != EAGAIN) return moved;  // EAGAIN: another thread was faster
  }
}
