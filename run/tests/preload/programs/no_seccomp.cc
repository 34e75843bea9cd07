// no_seccomp PROGRAM [ARGUMENT…]: starts it where no more filters may be installed (EPERM), as some
// sandboxes have it.
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "program.h"

using namespace program;

int main(int count, char** arguments) {
  require(count > 1, "no_seccomp PROGRAM [ARGUMENT…]");
  sock_filter text[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_seccomp, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog whole{sizeof text / sizeof text[0], text};
  require(::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0, "no_new_privs");
  require(::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &whole, 0, 0) == 0, "seccomp");
  ::execvp(arguments[1], arguments + 1);
  fail("cannot start %s", arguments[1]);
}
