// Disk: the folder of a pool, as the pool uses it: files, their names, and who else has it open.
//
// Everything that a pool does to a filesystem goes through this interface. So a test can put a disk
// in its place that remembers every operation and loses power between any two of them. Any thread.
// Functions that return a number return 0 (or a count) or -errno.
#pragma once

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "outcore/result.h"
#include "outcore/store.h"

namespace outcore::versioned {

// Whether an operation failed because the disk, or a quota, has no space.
inline bool is_disk_full(int error) { return error == -ENOSPC || error == -EDQUOT; }

class File {
 public:
  virtual ~File() = default;

  // Fills all of `into`. 0 or -errno; -EIO: the file ends before. The fault path.
  virtual int read(uint64_t offset, std::span<std::byte> into) = 0;
  // Writes all of `from`; durable after sync(). 0 or -errno. The fault path.
  virtual int write(uint64_t offset, std::span<const std::byte> from) = 0;
  // Carries out a batch, in any order, and sets every result. May allocate.
  virtual void transfer(std::span<StoreRequest> batch) {
    for (StoreRequest& r : batch)
      r.result = r.is_write ? write(r.offset, {r.bytes, r.size_bytes})
                            : read(r.offset, {r.bytes, r.size_bytes});
  }
  // What was written, and the size, survives a loss of power after this. 0 or -errno.
  virtual int sync() = 0;
  // Allocates space for the range, and makes the file at least that long; new bytes read zero. 0 or
  // -errno. -ENOSPC: nothing that was there before has changed. The fault path.
  virtual int allocate(uint64_t offset, uint64_t size_bytes) = 0;
  // Frees the space of the range, which reads zero then, or as before if the filesystem cannot.
  virtual void punch(uint64_t offset, uint64_t size_bytes) = 0;
  virtual uint64_t size_bytes() const = 0;
  virtual void register_buffer(std::span<std::byte> buffer) { (void)buffer; }
};

class Disk {
 public:
  // kCreate: an empty file, whatever was there before. kCreateNew: the same, but EEXIST if the file
  // exists.
  enum class Mode : uint8_t { kRead, kWrite, kCreate, kCreateNew };

  virtual ~Disk() = default;

  // The folder, for messages.
  virtual std::string name() const = 0;
  // "device:inode" of the folder.
  virtual std::string identity() const { return {}; }
  // The same folder once more, in a forked child, as readers of commits need it: locks of its own.
  virtual Result<std::shared_ptr<Disk>> reopen() const {
    return Error{95, "open " + name() + " in a forked child"};  // ENOTSUP
  }
  // Opens a file. `is_heap`: blocks of it are read and written at random; otherwise it is appended
  // to. Errors name the path.
  virtual Result<std::unique_ptr<File>> open(const std::string& file, Mode mode, bool is_heap) = 0;
  virtual Result<std::vector<std::string>> list() = 0;
  // -EEXIST if a file `to` exists.
  virtual int rename(const std::string& from, const std::string& to) = 0;
  virtual int unlink(const std::string& file) = 0;
  // Names that were created, changed or removed stay so after a loss of power.
  virtual int sync_folder() = 0;

  // Locks the pool for one writer. Error: EBUSY, and who the other writer is.
  virtual Status lock_writer() = 0;
  // False in a forked child, which has inherited the pool but not its locks.
  virtual bool is_of_this_process() const { return true; }

  // For readers of commits, in any process. Holds the commit, shared with others: no writer frees
  // its blocks before unhold(). -EAGAIN: a writer is just about to free them.
  virtual int hold(uint32_t commit) = 0;
  // From now on hold() succeeds, and holds nothing, where nobody has opened the pool to write: in a
  // copy. has_got_writer(): somebody has since, and may have freed what was "held".
  virtual void tolerate_copies() {}
  virtual bool has_got_writer() { return false; }
  virtual void unhold(uint32_t commit) = 0;
  // Claims the commit if nobody else holds it; then nobody can hold it before unclaim(). False:
  // somebody holds it.
  virtual bool claim(uint32_t commit) = 0;
  virtual void unclaim(uint32_t commit) = 0;
  // The commits that others hold, ascending.
  virtual std::vector<uint32_t> held_by_others() = 0;
  // Who holds the commit, such as "process 77 (columns)", as far as that can be found out.
  virtual std::string who_holds(uint32_t commit) = 0;
};

}  // namespace outcore::versioned
