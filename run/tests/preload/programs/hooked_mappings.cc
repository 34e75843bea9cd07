// hooked_mappings FOLDER : a library of the program takes over the calls on mappings, and makes
// them by syscall(). A file is mapped, written, cut and moved, and memory is mapped, as without it.
#include "program.h"

using namespace program;

extern "C" int outcore_tests_hooked();

int main(int count, char** arguments) {
  begin(count, arguments);
  require(outcore_tests_hooked() == 1, "the library");
  constexpr uint64_t kPages = 64, kBytes = kPages * kPageBytes, kWords = kBytes / 8;
  const int number = make_file("file", kBytes, 1);
  uint64_t* words = map(number, kBytes / 2, PROT_READ | PROT_WRITE);
  require(is_filled(words, kWords / 2, 1), "the first half");
  fill(words, kWords / 4, 2);
  words = static_cast<uint64_t*>(::mremap(words, kBytes / 2, kBytes, MREMAP_MAYMOVE));
  require(words != MAP_FAILED, "mremap");
  require(is_filled(words, kWords / 4, 2), "what was written before it moved");
  require(is_filled(words + kWords / 2, kWords / 2, 1, kWords / 2), "what came to it");
  require(::munmap(words + kWords / 4, kBytes / 4) == 0, "munmap of a part");
  fill(words + kWords / 2, kWords / 2, 3);
  require(::munmap(words, kBytes / 4) == 0, "munmap of the first part");
  require(::munmap(words + kWords / 2, kBytes / 2) == 0, "munmap of the last part");
  uint64_t* memory = map(-1, 16 * kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS);
  fill(memory, 16 * kWords, 4);
  require(is_filled(memory, 16 * kWords, 4), "memory");
  require(::munmap(memory, 16 * kBytes) == 0, "munmap of memory");
  std::puts("right");
  return 0;
}
