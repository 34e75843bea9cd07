// Opener: a member under `outcore run` that shares what it writes, as others know it by the number
// of its process: the kernel tells them who opens a file that they write. Such a member looks after
// each of its opens whether the file is one, and joins those who write it.
#pragma once

#include <cstdint>

#include "core/buffer/member.h"

namespace outcore::buffer {

class Opener {
 public:
  // This process is one from now on.
  static void introduce(Member& member);
  // Whether the process is one, or was until it ended just now; that just opens files (Opening). By
  // /proc; any thread, with whatever table of descriptors.
  static bool is_one(const Board& board, int32_t process) {
    return find(board, process, true) != nullptr;
  }
  static bool is_opening(const Board& board, int32_t process) {
    const MemberRecord* const record = find(board, process, false);
    return record != nullptr && record->opening.load() != 0;
  }

 private:
  static const MemberRecord* find(const Board& board, int32_t process, bool may_have_ended);
};

// While it exists, this process opens a file in such a way. nullptr: does nothing.
class Opening {
 public:
  explicit Opening(Member* member) : member_(member) {
    if (member_ != nullptr) member_->record().opening.fetch_add(1);
  }
  ~Opening() {
    if (member_ != nullptr) lower(member_->record().opening, 1);
  }
  Opening(const Opening&) = delete;
  Opening& operator=(const Opening&) = delete;

 private:
  Member* const member_;
};

}  // namespace outcore::buffer
