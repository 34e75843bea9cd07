#include "core/store/scratch_store.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>

#include "core/base/assert.h"
#include "core/base/error.h"
#include "core/base/units.h"
#include "core/os/descriptor_place.h"
#include "core/os/disk.h"
#include "core/os/file_calls.h"
#include "core/store/range.h"
#include "core/store/unwritten_zeros.h"

namespace outcore::store {
namespace {

constexpr uint64_t kWrittenUnitBytes = 64 << 10;
// resize() can reach this with holes known: a map of 2 MiB.
constexpr uint64_t kCapacityMin = uint64_t{1} << 40;

std::string default_folder() {
  const char* folder = std::getenv("TMPDIR");
  return folder != nullptr && *folder != 0 ? folder : "/var/tmp";
}

// Free bytes of the filesystem; no limit if it does not say.
uint64_t free_bytes(int fd) {
  struct statvfs space;
  if (::fstatvfs(fd, &space) != 0) return UINT64_MAX;
  return (::geteuid() == 0 ? space.f_bfree : space.f_bavail) * uint64_t{space.f_frsize};
}

}  // namespace

int open_scratch_file(std::string* folder) {
  if (folder->empty()) *folder = default_folder();
  const int unnamed =
      os::above_standard(::open(folder->c_str(), O_TMPFILE | O_EXCL | O_RDWR | O_CLOEXEC, 0600));
  if (unnamed >= 0) return unnamed;
  if (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL) return -errno;
  std::string name = *folder + "/outcore-scratch-XXXXXX";
  const int made = ::mkostemp(name.data(), O_CLOEXEC);
  if (made < 0) return -errno;
  ::unlink(name.c_str());
  const int fd = os::above_standard(made);
  return fd >= 0 ? fd : -errno;
}

Result<std::shared_ptr<Store>> ScratchStore::open(const ScratchStoreOptions& options) {
  std::shared_ptr<ScratchStore> store(new ScratchStore);
  store->folder_ = options.folder;
  store->is_sparse_ = !options.is_reserved;
  const int fd = open_scratch_file(&store->folder_);
  if (fd < 0)
    return base::system_error(fd, "make a scratch file in " + store->folder_,
                              "name a folder you may write to (scratch_dir, or TMPDIR)");
  if (Status s = store->file_.adopt(fd, true, DirectMode::kAuto, store->uri()); !s)
    return s.error();
  if (Status s = store->reserve_first(options.size_bytes); !s) return s.error();
  const uint64_t capacity = std::max(kCapacityMin, options.size_bytes);
  if (const int error = store->written_.cover(capacity, kWrittenUnitBytes); error != 0)
    return base::system_error(error, "map what is written of " + store->uri());
  StoreTraits& traits = store->traits_;
  traits.is_fault_safe = true;
  traits.can_read_while_written = true;
  traits.has_many_in_flight = true;
  traits.is_volatile = true;
  traits.alignment_bytes = store->file_.is_direct() ? kDirectAlignment : 1;
  traits.read_concurrency = options.read_concurrency;
  traits.write_concurrency = options.write_concurrency;
  struct stat about;
  if (::fstat(fd, &about) == 0) traits.device = os::disk_of(about.st_dev);
  return std::shared_ptr<Store>(std::move(store));
}

// Allocates space for the range, and makes the file that long. 0 or -errno.
int ScratchStore::extend(uint64_t offset, uint64_t size_bytes) {
  OC_CHECK(file_.fd() >= 0);
  if (size_bytes == 0) return 0;
  if (size_bytes > INT64_MAX - std::min<uint64_t>(offset, INT64_MAX)) return -EFBIG;
  if (is_sparse_) return os::set_size(file_.fd(), offset + size_bytes);
  // Checked first, so that a request that cannot succeed does not fill the disk before it fails.
  if (size_bytes > free_bytes(file_.fd())) return -ENOSPC;
  const int error = os::allocate_space(file_.fd(), offset, size_bytes);
  if (error == 0) return 0;
  if (error != -ENOTSUP) {
    os::set_size(file_.fd(), offset);  // a part may have got its space
    return error;
  }
  is_reserved_ = false;
  return os::set_size(file_.fd(), offset + size_bytes);
}

Status ScratchStore::reserve_first(uint64_t size_bytes) {
  const int error = extend(0, size_bytes);
  if (error == 0) {
    size_bytes_ = size_bytes;
    return {};
  }
  const std::string attempted = "reserve " + base::format_bytes(size_bytes) + " of scratch in " +
                                folder_ + " (" + base::format_bytes(free_bytes(file_.fd())) +
                                " free)";
  return base::system_error(error, attempted,
                            error == -EFBIG
                                ? "lift the file size limit (ulimit -f), or ask for less"
                                : "name a folder with more space (scratch_dir, or TMPDIR)");
}

std::string ScratchStore::remark() const {
  std::string text = file_.why_buffered();
  if (is_sparse_)
    return text + (text.empty() ? "" : "; ") + "space is not reserved: it may run out later";
  if (!is_reserved_)
    text += std::string(text.empty() ? "" : "; ") +
            "the filesystem cannot reserve space: it may run out later";
  return text;
}

int ScratchStore::read(uint64_t offset, std::span<std::byte> into) {
  OC_CHECK(is_range_of(offset, into.size(), size_bytes()));
  if (!written_.is_untouched(offset, into.size())) return file_.read(offset, into);
  std::fill(into.begin(), into.end(), std::byte{0});
  return 0;
}

int ScratchStore::write(uint64_t offset, std::span<const std::byte> from) {
  OC_CHECK(is_range_of(offset, from.size(), size_bytes()));
  written_.mark(offset, from.size());
  return file_.write(offset, from);
}

void ScratchStore::transfer(std::span<StoreRequest> batch) {
  for (const StoreRequest& r : batch) {
    OC_CHECK(is_range_of(r.offset, r.size_bytes, size_bytes()));
    if (r.is_write) written_.mark(r.offset, r.size_bytes);
  }
  transfer_plain(
      batch,
      [this](const StoreRequest& r) {
        return r.is_write || !written_.is_untouched(r.offset, r.size_bytes);
      },
      [this](std::span<StoreRequest> part) { file_.transfer(part, traits_); },
      [](const StoreRequest& r) {
        std::fill_n(r.bytes, r.size_bytes, std::byte{0});
        return 0;
      });
}

int ScratchStore::resize(uint64_t size_bytes) {
  const uint64_t before = this->size_bytes();
  if (size_bytes > before) {
    if (const int error = extend(before, size_bytes - before); error != 0) return error;
  } else if (const int error = os::set_size(file_.fd(), size_bytes); error != 0) {
    return error;
  }
  size_bytes_.store(size_bytes, std::memory_order_release);
  return 0;
}

int ScratchStore::reserve(uint64_t offset, uint64_t size_bytes) {
  OC_CHECK(is_range_of(offset, size_bytes, this->size_bytes()));
  if (size_bytes == 0) return 0;
  if (is_sparse_) return -ENOTSUP;
  struct stat about;
  if (::fstat(file_.fd(), &about) != 0) return -errno;
  // It cannot succeed, even with the blocks that are allocated already.
  const uint64_t free = free_bytes(file_.fd()), held = static_cast<uint64_t>(about.st_blocks) * 512;
  if (size_bytes > held && size_bytes - held > free) return -ENOSPC;
  return os::allocate_space(file_.fd(), offset, size_bytes);
}

int ScratchStore::release(uint64_t offset, uint64_t size_bytes) {
  OC_CHECK(is_range_of(offset, size_bytes, this->size_bytes()));
  const int error = file_.give_blocks_back(offset, size_bytes);
  if (error == 0) written_.clear_inside(offset, size_bytes);
  return error;
}

int ScratchStore::discard(uint64_t offset, uint64_t size_bytes) {
  OC_CHECK(is_range_of(offset, size_bytes, this->size_bytes()));
  // Reserved space stays reserved.
  const int error =
      file_.discard(offset, size_bytes, is_sparse_ ? DiscardMode::kHole : DiscardMode::kKeepSpace);
  if (error == 0) written_.clear_inside(offset, size_bytes);
  return error;
}

bool ScratchStore::is_hole(uint64_t offset, uint64_t size_bytes) const {
  return written_.is_untouched(offset, size_bytes);
}

}  // namespace outcore::store
