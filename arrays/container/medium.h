// Medium: where a container's bytes lie, and how they travel: a file, through the page cache or
// past it; or a store, through the pages of a region.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>

#include "arrays/container/box.h"
#include "outcore/result.h"
#include "outcore/runtime.h"

namespace outcore::arrays {

// Bytes as memory, for as long as somebody has it.
struct Mapping {
  virtual ~Mapping() = default;
  const std::byte* data = nullptr;
};

// A runtime, started when it is first needed; the program's, if it has lent one. Any thread.
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

// Processes hold ranges of these names: see Medium::lock().
enum class Lease : uint8_t {
  kCatalog,  // exclusive: whoever reads or changes the catalog as others may
  kWriter,   // shared by those who write together; exclusive: alone
  kReader,   // shared by readers, whose arrays' space is not used again meanwhile
};

class Medium {
 public:
  virtual ~Medium() = default;

  virtual uint64_t size_bytes() const = 0;
  // No bytes of use are in it any more; they read zero, if there are any.
  virtual Status clear() = 0;
  // At least so many bytes from now on; what is new reads zero.
  virtual Status grow(uint64_t size_bytes) = 0;
  // The range reads zero, and has space where that can be promised. ENOSPC.
  virtual Status provide(uint64_t offset, uint64_t size_bytes) = 0;
  // The same without space: what is never written takes none.
  virtual Status provide_sparse(uint64_t offset, uint64_t size_bytes) = 0;
  // Its bytes are of no use any more.
  virtual Status release(uint64_t offset, uint64_t size_bytes) = 0;

  virtual Status read(uint64_t offset, std::span<std::byte> into) = 0;
  virtual Status write(uint64_t offset, std::span<const std::byte> from) = 0;
  // Many runs; `first` is what Runs::there counts from. Exactly these bytes are written. Any
  // thread, any process, at once.
  virtual Status read_runs(uint64_t first, const Runs& runs, std::byte* into) = 0;
  virtual Status write_runs(uint64_t first, const Runs& runs, const std::byte* from) = 0;
  // Everything that was written is durable.
  virtual Status sync() = 0;

  // What is read of it next comes from the storage, as far as that can be had. Durable before.
  virtual Status forget(uint64_t offset, uint64_t size_bytes) = 0;

  // `self` is this: a mapping keeps it, and its leases. offset is a multiple of 4096.
  virtual Result<std::shared_ptr<Mapping>> map(const std::shared_ptr<Medium>& self, uint64_t offset,
                                               uint64_t size_bytes) = 0;

  // It has no bytes behind those that were ever used: a file, not an image.
  virtual bool ends_where_used() const = 0;
  virtual bool can_be_shared() const = 0;  // by processes that write at once
  // Of one that is shared, before it is closed: 0 if all who write are known to live. EIO: some
  // have ended.
  virtual Status hear_of_others() { return {}; }
  virtual void leave() {}  // nothing is asked of it any more
  // How long others seem to write that have ended, for messages.
  virtual std::string patience() const { return {}; }
  // Taken as told, held until unlock(); a lease that is held may be changed. May it not wait:
  // EAGAIN.
  virtual Status lock(Lease lease, bool is_exclusive, bool may_wait) = 0;
  virtual void unlock(Lease lease) = 0;
  // One process has what begins there, a multiple of 4096, for itself until unlock_range();
  // threads of one process are not kept from each other.
  virtual Status lock_range(uint64_t offset) = 0;
  virtual void unlock_range(uint64_t offset) = 0;
  // is_locked_by_others(Lease::kReader) is the truth.
  virtual bool knows_readers() const = 0;
  // Whether another process, Medium or mapping holds it, in either way.
  virtual Result<bool> is_locked_by_others(Lease lease) = 0;

  virtual std::string uri() const = 0;
  // Two media with the same hold the same bytes; empty: nobody can tell.
  virtual std::string identity() const = 0;
  virtual std::string describe() const = 0;
};

struct MediumOptions {
  std::string uri;
  bool is_writable = false, may_create = false;
  std::shared_ptr<LentRuntime> runtime;
  unsigned writers = 1;  // processes, of which this is one
};

// A path, file:PATH, pmem:PATH: by itself; every other store through a runtime.
Result<std::shared_ptr<Medium>> open_medium(const MediumOptions& options);

}  // namespace outcore::arrays
