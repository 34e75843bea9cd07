// Store: holds the bytes of a region while they are not in memory.
//
// Programs can add a store of their own: a class that implements size_bytes, read and write (see
// examples/06_custom_store.cc). After UMap's Store (IEEE TPDS 2021, section 3.2).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "outcore/result.h"

namespace outcore {

// One transfer of a batch. The store sets `result` to 0 or -errno.
struct StoreRequest {
  uint64_t offset = 0;
  std::byte* bytes = nullptr;  // a read fills it; a write only reads from it
  size_t size_bytes = 0;
  bool is_write = false;
  int result = 0;
};

// What a store can do well. Constant for the life of the store.
struct StoreTraits {
  // read() may be called inside a signal handler of a faulting thread, because it allocates
  // nothing, takes no lock that the program could hold, and touches no managed memory. If false,
  // only I/O threads call read().
  bool is_fault_safe = false;
  // A transfer whose offset, size and buffer are multiples of this is fast. Other transfers work,
  // but slower.
  size_t alignment_bytes = 1;
  unsigned read_concurrency = 0;  // how many reads at a time it serves well; 0: no limit
  // The same for writes: a device that becomes slower with many writers gets at most this many. 0:
  // no limit.
  unsigned write_concurrency = 0;
  // Stores with the same number share a device, and write_concurrency limits all of them together,
  // within one process. 0: the device is not shared, or not known.
  uint64_t device = 0;
  // A write takes much longer than a fill should (a network round trip, an acknowledgement of
  // replicas). Threads that fault then leave write-back to the keepers.
  bool has_slow_writes = false;
  bool is_volatile = false;  // its bytes are lost when the process ends (scratch, memory)
  // A read may overlap a write that is under way. The bytes that such a read gets there are
  // undefined, and Outcore discards them. Files allow this; then neighbouring pages with small gaps
  // between them are read in one transfer.
  bool can_read_while_written = false;
  // transfer() has the reads of a batch under way together: some take hardly longer than one.
  bool has_many_in_flight = false;
};

class Snapshots;

class Store {
 public:
  virtual ~Store() = default;

  // Bytes in the store. Only resize() changes this. Any thread.
  virtual uint64_t size_bytes() const = 0;

  // Fills all of `into` with the bytes at `offset`. 0 or -errno; never a short read: a store that
  // has fewer bytes than size_bytes() says returns -EIO. REQUIRES: offset + into.size() <=
  // size_bytes(). Any thread, many at a time; no read overlaps a write that is under way, unless
  // can_read_while_written.
  virtual int read(uint64_t offset, std::span<std::byte> into) = 0;

  // Stores all of `from`. 0: a later read() returns these bytes. -errno: the contents of the range
  // are unspecified; Outcore keeps the page dirty and writes it again. REQUIRES: offset +
  // from.size() <= size_bytes(). Any thread, many at a time, but never two on the same bytes.
  virtual int write(uint64_t offset, std::span<const std::byte> from) = 0;

  // Carries out a batch of transfers, in any order, and sets every result. The default calls read()
  // and write() one by one; override it in a store that can keep many transfers in flight. Never
  // called on the fault path. Any thread.
  virtual void transfer(std::span<StoreRequest> batch) {
    for (StoreRequest& r : batch)
      r.result = r.is_write ? write(r.offset, {r.bytes, r.size_bytes})
                            : read(r.offset, {r.bytes, r.size_bytes});
  }

  // Makes everything that was written durable. 0 or -errno. If sync() returns 0 after an earlier
  // error, then all bytes are durable. A store that cannot know this must go on failing (fsync
  // reports an error only once, and the kernel forgets what it could not write). The default is for
  // stores that have nothing to do.
  virtual int sync() { return 0; }

  // Changes the size; new bytes read zero. -ENOTSUP by default. Never concurrent with itself.
  virtual int resize(uint64_t size_bytes) {
    (void)size_bytes;
    return -95;  // ENOTSUP
  }

  // Reserves space: until the range is discarded, writes to it do not fail for lack of space. 0;
  // -ENOSPC and similar errors (a part of the range may have got space); -ENOTSUP (the default):
  // the store cannot reserve. REQUIRES: offset + size_bytes <= size_bytes(). Any thread.
  virtual int reserve(uint64_t offset, uint64_t size_bytes) {
    (void)offset, (void)size_bytes;
    return -95;  // ENOTSUP
  }

  // Makes the range read zero; its space is freed where possible. The default writes zeros.
  virtual int discard(uint64_t offset, uint64_t size_bytes);

  // The bytes of the range are no longer needed: until it is written or discarded, it reads
  // undefined bytes. Its space is freed where possible, including reserved space. 0 or -errno. The
  // default does nothing. REQUIRES: as discard().
  virtual int release(uint64_t offset, uint64_t size_bytes) {
    (void)offset, (void)size_bytes;
    return 0;
  }

  // True if the whole range was never written and so reads zero: such pages are filled without I/O.
  // A hint: it is always correct to return false. Called on the fault path if is_fault_safe.
  virtual bool is_hole(uint64_t offset, uint64_t size_bytes) const {
    (void)offset, (void)size_bytes;
    return false;
  }

  // Announces a buffer that Outcore will pass to transfer() many times; the store may register it
  // with the kernel. Called before the first transfer. The memory outlives the store's use of it.
  // The store handles errors itself: it must also work without the registration.
  virtual void register_buffer(std::span<std::byte> buffer) { (void)buffer; }

  // In words, what a transfer or sync() that returned `error` (-errno) has found, if the error does
  // not say it: "PATH was cut to 4096 bytes". Empty (the default): nothing more is known. For
  // messages. Any thread; not on the fault path.
  virtual std::string why_failed(int error) const {
    (void)error;
    return {};
  }

  virtual StoreTraits traits() const { return {}; }

  // For messages and `outcore info`: the URI, and a remark on what is special about the store
  // ("O_DIRECT refused by tmpfs: buffered").
  virtual std::string uri() const = 0;
  virtual std::string remark() const { return {}; }

  // True if some written bytes have fewer copies than the store was asked to make (for example
  // because a replica of a server is gone). Any thread.
  virtual bool is_unreplicated() const { return false; }

  // The process ends while the store is open: the store releases what others would wait for (a
  // lock, booked space). Nothing is written to it afterwards. Any thread; this is the last call.
  virtual void retire() {}

  // Two stores with the same identity hold the same bytes (for a file: its device and inode).
  // Empty: the store is equal to itself only.
  virtual std::string identity() const { return {}; }

  // Names the bytes that the store holds since it was opened, or since this was asked first, and as
  // long as it is open, unless a process writes them that should not: of two stores for which this
  // is the same text, opened by whatever process, each read returns the same. Processes that map
  // them read-only have their pages together, in a buffer (RuntimeOptions::buffer). Empty (the
  // default): nobody knows. It stays as it is. Any thread.
  virtual std::string contents_id() const { return {}; }

  // Opens the same store once more, for reading, in a forked child of the process that opened it:
  // what this object has (connections, threads, locks) is the parent's. Only for stores that have a
  // contents_id(), of which the child's must be the same. Nothing else is called there. It must not
  // fork, nor wait for a lock of the parent: who had it may not exist. ENOTSUP (the default): such
  // children cannot go on with regions of it.
  virtual Result<std::shared_ptr<Store>> reopen() const {
    return Error{95, "open " + uri() + " in a forked child"};  // ENOTSUP
  }

  // The snapshots of the store (outcore/snapshots.h); the store owns the object. nullptr: this
  // store has no snapshots.
  virtual Snapshots* snapshots() { return nullptr; }
};

// How to open a store by URI.
struct OpenOptions {
  bool is_writable = false;
  bool may_create = false;  // create the store, or enlarge it to `size_bytes`
  // 0: the store's own size. Otherwise a file that is shorter is an error, unless may_create.
  uint64_t size_bytes = 0;
  // For scratch stores: the folder of their unnamed files. Empty: TMPDIR, else /var/tmp.
  std::string scratch_dir;
  // All of it is written anew. A store on Redis servers is incomplete from now on: until
  // note_checksum() others are refused (EUCLEAN), also if the process ends before. Other kinds do
  // not look at this.
  bool is_rewritten = false;
  // With may_create: a file or a sparse store that is there stays as long as it is, and whoever
  // maps it makes it longer, once nothing speaks against the map. Other kinds do not look at this.
  bool keeps_size = false;
};

// Opens the store that the URI names: PATH or file:PATH, sparse:DIR?segment=64M, scratch:[DIR],
// memory:, versioned:DIR?object=NAME (checkpoints), rbd://POOL/IMAGE (Ceph). Parameters of all
// kinds: read_concurrency=N, write_concurrency=N; of files: direct=auto|on|off
// (docs/reference/stores.md). Errors: EINVAL (scheme, parameter or size; the message names the
// nearest valid one), and errors of the system.
Result<std::shared_ptr<Store>> open_store(const std::string& uri, const OpenOptions& options = {});

}  // namespace outcore
