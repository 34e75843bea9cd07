// Copies a persistent heap: the bytes of its last flush, and a header that says that they are
// consistent.
#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <span>

#include "core/base/error.h"
#include "core/os/descriptor_place.h"
#include "core/os/transfer_buffer.h"
#include "heaps/persistent/persistent_core_impl.h"

namespace outcore {

using base::system_error;
using heap::persistent::Header;
using heap::persistent::State;

namespace {

constexpr uint64_t kPieceBytes = 2 << 20;

bool is_zero(std::span<const std::byte> bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](std::byte b) { return b == std::byte{0}; });
}

// 0 or -errno. Zeros are not written, because the target is new.
int copy_store(Store& from, Store& to, uint64_t size_bytes) {
  os::TransferBuffer buffer;
  if (!buffer.allocate(kPieceBytes)) return -ENOMEM;
  for (uint64_t at = 0; at < size_bytes; at += kPieceBytes) {
    const uint64_t count = std::min(kPieceBytes, size_bytes - at);
    const std::span<std::byte> piece = buffer.first(count);
    if (from.is_hole(at, count)) continue;
    if (const int error = from.read(at, piece); error != 0) return error;
    if (is_zero(piece)) continue;
    if (const int error = to.write(at, piece); error != 0) return error;
  }
  return 0;
}

// Copies a range that has data. 0 or -errno; -EXDEV and similar: the filesystem cannot do it.
int copy_run(int from, int to, uint64_t at, uint64_t end) {
  while (at < end) {
    auto here = static_cast<off_t>(at), there = here;
    const ssize_t n = ::copy_file_range(from, &here, to, &there,
                                        std::min<uint64_t>(end - at, uint64_t{1} << 30), 0);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return -errno;
    if (n == 0) return -EIO;
    at += static_cast<uint64_t>(n);
  }
  return 0;
}

// Lets the kernel copy, with shared blocks where the filesystem has them. -EOPNOTSUPP: it cannot.
int copy_file(int from, int to, uint64_t size_bytes) {
  if (::ioctl(to, FICLONE, from) == 0) return 0;
  for (uint64_t at = 0; at < size_bytes;) {
    const off_t data = ::lseek(from, static_cast<off_t>(at), SEEK_DATA);
    if (data < 0 && errno == ENXIO) break;
    if (data < 0) return -EOPNOTSUPP;
    const off_t hole = ::lseek(from, data, SEEK_HOLE);
    if (hole < 0) return -EOPNOTSUPP;
    const uint64_t end = std::min(static_cast<uint64_t>(hole), size_bytes);
    const auto begin = static_cast<uint64_t>(data);
    if (begin >= end) break;
    if (const int error = copy_run(from, to, begin, end); error != 0)
      return error == -ENOSPC || error == -EIO || error == -EDQUOT ? error : -EOPNOTSUPP;
    at = end;
  }
  return 0;
}

}  // namespace

Status PersistentCore::Impl::copy(const std::string& to) {
  if (Status s = check_open("copy"); !s) return s;
  const std::lock_guard<std::recursive_mutex> guard(names_lock);
  if (!is_writable && !is_consistent)
    return Error{EUCLEAN, "copy the heap " + place.uri +
                              ": it was not closed, and a copy would say that it is whole"};
  if (is_writable)
    if (Status s = flush(); !s) return s;
  const std::string what = "copy the heap " + place.uri + " to " + to;
  Result<std::string> path = heap::persistent::lock_path(to);
  if (!path) return path.status();
  struct stat about;
  if (!path->empty() && ::stat(path->c_str(), &about) == 0)
    return Error{EEXIST, what + ": something is there already: name another, or remove it first"};
  Result<heap::persistent::Place> made =
      heap::persistent::open_place(PersistentCore::Mode::kCreate, to);  // locked and empty
  if (!made) return Error{made.code(), what + ": " + made.message()};
  Store& target = *made->store;
  Header last = header;
  last.state = static_cast<uint32_t>(State::kConsistent);
  int error = target.resize(last.size_bytes);
  if (error == 0) {
    // The path may be used only if both are files, and it still names the file that the store has
    // open.
    const os::Descriptor file(place.lock.fd() >= 0 && !target.identity().empty()
                                  ? os::above_standard(::open(path->c_str(), O_RDWR | O_CLOEXEC))
                                  : -1);
    const bool is_file =
        file.get() >= 0 && ::fstat(place.lock.fd(), &about) == 0 && S_ISREG(about.st_mode);
    error = is_file ? copy_file(place.lock.fd(), file.get(), last.size_bytes) : -EOPNOTSUPP;
    if (error == 0 && ::ftruncate(file.get(), static_cast<off_t>(last.size_bytes)) != 0)
      error = -errno;
    if (error == -EOPNOTSUPP) error = copy_store(*place.store, target, last.size_bytes);
  }
  if (error == 0) error = target.sync();
  if (error == 0) error = heap::persistent::write_header(target, last);
  if (error == 0) error = target.sync();
  if (error == 0) return {};
  if (!made->made_path.empty()) ::unlink(made->made_path.c_str());
  return system_error(error, what, error == -ENOSPC ? "free space there, or name another" : "");
}

}  // namespace outcore
