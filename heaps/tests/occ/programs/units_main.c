// Arrays of two files: each defines what the other uses.
#include <stdio.h>

#include "units.h"

dlm double grid[kRows][kColumns], row[kColumns];
dlm struct point points[100000];
static dlm long hidden[200000];

static int fail(const char* what) {
  fprintf(stderr, "%s\n", what);
  return 1;
}

int main(void) {
  if (sizeof grid != 8ul * kRows * kColumns || sizeof points != 100000 * sizeof(struct point))
    return fail("sizeof");
  for (int i = 0; i < kRows; ++i)
    for (int j = 0; j < kColumns; ++j)
      if (grid[i][j] != 0) return fail("grid does not begin as zeros");
  for (int i = 0; i < kRows; ++i)
    for (int j = 0; j < kColumns; ++j) grid[i][j] = i + j;
  for (int j = 0; j < kColumns; ++j) row[j] = -j;
  for (int k = 0; k < 200000; ++k) hidden[k] = 3l * k;
  for (int k = 0; k < 100000; ++k) points[k] = (struct point){k, {k, 2.0 * k, 3.0 * k}};
  fill_other();
  const double wanted = (double)kRows * kColumns * ((kRows - 1) / 2.0) +
                        (double)kRows * kColumns * ((kColumns - 1) / 2.0);
  if (sum_of_grid() != wanted) return fail("grid");
  if (sum_of_other() != 7.0 * 150000) return fail("other");
  for (int j = 0; j < kColumns; ++j)
    if (row[j] != -j) return fail("row");
  for (int k = 0; k < 200000; ++k)
    if (hidden[k] != 3l * k) return fail("hidden");
  for (int k = 0; k < 100000; ++k)
    if (points[k].id != k || points[k].at[2] != 3.0 * k) return fail("points");
  for (int i = 1; i <= 1000; ++i)
    if (counted() != i) return fail("a static variable of a function");
  printf("right\n");
  return 0;
}
