// Writes as many MiB as its argument says, and reads them back.
#include <stdio.h>
#include <stdlib.h>

dlm unsigned char all[1 << 30];

int main(int argc, char** argv) {
  const size_t bytes = (argc > 1 ? strtoul(argv[1], NULL, 10) : 1) << 20;
  for (size_t i = 0; i < bytes; ++i) all[i] = (unsigned char)(i >> 12);
  for (size_t i = 0; i < bytes; ++i)
    if (all[i] != (unsigned char)(i >> 12)) return 1;
  printf("right\n");
  return 0;
}
