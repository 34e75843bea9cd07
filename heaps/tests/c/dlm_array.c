// DLM_ARRAY by the header alone: before main there, zeros at first, larger than the budget.
#include <outcore/dlm.h>
#include <outcore/outcore.h>

DLM_ARRAY(double, matrix, [600][2000]);
DLM_ARRAY(int, list, [1000000]);

static int fail(const char* what) {
  fprintf(stderr, "%s: %s\n", what, oc_last_error());
  return 1;
}

int main(void) {
  for (int i = 0; i < 600; ++i)
    for (int j = 0; j < 2000; ++j) {
      if (matrix[i][j] != 0) return fail("an array does not begin as zeros");
      matrix[i][j] = i - j;
    }
  for (int k = 0; k < 1000000; ++k) list[k] = -k;
  if (DLM_SIZEOF(matrix) != 8ul * 600 * 2000) return fail("DLM_SIZEOF");

  char* first = (char*)dlm_alloc(300000);
  if (first == NULL) return fail("dlm_alloc");
  memset(first, 'x', 300000);
  dlm_free(first);
  char* second = (char*)dlm_alloc(300000);
  if (second != first) return fail("freed space is not used again");
  if (dlm_alloc((size_t)1 << 60) != NULL || oc_last_error()[0] == 0) return fail("too much");
  if (dlm_prefault(list, 4096) != 0) return fail("dlm_prefault");
  if (dlm_pin(list, 10000) != 0 || dlm_unpin(list, 10000) != 0) return fail("dlm_pin");
  if (dlm_prefault(&first, 8) == 0) return fail("a local variable is no dlm data");

  for (int i = 0; i < 600; ++i)
    for (int j = 0; j < 2000; ++j)
      if (matrix[i][j] != i - j) return fail("matrix");
  for (int k = 0; k < 1000000; ++k)
    if (list[k] != -k) return fail("list");
  dlm_free(second);
  dlm_free(NULL);
  return 0;
}
