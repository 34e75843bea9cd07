// System calls on arrays of which the whole counts, or of which little is there: datagrams, threads
// with small stacks, O_DIRECT, lists that are wrong, sizes that only the run knows.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

enum { kBytes = 24 << 20, kLong = 100000, kPinned = 1 << 20 };
dlm unsigned char from[kBytes], to[kBytes];
dlm unsigned char pinned[kPinned] __attribute__((aligned(4096)));
static volatile size_t unknown = kLong;
static int wrong;

static void expect(int is_right, const char* what) {
  if (is_right) return;
  fprintf(stderr, "not so: %s\n", what);
  wrong = 1;
}

// So that neither array's beginning is in memory.
static void evict(void) {
  for (int i = kBytes / 2; i < kBytes; i += 4096) ++from[i], ++to[i];
}

static void send_datagrams(int type) {
  int ends[2];
  expect(socketpair(AF_UNIX, type, 0, ends) == 0, "a pair of sockets");
  evict();
  expect(send(ends[0], from, kLong, 0) == kLong, "send a long datagram");
  expect(recv(ends[1], to, kLong + 500, 0) == kLong, "it arrives in one piece");
  expect(memcmp(from, to, kLong) == 0, "as it was");
  evict();
  expect(write(ends[0], from, kLong) == kLong, "write it");
  const struct iovec halves[2] = {{to + kLong, 70000}, {to + 3 * kLong, 70000}};
  expect(readv(ends[1], halves, 2) == kLong, "read it into two ranges");
  expect(memcmp(from, to + kLong, 70000) == 0, "the first");
  expect(memcmp(from + 70000, to + 3 * kLong, 30000) == 0, "the second");
  expect(send(ends[0], from, 2 * kLong, 0) == 2 * kLong, "send one that is too long");
  memset(to, 7, 2 * kLong);
  evict();
  expect(recv(ends[1], to, kLong, MSG_TRUNC) == 2 * kLong, "its length is told");
  expect(memcmp(from, to, kLong) == 0 && to[kLong] == 7, "what has room arrives");
  expect(send(ends[0], "a", 1, 0) == 1 && send(ends[0], "b", 1, 0) == 1, "two short ones");
  expect(recv(ends[1], to, kLong, 0) == 1 && to[0] == 'a', "the first alone");
  expect(recv(ends[1], to, kLong, MSG_PEEK) == 1 && to[0] == 'b', "a look");
  expect(recv(ends[1], to, kLong, 0) == 1 && to[0] == 'b', "takes nothing away");
  close(ends[0]), close(ends[1]);
}

static void* write_little(void* file) {
  expect(pwrite(*(int*)file, from + 5, 2 * kLong, 0) == 2 * kLong, "on a small stack");
  return NULL;
}

static void call_from_small_stack(int file) {
  pthread_attr_t small;
  pthread_t thread;
  pthread_attr_init(&small);
  expect(pthread_attr_setstacksize(&small, 64 << 10) == 0, "a stack of 64 KiB");
  evict();
  expect(pthread_create(&thread, &small, write_little, &file) == 0, "a thread");
  pthread_join(thread, NULL);
}

static void transfer_directly(const char* name) {
  const int file = open(name, O_RDWR | O_DIRECT);
  if (file < 0) return;  // not on every filesystem
  expect(dlm_pin(pinned, kPinned) == 0, "pin");
  memset(pinned, 5, kPinned);
  expect(pwrite(file, pinned, kPinned, 0) == kPinned, "write directly");
  memset(pinned, 0, kPinned);
  expect(pread(file, pinned, kPinned, 0) == kPinned, "read directly");
  expect(pread(file, pinned, 4096, 0) == 4096, "a page");
  expect(pinned[9] == 5 && pinned[kPinned - 1] == 5, "what was written");
  dlm_unpin(pinned, kPinned);
  close(file);
}

static void pass_wrong_lists(int file) {
  const struct iovec none = {to, 5};
  struct iovec* volatile wild = (struct iovec*)8;
  struct iovec* volatile null = NULL;
  expect(readv(file, wild, 2) == -1 && errno == EFAULT, "a list nowhere");
  expect(writev(file, null, 2) == -1 && errno == EFAULT, "no list");
  expect(readv(file, &none, -1) == -1 && errno == EINVAL, "fewer than none");
  expect(readv(file, wild, 5000) == -1 && errno == EINVAL, "more than are taken");
}

static void read_unknown(int file, const char* name) {
  expect(pwrite(file, from, kLong, 0) == kLong, "write");
  evict();
  lseek(file, 0, SEEK_SET);
  expect(read(file, to, unknown) == kLong && memcmp(from, to, kLong) == 0, "read");
  evict();
  expect(pread(file, to + kLong, unknown, 0) == kLong, "pread");
  FILE* const stream = fopen(name, "r");
  expect(fread(to + 2 * kLong, 1, unknown, stream) == kLong, "fread");
  expect(memcmp(to + kLong, to + 2 * kLong, kLong) == 0, "the same");
  fclose(stream);
}

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const int file = open(argv[1], O_RDWR | O_CREAT | O_TRUNC, 0600);
  for (int i = 0; i < kBytes; ++i) from[i] = (unsigned char)((unsigned)i * 2654435761u >> 13);
  send_datagrams(SOCK_DGRAM);
  send_datagrams(SOCK_SEQPACKET);
  call_from_small_stack(file);
  transfer_directly(argv[1]);
  pass_wrong_lists(file);
  read_unknown(file, argv[1]);
  printf(wrong ? "wrong\n" : "right\n");
  return wrong;
}
