// FileStore: a regular file or a block device as a store.
//
// Fault safe. Uses direct I/O if the filesystem accepts it, and the calling thread's io_uring for
// batches. If the file is shorter than when it was opened, reads past its end are an error (-EIO),
// never zeros; so are writes there, if that is asked for (refuses_cut), and syncs from then on.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "core/store/buffer_set.h"
#include "core/store/direct_file.h"
#include "core/store/file_version.h"
#include "core/store/lost_sync.h"
#include "core/store/written_map.h"
#include "outcore/store.h"

namespace outcore::store {

struct FileStoreOptions {
  std::string path;
  std::string uri;  // for messages; empty: "file:" and the path
  OpenOptions open;
  DirectMode direct = DirectMode::kAuto;
  unsigned read_concurrency = 0;
  unsigned write_concurrency = 0;
  // A file that others have cut is not written past its end, or it would grow again, with zeros in
  // the place of what was cut off. Not for callers that follow its size (look_at_size()).
  bool refuses_cut = false;
};

// Which file a store has, and what it is now; for what is kept about it between two runs.
struct FileFacts {
  std::string path;  // absolute, without links
  uint64_t size_bytes = 0;
  int64_t modified_ns = 0;
};

class FileStore final : public Store {
 public:
  // Errors: those of the system, with the remedy; EINVAL (a directory, FIFO or other thing that is
  // not a file; shorter than asked for; direct=on refused).
  static Result<std::shared_ptr<Store>> open(const FileStoreOptions& options);

  uint64_t size_bytes() const override { return size_bytes_.load(std::memory_order_acquire); }
  int read(uint64_t offset, std::span<std::byte> into) override;
  int write(uint64_t offset, std::span<const std::byte> from) override;
  void transfer(std::span<StoreRequest> batch) override;
  int sync() override;
  int resize(uint64_t size_bytes) override;                    // -ENOTSUP for block devices
  int reserve(uint64_t offset, uint64_t size_bytes) override;  // -ENOTSUP: not every filesystem can
  int discard(uint64_t offset, uint64_t size_bytes) override;
  int release(uint64_t offset, uint64_t size_bytes) override;
  bool is_hole(uint64_t offset, uint64_t size_bytes) const override;
  void register_buffer(std::span<std::byte> buffer) override { leases_.lend(buffer); }
  StoreTraits traits() const override { return traits_; }
  // "PATH was cut to N bytes", if others have done so; once a write has found it, however long the
  // file is now.
  std::string why_failed(int error) const override;
  std::string uri() const override { return uri_; }
  std::string remark() const override { return file_.why_buffered(); }
  std::string identity() const override { return identity_; }
  // For files whose size others may have changed: takes the size over if it is larger, or, if
  // nothing of the store is mapped, in any case. 0 or -errno.
  int look_at_size(bool is_mapped);
  // The program has written the range by calls of its own (DirectFile). Allocates once.
  void note_cached(uint64_t offset, uint64_t size_bytes) { file_.note_cached(offset, size_bytes); }
  // Errors: ENOENT (it has no name any more), those of the system. Not on the fault path.
  Result<FileFacts> facts() const;
  // Errors: ENOTSUP (a block device), those of the system. Not on the fault path.
  Result<FileVersion> version() const;
  // By what it was opened, and is open: in a forked child, too, unless that has closed it.
  const std::string& path() const { return path_; }
  int descriptor() const { return file_.fd(); }

 private:
  // Opened, but not yet examined.
  struct Opened {
    int fd = -1;
    bool is_new = false;
  };

  FileStore() = default;
  static Result<Opened> open_descriptor(const FileStoreOptions& options);
  Status examine(int fd, const FileStoreOptions& options);
  Status fit_size(const FileStoreOptions& options);
  void watch_from(uint64_t offset);
  int sync_file();
  // The end of a file that others have cut; UINT64_MAX: they have not. The fault path.
  uint64_t cut_end() const;
  uint64_t end_of_writes() const { return refuses_cut_ ? cut_end() : UINT64_MAX; }
  // -EIO. What was cut off is lost, however long the file becomes again: sync() fails from then on.
  int refuse_past_cut(uint64_t end);

  DirectFile file_;
  BufferLeases leases_;
  std::string path_;
  std::string uri_;
  std::string identity_;
  StoreTraits traits_;
  std::atomic<uint64_t> size_bytes_{0};
  bool is_writable_ = false;
  bool is_block_device_ = false;
  bool refuses_cut_ = false;
  LostSync lost_sync_;
  std::atomic<uint64_t> found_cut_to_{UINT64_MAX};  // by the last write that was refused
  std::atomic<bool> is_size_unsynced_{false};
  // The file is new: its folder must be made durable, too.
  std::atomic<bool> is_name_unsynced_{false};

  // Parts that this process added to the file and never wrote are likely holes. Only for them
  // is_hole() asks the filesystem, which decides, because others may write to the file, too.
  WrittenMap written_;
  std::atomic<uint64_t> watched_from_{UINT64_MAX};
};

}  // namespace outcore::store
