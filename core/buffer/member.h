// Member: this process's membership of a buffer: the board, the memfd of the frames, and the lock
// that shows that the process is alive. A forked child is not a member until it joins by itself.
//
// How a buffer is found: a small file with its name (place.h) has, for each member, its process and
// the descriptors there of the buffer's memfds, which others open by /proc/PID/fd (the kernel
// permits that to the same user alone). There is no server; when the last member ends the kernel
// frees the memory. Any thread.
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
  // the library has it), EACCES (its members' memfds cannot be opened), EMFILE, EUSERS (256
  // members), ETIMEDOUT (a stopped process has its lock). REQUIRES: this process is not a member of
  // it.
  static Result<std::unique_ptr<Member>> join(const std::string& name, uint64_t limit_bytes);
  // Whether join() could make it with this limit. A buffer that exists may have any limit. EINVAL.
  static Status check_limit(const std::string& name, uint64_t limit_bytes);

  ~Member();  // leaves
  // Removes the buffer's file if this is its last member: for a process that ends without the
  // destructor.
  void remove_file_if_last() const;
  Member(const Member&) = delete;
  Member& operator=(const Member&) = delete;

  const std::string& name() const { return name_; }
  Board& board() const { return *board_; }
  MemberRecord& record() const { return board_->members[index_]; }
  uint32_t index() const { return index_; }
  int frames_fd() const { return frames_fd_; }
  int marks_fd() const { return marks_fd_; }
  // Identifies this member in the records of files that it writes.
  Writer as_writer() const { return Writer(generation_ << 16 | (index_ + 1)); }
  // Whether that writer is still a member, and alive. The fault path.
  bool is_alive(Writer writer) const;
  int file_fd() const { return fd_; }  // of the buffer's file; for tests
  // The process number of a member, as its own PID namespace has it; 0: not known. Not the fault
  // path.
  int32_t process_of(uint32_t member) const;

  // Whether the process of the member is alive: asks the kernel. The fault path.
  bool is_alive(uint32_t member) const;
  // Whether the descriptor of the buffer's file, or of the frames, still names them: a program may
  // have closed it, and have another file of its own there. The fault path.
  bool has_file() const;
  bool has_frames() const;
  // Whether the buffer's name leads to the folder in which it was joined: the environment may have
  // changed since. In a forked child, too. Not the fault path.
  bool is_found_by_name() const;
  // How much of the limit is used.
  const Occupancy& occupancy() const { return occupancy_; }

  // The lock of files: held to change the table of files or of members, by one thread of all
  // processes at a time. With kNone it does not wait (the fault path), else up to a second.
  class FilesLock {
   public:
    enum class Patience : uint8_t { kSome, kNone };
    explicit FilesLock(Member& member, Patience patience = Patience::kSome);
    ~FilesLock();
    FilesLock(const FilesLock&) = delete;
    FilesLock& operator=(const FilesLock&) = delete;
    bool is_held() const { return is_held_; }  // false: another process has it, perhaps stopped

   private:
    Member& member_;
    const os::SignalBlock block_;
    bool is_ours_ = false, is_held_ = false;
  };

  // One at a time among all processes: who opens a file that it will share with other programs
  // under `outcore run`, or looks who has it open. Waits ten seconds. Taken before any other lock.
  class OpeningLock {
   public:
    explicit OpeningLock(Member& member);
    ~OpeningLock();
    OpeningLock(const OpeningLock&) = delete;
    OpeningLock& operator=(const OpeningLock&) = delete;
    bool is_held() const { return is_held_; }

   private:
    Member& member_;
    const os::SignalBlock block_;
    bool is_held_ = false;
  };

  // Makes this process the keeping one. False: another one is.
  bool try_to_keep() const;
  void stop_keeping() const;
  // Clears the record of a member that has ended. A process that is killed in the middle does no
  // harm: the next one does it again. REQUIRES: the lock of files.
  void clear(uint32_t member) const;
  // Waits for members that are punching pages in [first_page, first_page + count): they may not
  // have seen the pin or mark that this member has just made. False: one did not end, as it is
  // stopped. The fault path.
  bool wait_for_punchers(uint64_t first_page, uint64_t count) const;
  // Clears all members that have ended; returns whether there were any. REQUIRES: as clear().
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
  os::Lock files_, openings_;  // among threads of this process
};

}  // namespace outcore::buffer
