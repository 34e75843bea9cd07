// ContainerStorage: where the bytes of a container lie and how they are read and written: in a
// file, through the kernel's page cache or past it, or in a store, through the pages of a region.
//
// Any thread. Shared by an open container and the mappings that it handed out; the last one closes
// it.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>

#include "arrays/container/box.h"
#include "outcore/result.h"
#include "outcore/runtime.h"

namespace outcore::arrays {

// Bytes of the container as memory. They are mapped as long as this object exists.
struct Mapping {
  virtual ~Mapping() = default;
  const std::byte* data = nullptr;
};

// The runtime that maps stores: the program's, if it has lent one; otherwise one that is started
// when it is first needed. Any thread.
class LentRuntime {
 public:
  explicit LentRuntime(Runtime* lent) : is_lent_(lent != nullptr), lent_(lent) {}
  bool is_lent() const { return is_lent_; }
  Result<Runtime*> get() {
    const std::lock_guard<std::mutex> guard(mutex_);
    if (lent_ != nullptr) return lent_;
    auto started = Runtime::start();
    if (!started) return started.error();
    own_.emplace(std::move(started).value());
    return lent_ = &*own_;
  }

 private:
  const bool is_lent_;
  std::mutex mutex_;
  Runtime* lent_;
  std::optional<Runtime> own_;
};

// The locks between processes; see ContainerStorage::lock().
enum class Lease : uint8_t {
  kCatalog,  // exclusive: to read or change the catalog while other processes may change it
  kWriter,   // shared: one of several processes that write together; exclusive: the only writer
  kReader,   // shared: a reader; while it is locked, space of removed arrays is not reused
};

class ContainerStorage {
 public:
  virtual ~ContainerStorage() = default;

  virtual uint64_t size_bytes() const = 0;
  // Discards all bytes: afterwards the storage is empty or reads zero.
  virtual Status clear() = 0;
  // Makes the storage at least this large; new bytes read zero.
  virtual Status grow(uint64_t size_bytes) = 0;
  // Makes the range read zero, and allocates space for it where the storage can. Error: ENOSPC.
  virtual Status provide(uint64_t offset, uint64_t size_bytes) = 0;
  // The same without allocating: bytes that are never written take no space.
  virtual Status provide_sparse(uint64_t offset, uint64_t size_bytes) = 0;
  // The bytes of the range are no longer needed; their space may be freed.
  virtual Status release(uint64_t offset, uint64_t size_bytes) = 0;

  virtual Status read(uint64_t offset, std::span<std::byte> into) = 0;
  // The same past what this process keeps of bytes that another one may have written since.
  virtual Status read_anew(uint64_t offset, std::span<std::byte> into) {
    return read(offset, into);
  }
  virtual Status write(uint64_t offset, std::span<const std::byte> from) = 0;
  // Read or write many runs of bytes; Runs::there is relative to `first`. Not one byte beside the
  // runs is written, so threads and processes may write neighbouring bytes at the same time.
  virtual Status read_runs(uint64_t first, const Runs& runs, std::byte* into) = 0;
  virtual Status write_runs(uint64_t first, const Runs& runs, const std::byte* from) = 0;
  // Makes everything durable that was written.
  virtual Status sync() = 0;

  // Makes the range durable and drops its cached bytes, so that the next read comes from the device
  // as far as that is possible.
  virtual Status forget(uint64_t offset, uint64_t size_bytes) = 0;

  // Maps a range. `self` points to this object: the mapping keeps it, and its leases, alive.
  // REQUIRES: `offset` is a multiple of 4096.
  virtual Result<std::shared_ptr<Mapping>> map(const std::shared_ptr<ContainerStorage>& self,
                                               uint64_t offset, uint64_t size_bytes) = 0;

  // It ends after the last byte that was ever used (a file does; an image has a fixed size).
  virtual bool ends_where_used() const = 0;
  virtual bool can_be_shared() const = 0;  // several processes may write at the same time
  // Called before a shared storage is closed. Error: EIO, if some of the writing processes have
  // ended without closing it.
  virtual Status hear_of_others() { return {}; }
  virtual void leave() {}  // The last call but the destructor.
  // For messages: how long a writer that has ended still seems to be alive.
  virtual std::string patience() const { return {}; }
  // Locks until unlock(), shared or exclusive; a lock that this storage holds already is changed to
  // the other kind. Error: EAGAIN, if it would have to wait and `may_wait` is false.
  virtual Status lock(Lease lease, bool is_exclusive, bool may_wait) = 0;
  virtual void unlock(Lease lease) = 0;
  // Locks the range that begins at `offset` for this process until unlock_range(). Threads of one
  // process do not exclude each other. REQUIRES: `offset` is a multiple of 4096.
  virtual Status lock_range(uint64_t offset) = 0;
  virtual void unlock_range(uint64_t offset) = 0;
  // Whether is_locked_by_others(Lease::kReader) can be relied on.
  virtual bool knows_readers() const = 0;
  // Whether another process, storage or mapping holds the lock, shared or exclusive.
  virtual Result<bool> is_locked_by_others(Lease lease) = 0;

  virtual std::string uri() const = 0;
  // Two storages with the same identity hold the same bytes. Empty: it is not known.
  virtual std::string identity() const = 0;
  virtual std::string describe() const = 0;
};

inline constexpr uint64_t kNewContainerBytes = 1 << 20;

struct StorageOptions {
  std::string uri;
  bool is_writable = false, may_create = false;
  std::shared_ptr<LentRuntime> runtime;
  unsigned writers = 1;  // processes that write, including this one
};

// A path, file:PATH and pmem:PATH[?map_sync=…] are opened directly; every other store through a
// runtime.
Result<std::shared_ptr<ContainerStorage>> open_storage(const StorageOptions& options);

}  // namespace outcore::arrays
