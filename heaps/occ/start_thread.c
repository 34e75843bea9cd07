// What occ links into a program under -fsanitize=thread: the library is not compiled for it, so
// that its own order of things does not show to it, while its calls of memcpy do.

const char* __tsan_default_suppressions(void);

const char* __tsan_default_suppressions(void) {
  return "race:^outcore::\nsignal:^outcore::\nmutex:^outcore::\nthread:^outcore::\n";
}
