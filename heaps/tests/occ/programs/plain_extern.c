// Uses an array of plain_extern_part.c by a declaration without the word.
#include <stdio.h>

extern double wide[3000][1000];

int main(void) {
  for (int i = 0; i < 3000; ++i) wide[i][i % 1000] = i;
  double sum = 0;
  for (int i = 0; i < 3000; ++i) sum += wide[i][i % 1000];
  printf("%.0f\n", sum);
  return 0;
}
