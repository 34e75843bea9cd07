#include "arrays/container/file_storage.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "core/base/assert.h"
#include "core/base/error.h"
#include "core/base/units.h"
#include "core/os/cancel_block.h"
#include "core/os/file_calls.h"
#include "core/os/file_lock.h"
#include "outcore/runtime.h"

namespace outcore::arrays {
namespace {

constexpr size_t kReadAheadBytes = 64 << 10;
constexpr uint64_t kLockAt = uint64_t{1} << 62;  // no file is so long
constexpr uint64_t kRangesAt = 16;               // behind those of the leases

struct RegionMapping final : Mapping {
  ~RegionMapping() override {
    const os::CancelBlock uncancelled;
    region = {};
    storage.reset();
  }
  std::shared_ptr<ContainerStorage> storage;
  Region region;
};

struct KernelMapping final : Mapping {
  ~KernelMapping() override {
    const os::CancelBlock uncancelled;
    if (data != nullptr) ::munmap(const_cast<std::byte*>(data), size_bytes);
    storage.reset();
  }
  std::shared_ptr<ContainerStorage> storage;
  uint64_t size_bytes = 0;
};

Error failed_open(int error, const std::string& path, const StorageOptions& options) {
  std::string remedy;
  if (error == EACCES)
    remedy = std::string("ask its owner for the right to ") +
             (options.is_writable ? "write" : "read") + " it";
  if (error == ENOENT)
    remedy = options.may_create ? "make its folder first"
                                : "name a container that is there, or store arrays in it first";
  if (error == EROFS)
    remedy = options.may_create ? "name another place" : "open it to read, or copy it elsewhere";
  if (error == EMFILE) remedy = "raise the limit of open files (ulimit -n)";
  if (error == EISDIR) return {EINVAL, "open " + path + ": it is a folder: name a container"};
  return base::system_error(error, "open " + path, remedy);
}

}  // namespace

Error FileStorage::failed(int error, const char* verb, uint64_t offset, uint64_t size_bytes) const {
  if (const uint64_t now = this->size_bytes(); error == EIO && now < offset + size_bytes)
    return Error{EIO, uri_ + " is damaged: it has been cut to " + std::to_string(now) +
                          " bytes, and has one at " + std::to_string(offset + size_bytes - 1) +
                          ": go back to a copy of it"};
  return base::system_error(error, std::string(verb) + " " + std::to_string(size_bytes) +
                                       " bytes at " + std::to_string(offset) + " of " + path_);
}

Result<std::shared_ptr<ContainerStorage>> FileStorage::open(const StorageOptions& options,
                                                            const std::string& path,
                                                            std::optional<MapSync> pmem) {
  auto file = std::make_shared<FileStorage>();
  file->path_ = path;
  file->uri_ = options.uri;
  file->runtime_ = options.runtime;
  file->is_writable_ = options.is_writable;
  const int access = (options.is_writable ? O_RDWR : O_RDONLY) | O_CLOEXEC | O_NONBLOCK;
  file->is_name_unsynced_ = options.is_writable;
  file->fd_ = ::open(path.c_str(), access);
  if (file->fd_ < 0 && errno == ENOENT && options.may_create) {
    file->fd_ = ::open(path.c_str(), access | O_CREAT, 0666);
  }
  if (file->fd_ < 0) return failed_open(errno, path, options);
  struct stat about {};
  if (::fstat(file->fd_, &about) != 0) return base::system_error(errno, "look at " + path);
  if (!S_ISREG(about.st_mode))
    return Error{EINVAL, "open " + path + ": it is not a regular file: name a container"};
  file->is_pmem_ = pmem.has_value();
  if (pmem) file->memory_ = FileMemory::of(file->fd_, options.is_writable, *pmem);
  if (file->memory_ != nullptr) return std::shared_ptr<ContainerStorage>(std::move(file));
  if (options.is_writable)
    file->direct_fd_ = ::open(file->own_path().c_str(), access | O_DIRECT);
  else  // reads the catalog in one request
    static_cast<void>(::readahead(file->fd_, 0, kReadAheadBytes));
  return std::shared_ptr<ContainerStorage>(std::move(file));
}

// Names the open file, whatever file has its name now.
std::string FileStorage::own_path() const { return "/proc/self/fd/" + std::to_string(fd_); }

FileStorage::~FileStorage() {
  const os::CancelBlock uncancelled;
  if (direct_fd_ >= 0) ::close(direct_fd_);
  if (fd_ >= 0) ::close(fd_);
}

uint64_t FileStorage::size_bytes() const {
  struct stat about {};
  return ::fstat(fd_, &about) == 0 ? static_cast<uint64_t>(about.st_size) : 0;
}

Status FileStorage::clear() {
  return ::ftruncate(fd_, 0) == 0 ? settle() : base::system_error(errno, "empty " + path_);
}

// Another process may be enlarging it at the same time, so the file is never shortened here.
Status FileStorage::grow(uint64_t size_bytes) {
  if (this->size_bytes() >= size_bytes) return {};
  if (::ftruncate(fd_, static_cast<off_t>(size_bytes)) == 0) return settle();
  return base::system_error(errno,
                            "make " + path_ + " " + std::to_string(size_bytes) + " bytes long");
}

// Only asked for containers that are written, once.
bool FileStorage::has_room() {
  std::call_once(room_asked_, [this] {
    has_room_ = ::fallocate(fd_, FALLOC_FL_KEEP_SIZE, 0, 1) == 0 || errno != EOPNOTSUPP;
  });
  return has_room_;
}

// Refuses a size for which there is no space. fallocate would take all free space before it fails,
// and other writers would fail meanwhile.
Status FileStorage::check_space(uint64_t end) const {
  const uint64_t now = size_bytes();
  struct statvfs about {};
  if (end <= now || ::fstatvfs(fd_, &about) != 0 || about.f_blocks == 0) return {};
  if ((end - now) / about.f_frsize <= about.f_bavail) return {};
  return base::system_error(ENOSPC,
                            "make room for " + base::format_bytes(end - now) + " in " + path_);
}

Status FileStorage::provide(uint64_t offset, uint64_t size_bytes) {
  OC_ASSERT(is_writable_);
  if (size_bytes == 0) return {};
  if (Status s = check_space(offset + size_bytes); !s) return s;
  const auto at = static_cast<off_t>(offset), size = static_cast<off_t>(size_bytes);
  const auto failed_to = [&](int error) {
    static_cast<void>(release(offset, size_bytes));  // a part may have got space
    return base::system_error(error,
                              "make room for " + base::format_bytes(size_bytes) + " in " + path_);
  };
  if (offset < this->size_bytes()) {  // it was used before: its old bytes must go
    if (::fallocate(fd_, FALLOC_FL_ZERO_RANGE, at, size) == 0) return settle(offset, size_bytes);
    if (errno != EOPNOTSUPP) return failed_to(errno);
    if (::fallocate(fd_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, at, size) != 0)
      return base::system_error(errno, "make room in " + path_);
  }
  if (::fallocate(fd_, 0, at, size) == 0) return settle(offset, size_bytes);
  if (errno == EOPNOTSUPP) return grow(offset + size_bytes);  // the filesystem cannot reserve
  return failed_to(errno);
}

Status FileStorage::provide_sparse(uint64_t offset, uint64_t size_bytes) {
  if (offset < this->size_bytes()) {  // it was used before: its old bytes must go
    if (::fallocate(fd_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset),
                    static_cast<off_t>(size_bytes)) != 0)
      return base::system_error(errno, "make room in " + path_);
    if (Status s = settle(); !s) return s;
  }
  return grow(offset + size_bytes);
}

Status FileStorage::release(uint64_t offset, uint64_t size_bytes) {
  if (size_bytes == 0) return {};
  if (::fallocate(fd_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset),
                  static_cast<off_t>(size_bytes)) == 0 ||
      errno == EOPNOTSUPP)
    return {};
  return base::system_error(errno, "give space of " + path_ + " back");
}

Status FileStorage::read(uint64_t offset, std::span<std::byte> into) {
  OC_ASSERT(fd_ >= 0);
  const int error = all_of(Way::kRead, fd_, offset, into.data(), into.size());
  return error == 0 ? Status() : failed(error, "read", offset, into.size());
}

Status FileStorage::write(uint64_t offset, std::span<const std::byte> from) {
  OC_ASSERT(fd_ >= 0 && is_writable_);
  if (memory_ != nullptr) return write_to_memory(offset, from);
  const int error =
      all_of(Way::kWrite, fd_, offset, const_cast<std::byte*>(from.data()), from.size());
  return error == 0 ? Status() : failed(error, "write", offset, from.size());
}

Status FileStorage::sync() {
  if (const int lost = lost_sync_; lost != 0)
    return base::system_error(lost, "sync " + path_,
                              "an earlier sync failed, and what it lost is not known: write the "
                              "container anew");
  if (memory_ != nullptr) drain();  // cheap, and each call has drained already
  if (memory_ == nullptr || !memory_->is_synchronous())
    if (Status s = sync_file(); !s) return s;
  if (!is_name_unsynced_.exchange(false)) return {};
  const int error = os::sync_folder_of(path_);
  if (error == 0) return {};
  is_name_unsynced_ = true;
  return base::system_error(error, "sync the folder of " + path_);
}

// Maps the page cache, which all readers share. A program that has lent a runtime wants its budget
// to hold: then it gets a region, if nobody changes the bytes (which the region would not see).
// Persistent memory is not part of a budget.
Result<std::shared_ptr<Mapping>> FileStorage::map(const std::shared_ptr<ContainerStorage>& self,
                                                  uint64_t offset, uint64_t size_bytes) {
  OC_CHECK(size_bytes != 0 && offset % base::kSystemPage == 0);
  if (!is_writable_ && memory_ == nullptr && runtime_->is_lent()) {
    MapOptions options;
    options.access = Access::kReadOnly;
    options.offset = offset;
    options.size_bytes = size_bytes;
    auto runtime = runtime_->get();
    if (!runtime) return runtime.error();
    auto region = runtime.value()->map(own_path(), options);
    if (!region) return region.error();
    auto mapping = std::make_shared<RegionMapping>();
    mapping->storage = self;
    mapping->region = std::move(region).value();
    mapping->data = mapping->region.data();
    return std::shared_ptr<Mapping>(std::move(mapping));
  }
  auto mapping = std::make_shared<KernelMapping>();
  mapping->storage = self;
  if (is_writable_) {
    // The mapping has a lease of its own: what it shows is not used again, not by this process
    // either.
    auto held = std::make_shared<FileStorage>();
    held->path_ = path_;
    held->fd_ = ::open(own_path().c_str(), O_RDONLY | O_CLOEXEC);
    if (held->fd_ < 0) return base::system_error(errno, "open " + path_ + " for a view");
    if (Status s = held->lock(Lease::kReader, false, true); !s) return s.error();
    mapping->storage = std::move(held);
  }
  void* const made =
      ::mmap(nullptr, size_bytes, PROT_READ, MAP_SHARED, fd_, static_cast<off_t>(offset));
  if (made == MAP_FAILED) return failed(errno, "map", offset, size_bytes);
  // Otherwise the first element would wait for the kernel's readahead (8 MiB for some disks).
  static_cast<void>(::readahead(fd_, static_cast<off_t>(offset), kReadAheadBytes));
  mapping->data = static_cast<const std::byte*>(made);
  mapping->size_bytes = size_bytes;
  return std::shared_ptr<Mapping>(std::move(mapping));
}

Status FileStorage::forget(uint64_t offset, uint64_t size_bytes) {
  if (Status s = sync(); !s) return s;
  static_cast<void>(::posix_fadvise(fd_, static_cast<off_t>(offset), static_cast<off_t>(size_bytes),
                                    POSIX_FADV_DONTNEED));
  return {};
}

std::string FileStorage::identity() const { return os::identity_of(fd_); }

Status FileStorage::lock_byte(uint64_t byte, int type, bool may_wait) const {
  OC_ASSERT(fd_ >= 0);
  OC_ASSERT(byte < kLockAt);
  const int error = os::lock_bytes(fd_, type, kLockAt + byte, 1, may_wait);
  if (error == -EAGAIN) return Error{EAGAIN, "lock " + path_ + ": another process has it"};
  return error == 0 ? Status() : base::system_error(-error, "lock " + path_);
}

Status FileStorage::lock(Lease lease, bool is_exclusive, bool may_wait) {
  const int type = is_exclusive && is_writable_ ? F_WRLCK : F_RDLCK;
  return lock_byte(static_cast<uint64_t>(lease), type, may_wait);
}

void FileStorage::unlock(Lease lease) {
  static_cast<void>(lock_byte(static_cast<uint64_t>(lease), F_UNLCK, false));
}

Status FileStorage::lock_range(uint64_t offset) {
  return lock_byte(kRangesAt + offset / base::kSystemPage, F_WRLCK, true);
}

void FileStorage::unlock_range(uint64_t offset) {
  static_cast<void>(lock_byte(kRangesAt + offset / base::kSystemPage, F_UNLCK, false));
}

Result<bool> FileStorage::is_locked_by_others(Lease lease) {
  struct flock range {};
  const int error = os::find_lock(fd_, kLockAt + static_cast<uint64_t>(lease), 1, &range);
  if (error != 0) return base::system_error(-error, "look at the locks of " + path_);
  return range.l_type != F_UNLCK;
}

std::string FileStorage::describe() const {
  if (memory_ != nullptr)
    return std::string("persistent memory (DAX, ") +
           (memory_->is_synchronous() ? "MAP_SYNC)" : "no MAP_SYNC), durable when it is synced") +
           ", by non-temporal stores and " + name_of(best_flush());
  if (is_pmem_)
    return direct_fd_ >= 0 ? "a file, no DAX: through the page cache, long runs past it"
                           : "a file, no DAX: through the page cache";
  return direct_fd_ >= 0 ? "a file; long runs are written past the page cache"
                         : "a file, through the page cache";
}

}  // namespace outcore::arrays
