// fork_threads DIR [BYTES]: threads touch two mappings all the time, while the process forks 50
// children, one after another, that read both and write to one. None gets stuck, none sees other
// bytes, and what the children wrote is there.
#include <pthread.h>

#include <atomic>

#include "program.h"

using namespace program;

namespace {

constexpr unsigned kThreads = 4;
constexpr unsigned kChildren = 50;

// The first half of the written file is the threads', a part each; the second is the children's.
struct Scene {
  const uint64_t* read;
  uint64_t* written;
  uint64_t words;
  std::atomic<bool> is_over{false};
  std::atomic<uint64_t> wrong{0};
} scene;

void* touch(void* argument) {
  const uint64_t number = *static_cast<const unsigned*>(argument);
  const uint64_t share = scene.words / 2 / kThreads;
  uint64_t x = number + 1;
  while (!scene.is_over.load(std::memory_order_relaxed)) {
    x ^= x << 13, x ^= x >> 7, x ^= x << 17;
    const uint64_t at = x % scene.words;
    if (scene.read[at] != word_at(1, at)) ++scene.wrong;
    const uint64_t own = number * share + at % share;
    if (scene.written[own] != word_at(2, own)) ++scene.wrong;
    scene.written[own] = word_at(2, own);
  }
  return nullptr;
}

// In a child: some words of both files, and its own of the second half.
int live(uint64_t number) {
  const uint64_t step = scene.words / 64;
  for (uint64_t at = number; at < scene.words; at += step)
    if (scene.read[at] != word_at(1, at)) return 2;
  for (uint64_t at = number; at < scene.words / 2; at += step)
    if (scene.written[at] != word_at(2, at)) return 3;
  const uint64_t share = scene.words / 2 / kChildren, first = scene.words / 2 + number * share;
  if (number > 0 && scene.written[first - 1] != word_at(3, first - 1)) return 4;
  fill(scene.written + first, share, 3, first);
  return is_filled(scene.written + first, share, 3, first) ? 0 : 5;
}

}  // namespace

int main(int count, char** arguments) {
  const uint64_t bytes = begin(count, arguments);
  scene.words = bytes / 8;
  const int first = make_file("fork_threads.r", bytes, 1);
  ::close(first);
  scene.read = map(::open("fork_threads.r", O_RDONLY), bytes, PROT_READ);
  const int second = make_file("fork_threads.w", bytes, 2);
  scene.written = map(second, bytes, PROT_READ | PROT_WRITE);
  pthread_t threads[kThreads];
  unsigned numbers[kThreads];
  for (unsigned i = 0; i < kThreads; ++i) {
    numbers[i] = i;
    require(::pthread_create(&threads[i], nullptr, touch, &numbers[i]) == 0, "pthread_create");
  }
  for (unsigned i = 0; i < kChildren; ++i) {
    const pid_t child = ::fork();
    if (child == 0) ::_exit(live(i));
    const int code = code_of(child);
    if (code != 0) fail("child %u ended with %d", i, code);
  }
  scene.is_over = true;
  for (pthread_t thread : threads) ::pthread_join(thread, nullptr);
  std::printf("%u children, %lu wrong\n", kChildren, scene.wrong.load());
  require(scene.wrong == 0, "the threads saw the right bytes");
  const uint64_t half = scene.words / 2, end = half + half / kChildren * kChildren;
  require(is_filled(scene.written, half, 2), "the threads' half is theirs");
  require(is_filled(scene.written + half, end - half, 3, half), "the children's half is theirs");
  uint64_t back;
  for (uint64_t at = half; at < end; at += 64) {
    require(::pread(second, &back, 8, static_cast<off_t>(at * 8)) == 8, "pread");
    require(back == word_at(3, at), "the file has what the children wrote");
  }
  std::printf("the mapping and the file have what the children wrote\n");
  return 0;
}
