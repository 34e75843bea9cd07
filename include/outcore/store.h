// Store: where the bytes of a region rest while they are not in memory.
//
// Users extend Outcore with a class of their own: implement size_bytes, read and write (see
// examples/06_custom_store.cc). After UMap's Store (IEEE TPDS 2021, section 3.2).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "outcore/result.h"

namespace outcore {

// One transfer of a batch. `result` becomes 0 or -errno.
struct StoreRequest {
  uint64_t offset = 0;
  std::byte* bytes = nullptr;  // read: filled; write: only read from
  size_t size_bytes = 0;
  bool is_write = false;
  int result = 0;
};

// What a store is good at. Constant for the life of the store.
struct StoreTraits {
  // read() may be called inside a signal handler of a faulting thread: it allocates nothing, takes
  // no lock that the program could hold, and touches no managed memory. Otherwise I/O threads call
  // it.
  bool is_fault_safe = false;
  // Transfers that are multiples of this, at offsets that are, from buffers that are, go the fast
  // way. Others work, slower.
  size_t alignment_bytes = 1;
  unsigned read_concurrency = 0;  // transfers at a time the store serves well; 0: no limit
  unsigned write_concurrency =
      0;  // the same for writes; a device that slows down under writers is throttled
  // Stores with the same number share a device, and a limit on writes holds for them together, in
  // one process. 0: none that others use, or not known.
  uint64_t device = 0;
  // A write takes much longer than a fill should (a round trip, an acknowledgement of replicas):
  // threads that touch pages leave the write-back of others to the keepers.
  bool has_slow_writes = false;
  bool is_volatile = false;  // dies with the process (scratch, memory)
  // A read may overlap a write that is under way: what it gets of those bytes may be anything, and
  // is thrown away. Files can; then neighbours with small gaps are read in one transfer.
  bool can_read_while_written = false;
};

class Snapshots;

class Store {
 public:
  virtual ~Store() = default;

  // Bytes in the store. Only resize() changes it. Any thread.
  virtual uint64_t size_bytes() const = 0;

  // Fills all of `into` with the bytes at `offset`. 0, or -errno; never short: a store that is
  // shorter than it said is -EIO. REQUIRES: offset + into.size() <= size_bytes(). Any thread, many
  // at a time; none on bytes that are being written, unless can_read_while_written.
  virtual int read(uint64_t offset, std::span<std::byte> into) = 0;

  // Stores all of `from`. 0 means that a later read() returns these bytes. 0, or -errno (then what
  // the range holds is unspecified, and Outcore keeps the page dirty and writes it again).
  // REQUIRES: offset + from.size() <= size_bytes(). Any thread, many at a time, never two on the
  // same bytes.
  virtual int write(uint64_t offset, std::span<const std::byte> from) = 0;

  // Carries out a batch, in any order, and sets every result. The default calls read and write one
  // by one; a store that can keep many transfers in flight overrides it. Never called on the fault
  // path. Any thread.
  virtual void transfer(std::span<StoreRequest> batch) {
    for (StoreRequest& r : batch)
      r.result = r.is_write ? write(r.offset, {r.bytes, r.size_bytes})
                            : read(r.offset, {r.bytes, r.size_bytes});
  }

  // Makes everything that was written durable. 0 or -errno. 0 after an error means that all of it
  // is durable after all: a store that cannot know (fsync tells an error once, and the kernel
  // forgets what it could not write) goes on failing. The default is for stores with nothing to do.
  virtual int sync() { return 0; }

  // Changes the size; new bytes read zero. -ENOTSUP by default. Never concurrent with itself.
  virtual int resize(uint64_t size_bytes) {
    (void)size_bytes;
    return -95;  // ENOTSUP
  }

  // Promises space: writes to the range do not fail for want of it until it is discarded. 0;
  // -ENOSPC and the like (a part may have got space); -ENOTSUP (the default): the store cannot
  // promise. REQUIRES: offset + size_bytes <= size_bytes(). Any thread.
  virtual int reserve(uint64_t offset, uint64_t size_bytes) {
    (void)offset, (void)size_bytes;
    return -95;  // ENOTSUP
  }

  // From now on the range reads zero; its space is given back where possible. The default writes
  // zeros.
  virtual int discard(uint64_t offset, uint64_t size_bytes);

  // The bytes of the range are of no use any more: it reads anything until it is written or
  // discarded. Its space is given back where possible, also what was reserved. 0 or -errno. The
  // default does nothing. REQUIRES: as discard().
  virtual int release(uint64_t offset, uint64_t size_bytes) {
    (void)offset, (void)size_bytes;
    return 0;
  }

  // True if the whole range reads zero because it was never written: such pages are filled without
  // I/O. A hint: false is always right. On the fault path if is_fault_safe.
  virtual bool is_hole(uint64_t offset, uint64_t size_bytes) const {
    (void)offset, (void)size_bytes;
    return false;
  }

  // A buffer that Outcore will pass to transfer() again and again: may be registered with the
  // kernel. Called before the first transfer; the memory outlives the store's use of it. Errors are
  // the store's own business: it works without.
  virtual void register_buffer(std::span<std::byte> buffer) { (void)buffer; }

  virtual StoreTraits traits() const { return {}; }

  // For messages and `outcore info`: the URI, and what is special ("O_DIRECT refused by tmpfs:
  // buffered").
  virtual std::string uri() const = 0;
  virtual std::string remark() const { return {}; }

  // Some of what was written has fewer copies than the store was asked to make (a server's replica
  // is gone). Any thread.
  virtual bool is_unreplicated() const { return false; }

  // The process ends with the store open: what others would wait for (a lock, space that is booked)
  // is given up. Nothing is written to it any more. Any thread, no other call follows.
  virtual void retire() {}

  // Two stores with the same identity hold the same bytes (a file: its device and inode). Empty:
  // none but itself.
  virtual std::string identity() const { return {}; }

  // Of stores that can keep what they were (outcore/snapshots.h); it is the store's. nullptr: this
  // one cannot.
  virtual Snapshots* snapshots() { return nullptr; }
};

// How to open a store by URI.
struct OpenOptions {
  bool is_writable = false;
  bool may_create = false;  // create it, or make it larger, if `size_bytes` asks for it
  uint64_t size_bytes =
      0;  // 0: as large as it is. Otherwise a file that is shorter is an error unless may_create
  std::string
      scratch_dir;  // for scratch: where unnamed files are made; empty: TMPDIR, else /var/tmp
};

// Opens what the URI names: PATH or file:PATH, sparse:DIR?segment=64M, scratch:[DIR], memory:,
// versioned:DIR?object=NAME (checkpoints), rbd://POOL/IMAGE (Ceph).
// Parameters common to all: read_concurrency=N, write_concurrency=N; for files: direct=auto|on|off
// (docs/reference/stores.md).
// Errors: EINVAL (scheme, parameter, size, each with the nearest that would do), and what the
// system said.
Result<std::shared_ptr<Store>> open_store(const std::string& uri, const OpenOptions& options = {});

}  // namespace outcore
