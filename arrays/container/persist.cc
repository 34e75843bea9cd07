#include "arrays/container/persist.h"

#include <atomic>
#include <cstring>

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

namespace outcore::arrays {

const char* name_of(Flush flush) {
  switch (flush) {
    case Flush::kLineWriteBack:
      return "CLWB";
    case Flush::kLineFlushUnordered:
      return "CLFLUSHOPT";
    case Flush::kLineFlush:
      return "CLFLUSH";
    case Flush::kNone:
      break;
  }
  return "none";
}

#if defined(__x86_64__)

namespace {

__attribute__((target("clwb"))) void write_back(std::byte* line) { _mm_clwb(line); }
__attribute__((target("clflushopt"))) void flush_unordered(std::byte* line) {
  _mm_clflushopt(line);
}

void flush_line(std::byte* in_line, Flush flush) {
  switch (flush) {
    case Flush::kLineWriteBack:
      return write_back(in_line);
    case Flush::kLineFlushUnordered:
      return flush_unordered(in_line);
    case Flush::kLineFlush:
      return _mm_clflush(in_line);
    case Flush::kNone:
      return;
  }
}

void copy_part(std::byte* to, const std::byte* from, uint64_t size_bytes, Flush flush) {
  if (size_bytes == 0) return;
  std::memcpy(to, from, size_bytes);
  flush_line(to, flush);
}

}  // namespace

Flush best_flush() {
  static const Flush best = [] {
    unsigned a = 0, b = 0, c = 0, d = 0;
    if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0) return Flush::kLineFlush;
    if ((b & bit_CLWB) != 0) return Flush::kLineWriteBack;
    return (b & bit_CLFLUSHOPT) != 0 ? Flush::kLineFlushUnordered : Flush::kLineFlush;
  }();
  return best;
}

void copy_persistently(std::byte* to, const std::byte* from, uint64_t size_bytes, Flush flush) {
  const LineSplit split = split_at_lines(reinterpret_cast<uintptr_t>(to), size_bytes);
  copy_part(to, from, split.head, flush);
  to += split.head, from += split.head;
  for (const std::byte* const end = from + split.body; from < end;
       from += kCacheLine, to += kCacheLine) {
    const auto* const source = reinterpret_cast<const __m128i*>(from);
    auto* const line = reinterpret_cast<__m128i*>(to);
    const __m128i a = _mm_loadu_si128(source), b = _mm_loadu_si128(source + 1);
    const __m128i c = _mm_loadu_si128(source + 2), d = _mm_loadu_si128(source + 3);
    _mm_stream_si128(line, a);  // the whole line in a row, so that it leaves in one transfer
    _mm_stream_si128(line + 1, b);
    _mm_stream_si128(line + 2, c);
    _mm_stream_si128(line + 3, d);
  }
  copy_part(to, from, split.tail, flush);
}

void drain() { _mm_sfence(); }

#else

Flush best_flush() { return Flush::kNone; }
void copy_persistently(std::byte* to, const std::byte* from, uint64_t size_bytes, Flush) {
  std::memcpy(to, from, size_bytes);
}
void drain() { std::atomic_thread_fence(std::memory_order_seq_cst); }

#endif

}  // namespace outcore::arrays
