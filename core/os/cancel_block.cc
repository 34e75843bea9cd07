#include "core/os/cancel_block.h"

#include <pthread.h>

namespace outcore::os {

int CancelBlock::disable() {
  int before = 0, ignored = 0;
  ::pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
  // If a request was pending, glibc 2.36 looks at the type only.
  if (before == PTHREAD_CANCEL_ENABLE) ::pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, &ignored);
  return before;
}

void CancelBlock::restore(int before) {
  int ignored = 0;
  ::pthread_setcancelstate(before, &ignored);
}

}  // namespace outcore::os
