// Persist: copies bytes so that they are in persistent memory, and not only in the caches of the
// processor.
//
// Whole cache lines bypass the caches (non-temporal stores). A part of a line at either end is
// copied, and its line is written back. Any thread; each thread drains what it has copied itself.
#pragma once

#include <cstddef>
#include <cstdint>

namespace outcore::arrays {

constexpr uint64_t kCacheLine = 64;

// How a cache line is written back. All x86-64 processors have the last way, which is slow: one
// line at a time.
enum class Flush : uint8_t { kNone, kLineWriteBack, kLineFlushUnordered, kLineFlush };

// The best way that this processor has. kNone: the instructions of its kind are not known here.
Flush best_flush();
const char* name_of(Flush flush);  // the name of the instruction

// How a copy to `to` is divided at cache lines: head and tail lie in one line each, the body
// consists of whole lines. Each may be empty.
struct LineSplit {
  uint64_t head, body, tail;
};
constexpr LineSplit split_at_lines(uintptr_t to, uint64_t size_bytes) {
  const uint64_t to_line = (kCacheLine - to % kCacheLine) % kCacheLine;
  const uint64_t head = to_line < size_bytes ? to_line : size_bytes;
  const uint64_t tail = (size_bytes - head) % kCacheLine;
  return {head, size_bytes - head - tail, tail};
}

// The bytes are persistent after drain() in the same thread. REQUIRES: the ranges do not overlap;
// the processor has `flush`, which is not kNone.
void copy_persistently(std::byte* to, const std::byte* from, uint64_t size_bytes, Flush flush);
void drain();

}  // namespace outcore::arrays
