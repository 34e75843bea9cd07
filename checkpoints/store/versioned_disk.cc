#include "checkpoints/store/versioned_disk.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "core/base/assert.h"
#include "core/base/error.h"
#include "core/store/buffer_set.h"

namespace outcore::store {
namespace {

class BlocksFile final : public versioned::File {
 public:
  explicit BlocksFile(const StoreTraits& traits) : traits_(traits) {}

  // Takes the descriptor over.
  Status open(int fd, bool is_writable, DirectMode direct, const std::string& path) {
    OC_CHECK(fd >= 0 && plain_ == nullptr);
    const int copy = ::fcntl(fd, F_DUPFD_CLOEXEC, 3);
    const int error = errno;
    Status status = file_.adopt(fd, is_writable, direct, path);
    if (!status) {
      if (copy >= 0) ::close(copy);
      return status;
    }
    if (copy < 0) return base::system_error(error, "open " + path);
    plain_ = std::make_unique<versioned::PlainFile>(copy);
    return {};
  }

  int read(uint64_t offset, std::span<std::byte> into) override { return file_.read(offset, into); }
  int write(uint64_t offset, std::span<const std::byte> from) override {
    return file_.write(offset, from);
  }
  void transfer(std::span<StoreRequest> batch) override { file_.transfer(batch, traits_); }
  int sync() override { return plain_->sync(); }
  int allocate(uint64_t offset, uint64_t size_bytes) override {
    return plain_->allocate(offset, size_bytes);
  }
  void punch(uint64_t offset, uint64_t size_bytes) override { plain_->punch(offset, size_bytes); }
  uint64_t size_bytes() const override { return plain_->size_bytes(); }
  void register_buffer(std::span<std::byte> buffer) override { leases_.lend(buffer); }

 private:
  const StoreTraits traits_;
  DirectFile file_;
  std::unique_ptr<versioned::PlainFile> plain_;
  BufferLeases leases_;
};

}  // namespace

Result<std::shared_ptr<versioned::Disk>> VersionedDisk::open(const std::string& path,
                                                             bool may_create, DirectMode direct,
                                                             StoreTraits traits) {
  std::shared_ptr<VersionedDisk> disk(new VersionedDisk(direct, traits));
  if (Status s = disk->open_folder(path, may_create); !s) return s.error();
  return std::shared_ptr<versioned::Disk>(std::move(disk));
}

Result<std::shared_ptr<versioned::Disk>> VersionedDisk::reopen() const {
  std::shared_ptr<VersionedDisk> disk(new VersionedDisk(direct_, traits_));
  if (Status s = disk->open_folder_of(*this); !s) return s.error();
  return std::shared_ptr<versioned::Disk>(std::move(disk));
}

Result<std::unique_ptr<versioned::File>> VersionedDisk::make_heap(int fd, bool is_writable,
                                                                  const std::string& path) {
  auto file = std::make_unique<BlocksFile>(traits_);
  if (Status s = file->open(fd, is_writable, direct_, path); !s) return s.error();
  return std::unique_ptr<versioned::File>(std::move(file));
}

}  // namespace outcore::store
