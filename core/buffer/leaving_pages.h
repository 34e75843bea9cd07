// LeavingPages: which written pages are to leave a buffer next, announced by the keeping process to
// the writers, which store them. A ring of hints in the board; the oldest are overwritten.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/buffer/board.h"

namespace outcore::buffer {

class LeavingPages {
 public:
  // One thread, in the keeping process.
  static void announce(Board& board, uint64_t frame_page) {
    const uint64_t at = board.leaving_end.load(std::memory_order_relaxed);
    board.leaving[at % Board::kLeaving].store(frame_page, std::memory_order_relaxed);
    board.leaving_end.store(at + 1, std::memory_order_release);
  }

  // Pages announced since the last call, in order and each once. Pages of other files may be among
  // them, and pages that have left already. Any thread, one at a time.
  const std::vector<uint64_t>& drain(const Board& board) {
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
