// Linked by occ into a program: makes its dlm data available before any code of the program runs.
#include <stdio.h>
#include <unistd.h>

#include "outcore/dlm.h"
#include "outcore/outcore.h"

// The bounds of the section that occ has placed (heaps/occ/dlm.ld).
extern char outcore_dlm_first[], outcore_dlm_end[];

// Priorities up to 100 are reserved for the implementation; sanitizers use 99.
__attribute__((constructor(100))) static void begin(void) {
  if (oc_dlm_begin(outcore_dlm_first, (size_t)(outcore_dlm_end - outcore_dlm_first)) == 0) return;
  fprintf(stderr, "outcore: dlm arrays: %s\n", oc_last_error());
  _exit(1);
}

__attribute__((destructor(100))) static void end(void) {
  if (oc_dlm_end() != 0) fprintf(stderr, "outcore: dlm arrays: %s\n", oc_last_error());
}
