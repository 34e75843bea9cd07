// VersionedDisk: the folder of a versioned pool. The heap of blocks is read and written as the
// files of other stores are: with O_DIRECT where the filesystem allows it, and batches through the
// io_uring of the calling thread.
#pragma once

#include "checkpoints/pool/folder_disk.h"
#include "core/store/direct_file.h"

namespace outcore::store {

class VersionedDisk final : public versioned::FolderDisk {
 public:
  // As FolderDisk::open.
  static Result<std::shared_ptr<versioned::Disk>> open(const std::string& path, bool may_create,
                                                       DirectMode direct, StoreTraits traits);
  Result<std::shared_ptr<versioned::Disk>> reopen() const override;

 private:
  VersionedDisk(DirectMode direct, StoreTraits traits) : direct_(direct), traits_(traits) {}
  Result<std::unique_ptr<versioned::File>> make_heap(int fd, bool is_writable,
                                                     const std::string& path) override;

  const DirectMode direct_;
  const StoreTraits traits_;  // how many transfers at a time
};

}  // namespace outcore::store
