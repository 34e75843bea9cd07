// static_child: a program without the C library as a library, and so without Outcore: makes calls
// with structures and lists of buffers. It is linked statically.
#include <sys/uio.h>
#include <sys/utsname.h>

#include "program.h"

using namespace program;

int main() {
  utsname system{};
  require(::uname(&system) == 0, "uname");
  const iovec parts[] = {{const_cast<char*>("static "), 7}, {const_cast<char*>("lives\n"), 6}};
  require(::writev(1, parts, 2) == 13, "writev");
  return 0;
}
