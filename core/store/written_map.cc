#include "core/store/written_map.h"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cerrno>

#include "core/base/assert.h"
#include "core/base/units.h"

namespace outcore::store {
namespace {

constexpr uint64_t kWordBits = 64;

// The bits first … last of one word.
constexpr uint64_t mask_of(uint64_t first, uint64_t last) {
  return (~uint64_t{0} << first) & (~uint64_t{0} >> (kWordBits - 1 - last));
}

// Calls f(word index, mask) for every word that contains units first … last, until it returns
// false.
template <typename F>
bool for_each_word(uint64_t first, uint64_t last, F f) {
  OC_CHECK(first <= last);
  for (uint64_t word = first / kWordBits; word <= last / kWordBits; ++word) {
    const uint64_t from = word == first / kWordBits ? first % kWordBits : 0;
    const uint64_t to = word == last / kWordBits ? last % kWordBits : kWordBits - 1;
    if (!f(word, mask_of(from, to))) return false;
  }
  return true;
}

}  // namespace

WrittenMap::~WrittenMap() {
  if (words_ != nullptr) ::munmap(words_, map_bytes_);
}

int WrittenMap::cover(uint64_t capacity_bytes, uint64_t unit_bytes) {
  OC_CHECK(words_ == nullptr);
  OC_CHECK(base::is_power_of_two(unit_bytes));
  unit_shift_ = static_cast<unsigned>(std::countr_zero(unit_bytes));
  const uint64_t units = (capacity_bytes >> unit_shift_) + 1;
  map_bytes_ = base::round_up(units / 8 + sizeof(Word), base::kSystemPage);
  void* memory = ::mmap(nullptr, map_bytes_, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return -ENOMEM;
  words_ = static_cast<Word*>(memory);
  capacity_bytes_ = base::round_up(capacity_bytes, unit_bytes);
  OC_CHECK((capacity_bytes_ >> unit_shift_) <= map_bytes_ * 8);
  return 0;
}

void WrittenMap::mark(uint64_t offset, uint64_t size_bytes) {
  OC_ASSERT(offset + size_bytes >= offset);
  if (size_bytes == 0 || offset >= capacity_bytes_) return;
  const uint64_t last = std::min(offset + size_bytes, capacity_bytes_) - 1;
  for_each_word(offset >> unit_shift_, last >> unit_shift_, [this](uint64_t word, uint64_t mask) {
    // Reading first keeps the cache line shared: most writes are to units that were written before.
    if ((words_[word].load(std::memory_order_acquire) & mask) != mask)
      words_[word].fetch_or(mask, std::memory_order_acq_rel);
    return true;
  });
}

void WrittenMap::clear_inside(uint64_t offset, uint64_t size_bytes) {
  const uint64_t end = std::min(offset + size_bytes, capacity_bytes_) >> unit_shift_;
  const uint64_t first = (offset + unit_bytes() - 1) >> unit_shift_;
  if (first >= end) return;
  for_each_word(first, end - 1, [this](uint64_t word, uint64_t mask) {
    if ((words_[word].load(std::memory_order_acquire) & mask) != 0)
      words_[word].fetch_and(~mask, std::memory_order_acq_rel);
    return true;
  });
}

bool WrittenMap::take(uint64_t offset) {
  if (offset >= capacity_bytes_) return false;
  const uint64_t unit = offset >> unit_shift_;
  const uint64_t bit = uint64_t{1} << (unit % kWordBits);
  return (words_[unit / kWordBits].fetch_and(~bit, std::memory_order_acq_rel) & bit) != 0;
}

bool WrittenMap::is_untouched(uint64_t offset, uint64_t size_bytes) const {
  if (size_bytes == 0) return true;
  if (offset >= capacity_bytes_ || size_bytes > capacity_bytes_ - offset) return false;
  const uint64_t last = (offset + size_bytes - 1) >> unit_shift_;
  return for_each_word(offset >> unit_shift_, last, [this](uint64_t word, uint64_t mask) {
    return (words_[word].load(std::memory_order_acquire) & mask) == 0;
  });
}

uint64_t WrittenMap::run_end(uint64_t offset, uint64_t end) const {
  OC_ASSERT(offset <= end);
  if (offset >= capacity_bytes_) return end;
  const bool first_is_written = is_written(offset);
  uint64_t at = base::round_down(offset, unit_bytes()) + unit_bytes();
  while (at < end && is_written(at) == first_is_written) at += unit_bytes();
  return std::min(at, end);
}

uint64_t WrittenMap::next_written(uint64_t offset, uint64_t end) const {
  while (offset < end && offset < capacity_bytes_) {
    const uint64_t unit = offset >> unit_shift_;
    const uint64_t rest =
        words_[unit / kWordBits].load(std::memory_order_acquire) >> (unit % kWordBits);
    if (rest != 0) {
      const uint64_t found = (unit + static_cast<uint64_t>(std::countr_zero(rest))) << unit_shift_;
      return std::min(std::max(found, offset), end);
    }
    offset = (unit / kWordBits + 1) * kWordBits << unit_shift_;
  }
  return std::min(offset, end);
}

}  // namespace outcore::store
