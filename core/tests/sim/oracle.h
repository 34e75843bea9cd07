// Oracle: what a store's bytes must be, as a plain array. Cells of 8 bytes are written and read;
// the bytes between them are always zero, so that a misplaced or torn page is noticed.
#pragma once

#include <cstdint>
#include <cstring>
#include <vector>

#include "core/base/units.h"

namespace outcore::sim {

struct Cell {
  uint64_t value = 0;
  uint64_t before = 0;      // what a reader may still see during a discard, or an overwrite
  uint64_t changed_at = 0;  // number of the event
};

// What happens to a page besides plain touches.
struct PageUse {
  unsigned writers = 0;         // fibers that are writing, or hold a pin
  bool is_discarded = false;    // a discard is under way
  bool is_overwritten = false;  // its bytes change in the store, and then in memory
  bool is_undefined = false;    // a discard failed: its contents are unknown until it is rewritten
};

class Oracle {
 public:
  static constexpr uint64_t kCellsOfSystemPage = 4;

  Oracle(uint64_t store_bytes, uint64_t page_bytes)
      : store_bytes_(store_bytes),
        page_bytes_(page_bytes),
        cell_(store_bytes / base::kSystemPage * kCellsOfSystemPage),
        use_((store_bytes + page_bytes - 1) / page_bytes) {}

  uint64_t cell_count() const { return cell_.size(); }
  Cell& cell(uint64_t i) { return cell_[i]; }
  const Cell& cell(uint64_t i) const { return cell_[i]; }
  static uint64_t offset_of(uint64_t i) {
    constexpr uint64_t kAt[kCellsOfSystemPage] = {0, 1016, 2048, 4088};
    return i / kCellsOfSystemPage * base::kSystemPage + kAt[i % kCellsOfSystemPage];
  }
  uint64_t page_of(uint64_t i) const { return offset_of(i) / page_bytes_; }
  PageUse& use_of_page(uint64_t page) { return use_[page]; }
  PageUse& use_of(uint64_t i) { return use_[page_of(i)]; }

  std::vector<std::byte> all_bytes() const {
    std::vector<std::byte> bytes(store_bytes_);
    for (uint64_t i = 0; i < cell_.size(); ++i)
      std::memcpy(bytes.data() + offset_of(i), &cell_[i].value, sizeof cell_[i].value);
    return bytes;
  }

 private:
  const uint64_t store_bytes_;
  const uint64_t page_bytes_;
  std::vector<Cell> cell_;
  std::vector<PageUse> use_;
};

}  // namespace outcore::sim
