// limited_files FOLDER : a program may not make its files longer than some size (RLIMIT_FSIZE).
// What it writes through a mapping to a file that is longer already does not count, nor does its
// memory.
#include <sys/resource.h>

#include "program.h"

using namespace program;

int main(int count, char** arguments) {
  const uint64_t bytes = 8 * begin(count, arguments);
  const int number = make_file("file", bytes, 1);
  const rlimit limit{bytes / 8, bytes / 8};
  require(::setrlimit(RLIMIT_FSIZE, &limit) == 0, "setrlimit");
  uint64_t* const words = map(number, bytes, PROT_READ | PROT_WRITE);
  fill(words, bytes / 8, 2);
  require(::msync(words, bytes, MS_SYNC) == 0, "msync");
  auto* const memory = static_cast<uint64_t*>(std::malloc(4 * bytes));
  require(memory != nullptr, "malloc");
  fill(memory, bytes / 2, 3);
  require(is_filled(memory, bytes / 2, 3), "memory");
  std::free(memory);
  std::puts("right");
  return 0;
}
