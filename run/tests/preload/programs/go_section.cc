// go_section FOLDER : a program with the other mark of Go, which ends as Go does, by an instruction
// of its own. What it wrote to its mapping must be in the file, as nothing of it is taken.
#include <sys/syscall.h>

#include "program.h"

[[gnu::section(".go.buildinfo"), gnu::used]] const char mark[] = "built";

int main(int count, char** arguments) {
  const uint64_t bytes = program::begin(count, arguments);
  const int file = program::make_file("file", bytes, 1);
  uint64_t* const words = program::map(file, bytes, PROT_READ | PROT_WRITE);
  for (uint64_t i = 0; i < bytes / 8; i += 7) words[i] = i;
  std::printf("written\n");
  program::call_raw(SYS_exit_group, 0, 0);
}
