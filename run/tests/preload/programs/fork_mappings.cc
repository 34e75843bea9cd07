// fork_mappings FOLDER [BYTES] : a forked child changes mappings of its parent's before it touches
// them: it has the file's bytes, with the protection that it gave, and its own where it put others.
#include <initializer_list>

#include "program.h"

using namespace program;

namespace {

uint64_t bytes = 0, words_count = 0;

// A mapping of a file of its own, written so that the bytes are the mapping's alone.
uint64_t* make(const char* path, int prot) {
  const int file = make_file(path, bytes, 1);
  uint64_t* words = map(file, bytes, PROT_READ | PROT_WRITE);
  fill(words, words_count, 2);
  require(::mprotect(words, bytes, prot) == 0, "mprotect in the parent");
  ::close(file);
  return words;
}

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

}  // namespace

int main(int count, char** arguments) {
  bytes = begin(count, arguments, 256 * 1024);
  words_count = bytes / 8;
  constexpr uint64_t kPageWords = kPageBytes / 8;

  uint64_t* a = make("closed", PROT_NONE);
  in_child("opened", [&] {
    require(::mprotect(a, bytes, PROT_READ) == 0, "mprotect in the child");
    require(is_filled(a, words_count, 2), "bytes of what was closed");
  });

  uint64_t* b = make("replaced", PROT_READ | PROT_WRITE);
  in_child("replaced", [&] {
    void* p = ::mmap(b + kPageWords, kPageBytes, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    require(p == b + kPageWords, "mmap over a page");
    fill(b + kPageWords, kPageWords, 3);
    require(is_filled(b, kPageWords, 2), "the page before");
    require(is_filled(b + 2 * kPageWords, words_count - 2 * kPageWords, 2, 2 * kPageWords),
            "the pages behind");
    require(is_filled(b + kPageWords, kPageWords, 3), "the page itself");
  });

  uint64_t* c = make("unmapped", PROT_READ | PROT_WRITE);
  in_child("unmapped", [&] {
    require(::munmap(c + kPageWords, bytes - kPageBytes) == 0, "munmap in the child");
    uint64_t* own =
        map(-1, bytes - kPageBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS);
    fill(own, words_count - kPageWords, 4);
    require(is_filled(c, kPageWords, 2), "the page that was left");
    require(is_filled(own, words_count - kPageWords, 4), "what came there");
  });

  uint64_t* d = make("moved", PROT_READ | PROT_WRITE);
  in_child("moved", [&] {
    void* p = ::mremap(d, bytes, bytes / 2, MREMAP_MAYMOVE);
    require(p != MAP_FAILED && is_filled(static_cast<uint64_t*>(p), words_count / 2, 2), "mremap");
    require(::msync(p, bytes / 2, MS_SYNC) == 0, "msync");
  });
  for (const uint64_t* words : {b, c, d})
    require(is_filled(words, words_count, 2), "what the parent has");
  return 0;
}
