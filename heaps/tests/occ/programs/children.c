// fork: the child has no arrays, and the parent keeps its own.
#include <errno.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

dlm int values[4 << 20];

static int status_of(pid_t child) {
  int status = 0;
  return waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

int main(void) {
  for (int i = 0; i < 4 << 20; ++i) values[i] = i;
  pid_t child = fork();
  if (child == 0) {
    int local = 17;  // its own memory is as ever
    errno = 0;
    if (dlm_alloc(1000) != NULL || errno != EPERM) local = 1;
    _exit(local);
  }
  if (status_of(child) != 17) return 1;
  child = fork();
  if (child == 0) _exit(values[5]);
  if (status_of(child) != 139) return 2;
  child = fork();
  if (child == 0) {
    execlp("true", "true", (char*)NULL);
    _exit(1);
  }
  if (status_of(child) != 0) return 3;
  for (int i = 0; i < 4 << 20; ++i)
    if (values[i] != i) return 4;
  printf("right\n");
  return 0;
}
