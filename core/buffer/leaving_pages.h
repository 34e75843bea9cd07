// LeavingPages: which written pages are to leave a buffer next, told by the keeping process to
// those who store them. A ring in the board: hints, of which the oldest are overwritten.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/buffer/board.h"

namespace outcore::buffer {

class LeavingPages {
 public:
  // One thread, in the keeping process.
  static void tell(Board& board, uint64_t frame_page) {
    const uint64_t at = board.leaving_end.load(std::memory_order_relaxed);
    board.leaving[at % Board::kLeaving].store(frame_page, std::memory_order_relaxed);
    board.leaving_end.store(at + 1, std::memory_order_release);
  }

  // Those that were told since the last time, in order and each once. A page of another file may be
  // among them, and one that has left already. Any thread, one at a time.
  const std::vector<uint64_t>& heard(const Board& board) {
    const uint64_t end = board.leaving_end.load(std::memory_order_acquire);
    next_ = std::clamp(next_, end - std::min<uint64_t>(end, Board::kLeaving), end);
    pages_.clear();
    for (; next_ < end; ++next_)
      pages_.push_back(board.leaving[next_ % Board::kLeaving].load(std::memory_order_relaxed));
    std::sort(pages_.begin(), pages_.end());
    pages_.erase(std::unique(pages_.begin(), pages_.end()), pages_.end());
    return pages_;
  }

 private:
  uint64_t next_ = 0;
  std::vector<uint64_t> pages_;
};

}  // namespace outcore::buffer
