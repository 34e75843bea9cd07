#include "core/store/file_store.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "core/base/assert.h"
#include "core/base/error.h"
#include "core/base/units.h"
#include "core/os/descriptor_place.h"
#include "core/os/disk.h"
#include "core/os/file_calls.h"
#include "core/store/range.h"
#include "outcore/store_kind.h"

namespace outcore::store {
namespace {

constexpr uint64_t kWatchUnitBytes = 64 << 10;
constexpr uint64_t kWatchCapacityMin = uint64_t{1} << 40;  // the map then takes 2 MiB of addresses

std::string remedy_for(int error, const OpenOptions& options) {
  switch (error) {
    case ENOENT:
      return options.may_create ? "make its folder first" : "check the path, or create it first";
    case EACCES:
    case EPERM:
      return options.may_create    ? "get write permission, or name another place"
             : options.is_writable ? "map it read-only, or get write permission"
                                   : "get read permission";
    case EROFS:
      return options.may_create ? "name another place" : "map it read-only";
    case EISDIR:
      return "it is a folder: name a file, or sparse:FOLDER for a folder of segments";
    case EMFILE:
      return "raise the limit of open files (ulimit -n)";
    case ETXTBSY:
      return options.may_create ? "it is a program that runs: name another place"
                                : "it is a program that runs: map it read-only";
    default:
      return {};
  }
}

std::string kind_of(mode_t mode) {
  if (S_ISDIR(mode)) return "a folder: name a file, or sparse:FOLDER for a folder of segments";
  if (S_ISFIFO(mode)) return "a FIFO, which has no offsets: write it to a file first";
  if (S_ISSOCK(mode)) return "a socket: name a regular file or a block device";
  return "a character device: name a regular file or a block device";
}

}  // namespace

Result<FileStore::Opened> FileStore::open_descriptor(const FileStoreOptions& options) {
  // Non-blocking, so that opening a FIFO without a writer is an error instead of a wait.
  const int flags =
      (options.open.is_writable ? O_RDWR : O_RDONLY) | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
  Opened opened;
  // Other processes may create or remove the file meanwhile.
  for (int attempt = 0; attempt < 8; ++attempt) {
    opened.fd = os::above_standard(::open(options.path.c_str(), flags));
    if (opened.fd >= 0 || errno == EINTR || errno != ENOENT || !options.open.may_create) {
      if (opened.fd < 0 && errno == EINTR) continue;
      break;
    }
    opened.fd = os::above_standard(::open(options.path.c_str(), flags | O_CREAT | O_EXCL, 0666));
    opened.is_new = opened.fd >= 0;
    if (opened.is_new || (errno != EEXIST && errno != EINTR)) break;
  }
  // A symbolic link to what is not there: O_EXCL does not follow it.
  if (opened.fd < 0 && errno == EEXIST)
    opened.fd = os::above_standard(::open(options.path.c_str(), flags | O_CREAT, 0666));
  if (opened.fd >= 0) return opened;
  const int error = errno;
  std::string remedy = remedy_for(error, options.open);
  if (error == ENOENT && options.uri == options.path && options.path.find('?') != std::string::npos)
    remedy += "; parameters need the scheme: file:PATH?key=value";
  return base::system_error(error, "open " + options.path, remedy);
}

Result<std::shared_ptr<Store>> FileStore::open(const FileStoreOptions& options) {
  if (options.open.may_create && !options.open.is_writable)
    return Error{EINVAL, "open " + options.path + ": to create or extend it, open it writable"};
  Result<Opened> opened = open_descriptor(options);
  if (!opened) return opened.error();
  std::shared_ptr<FileStore> store(new FileStore);
  store->is_name_unsynced_ = opened->is_new;
  Status status = store->examine(opened->fd, options);
  if (status) status = store->fit_size(options);
  if (!status) {
    if (opened->is_new) ::unlink(options.path.c_str());
    return status.error();
  }
  if (opened->is_new) store->watch_from(0);
  return std::shared_ptr<Store>(std::move(store));
}

// Takes over the descriptor, even if it fails.
Status FileStore::examine(int fd, const FileStoreOptions& options) {
  path_ = options.path;
  uri_ = options.uri.empty() ? "file:" + options.path : options.uri;
  is_writable_ = options.open.is_writable;
  refuses_cut_ = options.refuses_cut;
  struct stat about;
  const bool is_known = ::fstat(fd, &about) == 0;
  const int error = errno;
  uint64_t size = is_known ? static_cast<uint64_t>(about.st_size) : 0;
  if (is_known && (S_ISREG(about.st_mode) || S_ISBLK(about.st_mode))) {
    ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) & ~O_NONBLOCK);
    if (Status status = file_.adopt(fd, is_writable_, options.direct, path_); !status)
      return status;
  } else {
    ::close(fd);
    if (!is_known) return base::system_error(error, "look at " + path_);
    return Error{EINVAL, "open " + path_ + ": it is " + kind_of(about.st_mode)};
  }
  is_block_device_ = S_ISBLK(about.st_mode);
  if (!is_block_device_ && options.direct == DirectMode::kAuto) file_.look_at_page_cache();
  if (is_block_device_ && ::ioctl(fd, BLKGETSIZE64, &size) != 0)
    return base::system_error(errno, "ask for the size of " + path_);
  identity_ = is_block_device_ ? "block:" + std::to_string(about.st_rdev)
                               : std::to_string(about.st_dev) + ":" + std::to_string(about.st_ino);
  size_bytes_ = size;
  traits_.is_fault_safe = true;
  traits_.can_read_while_written = true;
  traits_.has_many_in_flight = true;
  traits_.alignment_bytes = file_.is_direct() ? kDirectAlignment : 1;
  traits_.read_concurrency = options.read_concurrency;
  traits_.write_concurrency = options.write_concurrency;
  traits_.device = os::disk_of(is_block_device_ ? about.st_rdev : about.st_dev);
  return {};
}

Status FileStore::fit_size(const FileStoreOptions& options) {
  const uint64_t wanted = options.open.size_bytes;
  // Whoever wrote behind the limit later would be ended by a signal.
  if (options.open.is_writable && !is_block_device_ && size_bytes() > os::file_size_limit())
    return base::system_error(-EFBIG, "open " + path_ + " to write",
                              "it is larger than files may become: lift the limit (ulimit -f)");
  if (wanted <= size_bytes() || (options.open.keeps_size && !is_name_unsynced_)) return {};
  const std::string attempted = "open " + path_ + ": it has " + std::to_string(size_bytes()) +
                                " bytes, " + std::to_string(wanted) + " are asked for";
  if (is_block_device_)
    return Error{EINVAL, attempted + ", and a device cannot grow: ask for less"};
  if (!options.open.may_create)
    return Error{EINVAL, attempted + ": ask for less, or allow to extend it"};
  if (const int error = resize(wanted); error != 0)
    return base::system_error(
        error, attempted + "; extend it",
        error == -EFBIG
            ? "the filesystem, or the limit (ulimit -f), takes no file so large: ask for less"
            : "");
  return {};
}

int FileStore::look_at_size(bool is_mapped) {
  if (is_block_device_) return 0;
  struct stat about;
  if (::fstat(file_.fd(), &about) != 0) return -errno;
  const auto size = static_cast<uint64_t>(about.st_size);
  uint64_t known = size_bytes_.load(std::memory_order_acquire);
  if (!is_mapped) size_bytes_.store(known = size, std::memory_order_release);
  while (size > known && !size_bytes_.compare_exchange_weak(known, size)) {
  }
  return 0;
}

Result<FileFacts> FileStore::facts() const {
  const std::string link = "/proc/self/fd/" + std::to_string(file_.fd());
  char path[PATH_MAX];
  struct stat about;
  const ssize_t bytes = ::readlink(link.c_str(), path, sizeof path);
  if (bytes < 0 || ::fstat(file_.fd(), &about) != 0)
    return base::system_error(errno, "look at " + path_);
  if (about.st_nlink == 0 || bytes == sizeof path || path[0] != '/')
    return base::system_error(ENOENT, "find the name of " + path_);
  FileFacts facts;
  facts.path.assign(path, static_cast<size_t>(bytes));
  facts.size_bytes = size_bytes();
  facts.modified_ns = about.st_mtim.tv_sec * int64_t{1'000'000'000} + about.st_mtim.tv_nsec;
  return facts;
}

Result<FileVersion> FileStore::version() const {
  FileVersion version;
  const int result = FileVersion::of(file_.fd(), &version);
  if (result == -ENOTSUP) return Error{ENOTSUP, path_ + " is not a regular file"};
  if (result != 0) return base::system_error(result, "look at " + path_);
  return version;
}

void FileStore::watch_from(uint64_t offset) {
  if (watched_from_.load(std::memory_order_relaxed) != UINT64_MAX) return;
  // Without a map no hole is known, which is always correct.
  if (written_.cover(std::max(kWatchCapacityMin, size_bytes() * 2), kWatchUnitBytes) != 0) return;
  watched_from_.store(offset, std::memory_order_release);
}

uint64_t FileStore::cut_end() const {
  if (is_block_device_) return UINT64_MAX;
  // Asked before the look and after it: resize() makes the file longer before the number, and
  // shorter after it.
  for (uint64_t known = size_bytes();;) {
    struct stat about;
    if (::fstat(file_.fd(), &about) != 0) return UINT64_MAX;  // the next transfer will tell
    const auto size = static_cast<uint64_t>(about.st_size);
    const uint64_t now = size_bytes();
    if (size >= known || size >= now) return UINT64_MAX;
    if (now == known) return size;
    known = now;
  }
}

int FileStore::refuse_past_cut(uint64_t end) {
  OC_CHECK(end != UINT64_MAX);
  found_cut_to_.store(end, std::memory_order_relaxed);
  static_cast<void>(lost_sync_.note(-EIO));
  return -EIO;
}

std::string FileStore::why_failed(int error) const {
  if (error != -EIO) return {};
  const uint64_t end = cut_end(), found = found_cut_to_.load(std::memory_order_relaxed);
  const std::string cut = without_file_scheme(uri_) + " was cut to ";
  if (end != UINT64_MAX) return cut + std::to_string(end) + " bytes";
  if (found == UINT64_MAX) return {};
  return cut + std::to_string(found) +
         " bytes, and what was behind them is lost: unmap it, and map it anew";
}

int FileStore::read(uint64_t offset, std::span<std::byte> into) {
  OC_CHECK(is_range_of(offset, into.size(), size_bytes()));
  return file_.read(offset, into);
}

int FileStore::write(uint64_t offset, std::span<const std::byte> from) {
  OC_CHECK(is_range_of(offset, from.size(), size_bytes()));
  if (!is_writable_) return -EACCES;
  const uint64_t end = end_of_writes();
  const bool is_past = offset + from.size() > end;
  if (is_past) from = from.first(end - std::min(end, offset));  // what others have left is stored
  if (watched_from_.load(std::memory_order_acquire) != UINT64_MAX)
    written_.mark(offset, from.size());
  const int error = from.empty() ? 0 : file_.write(offset, from);
  return is_past ? refuse_past_cut(end) : error;
}

void FileStore::transfer(std::span<StoreRequest> batch) {
  const bool is_watched = watched_from_.load(std::memory_order_acquire) != UINT64_MAX;
  uint64_t end = 0;  // of the writes
  for (const StoreRequest& r : batch) {
    OC_CHECK(is_range_of(r.offset, r.size_bytes, size_bytes()));
    if (!r.is_write) continue;
    end = std::max(end, r.offset + r.size_bytes);
    if (is_watched) written_.mark(r.offset, r.size_bytes);
  }
  if (end == 0 || (is_writable_ && end <= end_of_writes())) return file_.transfer(batch, traits_);
  for (StoreRequest& r : batch)
    r.result = r.is_write ? write(r.offset, {r.bytes, r.size_bytes})
                          : file_.read(r.offset, {r.bytes, r.size_bytes});
}

int FileStore::sync_file() {
  if (const int lost = lost_sync_.error(); lost != 0) return lost;
  const bool is_size_new = is_size_unsynced_.exchange(false);
  const int result = is_size_new ? ::fsync(file_.fd()) : ::fdatasync(file_.fd());
  const int error = result == 0 ? 0 : -errno;
  OC_CHECK(error <= 0);
  if (error != 0 && is_size_new) is_size_unsynced_ = true;
  return lost_sync_.note(error);
}

int FileStore::sync() {
  if (const int error = sync_file(); error != 0) return error;
  if (is_name_unsynced_.load()) {
    if (const int error = os::sync_folder_of(path_); error != 0) return error;
    is_name_unsynced_ = false;
  }
  return 0;
}

int FileStore::resize(uint64_t size_bytes) {
  if (is_block_device_) return -ENOTSUP;
  if (!is_writable_) return -EACCES;
  if (size_bytes > INT64_MAX) return -EFBIG;
  const uint64_t before = this->size_bytes();
  // A file that becomes shorter is not one that others have cut: the number comes first.
  if (size_bytes < before) size_bytes_.store(size_bytes, std::memory_order_release);
  if (const int error = os::set_size(file_.fd(), size_bytes); error != 0) {
    if (size_bytes < before) size_bytes_.store(before, std::memory_order_release);
    return error;
  }
  is_size_unsynced_ = true;
  size_bytes_.store(size_bytes, std::memory_order_release);
  if (size_bytes > before) watch_from(before);
  return 0;
}

int FileStore::reserve(uint64_t offset, uint64_t size_bytes) {
  OC_CHECK(is_range_of(offset, size_bytes, this->size_bytes()));
  if (!is_writable_) return -EACCES;
  if (is_block_device_ || size_bytes == 0) return 0;
  if (const uint64_t end = end_of_writes(); offset + size_bytes > end) return refuse_past_cut(end);
  return os::allocate_space(file_.fd(), offset, size_bytes);
}

int FileStore::discard(uint64_t offset, uint64_t size_bytes) {
  OC_CHECK(is_range_of(offset, size_bytes, this->size_bytes()));
  if (!is_writable_) return -EACCES;
  const int error = file_.discard(offset, size_bytes, DiscardMode::kHole);
  if (error == 0 && watched_from_.load(std::memory_order_acquire) != UINT64_MAX)
    written_.clear_inside(offset, size_bytes);
  return error;
}

// Writes nothing: blocks that cannot be freed stay.
int FileStore::release(uint64_t offset, uint64_t size_bytes) {
  OC_CHECK(is_range_of(offset, size_bytes, this->size_bytes()));
  if (!is_writable_) return -EACCES;
  if (is_block_device_ || size_bytes == 0) return 0;
  const int error = file_.give_blocks_back(offset, size_bytes);
  if (error == 0 && watched_from_.load(std::memory_order_acquire) != UINT64_MAX)
    written_.clear_inside(offset, size_bytes);
  return error == -EOPNOTSUPP ? 0 : error;
}

bool FileStore::is_hole(uint64_t offset, uint64_t size_bytes) const {
  if (offset < watched_from_.load(std::memory_order_acquire)) return false;
  if (!written_.is_untouched(offset, size_bytes)) return false;
  const uint64_t end = offset + size_bytes;
  const off_t data = ::lseek(file_.fd(), static_cast<off_t>(offset), SEEK_DATA);
  if (data >= 0) return static_cast<uint64_t>(data) >= end;
  if (errno != ENXIO) return false;
  // There is no data up to the end of the file; but a file that was cut short reports the same, and
  // is an error.
  struct stat about;
  return ::fstat(file_.fd(), &about) == 0 && static_cast<uint64_t>(about.st_size) >= end;
}

}  // namespace outcore::store
