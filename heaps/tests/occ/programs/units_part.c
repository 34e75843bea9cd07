// The other file of units_main.c.
#include "units.h"

dlm float other[150000];
static dlm long hidden[300000];  // another one than that of units_main.c

double sum_of_grid(void) {
  double sum = 0;
  for (int i = 0; i < kRows; ++i)
    for (int j = 0; j < kColumns; ++j) sum += grid[i][j];
  return sum;
}

int counted(void) {
  static dlm int calls[50000];
  for (int k = 0; k < 50000; k += 1000) ++calls[k];
  return calls[49000];
}

void fill_other(void) {
  for (int k = 0; k < 150000; ++k) other[k] = 7;
  for (int k = 0; k < 300000; ++k) hidden[k] = -1;
}

double sum_of_other(void) {
  double sum = 0;
  for (int k = 0; k < 150000; ++k) sum += other[k];
  return sum;
}
