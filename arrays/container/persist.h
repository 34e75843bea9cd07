// Persist: bytes are copied so that persistent memory has them, not the processor's caches.
//
// Whole cache lines go past the caches (non-temporal stores); what is less than a line at either
// end is copied and its line written back. Any thread; each drains what it has copied itself.
#pragma once

#include <cstddef>
#include <cstdint>

namespace outcore::arrays {

constexpr uint64_t kCacheLine = 64;

// How a line is written back. All x86-64 processors have the last, which is slow: one at a time.
enum class Flush : uint8_t { kNone, kLineWriteBack, kLineFlushUnordered, kLineFlush };

// The best that this processor has. kNone: it is of a kind whose instructions are not known here.
Flush best_flush();
const char* name_of(Flush flush);  // of the instruction

// Where a copy to `to` is cut: head and tail lie in one line each, the body begins and ends with
// lines. Any of them may be empty.
struct Cut {
  uint64_t head, body, tail;
};
constexpr Cut cut_at_lines(uintptr_t to, uint64_t size_bytes) {
  const uint64_t to_line = (kCacheLine - to % kCacheLine) % kCacheLine;
  const uint64_t head = to_line < size_bytes ? to_line : size_bytes;
  const uint64_t tail = (size_bytes - head) % kCacheLine;
  return {head, size_bytes - head - tail, tail};
}

// After drain() by the same thread what was copied is persistent. The ranges do not overlap.
// REQUIRES: flush is not kNone, and not one that the processor lacks.
void copy_persistently(std::byte* to, const std::byte* from, uint64_t size_bytes, Flush flush);
void drain();

}  // namespace outcore::arrays
