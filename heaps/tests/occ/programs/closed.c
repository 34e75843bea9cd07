// Prints much, wherever standard output goes, and looks into its arrays after.
#include <stdio.h>

enum { kArrays = 12, kBytes = 1 << 20 };
dlm char all[kArrays][kBytes];

int main(int argc, char** argv) {
  long wrong = argc != 2;
  for (int i = 0; i < kArrays; ++i)
    for (int j = 0; j < kBytes; ++j) all[i][j] = (char)(i + 7);
  for (int i = 0; i < 3000; ++i) {
    printf("a line that the program prints %d\n", i);
    fprintf(stderr, "a line that the program prints %d\n", i);
  }
  fflush(stdout);
  for (int i = 0; i < kArrays; ++i)
    for (int j = 0; j < kBytes; ++j) wrong += all[i][j] != (char)(i + 7);
  FILE* const file = fopen(argv[1], "w");
  fprintf(file, "%ld wrong\n", wrong);
  return wrong != 0;
}
