// fork_shared FOLDER [BYTES] : forked children, and theirs, read a file that the first process has
// mapped: by touches, by system calls on what they have not touched, by threads that begin at once,
// in changed mappings, and when the file is written.
#include <pthread.h>
#include <sys/syscall.h>

#include "program.h"

using namespace program;

namespace {

constexpr const char* kFile = "data";
constexpr uint64_t kPageWords = kPageBytes / 8;
uint64_t bytes = 0, words_count = 0;

template <typename What>
void in_child(const char* name, const What& what) {
  const pid_t child = ::fork();
  if (child == 0) {
    what();
    ::_exit(0);
  }
  const int code = code_of(child);
  if (code != 0) fail("%s: the child ended with %d", name, code);
  std::printf("%s: right\n", name);
}

const uint64_t* words = nullptr;

void* read_all(void*) {
  require(is_filled(words, words_count, 1), "what a thread reads");
  return nullptr;
}

// A child of vfork() has its parent's memory, and ends before it.
void in_borrowed_memory() {
  const pid_t borrower = ::vfork();
  if (borrower == 0) {
    static_cast<void>(*static_cast<const volatile uint64_t*>(words));
    ::_exit(0);
  }
  require(borrower > 0 && code_of(borrower) == 0, "vfork");
  require(is_filled(words, words_count, 1), "what is read after a child of vfork() has touched it");
}

void by_system_calls() {
  int ends[2];
  uint64_t got[kPageWords];
  require(::pipe(ends) == 0, "pipe");
  for (uint64_t page = 0; page < 8; ++page) {
    const uint64_t at = (page * 7 + 3) * kPageWords % words_count;
    const auto address = reinterpret_cast<long>(words + at);
    const long sent = page % 2 == 0 ? ::write(ends[1], words + at, kPageBytes)
                                    : call_raw(SYS_write, ends[1], address, kPageBytes);
    require(sent == kPageBytes && ::read(ends[0], got, kPageBytes) == kPageBytes, "a pipe");
    require(is_filled(got, kPageWords, 1, at), "what was sent");
  }
}

}  // namespace

int main(int count, char** arguments) {
  bytes = begin(count, arguments);
  words_count = bytes / 8;
  ::close(make_file(kFile, bytes, 1));
  settle(kFile);
  const int file = ::open(kFile, O_RDONLY);
  words = map(file, bytes, PROT_READ);
  require(is_filled(words, 4 * kPageWords, 1), "what the parent reads");

  in_child("touches", [] { require(is_filled(words, words_count, 1), "what a child reads"); });
  in_child("a child of a child", [] {
    in_child("before its parent", [] { read_all(nullptr); });
    read_all(nullptr);
    in_child("after its parent", [] { read_all(nullptr); });
  });
  in_child("borrowed memory", in_borrowed_memory);
  in_child("system calls", by_system_calls);
  in_child("threads", [] {
    pthread_t threads[6];
    for (pthread_t& thread : threads)
      require(::pthread_create(&thread, nullptr, read_all, nullptr) == 0, "a thread");
    for (const pthread_t thread : threads) ::pthread_join(thread, nullptr);
  });
  in_child("without descriptors", [] {
    for (int fd = 3; fd < 1024; ++fd) ::close(fd);
    read_all(nullptr);
  });
  in_child("a part", [] {
    auto* const at = reinterpret_cast<char*>(const_cast<uint64_t*>(words));
    require(::munmap(at + 4 * kPageBytes, bytes - 4 * kPageBytes) == 0, "munmap");
    require(::mprotect(at, kPageBytes, PROT_NONE) == 0, "mprotect");
    require(is_filled(words + kPageWords, 3 * kPageWords, 1, kPageWords), "what is left");
    require(::mprotect(at, kPageBytes, PROT_READ) == 0, "mprotect again");
    require(is_filled(words, kPageWords, 1), "what was closed");
  });
  in_child("by reading the file", [file] {
    uint64_t got[kPageWords];
    require(::pread(file, got, kPageBytes, kPageBytes) == kPageBytes, "pread");
    require(is_filled(got, kPageWords, 1, kPageWords), "what was read");
    read_all(nullptr);
  });
  in_child("another program", [] {
    const pid_t child = ::fork();
    if (child == 0) {
      ::execl("/bin/true", "true", nullptr);
      ::_exit(1);
    }
    require(code_of(child) == 0, "exec");
  });
  in_child("a write", [] {
    const int writable = ::open(kFile, O_RDWR);
    uint64_t page[kPageWords];
    fill(page, kPageWords, 2);
    require(::pwrite(writable, page, kPageBytes, 0) == kPageBytes, "pwrite");
    require(is_filled(words, kPageWords, 2), "what was written");
    require(is_filled(words + kPageWords, words_count - kPageWords, 1, kPageWords), "the rest");
  });
  require(is_filled(words, kPageWords, 2), "what a child has written");
  return 0;
}
