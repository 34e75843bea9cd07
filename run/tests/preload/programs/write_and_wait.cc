// write_and_wait DIR BYTES: writes to a mapping from end to end, says so, and waits for a signal.
#include <unistd.h>

#include "program.h"

using namespace program;

int main(int count, char** arguments) {
  const uint64_t bytes = begin(count, arguments);
  ::close(make_file("file", bytes, 1));
  const int number = ::open("file", O_RDWR);
  fill(map(number, bytes, PROT_READ | PROT_WRITE), bytes / 8, 2);
  std::printf("written\n");
  for (;;) ::pause();
}
