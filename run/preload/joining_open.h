// JoiningOpen: for the length of a call of the program that opens a file. With --share-writes the
// processes of a run write large files together: who opens one joins those who do before the
// program has the descriptor, so whoever has it open takes part. Who cannot join has them hand it
// back. See Door::join_writers(), Door::opened_as_stranger().
#pragma once

#include <atomic>
#include <optional>

#include "core/buffer/opener.h"

namespace outcore::preload {

class JoiningOpen {
 public:
  // Once, when the process begins: an allocator may open files while it allocates, and must not
  // find that the settings are read then.
  static void prepare();
  static bool is_on() { return is_on_.load(std::memory_order_relaxed); }

  JoiningOpen(int folder, const char* path, int flags);
  JoiningOpen(const JoiningOpen&) = delete;
  JoiningOpen& operator=(const JoiningOpen&) = delete;
  // The call has given this descriptor, or -1: what the program gets. -1 and ENOMEM: there was no
  // memory to join them.
  int joined(int fd) const;

 private:
  static std::atomic<bool> is_on_;
  bool is_joining_ = false, is_stranger_ = false;
  std::optional<buffer::Member::OpeningLock> lock_;
  std::optional<buffer::Opening> opening_;
};

}  // namespace outcore::preload
