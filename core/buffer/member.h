// Member: this process's place in a buffer: the board, the memory file of the frames, and the lock
// that says that it is alive. A forked child is no member, until it joins by itself.
//
// How a buffer is found: a small file with its name (place.h) says for each member under which
// descriptors of its process the two memory files are to be had (/proc/PID/fd: for the same user
// alone, as the kernel sees to). No server, nothing to administer; when the last member ends the
// memory is gone. Any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "core/buffer/board.h"
#include "core/buffer/named_file.h"
#include "core/buffer/occupancy.h"
#include "core/os/wait.h"
#include "outcore/result.h"

namespace outcore::buffer {

class Member {
 public:
  // Joins the buffer of this name, or makes it with this limit if it has no living member. Errors:
  // EINVAL (the name, a limit that is too small), those of the folder, EPROTO (another version of
  // the library has it), EACCES (its members' memory cannot be had), EMFILE, EUSERS (256 members),
  // ETIMEDOUT (somebody who stands still has its lock). REQUIRES: this process is no member of it.
  static Result<std::unique_ptr<Member>> join(const std::string& name, uint64_t limit_bytes);
  // Whether join() could make it with this limit; one that has a file may be of any size. EINVAL.
  static Status check_limit(const std::string& name, uint64_t limit_bytes);

  ~Member();  // leaves
  // The buffer's file goes with its last member; a process that ends without leaving calls this.
  void remove_file_if_last() const;
  Member(const Member&) = delete;
  Member& operator=(const Member&) = delete;

  const std::string& name() const { return name_; }
  Board& board() const { return *board_; }
  MemberRecord& record() const { return board_->members[index_]; }
  uint32_t index() const { return index_; }
  int frames_fd() const { return frames_fd_; }
  int marks_fd() const { return marks_fd_; }
  // As files name it that it writes.
  Writer as_writer() const { return Writer(generation_ << 16 | (index_ + 1)); }
  // Whether the member that is meant is alive. The fault path.
  bool is_alive(Writer writer) const;
  int file_fd() const { return fd_; }  // of the buffer's file; for tests
  // The process of a member, by its own namespace's number; 0: not known. Not the fault path.
  int32_t process_of(uint32_t member) const;

  // Whether the process of the member is alive: asks the kernel. The fault path.
  bool is_alive(uint32_t member) const;
  // Whether the descriptor of the buffer's file, or of the frames, still names them: a program may
  // have closed it, and have another file of its own there. The fault path.
  bool has_file() const;
  bool has_frames() const;
  // Whether whoever looks for the buffer by its name from here looks where it is, or was. In a
  // forked child, too. Not the fault path.
  bool is_found_by_name() const;
  // How much of the limit is used.
  const Occupancy& occupancy() const { return occupancy_; }

  // Changes of the table of files, and of who is a member, one at a time among all processes. With
  // kNone the fault path, else it waits up to a second.
  class FilesLock {
   public:
    enum class Patience : uint8_t { kSome, kNone };
    explicit FilesLock(Member& member, Patience patience = Patience::kSome);
    ~FilesLock();
    FilesLock(const FilesLock&) = delete;
    FilesLock& operator=(const FilesLock&) = delete;
    bool is_held() const { return is_held_; }  // false: somebody who stands still has it

   private:
    Member& member_;
    const os::SignalBlock block_;
    bool is_ours_ = false, is_held_ = false;
  };

  // Whether this process keeps the buffer from now on: no other one does.
  bool try_to_keep() const;
  void stop_keeping() const;
  // What a member that has ended left is no longer there. Who is killed meanwhile has done no harm:
  // the next one does it again. REQUIRES: the lock of files.
  void clear(uint32_t member) const;
  // Pages may have been punched by who did not see what this member has just said of them: waits
  // for those who are at pages from `first_page` to `first_page + count`. False: one stands still.
  // The fault path.
  bool wait_for_punchers(uint64_t first_page, uint64_t count) const;
  // Of all members that have ended; whether there were any. REQUIRES: as clear().
  bool clear_dead() const;

 private:
  Member() = default;
  Status open_file(const std::string& folder);
  Status find_or_make(uint64_t limit_bytes);
  Status make(uint64_t limit_bytes);
  Status map_board();
  Status acquire_slot();

  std::string name_, path_;
  int fd_ = -1, board_fd_ = -1, frames_fd_ = -1, marks_fd_ = -1;
  Board* board_ = nullptr;
  NamedFile file_, frames_;
  Occupancy occupancy_;
  uint32_t index_ = 0;
  uint64_t generation_ = 0;  // of its record
  bool has_slot_ = false, has_made_it_ = false;
  os::Lock files_;  // among threads of this process
};

}  // namespace outcore::buffer
