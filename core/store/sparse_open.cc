// SparseStore: opening: the folder, its metadata, and the options.
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "core/base/assert.h"
#include "core/base/error.h"
#include "core/base/units.h"
#include "core/os/descriptor_place.h"
#include "core/os/disk.h"
#include "core/store/direct_file.h"
#include "core/store/sparse_store.h"

namespace outcore::store {

Result<std::shared_ptr<Store>> SparseStore::open(const SparseStoreOptions& options) {
  std::shared_ptr<SparseStore> store(new SparseStore);
  if (Status s = store->open_folder(options); !s) return s.error();
  if (Status s = store->load(options); !s) return s.error();
  if (Status s = store->fit_size(options); !s) return s.error();
  OC_CHECK(base::is_power_of_two(store->segment_bytes_));
  OC_CHECK(store->folder_fd_ >= 0);
  const uint64_t capacity = std::min<uint64_t>(
      store->segment_bytes_ * SparseMetadata::kSegmentCountMax, uint64_t{1} << 63);
  const bool is_overflow =
      store->segment_bytes_ > (uint64_t{1} << 63) / SparseMetadata::kSegmentCountMax;
  if (store->unsynced_.cover(is_overflow ? uint64_t{1} << 63 : capacity, store->segment_bytes_) !=
      0)
    return base::system_error(ENOMEM, "map what is written of " + store->uri_);
  return std::shared_ptr<Store>(std::move(store));
}

Status SparseStore::open_folder(const SparseStoreOptions& options) {
  folder_ = options.folder;
  uri_ = options.uri.empty() ? "sparse:" + folder_ : options.uri;
  is_writable_ = options.open.is_writable;
  const bool may_create = options.open.may_create;
  if (may_create && !is_writable_)
    return Error{EINVAL, "open " + uri_ + ": to create or extend it, open it writable"};
  if (may_create && ::mkdir(folder_.c_str(), 0777) != 0 && errno != EEXIST)
    return base::system_error(
        errno, "make the folder " + folder_,
        errno == ENOENT ? "make the folders above it first" : "name one where you may write");
  folder_fd_ = os::above_standard(::open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder_fd_ < 0) {
    const int error = errno;
    const char* remedy = error == ENOENT ? "check the path, or create it first"
                         : error == ENOTDIR
                             ? "it is a file: name it without sparse:, or name a folder"
                             : "";
    return base::system_error(error, "open the folder " + folder_, remedy);
  }
  if (is_writable_ && ::faccessat(folder_fd_, ".", W_OK, AT_EACCESS) != 0)
    return base::system_error(errno, "write to the folder " + folder_,
                              "map it read-only, or get write permission");
  struct stat about;
  if (::fstat(folder_fd_, &about) != 0) return base::system_error(errno, "look at " + folder_);
  identity_ = "sparse:" + std::to_string(about.st_dev) + ":" + std::to_string(about.st_ino);
  const std::string why = why_never_direct(folder_fd_);
  is_direct_refused_ = !why.empty();
  why_buffered_ = (why.empty() ? "O_DIRECT is refused by the filesystem" : why) + ": buffered";
  traits_.is_fault_safe = true;
  traits_.can_read_while_written = true;
  traits_.has_many_in_flight = true;
  traits_.alignment_bytes = is_direct() ? kDirectAlignment : 1;
  traits_.read_concurrency = options.read_concurrency;
  traits_.write_concurrency = options.write_concurrency;
  traits_.device = os::disk_of(about.st_dev);
  return {};
}

Status SparseStore::load(const SparseStoreOptions& options) {
  auto metadata = read_metadata(folder_fd_, folder_);
  if (!metadata) return metadata.error();
  if (!metadata->has_value()) return found(options);
  size_bytes_ = (**metadata).size_bytes;
  segment_bytes_ = (**metadata).segment_bytes;
  if (options.segment_bytes != 0 && options.segment_bytes != segment_bytes_)
    return Error{EINVAL, "open " + uri_ + ": it has segments of " +
                             base::format_bytes(segment_bytes_) + ", " +
                             base::format_bytes(options.segment_bytes) +
                             " are asked for: leave out segment="};
  return {};
}

bool SparseStore::is_folder_empty() const {
  const int fd = os::above_standard(::openat(folder_fd_, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  DIR* folder = fd < 0 ? nullptr : ::fdopendir(fd);
  if (folder == nullptr) {
    if (fd >= 0) ::close(fd);
    return false;
  }
  bool is_empty = true;
  while (const dirent* entry = ::readdir(folder)) {
    const bool is_itself =
        std::strcmp(entry->d_name, ".") == 0 || std::strcmp(entry->d_name, "..") == 0;
    // A temporary file of a crash between the creation of a store and its first metadata.
    const bool is_unfinished = std::strncmp(entry->d_name, SparseMetadata::kFileName, 19) == 0;
    if (!is_itself && !is_unfinished) is_empty = false;
  }
  ::closedir(folder);
  return is_empty;
}

Status SparseStore::found(const SparseStoreOptions& options) {
  const std::string attempted = "open " + uri_ + ": the folder has no " + SparseMetadata::kFileName;
  if (!options.open.may_create)
    return Error{EINVAL, attempted + ": name the folder of a sparse store, or create one first"};
  if (!is_folder_empty())
    return Error{EINVAL, attempted + " and is not empty: name a new or an empty folder"};
  segment_bytes_ = options.segment_bytes == 0 ? kSegmentBytesDefault : options.segment_bytes;
  const SparseMetadata metadata{options.open.size_bytes, segment_bytes_};
  if (Status s = check_metadata(metadata, "open " + uri_); !s) return s;
  if (const int error = write_metadata(folder_fd_, metadata); error != 0)
    return base::system_error(error, "write " + folder_ + "/" + SparseMetadata::kFileName);
  size_bytes_ = metadata.size_bytes;
  is_folder_unsynced_ = true;
  return {};
}

Status SparseStore::fit_size(const SparseStoreOptions& options) {
  const uint64_t wanted = options.open.size_bytes;
  if (wanted <= size_bytes() || options.open.keeps_size) return {};
  const std::string attempted = "open " + uri_ + ": it has " + std::to_string(size_bytes()) +
                                " bytes, " + std::to_string(wanted) + " are asked for";
  if (!options.open.may_create)
    return Error{EINVAL, attempted + ": ask for less, or allow to extend it"};
  if (Status s = check_metadata({wanted, segment_bytes_}, "open " + uri_); !s) return s;
  if (const int error = resize(wanted); error != 0)
    return base::system_error(error, attempted + "; extend it");
  return {};
}

}  // namespace outcore::store
