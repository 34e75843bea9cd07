// The other file of header_main.c.
#include <outcore/dlm.h>

DLM_EXTERN_ARRAY(int, others, [300000]);
DLM_ARRAY(int, others, [300000]);
int sum_is_right(void);

int sum_is_right(void) {
  long sum = 0;
  for (int k = 0; k < 300000; ++k) sum += others[k];
  return sum == 300000l * 299999 / 2;
}
