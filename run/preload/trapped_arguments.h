// TrappedArguments: a system call's arguments that lie in memory of ours, copied to other memory
// for the length of the call, and back where the kernel has changed them. So no page is pinned
// while a call waits, and what is mapped may change meanwhile.
//
// Of a call that cannot be told, or has more than fits, what it points to goes back to the kernel.
// Async-signal-safe where the door's calls are.
#pragma once

#include <optional>

#include "run/preload/bounce.h"
#include "run/preload/call_shapes.h"

namespace outcore::preload {

class TrappedArguments {
 public:
  TrappedArguments(const CallShape& shape, const long (&given)[CallShape::kArguments]);
  TrappedArguments(const TrappedArguments&) = delete;
  TrappedArguments& operator=(const TrappedArguments&) = delete;

  // Some of what they point to may be ours.
  bool concern_ours() const;
  // 0 or an errno. REQUIRES: called once, before the call is made with words().
  int copy_in();
  const long (&words() const)[CallShape::kArguments] { return words_; }
  // 0 or an errno.
  int copy_out();

 private:
  struct Piece {
    std::byte* theirs = nullptr;
    std::byte* copy = nullptr;
    std::byte* before = nullptr;  // what was copied; nullptr: nothing goes back
    size_t bytes = 0;
  };

  std::byte* at(int i) const { return reinterpret_cast<std::byte*>(given_[i]); }
  size_t bytes_of(int i) const;
  bool is_ours(int i, size_t bytes) const;
  int copy_string(int i);
  int copy_piece(int i, bool is_written);
  int leave(int i, size_t bytes);
  std::byte* take(size_t bytes);

  const CallShape& shape_;
  long given_[CallShape::kArguments], words_[CallShape::kArguments];
  Piece pieces_[CallShape::kArguments];
  std::optional<Bounce> memory_;
  size_t used_bytes_ = 0;
};

}  // namespace outcore::preload
