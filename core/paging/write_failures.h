// WriteFailures: which bytes of a cache could not be stored, and which of these errors a flush must
// report.
//
// No call waits for the write-backs of evictions, so their first error is kept for the next flush.
// The bytes stay in memory: "store is full" is reported only while they are not stored; other
// errors, and errors of bytes that are lost, are reported once in any case. The fault path; any
// thread with signals blocked.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "core/base/assert.h"
#include "core/os/wait.h"
#include "core/paging/write_stall.h"

namespace outcore::paging {

class WriteFailures {
 public:
  struct Unreported {
    int code = 0;  // errno; 0: none
    uint64_t offset = 0, size_bytes = 0;
    bool is_lost = false;  // the bytes are not in memory any more
  };

  // `seen`: a copy of is_any(), for others to see; it outlives this.
  explicit WriteFailures(std::atomic<uint32_t>& seen) : seen_(seen) {}

  // Whether some bytes could not be stored, and are not stored yet.
  bool is_any() const { return is_any_.load(std::memory_order_relaxed); }
  // The errno of the error that was not reported yet; 0: there is none.
  int unreported_code() const { return code_.load(std::memory_order_relaxed); }

  // A write of these bytes failed, and its caller gets the error.
  void note(uint64_t offset, uint64_t size_bytes) {
    const os::Locked locked(lock_);
    add(offset, size_bytes);
  }

  // The same, but no caller gets the error: it is kept for a flush. Of several errors the gravest
  // is kept, and of equally grave ones the first.
  void note_unreported(const Unreported& error) {
    OC_CHECK(error.code > 0);
    OC_ASSERT(error.size_bytes != 0);
    const os::Locked locked(lock_);
    add(error.offset, error.size_bytes);
    if (gravity_of(error) <= gravity_of(unreported_)) return;
    unreported_ = error;
    code_.store(error.code, std::memory_order_relaxed);
  }

  // The caller reports an error of its own, which stands for the kept one, too, unless that is of
  // lost bytes.
  void note_reported() {
    const os::Locked locked(lock_);
    if (!unreported_.is_lost) forget();
  }

  // Takes the kept error if its bytes are lost; code 0: there is none.
  Unreported pop_lost() {
    const os::Locked locked(lock_);
    if (!unreported_.is_lost) return {};
    const Unreported error = unreported_;
    forget();
    return error;
  }

  // All of [from, to) is stored now. Returns the error that must be reported all the same.
  Unreported note_stored(uint64_t from, uint64_t to) {
    OC_CHECK(from <= to);
    const os::Locked locked(lock_);
    const bool is_of_space = WriteStall::is_of_space(-unreported_.code) && !unreported_.is_lost;
    if (unreported_.code != 0 && !is_of_space) {
      const Unreported error = unreported_;
      forget();
      return error;
    }
    if (from <= unreported_.offset && unreported_.offset + unreported_.size_bytes <= to) forget();
    // A program that flushes part by part must come to is_any() == false, too.
    if (from <= from_ && to > from_) from_ = std::min(to, to_);
    if (to >= to_ && from < to_) to_ = std::max(from, from_);
    if (from_ == to_) set_any(false);
    return {};
  }

 private:
  static int gravity_of(const Unreported& error) {
    if (error.is_lost) return 3;
    if (error.code == 0) return 0;
    return WriteStall::is_of_space(-error.code) ? 1 : 2;
  }
  void add(uint64_t offset, uint64_t size_bytes) {
    from_ = is_any() ? std::min(from_, offset) : offset;
    to_ = is_any() ? std::max(to_, offset + size_bytes) : offset + size_bytes;
    OC_ASSERT(from_ <= to_);
    set_any(true);
  }
  void forget() {
    unreported_ = {};
    code_.store(0, std::memory_order_relaxed);
  }

  os::Lock lock_;  // of all that follows
  void set_any(bool is_any) {
    is_any_.store(is_any, std::memory_order_relaxed);
    seen_.store(is_any, std::memory_order_relaxed);
  }
  std::atomic<bool> is_any_{false};
  std::atomic<uint32_t>& seen_;
  std::atomic<int> code_{0};
  Unreported unreported_;
  uint64_t from_ = 0, to_ = 0;  // a range around all bytes that failed and are not stored yet
};

}  // namespace outcore::paging
