// PageLedger: which pages are in a buffer's memory according to the reports to the keeping process,
// and the policy that chooses among them. A frame here is only a number for the policy: where the
// pages lie the kernel knows. A page that was reported and is not in memory any more leaves the
// ledger when the policy chooses it. One thread.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>

#include "core/buffer/board.h"
#include "core/os/address_space.h"
#include "outcore/policy.h"
#include "outcore/result.h"

namespace outcore::buffer {

class PageLedger {
 public:
  // Makes tables for as many pages as memory, or the board's limit, can hold. ENOMEM. May be called
  // again after an error.
  Status open(const Board& board);

  // Adds pages that have come in. Pages that are known, or belong to no file, are left out.
  void admit(const Board& board, const PageReport& report);
  // None of the file's pages is in memory any more.
  void forget_file(uint32_t index);
  // How many bytes of pages the memory may have from now on.
  void set_capacity(uint64_t bytes);

  // Fills `victims` as far as it can; returns how many. Each is then given to put_back() or
  // freed().
  size_t choose_victims(std::span<FrameId> victims);
  uint64_t page_of(FrameId frame) const { return page_of_[static_cast<uint32_t>(frame)]; }
  void put_back(FrameId victim) { policy_->put_back(victim); }
  void freed(FrameId victim);  // its page is not in memory any more, or a filler punches it
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
  void add_free(uint32_t frame);

  std::unique_ptr<Policy> policy_;
  std::map<uint64_t, Known> known_;  // by the first page
  os::Table<uint64_t> page_of_;      // of a frame; of a free one, the next free one
  uint32_t free_ = kNone;            // the first free one of those that were used
  uint32_t frames_used_ = 0;         // frames from this on were never used
  uint64_t capacity_ = 0;
};

}  // namespace outcore::buffer
