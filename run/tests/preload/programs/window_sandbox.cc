// window_sandbox DIR [CASE]: a program that has mapped a file forbids itself all but a few system
// calls, as sandboxes do; the mapping goes on to show the file, and to change it.
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <sys/prctl.h>

#include <iterator>

#include "window_cases.h"

using namespace program;

namespace {

// What a program may do that reads, computes and writes its answer.
constexpr int kAllowed[] = {SYS_read,        SYS_write,      SYS_exit_group, SYS_exit,
                            SYS_futex,       SYS_mmap,       SYS_munmap,     SYS_brk,
                            SYS_fstat,       SYS_lseek,      SYS_getpid,     SYS_rt_sigprocmask,
                            SYS_close,       SYS_newfstatat, SYS_gettid,     SYS_rt_sigaction,
                            SYS_rt_sigreturn};

enum class Way { kPrctl, kSyscall, kAllThreads, kAllThreadsOrDie, kListener };

// Everything else is answered by EPERM, or ends the process.
void restrict_oneself(Way way) {
  sock_filter text[2 * std::size(kAllowed) + 2];
  unsigned short length = 0;
  text[length++] = BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr));
  for (const int number : kAllowed) {
    text[length++] = BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<unsigned>(number), 0, 1);
    text[length++] = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
  }
  const bool dies = way == Way::kAllThreadsOrDie;
  const unsigned otherwise = dies ? SECCOMP_RET_KILL_PROCESS : SECCOMP_RET_ERRNO | EPERM;
  text[length++] = BPF_STMT(BPF_RET | BPF_K, otherwise);
  const sock_fprog whole{length, text};
  require(::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0, "no_new_privs");
  unsigned long flags = way >= Way::kAllThreads ? SECCOMP_FILTER_FLAG_TSYNC : 0;
  if (way == Way::kListener)  // its success is a descriptor
    flags |= SECCOMP_FILTER_FLAG_TSYNC_ESRCH | SECCOMP_FILTER_FLAG_NEW_LISTENER;
  const long result = way == Way::kPrctl
                          ? ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &whole, 0, 0)
                          : ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &whole);
  require(way == Way::kListener ? result > 0 : result == 0, "the filter is installed");
  if (dies) return;
  require(::syscall(SYS_getppid) == -1 && errno == EPERM, "and answers EPERM");
}

// Twice, as the first time may find pages that were read ahead.
void require_shows_file(const Mapped& p) {
  for (int times = 0; times < 2; ++times)
    require(is_filled(p.words(), kMappedBytes / 8, 1), "the mapping shows the file");
}

void read_restricted(Way way) {
  const Mapped p = map_new_file(PROT_READ);
  p.evict();
  require(p.words()[0] == word_at(1, 0), "the first page");
  restrict_oneself(way);
  require_shows_file(p);
}

// A filter for all threads that is refused; everything goes on, and another one comes.
void write_refused() {
  const Mapped p = map_new_file();
  p.words()[7] = 1;
  const sock_fprog nothing{0, nullptr};
  for (const unsigned long flags :
       {SECCOMP_FILTER_FLAG_TSYNC, SECCOMP_FILTER_FLAG_TSYNC | 1ul << 31})
    require(::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &nothing) < 0, "refused");
  Mapped other{p.number};
  other.m = reinterpret_cast<unsigned char*>(
      map(p.number, kMappedBytes, PROT_READ | PROT_WRITE, MAP_SHARED));
  other.words()[512 + 7] = 2;
  require(p.words()[512 + 7] == 2 && other.words()[7] == 1, "both mappings show both words");
  restrict_oneself(Way::kAllThreads);
  uint64_t page[512];
  for (const uint64_t word : {1, 2})
    require(::read(p.number, page, sizeof page) == sizeof page && page[7] == word, "in the file");
}

// What is written before and after is in the file, which is read by descriptor. In pages of three
// kinds: changed before, changed after, and twice.
void write_restricted(Way way) {
  const Mapped p = map_new_file();
  p.evict();
  constexpr uint64_t kPages = kMappedBytes / kPageBytes;
  for (uint64_t page = 0; page < kPages; ++page)
    if (page % 3 != 1) p.words()[page * 512 + 7] = 1000 + page;
  restrict_oneself(way);
  for (uint64_t page = 0; page < kPages; ++page)
    if (page % 3 != 0) p.words()[page * 512 + 8] = 2000 + page;
  require(::lseek(p.number, 0, SEEK_SET) == 0, "lseek");
  for (uint64_t page = 0; page < kPages; ++page) {
    uint64_t wanted[512], found[512];
    fill(wanted, 512, 1, page * 512);
    if (page % 3 != 1) wanted[7] = 1000 + page;
    if (page % 3 != 0) wanted[8] = 2000 + page;
    if (std::memcmp(p.words() + page * 512, wanted, sizeof wanted) != 0)
      fail("page %lu of the mapping is wrong", static_cast<unsigned long>(page));
    if (::read(p.number, found, sizeof found) != sizeof found) fail("read of the file");
    if (std::memcmp(found, wanted, sizeof wanted) != 0)
      fail("page %lu of the file is wrong", static_cast<unsigned long>(page));
  }
}

// Another thread installs it, for all.
void* restrict_all(void*) {
  restrict_oneself(Way::kAllThreads);
  return nullptr;
}

void read_restricted_by_another() {
  const Mapped p = map_new_file(PROT_READ);
  p.evict();
  require(p.words()[0] == word_at(1, 0), "the first page");
  pthread_t thread;
  require(::pthread_create(&thread, nullptr, restrict_all, nullptr) == 0, "pthread_create");
  ::pthread_join(thread, nullptr);
  require_shows_file(p);
}

const Case kCases[] = {
    {"prctl", [] { read_restricted(Way::kPrctl); }},
    {"syscall", [] { read_restricted(Way::kSyscall); }},
    {"all-threads", [] { read_restricted(Way::kAllThreads); }},
    {"all-threads-or-die", [] { read_restricted(Way::kAllThreadsOrDie); }},
    {"listener", [] { read_restricted(Way::kListener); }},
    {"refused-and-write", write_refused},
    {"another-thread", read_restricted_by_another},
    {"prctl-and-write", [] { write_restricted(Way::kPrctl); }},
    {"syscall-and-write", [] { write_restricted(Way::kSyscall); }},
};

}  // namespace

int main(int count, char** arguments) { return run_cases(count, arguments, kCases); }
