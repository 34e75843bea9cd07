// Buffers: memory that the processes of a job share. Each page of a file is in it once, whoever
// touches it, and one limit holds for all of them (RuntimeOptions::buffer, `outcore run --buffer`).
//
// Whoever comes first makes a buffer, with its own budget as the limit; it ends with its last
// member, which may be one that only holds it for others (`outcore serve`). It belongs to one user.
// Any thread.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "outcore/result.h"

namespace outcore {

struct BufferFacts {
  std::string name;
  uint64_t limit_bytes = 0;     // of all members together
  uint64_t used_bytes = 0;      // what is in memory, and what members have for themselves
  uint64_t used_bytes_max = 0;  // the most that members have seen of it
  uint64_t resident_bytes = 0;  // pages of files
  uint64_t written_bytes = 0;   // how much of those is written and not yet stored, approximately
  uint64_t coming_bytes = 0;    // what members may be bringing in; also counts against the limit
  pid_t keeping = 0;            // the member that chooses what leaves; 0: not seen from here
  std::vector<pid_t> members;   // 0: in another PID namespace
  std::vector<pid_t> holders;   // those of them that hold it for others (HeldBuffer)
  uint32_t files = 0;
  uint64_t filled_pages = 0, evicted_pages = 0;  // by the present members; pages of 4 KiB
  uint32_t takeovers = 0;  // how often another member began to keep, the first included
};

// The buffers of this user that have members, by name. Files that killed members left are removed.
// Errors: those of the folder in which they are found; EPERM (others could get into it).
Result<std::vector<BufferFacts>> list_buffers();

// Changes the limit. Pages above a smaller limit are evicted at once, except for pinned ones and
// for memory that members have for themselves. Errors: ENOENT (no buffer of this name has members),
// EINVAL (the name; less than 4 MiB).
Status resize_buffer(const std::string& name, uint64_t limit_bytes);

namespace buffer {
class Buffer;
class SharedFile;
}  // namespace buffer

// A file whose pages stay in a buffer when those who brought them in have ended, as long as this
// object lives and the limit has room. Movable.
class HeldFile {
 public:
  explicit HeldFile(std::unique_ptr<buffer::SharedFile> file);
  HeldFile(HeldFile&&) noexcept;
  HeldFile& operator=(HeldFile&&) noexcept;
  ~HeldFile();

  // From now on no further process finds these pages: the file is about to change.
  void close_to_others();

 private:
  std::unique_ptr<buffer::SharedFile> file_;
};

// Keeps a buffer alive for others, and for programs that start later: a membership that maps
// nothing. It ends with the last copy.
class HeldBuffer {
 public:
  // Joins the buffer of this name, or makes it with this limit if it has no member. Errors: EINVAL
  // (the name, a limit below 4 MiB), those of the folder, EPROTO (another version has it), EACCES,
  // EUSERS, ETIMEDOUT.
  static Result<HeldBuffer> hold(const std::string& name, uint64_t limit_bytes);

  uint64_t limit_bytes() const;
  // Holds the regular file that is open as `fd`, in its present version. Nothing is read. The
  // caller must make sure that nobody changes the file meanwhile, for example by a read lease.
  // Errors: EINVAL (not a regular file, or empty), EBUSY (it has changed so recently that another
  // change could go unnoticed: try again; or this process has it in the buffer already), ENFILE,
  // ETIMEDOUT.
  Result<HeldFile> hold_file(int fd) const;

 private:
  explicit HeldBuffer(std::shared_ptr<buffer::Buffer> buffer) : buffer_(std::move(buffer)) {}
  std::shared_ptr<buffer::Buffer> buffer_;
};

// Sends SIGTERM to the processes that hold the buffer for others. The buffer lives on as long as it
// has other members. Returns how many processes were asked. Errors: ENOENT (no buffer of this name
// has members), ESRCH (nobody holds it), EINVAL (the name).
Result<size_t> end_buffer(const std::string& name);

}  // namespace outcore
