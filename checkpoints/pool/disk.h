// Disk: the folder of a pool as the pool uses it: files, their names, and who else has it open.
//
// Everything that a pool does to a filesystem goes through here, so that a test can put a disk in
// its place that remembers every operation and loses power between any two of them. Any thread.
// Numbers returned are 0 (or a count) or -errno.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "outcore/result.h"
#include "outcore/store.h"

namespace outcore::versioned {

class File {
 public:
  virtual ~File() = default;

  // Fills all of `into`. 0 or -errno; -EIO where the file ends. The fault path.
  virtual int read(uint64_t offset, std::span<std::byte> into) = 0;
  // Writes all of `from`; durable after sync(). 0 or -errno. The fault path.
  virtual int write(uint64_t offset, std::span<const std::byte> from) = 0;
  // Carries out a batch, in any order, and sets every result. May allocate.
  virtual void transfer(std::span<StoreRequest> batch) {
    for (StoreRequest& r : batch)
      r.result = r.is_write ? write(r.offset, {r.bytes, r.size_bytes})
                            : read(r.offset, {r.bytes, r.size_bytes});
  }
  // What was written, and the size, survives a loss of power. 0 or -errno.
  virtual int sync() = 0;
  // Gives the range space, and the file at least that size; new bytes read zero. 0, or -errno:
  // -ENOSPC, and then nothing that was there has changed. The fault path.
  virtual int allocate(uint64_t offset, uint64_t size_bytes) = 0;
  // Gives the space of the range back; it reads zero, or as before where that cannot be had.
  virtual void punch(uint64_t offset, uint64_t size_bytes) = 0;
  virtual uint64_t size_bytes() const = 0;
  virtual void register_buffer(std::span<std::byte> buffer) { (void)buffer; }
};

class Disk {
 public:
  // kCreate: a new, empty file, whatever was there. kCreateNew: EEXIST if there is one.
  enum class Mode : uint8_t { kRead, kWrite, kCreate, kCreateNew };

  virtual ~Disk() = default;

  // For messages: the folder.
  virtual std::string name() const = 0;
  // "device:inode" of the folder.
  virtual std::string identity() const { return {}; }
  // A file that blocks are read from and written to at random (`is_heap`), or one that is appended
  // to. Errors: -errno in Error::code as a positive number, with the path.
  virtual Result<std::unique_ptr<File>> open(const std::string& file, Mode mode, bool is_heap) = 0;
  virtual Result<std::vector<std::string>> list() = 0;
  // -EEXIST if there is a file `to`.
  virtual int rename(const std::string& from, const std::string& to) = 0;
  virtual int unlink(const std::string& file) = 0;
  // Names that were made, changed or removed stay so after a loss of power.
  virtual int sync_folder() = 0;

  // The one writer. Errors: EBUSY, and who it is.
  virtual Status lock_writer() = 0;
  // False in a forked child: it has the pool, but not the lock.
  virtual bool is_of_this_process() const { return true; }

  // Readers of commits, in any process. hold(): shared; no writer gives the commit's blocks back
  // until unhold(). -EAGAIN: just being given back.
  virtual int hold(uint32_t commit) = 0;
  virtual void unhold(uint32_t commit) = 0;
  // Nobody else holds it, nor can until unclaim(). False: somebody does.
  virtual bool claim(uint32_t commit) = 0;
  virtual void unclaim(uint32_t commit) = 0;
  // Commits that others hold, ascending.
  virtual std::vector<uint32_t> held_by_others() = 0;
  // "process 77 (columns)", as far as it can be known.
  virtual std::string who_holds(uint32_t commit) = 0;
};

}  // namespace outcore::versioned
