// SparseStore: a folder of segment files, each created when it is first written. After UMap's
// SparseStore.
//
// Segment i holds the bytes [i, i + 1) * segment_bytes, in the file segment.<i, 12 hex digits>.
// Bytes without a segment read zero. outcore-sparse.json has the size (sparse_metadata.h). Fault
// safe: descriptors come from a bounded cache, names are built on the stack. The store never
// remembers that a segment does not exist, because another process may create it. Any thread.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "core/store/buffer_set.h"
#include "core/store/descriptor_cache.h"
#include "core/store/io_piece.h"
#include "core/store/lost_sync.h"
#include "core/store/sparse_metadata.h"
#include "core/store/written_map.h"
#include "outcore/store.h"

namespace outcore::store {

struct SparseStoreOptions {
  std::string folder;
  std::string uri;  // for messages; empty: "sparse:" and the folder
  OpenOptions open;
  uint64_t segment_bytes = 0;  // 0: as it is; 64 MiB for a new store
  unsigned read_concurrency = 0;
  unsigned write_concurrency = 0;
};

class SparseStore final : public Store, private PieceSource {
 public:
  static constexpr uint64_t kSegmentBytesDefault = uint64_t{64} << 20;

  // Errors: EINVAL (no sparse store there, another segment size, corrupt, a newer version, smaller
  // than asked for), and those of the system.
  static Result<std::shared_ptr<Store>> open(const SparseStoreOptions& options);
  ~SparseStore() override;

  uint64_t size_bytes() const override { return size_bytes_.load(std::memory_order_acquire); }
  uint64_t segment_bytes() const { return segment_bytes_; }
  int read(uint64_t offset, std::span<std::byte> into) override;
  int write(uint64_t offset, std::span<const std::byte> from) override;
  void transfer(std::span<StoreRequest> batch) override;
  int sync() override;
  int resize(uint64_t size_bytes) override;
  // Whole segments are emptied, not removed: another process may have them open for writing.
  int discard(uint64_t offset, uint64_t size_bytes) override;
  int release(uint64_t offset, uint64_t size_bytes) override { return discard(offset, size_bytes); }
  bool is_hole(uint64_t offset, uint64_t size_bytes) const override;
  void register_buffer(std::span<std::byte> buffer) override { leases_.lend(buffer); }
  StoreTraits traits() const override { return traits_; }
  std::string uri() const override { return uri_; }
  std::string remark() const override;
  std::string identity() const override { return identity_; }

 private:
  SparseStore() = default;
  Status open_folder(const SparseStoreOptions& options);
  Status found(const SparseStoreOptions& options);  // creates a store
  Status load(const SparseStoreOptions& options);
  Status fit_size(const SparseStoreOptions& options);
  bool is_folder_empty() const;

  bool is_direct() const { return !is_direct_refused_.load(std::memory_order_relaxed); }
  int open_segment(uint64_t segment, bool is_direct_wanted) const;
  int make_segment(uint64_t segment);
  int acquire(uint64_t segment, bool is_direct_wanted, bool may_make,
              DescriptorCache::Lease& lease);
  int discard_in_segment(uint64_t segment, uint64_t offset, uint64_t size_bytes);
  int sync_segment(uint64_t segment);

  int next_piece(const StoreRequest& request, size_t done_bytes, Piece& piece) override;
  void release(const Piece& piece) override { descriptors_.release({piece.fd, piece.ticket}); }
  void refuse_direct() override { is_direct_refused_.store(true, std::memory_order_relaxed); }

  int folder_fd_ = -1;
  std::string folder_;
  std::string uri_;
  std::string identity_;
  std::string why_buffered_;
  StoreTraits traits_;
  uint64_t segment_bytes_ = 0;
  std::atomic<uint64_t> size_bytes_{0};
  bool is_writable_ = false;
  std::atomic<bool> is_direct_refused_{false};
  DescriptorCache descriptors_;
  BufferLeases leases_;
  // Segments that were written and not yet synced. They are marked after the write, so that a sync
  // that begins later sees them.
  WrittenMap unsynced_;
  LostSync lost_sync_;
  std::atomic<bool> is_folder_unsynced_{false};
};

}  // namespace outcore::store
