// guarded_heap FOLDER : the program has an allocator that puts each block at the start of a page,
// and the page before it is inaccessible (Electric Fence does so, and others for some blocks). It
// maps a file and writes it.
#include "program.h"

using namespace program;

extern "C" {

void* malloc(size_t bytes) {
  const size_t room = (bytes / kPageBytes + 1) * kPageBytes;
  void* const found =
      ::mmap(nullptr, room + kPageBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (found == MAP_FAILED) return nullptr;
  char* const block = static_cast<char*>(found) + kPageBytes;
  return ::mprotect(block, room, PROT_READ | PROT_WRITE) == 0 ? block : nullptr;
}
void free(void*) {}
void* calloc(size_t number, size_t bytes) { return malloc(number * bytes); }
void* realloc(void* block, size_t bytes) {
  void* const other = malloc(bytes);
  // What lies behind the old block's end may be inaccessible, but its page is not.
  if (other != nullptr && block != nullptr)
    std::memcpy(other, block, bytes < kPageBytes ? bytes : kPageBytes);
  return other;
}
}

int main(int count, char** arguments) {
  const uint64_t bytes = begin(count, arguments);
  const int number = make_file("file", bytes, 1);
  uint64_t* const words = map(number, bytes, PROT_READ | PROT_WRITE);
  require(is_filled(words, bytes / 8, 1), "what was there");
  fill(words, bytes / 8, 2);
  require(::msync(words, bytes, MS_SYNC) == 0, "msync");
  std::puts("right");
  return 0;
}
