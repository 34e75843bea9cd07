#include "bench/checkpoint_pages.h"

#include <cerrno>

#include "bench/check.h"
#include "bench/random.h"

namespace outcore::bench {

uint64_t CheckpointPages::filled(uint64_t page, uint64_t word) const {
  return mix(seed_ + page * kPageWords + word);
}

std::atomic_ref<uint64_t> CheckpointPages::word(uint64_t page) const {
  return std::atomic_ref<uint64_t>(*reinterpret_cast<uint64_t*>(bytes_.data() + page * kPageBytes));
}

void CheckpointPages::fill() {
  for (uint64_t page = 0; page < count(); ++page) {
    auto* const words = reinterpret_cast<uint64_t*>(bytes_.data() + page * kPageBytes);
    for (uint64_t i = 0; i < kPageWords; ++i) words[i] = filled(page, i);
    first_[page] = words[0];
  }
}

void CheckpointPages::change(uint64_t round, uint64_t pages) {
  BENCH_CHECK(pages <= count());
  if (pages == 0) return;
  const Permutation order(count(), seed_ + round);
  for (uint64_t i = 0; i < pages; ++i) {
    const uint64_t page = order(i);
    word(page) = first_[page] = mix(round * count() + page);
  }
}

void CheckpointPages::note_words() {
  for (uint64_t page = 0; page < count(); ++page) first_[page] = word(page);
}

Status CheckpointPages::check(std::span<const std::byte> held, const std::string& what) const {
  BENCH_CHECK(held.size() >= bytes_.size());
  for (uint64_t page = 0; page < count(); ++page) {
    const auto* const words = reinterpret_cast<const uint64_t*>(held.data() + page * kPageBytes);
    bool is_right = words[0] == first_[page];
    for (uint64_t i = 1; i < kPageWords; ++i) is_right &= words[i] == filled(page, i);
    if (!is_right)
      return Error{EILSEQ, "page " + std::to_string(page) + " of " + what +
                               " is not as it was when the checkpoint was made"};
  }
  return {};
}

}  // namespace outcore::bench
