// PageLedger: which pages are in a buffer's memory, as the keeping process has been told, and the
// policy that chooses among them. Frames here are numbers for the policy alone: where the pages lie
// the kernel knows. What was told and is not there any more leaves when the policy chooses it. One
// thread.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "core/buffer/board.h"
#include "core/os/address_space.h"
#include "outcore/policy.h"
#include "outcore/result.h"

namespace outcore::buffer {

class PageLedger {
 public:
  // For as many pages as memory, or the board's limit, can hold. ENOMEM. Called again after an
  // error.
  Status open(const Board& board);

  // The pages have come in; those that are known, and those of no file, are left out.
  void admit(const Board& board, const News& news);
  // None of the file's pages is in memory any more.
  void forget_file(uint32_t index);
  // The memory is for so many bytes of pages by now.
  void set_capacity(uint64_t bytes);

  // At most as many as there is place for; each is given back by put_back(), or by freed().
  size_t choose_victims(std::span<FrameId> victims);
  uint64_t page_of(FrameId frame) const { return page_of_[static_cast<uint32_t>(frame)]; }
  void put_back(FrameId victim) { policy_->put_back(victim); }
  void freed(FrameId victim);  // its page is in memory no more, or is left to others
  void sort_by_page(std::span<FrameId> frames) const;

 private:
  static constexpr uint32_t kNone = 0xFFFFFFFF;
  // A file's pages.
  struct Known {
    uint32_t index = 0;  // of the board
    uint64_t pages = 0;
    os::Table<uint32_t> frame;  // of each page: its number + 1; 0: not in memory
  };
  Known* find(const Board& board, uint64_t page, uint64_t* first);
  Known* find_known(uint64_t page, uint64_t* first);

  std::unique_ptr<Policy> policy_;
  std::map<uint64_t, Known> known_;  // by the first page
  os::Table<uint64_t> page_of_;      // of a frame
  std::vector<uint32_t> free_;
  uint32_t frames_used_ = 0;  // once
  uint64_t capacity_ = 0;
};

}  // namespace outcore::buffer
