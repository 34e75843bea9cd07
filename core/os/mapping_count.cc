#include "core/os/mapping_count.h"

#include <algorithm>
#include <fstream>
#include <iterator>

#include "core/base/assert.h"
#include "core/base/units.h"

namespace outcore::os {
namespace {

constexpr uint64_t kPagesEach = 32;

// Of a word that has only low bits of pairs. No call: std::popcount is a function of libgcc on
// processors that may lack the instruction, and the loader needs 3 KiB of stack to find it, which
// may be a handler's.
uint64_t count_pairs(uint64_t low_bits) {
  uint64_t sums = (low_bits & 0x3333'3333'3333'3333) + (low_bits >> 2 & 0x3333'3333'3333'3333);
  sums = (sums + (sums >> 4)) & 0x0F0F'0F0F'0F0F'0F0F;
  return sums * 0x0101'0101'0101'0101 >> 56;
}

uint64_t runs_in(uint64_t stretch) {
  // Set the low bit of each pair where two neighbours differ.
  constexpr uint64_t kLowBits = 0x1555'5555'5555'5555;  // of 31 neighbourhoods
  const uint64_t changed = stretch ^ (stretch >> 2);
  return count_pairs((changed | changed >> 1) & kLowBits) + (stretch != 0 ? 1 : 0);
}

uint64_t mappings_left() {
  constexpr uint64_t kUsual = 65530;
  uint64_t mappings_max = 0;
  if (!(std::ifstream("/proc/sys/vm/max_map_count") >> mappings_max)) mappings_max = kUsual;
  std::ifstream maps("/proc/self/maps");
  const auto used = static_cast<uint64_t>(
      std::count(std::istreambuf_iterator<char>(maps), std::istreambuf_iterator<char>(), '\n'));
  return mappings_max - std::min(mappings_max, used);
}

}  // namespace

std::atomic<int64_t> MappingCount::in_process{0};

MappingCount::~MappingCount() {
  in_process.fetch_sub(count_.load(std::memory_order_relaxed), std::memory_order_relaxed);
}

Status MappingCount::allocate(uint64_t size_bytes) {
  static_cast<void>(limit());  // determine it now, not at the first fault
  return stretch_.allocate(base::round_up(size_bytes / base::kSystemPage, kPagesEach) / kPagesEach);
}

void MappingCount::set(uint64_t offset, uint64_t size_bytes, Protection protection) {
  OC_CHECK(offset % base::kSystemPage == 0);
  OC_CHECK(size_bytes % base::kSystemPage == 0);
  constexpr uint64_t kEachPage = 0x5555'5555'5555'5555;
  const uint64_t value = kEachPage * static_cast<uint64_t>(protection);
  const uint64_t end = (offset + size_bytes) / base::kSystemPage;
  for (uint64_t page = offset / base::kSystemPage; page < end;) {
    const uint64_t i = page / kPagesEach, from = page % kPagesEach;
    const uint64_t pages = std::min(end - page, kPagesEach - from);
    OC_CHECK(pages != 0);
    const uint64_t mask = ~uint64_t{0} >> (64 - 2 * pages) << (2 * from);
    uint64_t before = stretch_[i].load(std::memory_order_relaxed), now = 0;
    do {
      now = (before & ~mask) | (value & mask);
    } while (!stretch_[i].compare_exchange_weak(before, now, std::memory_order_relaxed));
    const int64_t change =
        static_cast<int64_t>(runs_in(now)) - static_cast<int64_t>(runs_in(before));
    if (change != 0) {
      count_.fetch_add(change, std::memory_order_relaxed);
      in_process.fetch_add(change, std::memory_order_relaxed);
    }
    page += pages;
  }
}

uint64_t MappingCount::limit() {
  static const uint64_t limit = mappings_left() / 4 * 3;
  return limit;
}

}  // namespace outcore::os
