// Linked by occ into a program that is compiled with -fsanitize=thread. The sanitizer does not see
// the library's synchronization, because the library is not compiled for it, but it sees its calls
// of memcpy.

const char* __tsan_default_suppressions(void);

const char* __tsan_default_suppressions(void) {
  return "race:^outcore::\nsignal:^outcore::\nmutex:^outcore::\nthread:^outcore::\n";
}
