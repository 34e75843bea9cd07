// Buffer file: the layout of a buffer's file, and which lock each of its bytes stands for. Not the
// fault path.
#pragma once

#include <cstdint>
#include <string>

#include "core/buffer/board.h"
#include "core/os/file_calls.h"

namespace outcore::buffer {

// Bytes of the file that are locked: kMaking by a process that makes or joins the buffer, kKeeping
// by the keeping process, kFiles by one that changes the table of files, kOpening by one that opens
// a file to share it, and from kSlots on one by each member, as long as it lives.
inline constexpr uint64_t kMaking = 0, kKeeping = 1, kFiles = 2, kOpening = 3, kSlots = 16;
inline constexpr uint64_t kFramesBytes = uint64_t{1} << 60;
inline constexpr uint64_t kMarksBytes = kFramesBytes / kPage * sizeof(uint64_t);
inline constexpr uint64_t kLimitLeast = uint64_t{4} << 20;
// How much of the limit all members may have for themselves: an eighth is left for pages.
constexpr uint64_t most_beside(uint64_t limit_bytes) { return limit_bytes - limit_bytes / 8; }

// REQUIRES, to write it: the lock of kMaking.
struct Header {
  uint64_t magic = 0, layout = 0;
  uint64_t board_inode = 0, frames_inode = 0, marks_inode = 0;
  bool is_a_buffers() const { return magic == Board::kMagic; }
  bool is_ours() const { return is_a_buffers() && layout == kLayout; }
};
// A member's process, and the descriptors of its memfds.
struct Slot {
  int32_t process = 0, board_fd = -1, frames_fd = -1, marks_fd = -1;
};
constexpr uint64_t slot_offset(uint64_t slot) { return 4096 + slot * sizeof(Slot); }

template <typename T>
int read_from(int fd, uint64_t offset, T* into) {
  return os::read_all(fd, offset, {reinterpret_cast<std::byte*>(into), sizeof *into});
}
template <typename T>
int write_to(int fd, uint64_t offset, const T& from) {
  return os::write_all(fd, offset, {reinterpret_cast<const std::byte*>(&from), sizeof from});
}

uint64_t inode_of(int fd);  // 0: not known

// Descriptors of a buffer's memfds, opened by /proc from a member's process; -1: could not be
// opened.
struct MemoryFiles {
  int board = -1, frames = -1, marks = -1;
  bool are_there() const { return board >= 0 && frames >= 0 && marks >= 0; }
  void close() const;
};
MemoryFiles open_memory_of(const Header& header, const Slot& slot);

}  // namespace outcore::buffer
