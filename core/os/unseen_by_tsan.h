// UnseenByTsan: for its length, ThreadSanitizer takes no notice of what the thread does to memory.
//
// A program may be compiled with -fsanitize=thread, and the library without: then the sanitizer
// sees how our threads copy the program's bytes (memcpy, pread), but not the atomics by which they
// and the program's threads take turns. It would find a race at every page that leaves, which is
// not shown where it is suppressed, but costs up to some milliseconds all the same.
//
// Does nothing where there is no such sanitizer, nor in a library that is compiled with it, whose
// races it is to find. What a program's own store does on such a thread is not seen, either. Any
// thread of ours, for all of its life.
#pragma once

#include <thread>

#if defined(__SANITIZE_THREAD__)
#define OUTCORE_IS_SEEN_BY_TSAN
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define OUTCORE_IS_SEEN_BY_TSAN
#endif
#endif

#if !defined(OUTCORE_IS_SEEN_BY_TSAN)
extern "C" {  // of the sanitizer's runtime; null without it
[[gnu::weak]] void __tsan_ignore_thread_begin();
[[gnu::weak]] void __tsan_ignore_thread_end();
}
#endif

namespace outcore::os {

class UnseenByTsan {
 public:
#if defined(OUTCORE_IS_SEEN_BY_TSAN)
  UnseenByTsan() {}
#else
  UnseenByTsan() {
    if (__tsan_ignore_thread_begin != nullptr) __tsan_ignore_thread_begin();
  }
  ~UnseenByTsan() {
    if (__tsan_ignore_thread_end != nullptr) __tsan_ignore_thread_end();
  }
#endif
  UnseenByTsan(const UnseenByTsan&) = delete;
  UnseenByTsan& operator=(const UnseenByTsan&) = delete;
};

// A thread that is unseen. Throws what std::thread does.
template <typename Work>
std::thread unseen_thread(Work work) {
  return std::thread([work] {
    const UnseenByTsan unseen;
    work();
  });
}

}  // namespace outcore::os
