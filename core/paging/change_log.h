// ChangeLog: which parts of a store were written since it was last drained, by a checkpoint, which
// copies again what has changed.
//
// A change is noted once the store has the bytes; the log is drained before bytes are read, so that
// what is written later is noted again. note(): any thread, also on the fault path. All else
// REQUIRES the lock `copying`.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>

#include "core/base/assert.h"
#include "core/os/address_space.h"
#include "outcore/result.h"

namespace outcore::paging {

class ChangeLog {
 public:
  static constexpr uint64_t kPartBytes = 64 << 10;

  // Makes a log for a store of this size. At first all of it counts as changed.
  static Result<std::unique_ptr<ChangeLog>> make(uint64_t size_bytes) {
    auto log = std::make_unique<ChangeLog>();
    if (Status s = log->words_.allocate(size_bytes / kPartBytes / 64 + 1); !s) return s.error();
    return log;
  }

  void note(uint64_t offset, uint64_t size_bytes) {
    const uint64_t end = (offset + size_bytes + kPartBytes - 1) / kPartBytes;
    for (uint64_t part = offset / kPartBytes; part < end; ++part) {
      if (part / 64 >= words_.count()) return note_all();
      std::atomic<uint64_t>& word = words_[part / 64];
      const uint64_t bit = uint64_t{1} << part % 64;
      if ((word.load(std::memory_order_seq_cst) & bit) == 0)
        word.fetch_or(bit, std::memory_order_seq_cst);
    }
  }
  void note_all() { is_all_.store(true, std::memory_order_seq_cst); }

  // Calls visit(from, to) for each changed range of the first size_bytes, ascending; it counts as
  // unchanged from then on. visit() returns how far it has come: if that is not `to`, the rest
  // still counts as changed, and drain() returns false.
  template <typename Visit>
  bool drain(uint64_t size_bytes, const Visit& visit) {
    if (is_all_.exchange(false, std::memory_order_seq_cst)) {
      for (uint64_t i = 0; i < words_.count(); ++i) words_[i].store(0, std::memory_order_seq_cst);
      return report(0, size_bytes, size_bytes, visit);
    }
    uint64_t from = 0, to = 0;  // bytes
    for (uint64_t i = 0; i < words_.count(); ++i) {
      if (words_[i].load(std::memory_order_relaxed) == 0) continue;
      const uint64_t bits = words_[i].exchange(0, std::memory_order_seq_cst);
      for (uint64_t left = bits; left != 0; left &= left - 1) {
        const uint64_t at = (i * 64 + static_cast<uint64_t>(__builtin_ctzll(left))) * kPartBytes;
        if (at != to && from != to) {
          if (!report(from, to, size_bytes, visit)) {
            words_[i].fetch_or(left, std::memory_order_seq_cst);
            return false;
          }
          from = to = at;
        }
        if (from == to) from = at;
        to = at + kPartBytes;
      }
    }
    return report(from, to, size_bytes, visit);
  }

  std::mutex copying;
  // The copy that differs from the store only by what the log has, and that copy's state at that
  // time. For any other copy everything counts as changed.
  std::weak_ptr<const void> copy;
  uint64_t copy_state = 0, copy_bytes = 0;

 private:
  template <typename Visit>
  bool report(uint64_t from, uint64_t to, uint64_t size_bytes, const Visit& visit) {
    to = std::min(to, size_bytes);
    if (from >= to) return true;
    const uint64_t done = visit(from, to);
    OC_ASSERT(done >= from);
    OC_ASSERT(done <= to);
    if (done < to) note(done, to - done);
    return done >= to;
  }

  os::Table<std::atomic<uint64_t>> words_;
  std::atomic<bool> is_all_{true};
};

}  // namespace outcore::paging
