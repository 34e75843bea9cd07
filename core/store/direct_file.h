// DirectFile: an open file with a buffered descriptor and, if the filesystem accepts it, a direct
// one.
//
// Aligned parts of transfers go direct, the rest buffered; the kernel keeps the two coherent. What
// the page cache has already, because the file was just written or another program reads it, is
// read from there. For regular files and block devices. Any thread; read and write are fit for the
// fault path. The object owns both descriptors.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <string>

#include "core/store/discard.h"
#include "core/store/io_piece.h"
#include "outcore/result.h"
#include "outcore/store.h"
#include "outcore/store_kind.h"

namespace outcore::store {

enum class DirectMode : uint8_t { kAuto, kOn, kOff };

// What the URI says by direct=. Errors: EINVAL.
Result<DirectMode> direct_mode_of(const StoreUri& uri);

class DirectFile final : public PieceSource {
 public:
  DirectFile() = default;
  ~DirectFile();
  DirectFile(const DirectFile&) = delete;
  DirectFile& operator=(const DirectFile&) = delete;

  // Takes over an open descriptor, and opens a direct one for the same file. `name` is for
  // messages. Errors: EINVAL (mode is kOn and the filesystem refuses; the message says why).
  Status adopt(int fd, bool is_writable, DirectMode mode, const std::string& name);
  // Reads may look at the page cache, by a further system call: for files that others have, too.
  void look_at_page_cache() { can_look_ = is_direct(); }

  int fd() const { return fd_; }
  bool is_direct() const { return !is_direct_refused_.load(std::memory_order_relaxed); }
  // Why transfers are buffered; empty if they are direct.
  std::string why_buffered() const;

  // 0 or -errno; never short. The fault path.
  int read(uint64_t offset, std::span<std::byte> into);
  int write(uint64_t offset, std::span<const std::byte> from);
  void transfer(std::span<StoreRequest> batch, const StoreTraits& traits);

  // Makes the range read zero. 0 or -errno.
  int discard(uint64_t offset, uint64_t size_bytes, DiscardMode mode);
  // Frees the blocks of the range, without writing. -ENOTSUP if the filesystem cannot.
  int give_blocks_back(uint64_t offset, uint64_t size_bytes) const {
    return free_blocks(fd_, offset, size_bytes, DiscardMode::kHole);
  }

  // The program has written the range by calls of its own, through the page cache. A direct read of
  // such a page would first write it to the device, and wait for that: it is read from the cache,
  // as long as it is among the last that were noted. Any thread. It allocates once, and does
  // nothing where there is no memory.
  void note_cached(uint64_t offset, uint64_t size_bytes);

  int next_piece(const StoreRequest& request, size_t done_bytes, Piece& piece) override;
  void refuse_direct() override;

 private:
  static constexpr uint64_t kCachedMax = 4096;  // pages
  // In how many looks in vain at the page cache one must succeed, or only one read in so many looks
  // there: another program may bring the file in at any time.
  static constexpr int kVainLooksMax = 64;
  bool is_in_page_cache(const Piece& piece);
  bool is_cached(uint64_t page) const;
  void read_from_cache(Piece& piece) const;

  // A page + 1 in the place of its number, by division: the last that was noted. nullptr: none was.
  // A guess: both ways read the same bytes.
  std::atomic<std::atomic<uint64_t>*> cached_{nullptr};
  // Hints: how many looks at the page cache may still be in vain, and how many reads did not look;
  // whether reads look, which ends where the kernel does not say what is there (before 6.5, and of
  // some files of others).
  std::atomic<int> looks_left_{kVainLooksMax};
  std::atomic<uint32_t> blind_reads_{0};
  std::atomic<bool> can_look_{false};
  int fd_ = -1;
  // Kept where it is of no use, too: to close it would drop the POSIX locks that the process holds
  // on the file.
  int direct_fd_ = -1;
  std::atomic<bool> is_direct_refused_{true};
  std::string why_buffered_ = "buffered";  // constant after adopt()
};

// How many transfers of the batch may be in flight at a time, by the store's traits; 0: no limit.
unsigned in_flight_max(const StoreTraits& traits, std::span<const StoreRequest> batch);

// Opens the file of `fd` again, with O_DIRECT. A descriptor, or -errno.
int reopen_direct(int fd, bool is_writable);
// "tmpfs keeps files in memory", or empty if the filesystem of the descriptor may support direct
// transfers.
std::string why_never_direct(int fd);

}  // namespace outcore::store
