// heap_fork FOLDER : forks with large allocations. A child that goes on has the bytes of the moment
// of fork(), its own from then on, whatever the parent and its threads do; a child that becomes
// another program needs none.
#include <pthread.h>

#include <atomic>

#include "program.h"

using namespace program;

namespace {

constexpr uint64_t kBytes = 6 << 20, kWords = kBytes / 8;

int wait_for(pid_t child) {
  int status = 0;
  while (::waitpid(child, &status, 0) < 0)
    if (errno != EINTR) fail("waitpid");
  return status;
}

// Runs `what` in a child that must end well.
template <typename What, typename Meanwhile>
void in_child(const char* name, const What& what, const Meanwhile& meanwhile) {
  const pid_t child = ::fork();
  if (child < 0) fail("fork for %s", name);
  if (child == 0) {
    what();
    ::_exit(0);
  }
  meanwhile();
  const int status = wait_for(child);
  if (status != 0) fail("%s: the child ended with %x", name, static_cast<unsigned>(status));
  std::printf("%s: right\n", name);
}
void nothing() {}

uint64_t* allocate(uint64_t seed) {
  auto* words = static_cast<uint64_t*>(std::malloc(kBytes));
  require(words != nullptr, "malloc");
  fill(words, kWords, seed);
  return words;
}

void test_exec() {
  uint64_t* words = allocate(1);
  for (int i = 0; i < 20; ++i) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::execl("/bin/true", "true", nullptr);
      ::_exit(9);
    }
    words[0] = static_cast<uint64_t>(i);
    require(wait_for(child) == 0, "the program ended well");
  }
  words[0] = word_at(1, 0);
  require(is_filled(words, kWords, 1), "bytes after exec");
  std::printf("exec: right\n");
  std::free(words);
}

// What exec is given lies there itself.
void test_exec_arguments() {
  uint64_t* words = allocate(12);
  auto** list = reinterpret_cast<char**>(words);
  auto* text = reinterpret_cast<char*>(words + kWords / 2);
  std::snprintf(text, kPageBytes, "/bin/true");
  list[0] = text, list[1] = nullptr;
  in_child(
      "arguments",
      [&] {
        ::execv(text, list);
        ::_exit(9);
      },
      nothing);
  std::free(words);
}

void test_copy() {
  uint64_t* a = allocate(2);
  uint64_t* freed = allocate(3);
  auto* zeros = static_cast<uint64_t*>(std::calloc(1, kBytes));
  in_child(
      "copy",
      [&] {
        require(is_filled(a, kWords, 2), "the bytes of fork");
        for (uint64_t i = 0; i < kWords; ++i) require(zeros[i] == 0, "zeros");
        fill(a, kWords, 20);
        std::free(freed);
        a = static_cast<uint64_t*>(std::realloc(a, 2 * kBytes));
        require(a != nullptr && is_filled(a, kWords, 20), "realloc in a child");
        in_child(
            "grandchild", [&] { require(is_filled(a, kWords, 20), "of the child"); },
            [&] { fill(a, kWords, 21); });
      },
      [&] {
        fill(a, kWords, 22);
        fill(zeros, kWords, 23);
      });
  require(is_filled(a, kWords, 22) && is_filled(freed, kWords, 3), "the parent's own");
  std::free(a);
  std::free(freed);
  std::free(zeros);
}

// The first to touch it is the kernel, for a system call.
void test_system_calls(const char* folder) {
  uint64_t* words = allocate(4);
  char path[4096];
  std::snprintf(path, sizeof path, "%s/words", folder);
  const int file = make_file(path, kBytes, 5);
  in_child(
      "system calls",
      [&] {
        require(::pread(file, words, kBytes / 2, 0) == kBytes / 2, "pread into a copy");
        require(is_filled(words, kWords / 2, 5), "what was read");
        require(is_filled(words + kWords / 2, kWords / 2, 4, kWords / 2), "beside it");
      },
      nothing);
  ::close(file);
  std::free(words);
}

std::byte* map(uint64_t seed) {
  void* p = ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  require(p != MAP_FAILED, "mmap");
  fill(static_cast<uint64_t*>(p), kWords, seed);
  return static_cast<std::byte*>(p);
}

void change_mappings(std::byte* p, std::byte* closed) {
  constexpr uint64_t kHalf = kBytes / 2, kPageWords = kPageBytes / 8;
  require(::mprotect(closed, kBytes, PROT_READ | PROT_WRITE) == 0, "mprotect in a child");
  require(is_filled(reinterpret_cast<uint64_t*>(closed), kWords, 7), "what was inaccessible");
  require(::madvise(p + kPageBytes, kPageBytes, MADV_DONTNEED) == 0, "madvise");
  auto* words = reinterpret_cast<uint64_t*>(p);
  for (uint64_t i = 0; i < kPageWords; ++i)
    require(words[kPageWords + i] == 0, "what was given up");
  require(is_filled(words, kPageWords, 6), "what is before it");
  require(::munmap(p + kHalf, kHalf) == 0, "munmap");
  void* moved = ::mremap(p, kHalf, 2 * kHalf, MREMAP_MAYMOVE);
  require(moved != MAP_FAILED, "mremap");
  words = static_cast<uint64_t*>(moved);
  require(is_filled(words, kPageWords, 6), "what was moved");
  for (uint64_t i = kHalf / 8; i < kWords; ++i) require(words[i] == 0, "what came to it");
  require(is_filled(words + 2 * kPageWords, kHalf / 8 - 2 * kPageWords, 6, 2 * kPageWords),
          "the bytes of a mapping");
}

// A handler of the program's runs within fork(), and touches.
uint64_t* seen_at_fork = nullptr;
uint64_t first_seen = 0;
void look_in_child() {
  if (seen_at_fork != nullptr) first_seen = seen_at_fork[kWords - 1];
}
void write_in_parent() {
  if (seen_at_fork != nullptr) seen_at_fork[kWords - 1] = 1;
}

void test_handlers() {
  require(::pthread_atfork(nullptr, write_in_parent, look_in_child) == 0, "pthread_atfork");
  seen_at_fork = allocate(8);
  in_child(
      "handlers",
      [] {
        require(first_seen == word_at(8, kWords - 1), "what the handler saw");
        require(is_filled(seen_at_fork, kWords, 8), "what is there after it");
      },
      nothing);
  require(seen_at_fork[kWords - 1] == 1, "what the parent's handler wrote");
  std::free(seen_at_fork);
  seen_at_fork = nullptr;
}

// The first thread of the child ends, and another touches.
void* check_and_end(void* words) {
  bool is_alone = false;
  while (!is_alone) {  // until the first is gone
    char path[64], line[256] = "";
    std::snprintf(path, sizeof path, "/proc/self/task/%d/stat", ::getpid());
    const int file = ::open(path, O_RDONLY);
    if (file >= 0 && ::read(file, line, sizeof line - 1) > 0) {
      const char* state = std::strrchr(line, ')');
      is_alone = state != nullptr && state[2] == 'Z';
    }
    ::close(file);
  }
  ::_exit(is_filled(static_cast<uint64_t*>(words), kWords, 9) ? 0 : 1);
}

void test_other_thread() {
  uint64_t* words = allocate(9);
  in_child(
      "another thread of a child",
      [&] {
        pthread_t thread;
        require(::pthread_create(&thread, nullptr, check_and_end, words) == 0, "a thread");
        ::pthread_exit(nullptr);
      },
      nothing);
  std::free(words);
}

// Nothing of it is left: then there is nothing to copy, for grandchildren neither.
void test_nothing_left() {
  std::free(allocate(10));
  in_child(
      "nothing left", [] { in_child("nor for its child", nothing, nothing); }, nothing);
}

// A thread frees and allocates while a child gets its copy.
struct Churn {
  std::atomic<bool> is_over{false};
  std::atomic<uint64_t*> words{nullptr};
};
void* free_and_allocate(void* argument) {
  auto& churn = *static_cast<Churn*>(argument);
  while (!churn.is_over) {
    uint64_t* old = churn.words.exchange(allocate(11));
    if (old != nullptr) std::free(old);
  }
  return nullptr;
}

void test_frees() {
  Churn churn;
  pthread_t thread;
  require(::pthread_create(&thread, nullptr, free_and_allocate, &churn) == 0, "a thread");
  while (churn.words == nullptr) {
  }
  for (int i = 0; i < 4; ++i)
    in_child(
        "frees",
        [&] {
          // Between its allocation and this fork nobody has written it: but it may be freed.
          const uint64_t* words = churn.words;
          for (uint64_t k = 0; k < kWords; ++k)
            require(words[k] == word_at(11, k), "what was not freed yet at fork");
        },
        nothing);
  churn.is_over = true;
  ::pthread_join(thread, nullptr);
  std::free(churn.words);
}

void test_mappings() {
  std::byte* p = map(6);
  std::byte* closed = map(7);
  require(::mprotect(closed, kBytes, PROT_NONE) == 0, "mprotect");
  in_child(
      "mappings", [&] { change_mappings(p, closed); }, nothing);
  require(is_filled(reinterpret_cast<uint64_t*>(p), kWords, 6), "the parent's mapping");
  ::munmap(p, kBytes);
  ::munmap(closed, kBytes);
}

// Writers go over their words in order: at every moment each word is the next's, or one ahead.
struct Writer {
  uint64_t* words;
  std::atomic<bool> is_over{false};
  pthread_t thread;
};

void* write_on(void* argument) {
  auto& w = *static_cast<Writer*>(argument);
  for (uint64_t round = 1; !w.is_over; ++round)
    for (uint64_t i = 0; i < kWords; i += 64)
      __atomic_store_n(&w.words[i], round, __ATOMIC_SEQ_CST);
  return nullptr;
}

void test_threads() {
  Writer writers[3];
  for (Writer& w : writers) {
    w.words = static_cast<uint64_t*>(std::calloc(1, kBytes));
    require(::pthread_create(&w.thread, nullptr, write_on, &w) == 0, "a thread");
  }
  for (int i = 0; i < 4; ++i)
    in_child(
        "threads",
        [&] {
          for (const Writer& w : writers) {
            uint64_t ahead = 0;
            for (uint64_t k = 64; k < kWords; k += 64) {
              if (w.words[k] == w.words[k - 64]) continue;
              require(w.words[k] + 1 == w.words[k - 64], "words of one moment");
              ++ahead;
            }
            require(ahead <= 1, "one moment");
          }
        },
        nothing);
  for (Writer& w : writers) {
    w.is_over = true;
    ::pthread_join(w.thread, nullptr);
    std::free(w.words);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) fail("usage: heap_fork FOLDER");
  std::setvbuf(stdout, nullptr, _IONBF, 0);
  test_exec();
  test_exec_arguments();
  test_copy();
  test_system_calls(argv[1]);
  test_mappings();
  test_handlers();
  test_nothing_left();
  test_other_thread();
  test_frees();
  test_threads();
  return 0;
}
