// heap_calls DIR: calls on large allocations that only the kernel can carry out, and calls that
// hand such memory to the kernel in other ways than read and write.
#include <linux/userfaultfd.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include <initializer_list>

#include "program.h"

using namespace program;

namespace {

constexpr uint64_t kBytes = 4 << 20, kWords = kBytes / 8;

uint64_t* memory(uint64_t seed) {
  void* p = ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  require(p != MAP_FAILED, "mmap");
  fill(static_cast<uint64_t*>(p), kWords, seed);
  return static_cast<uint64_t*>(p);
}

// Used so much of something else that the rest is where it rests.
void use_other_memory() {
  static uint64_t seed = 1000;
  uint64_t* other[4];
  for (uint64_t*& p : other) p = memory(++seed);
  for (uint64_t* p : other) ::munmap(p, kBytes);
}

template <typename F>
int in_a_child(const F& f) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(f());
  return code_of(child);
}

void advice_is_followed() {
  uint64_t* words = memory(1);
  require(::madvise(words, kBytes, MADV_WIPEONFORK) == 0, "WIPEONFORK");
  std::printf("wiped in the child: %d\n", in_a_child([&] {
                for (uint64_t i = 0; i < kWords; i += 512)
                  if (words[i] != 0) return 1;
                return 0;
              }));
  require(is_filled(words, kWords, 1), "and there as ever in the parent");
  ::munmap(words, kBytes);
  words = memory(2);
  require(::madvise(words, kBytes, MADV_DONTFORK) == 0, "DONTFORK");
  std::printf("not forked: %d\n", in_a_child([&] { return static_cast<int>(words[7] & 1); }));
  require(is_filled(words, kWords, 2), "there in the parent");
  ::munmap(words, kBytes);
  words = memory(3);
  errno = 0;
  const int guarded = ::madvise(words + 512, kPageBytes, 102);  // MADV_GUARD_INSTALL
  std::printf("guard: %d %s\n", guarded, std::strerror(errno));
  if (guarded == 0) {
    std::printf("guarded: %d\n", in_a_child([&] { return static_cast<int>(words[512] & 1); }));
    require(::madvise(words + 512, kPageBytes, 103) == 0 && words[512] == 0, "GUARD_REMOVE");
    require(is_filled(words, 512, 3), "what is before the guard stays");
    require(is_filled(words + 1024, kWords - 1024, 3, 1024), "and what is behind it");
  }
  for (const int advice : {MADV_COLD, MADV_PAGEOUT, MADV_HUGEPAGE, MADV_DODUMP}) {
    fill(words, kWords, 4);
    require(::madvise(words, kBytes, advice) == 0, "madvise");
    require(is_filled(words, kWords, 4), "the bytes stay");
  }
  require(::mprotect(words, kBytes, PROT_NONE) == 0, "mprotect");
  errno = 0;
  const int populated = ::madvise(words, kBytes, 22);  // MADV_POPULATE_READ
  std::printf("populate without access: %d\n", populated);
  ::munmap(words, kBytes);
}

void moves_are_the_kernels() {
  const auto tell = [](const char* what, void* result) {
    std::printf("mremap %s: %s\n", what, result == MAP_FAILED ? std::strerror(errno) : "done");
  };
  uint64_t* words = memory(5);
  constexpr int kFixed = MREMAP_MAYMOVE | MREMAP_FIXED;
  tell("onto itself", ::mremap(words, kBytes, kBytes, kFixed, words));
  tell("onto a part of itself", ::mremap(words, kBytes, kBytes, kFixed, words + 512));
  tell("to no page", ::mremap(words, kBytes, kBytes, kFixed, words + 1));
  require(is_filled(words, kWords, 5), "refused moves cost nothing");
  // Pages change places by way of a third one, as often as one likes.
  char* const pages = reinterpret_cast<char*>(words);
  char* const spare = reinterpret_cast<char*>(memory(6));
  const auto move = [](char* from, char* to) {
    require(::mremap(from, kPageBytes, kPageBytes, kFixed, to) == to, "mremap");
  };
  for (uint64_t i = 0; i < 64; ++i) {
    char *const one = pages + i * kPageBytes, *const two = pages + (i + 1) * kPageBytes;
    move(one, spare), move(two, one), move(spare, two);
  }
  require(is_filled(words + 64 * 512, 512, 5), "the first page went to the end");
  for (uint64_t i = 0; i < 64; ++i)
    require(is_filled(words + i * 512, 512, 5, (i + 1) * 512), "the others came forward");
  require(is_filled(words + 65 * 512, kWords - 65 * 512, 5, 65 * 512), "the rest stayed");
  ::munmap(words, kBytes);
  ::munmap(spare, kBytes);
}

void own_userfaultfd() {
  uint64_t* words = memory(8);
  use_other_memory();
  const int number = static_cast<int>(::syscall(SYS_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY));
  require(number >= 0, "userfaultfd");
  uffdio_api api{};
  api.api = UFFD_API;
  require(::ioctl(number, UFFDIO_API, &api) == 0, "UFFDIO_API");
  uffdio_register all{};
  all.range = {reinterpret_cast<uint64_t>(words), kBytes};
  all.mode = UFFDIO_REGISTER_MODE_MISSING;
  require(::ioctl(number, UFFDIO_REGISTER, &all) == 0, "UFFDIO_REGISTER");
  require(is_filled(words, kWords, 8), "what was there is there");
  require(::madvise(words, kPageBytes, MADV_DONTNEED) == 0, "DONTNEED");
  uint64_t page[512];
  fill(page, 512, 9);
  uffdio_copy copy{};
  copy.dst = reinterpret_cast<uint64_t>(words);
  copy.src = reinterpret_cast<uint64_t>(page);
  copy.len = kPageBytes;
  require(::ioctl(number, UFFDIO_COPY, &copy) == 0, "UFFDIO_COPY");
  require(is_filled(words, 512, 9), "the program's own page");
  require(is_filled(words + 512, kWords - 512, 8, 512), "the others");
  ::close(number);
  ::munmap(words, kBytes);
  std::printf("its own userfaultfd\n");
}

void other_ways_to_the_kernel() {
  uint64_t *words = memory(10), *into = memory(11);
  int pair[2], ends[2];
  require(::socketpair(AF_UNIX, SOCK_DGRAM, 0, pair) == 0 && ::pipe(ends) == 0, "pipe");
  use_other_memory();
  iovec from[2] = {{words, 8192}, {words + kWords / 2, 8192}};
  iovec to[2] = {{into, 8192}, {into + kWords / 2, 8192}};
  mmsghdr out[2]{}, in[2]{};
  for (int i = 0; i < 2; ++i) {
    out[i].msg_hdr.msg_iov = &from[i], in[i].msg_hdr.msg_iov = &to[i];
    out[i].msg_hdr.msg_iovlen = in[i].msg_hdr.msg_iovlen = 1;
  }
  require(::sendmmsg(pair[0], out, 2, 0) == 2, "sendmmsg");
  use_other_memory();
  require(::recvmmsg(pair[1], in, 2, 0, nullptr) == 2 && in[1].msg_len == 8192, "recvmmsg");
  require(is_filled(into, 1024, 10) && is_filled(into + kWords / 2, 1024, 10, kWords / 2),
          "what was sent arrives");
  use_other_memory();
  const iovec whole{words + 4096, 32768}, back{into + 4096, 32768};
  require(::vmsplice(ends[1], &whole, 1, 0) == 32768, "vmsplice");
  use_other_memory();
  require(::vmsplice(ends[0], &back, 1, 0) == 32768, "vmsplice back");
  require(is_filled(into + 4096, 4096, 10, 4096), "what was spliced arrives");
  use_other_memory();
  const iovec far{words + 65536, 1 << 20}, near{into + 65536, 1 << 20};
  require(::process_vm_readv(::getpid(), &near, 1, &far, 1, 0) == 1 << 20, "process_vm_readv");
  require(is_filled(into + 65536, 131072, 10, 65536), "what was read is right");
  fill(into, kWords, 12);
  use_other_memory();
  require(::process_vm_writev(::getpid(), &near, 1, &far, 1, 0) == 1 << 20, "process_vm_writev");
  require(is_filled(words + 65536, 131072, 12, 65536), "what was written is there");
  use_other_memory();
  std::memset(words, 0, 8192);
  use_other_memory();
  require(::getrandom(words, 4096, 0) == 4096 && ::getentropy(words + 512, 256) == 0, "getrandom");
  require(words[3] != 0 && words[511] != 0 && words[520] != 0, "random bytes arrive");
  // By number as by name.
  const int file = ::open("bytes", O_RDWR | O_CREAT | O_TRUNC, 0600);
  use_other_memory();
  require(::syscall(SYS_pwrite64, file, into, kBytes, 0L) == static_cast<long>(kBytes), "pwrite64");
  use_other_memory();
  require(::syscall(SYS_pread64, file, words, kBytes, 0L) == static_cast<long>(kBytes), "pread64");
  require(is_filled(words, kWords, 12), "by number as by name");
  ::munmap(words, kBytes);
  ::munmap(into, kBytes);
  std::printf("other ways to the kernel\n");
}

}  // namespace

int main(int count, char** arguments) {
  begin(count, arguments);
  advice_is_followed();
  moves_are_the_kernels();
  own_userfaultfd();
  other_ways_to_the_kernel();
  return 0;
}
