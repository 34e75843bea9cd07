// DLM_ARRAY with any compiler, in two files of C.
#include <outcore/dlm.h>
#include <stdio.h>

DLM_ARRAY(double, matrix, [500][2000]);
DLM_EXTERN_ARRAY(int, others, [300000]);
int sum_is_right(void);

int main(void) {
  for (int i = 0; i < 500; ++i)
    for (int j = 0; j < 2000; ++j) {
      if (matrix[i][j] != 0) return 1;
      matrix[i][j] = i * j;
    }
  for (int k = 0; k < 300000; ++k) others[k] = k;
  if (DLM_SIZEOF(matrix) != 8ul * 500 * 2000 || DLM_SIZEOF(others) != 4ul * 300000) return 2;
  double* more = (double*)dlm_alloc(8000000);
  for (int i = 0; i < 1000000; ++i) more[i] = i;
  for (int i = 0; i < 500; ++i)
    for (int j = 0; j < 2000; ++j)
      if (matrix[i][j] != i * j) return 3;
  if (!sum_is_right() || more[999999] != 999999) return 4;
  dlm_free(more);
  printf("right\n");
  return 0;
}
