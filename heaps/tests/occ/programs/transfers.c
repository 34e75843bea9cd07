// System calls into and out of arrays whose pages are absent.
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

enum { kBytes = 24 << 20 };
dlm unsigned char from[kBytes], to[kBytes];

static int differs(const char* what) {
  const int result = memcmp(from, to, kBytes) != 0;
  if (result != 0) fprintf(stderr, "%s\n", what);
  memset(to, 0, kBytes);
  return result;
}

int main(int argc, char** argv) {
  int wrong = argc != 2;
  for (int i = 0; i < kBytes; ++i) from[i] = (unsigned char)((unsigned)i * 2654435761u >> 13);
  FILE* file = fopen(argv[1], "w+");
  wrong += file == NULL || fwrite(from, 4, kBytes / 4, file) != kBytes / 4;
  rewind(file);
  wrong += fread(to, 1, kBytes, file) != kBytes;
  wrong += differs("fwrite and fread");

  const int fd = open(argv[1], O_RDWR | O_TRUNC);
  wrong += write(fd, from, kBytes) != kBytes;
  lseek(fd, 0, SEEK_SET);
  wrong += read(fd, to, kBytes) != kBytes;
  wrong += differs("write and read");
  wrong += ftruncate(fd, 0);
  wrong += pwrite(fd, from, kBytes, 4096) != kBytes;
  wrong += pread(fd, to, kBytes, 4096) != kBytes;
  wrong += differs("pwrite and pread");
  const struct iovec out[2] = {{from, 1000}, {from + 1000, kBytes - 1000}};
  const struct iovec in[2] = {{to, 1 << 20}, {to + (1 << 20), kBytes - (1 << 20)}};
  lseek(fd, 0, SEEK_SET);
  wrong += writev(fd, out, 2) != kBytes;
  lseek(fd, 0, SEEK_SET);
  wrong += readv(fd, in, 2) != kBytes;
  wrong += differs("writev and readv");

  int ends[2];
  wrong += socketpair(AF_UNIX, SOCK_STREAM, 0, ends);
  wrong += send(ends[0], from + 5000, 3000, 0) != 3000;
  wrong += recv(ends[1], to + 5000, 3000, MSG_WAITALL) != 3000;
  wrong += memcmp(from + 5000, to + 5000, 3000) != 0;
  wrong += read(-1, to, 10) != -1;
  printf(wrong ? "wrong\n" : "right\n");
  return wrong;
}
