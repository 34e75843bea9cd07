// CheckpointPages: pages of 4 KiB whose bytes are known: what the checkpoints of a benchmark hold.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "outcore/result.h"

namespace outcore::bench {

// One thread. Others may write the words that word() gives, and nothing else; when they have ended,
// note_words() takes what they wrote for what must be there.
class CheckpointPages {
 public:
  static constexpr uint64_t kPageBytes = 4096;

  // All bytes come from the seed. REQUIRES: whole pages, which outlive it.
  CheckpointPages(std::span<std::byte> bytes, uint64_t seed)
      : bytes_(bytes), seed_(seed), first_(bytes.size() / kPageBytes) {}

  std::span<std::byte> bytes() const { return bytes_; }
  uint64_t count() const { return first_.size(); }
  // The first word of a page. The others are as fill() left them.
  std::atomic_ref<uint64_t> word(uint64_t page) const;

  void fill();
  // So many pages, which the round chooses, get another first word. REQUIRES: pages <= count().
  void change(uint64_t round, uint64_t pages);
  void note_words();
  // Whether these bytes of `what` are those of the pages. EILSEQ: the first page that is not.
  Status check(std::span<const std::byte> held, const std::string& what) const;

 private:
  static constexpr uint64_t kPageWords = kPageBytes / sizeof(uint64_t);
  uint64_t filled(uint64_t page, uint64_t word) const;

  std::span<std::byte> bytes_;
  uint64_t seed_;
  std::vector<uint64_t> first_;  // the first word of each page
};

}  // namespace outcore::bench
