// window_constructor DIR: a thread that a library's constructor has started with all signals
// blocked touches a mapping of later, and gives it to a system call.
#include "window_cases.h"

using namespace program;

extern "C" int outcore_tests_name_system(unsigned char* memory);

int main(int count, char** arguments) {
  begin(count, arguments);
  ::alarm(20);  // rather than hang
  const Mapped p = map_new_file();
  p.evict();
  unsigned char* const there = p.at(64 * kPageBytes);
  require(outcore_tests_name_system(there) == 1, "uname into the mapping");
  utsname here{};
  require(::uname(&here) == 0, "uname");
  const auto* const found = reinterpret_cast<const utsname*>(there);
  require(std::strcmp(found->nodename, here.nodename) == 0, "the name is in the mapping");
  require(there[3 * kPageBytes] == there[2 * kPageBytes], "and what the thread wrote");
  const uint64_t rest = 68 * kPageBytes / 8;
  require(is_filled(p.words() + rest, kMappedBytes / 8 - rest, 1, rest), "the rest is right");
  std::printf("the thread's call is answered\n");
  return 0;
}
