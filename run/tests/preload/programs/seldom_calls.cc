// seldom_calls DIR: calls that few programs make, on a mapped file and on large allocations. What
// the kernel of this machine does not have is told the same with Outcore and without it.
#include <dlfcn.h>
#include <linux/fs.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include <initializer_list>

#include "program.h"

using namespace program;

namespace {

constexpr uint64_t kBytes = 1 << 20, kWords = kBytes / 8, kPageWords = kPageBytes / 8;
constexpr long kMseal = 462, kMemfdSecret = 447, kProcessMadvise = 440;
constexpr int kGuardInstall = 102, kGuardRemove = 103, kNoAppend = 0x20;  // RWF_NOAPPEND

struct File {
  int number;
  uint64_t* words;
};
File make(const char* name, uint64_t seed) {
  ::close(make_file(name, kBytes, 1));  // as small as this, it is taken when it is opened alone
  const int number = ::open(name, O_RDWR);
  uint64_t* words = map(number, kBytes, PROT_READ | PROT_WRITE);
  fill(words, kWords, seed);
  return {number, words};
}
// What is in the file, by a system call.
void check(const File& file, uint64_t seed, uint64_t first, uint64_t count, const char* what) {
  uint64_t page[kPageWords];
  for (uint64_t at = first; at < first + count; at += kPageWords) {
    require(::pread(file.number, page, sizeof page, static_cast<off_t>(at * 8)) == sizeof page,
            what);
    require(is_filled(page, kPageWords, seed, at), what);
  }
}
void end(const File& file) {
  ::munmap(file.words, kBytes);
  ::close(file.number);
}
const char* said(long result) { return result >= 0 ? "done" : std::strerror(errno); }

void keys() {
  const int key = static_cast<int>(::syscall(SYS_pkey_alloc, 0, 0));
  std::printf("pkey_alloc: %s\n", said(key));
  for (uint64_t* words : {make("keys", 2).words, allocate(kBytes, 2)}) {
    require(::pkey_mprotect(words, kPageBytes, PROT_READ, -1) == 0, "without a key");
    require(is_filled(words, kWords, 2), "the bytes are there");
    if (key < 0) continue;
    require(::pkey_mprotect(words + kPageWords, kPageBytes, PROT_READ, key) == 0, "with a key");
    require(is_filled(words, kWords, 2), "the bytes are there behind the key");
    require(::pkey_mprotect(words, kBytes, PROT_READ | PROT_WRITE, key) == 0, "with a key");
    fill(words, kWords, 3);
    require(is_filled(words, kWords, 3), "they can be written");
  }
}

void advice_by_pidfd() {
  const int self = static_cast<int>(::syscall(SYS_pidfd_open, ::getpid(), 0));
  const File file = make("advised", 4);
  uint64_t* words = allocate(kBytes, 5);
  const iovec list[2] = {{file.words, kBytes}, {words, kBytes}};
  for (const int advice : {MADV_COLD, MADV_PAGEOUT, MADV_WILLNEED}) {
    const long n = ::syscall(kProcessMadvise, self, list, 2, advice, 0);
    std::printf("process_madvise %d: %ld\n", advice, n);
    require(is_filled(file.words, kWords, 4) && is_filled(words, kWords, 5), "the bytes stay");
  }
  ::close(self);
  end(file);
}

void seals() {
  const auto named =
      reinterpret_cast<int (*)(void*, size_t, unsigned long)>(::dlsym(RTLD_DEFAULT, "mseal"));
  const bool is_under_outcore = std::getenv("OUTCORE_RUN_MIN_SIZE") != nullptr;
  require(named != nullptr || !is_under_outcore, "mseal is taken over by its name, too");
  for (const bool is_by_name : {false, true}) {
    for (uint64_t* words :
         {make(is_by_name ? "sealed" : "sealed, too", 6).words, allocate(kBytes, 6)}) {
      const long result = is_by_name && named != nullptr ? named(words, kBytes, 0)
                                                         : ::syscall(kMseal, words, kBytes, 0);
      std::printf("mseal: %s\n", said(result));
      require(is_filled(words, kWords, 6), "the bytes are there");
      const bool is_sealed = result == 0;
      errno = 0;
      const int changed = ::mprotect(words, kPageBytes, PROT_READ);
      require((changed != 0) == is_sealed, "what is sealed keeps its protection");
      std::printf("mprotect: %s\n", said(changed));
    }
  }
}

void guards() {
  const File file = make("guarded", 7);
  const int result = ::madvise(file.words + kPageWords, kPageBytes, kGuardInstall);
  std::printf("guard on a file: %s\n", said(result));
  if (result == 0) {
    const pid_t child = ::fork();
    if (child == 0) ::_exit(static_cast<int>(file.words[kPageWords] & 1));
    std::printf("touched in a child: %d\n", code_of(child));
    require(::madvise(file.words + kPageWords, kPageBytes, kGuardRemove) == 0, "GUARD_REMOVE");
  }
  require(is_filled(file.words, kWords, 7), "the bytes are there");
  check(file, 7, 0, kWords, "and in the file");
  end(file);
}

void flags_of_transfers() {
  const File file = make("moved", 8);
  const int appending = ::open("moved", O_RDWR | O_APPEND);
  uint64_t* page = allocate(kBytes, 9);
  const iovec one{page, kPageBytes};
  long n = ::pwritev2(appending, &one, 1, 2 * kPageBytes, kNoAppend);
  std::printf("NOAPPEND: %s\n", said(n));
  if (n > 0) require(is_filled(file.words + 2 * kPageWords, kPageWords, 9), "it is in its place");
  require(::pwritev2(file.number, &one, 1, 3 * kPageBytes, RWF_APPEND) == kPageBytes, "APPEND");
  std::printf("size: %ld\n", static_cast<long>(::lseek(file.number, 0, SEEK_END)));
  require(is_filled(file.words + 3 * kPageWords, kPageWords, 8, 3 * kPageWords), "the rest stays");
  n = ::pwritev2(file.number, &one, 1, 4 * kPageBytes, RWF_NOWAIT);  // may have to wait
  require(n == kPageBytes || errno == EAGAIN || errno == EOPNOTSUPP, "a write that may not wait");
  const uint64_t seed = n == kPageBytes ? 9 : 8;
  require(is_filled(file.words + 4 * kPageWords, kPageWords, seed, seed == 8 ? 4 * kPageWords : 0),
          "the mapping shows it, or nothing of it");
  iovec into{page, kPageBytes};
  fill(file.words + 5 * kPageWords, kPageWords, 10);
  n = ::preadv2(file.number, &into, 1, 5 * kPageBytes, RWF_NOWAIT);
  require(n >= 0 || errno == EAGAIN || errno == EOPNOTSUPP, "a read that may not wait");
  if (n > 0) require(is_filled(page, static_cast<uint64_t>(n) / 8, 10), "reads what was written");
  ::close(appending);
  end(file);
}

void secret_memory() {
  const int number = static_cast<int>(::syscall(kMemfdSecret, 0));
  std::printf("memfd_secret: %s\n", said(number));
  if (number < 0) return;
  require(::ftruncate(number, kBytes) == 0, "ftruncate");
  uint64_t* words = map(number, kBytes, PROT_READ | PROT_WRITE);
  fill(words, kWords, 11);
  require(is_filled(words, kWords, 11), "secret bytes");
  ::munmap(words, kBytes);
  ::close(number);
}

// Programs that do so (MPI within a machine) have another way where this one is refused.
void written_into_a_child() {
  static uint64_t target[kWords];
  int go[2];
  require(::pipe(go) == 0, "pipe");
  uint64_t* from = allocate(kBytes, 13);
  const pid_t child = ::fork();
  if (child == 0) {
    char byte = 0;
    require(::read(go[0], &byte, 1) == 1, "read");
    if (byte == 'p')
      for (size_t n = 0; n < kBytes;)
        n += static_cast<size_t>(::read(go[0], reinterpret_cast<char*>(target) + n, kBytes - n));
    ::_exit(is_filled(target, kWords, 13) ? 0 : 1);
  }
  const iovec near{from, kBytes}, far{target, kBytes};
  const bool is_written =
      ::process_vm_writev(child, &near, 1, &far, 1, 0) == static_cast<ssize_t>(kBytes);
  if (!is_written) require(errno == ENOSYS || errno == EPERM, "process_vm_writev is refused");
  require(::write(go[1], is_written ? "v" : "p", 1) == 1, "write");
  if (!is_written)
    require(::write(go[1], from, kBytes) == static_cast<ssize_t>(kBytes), "the other way");
  std::printf("process_vm_writev: the child says %d\n", code_of(child));
}

}  // namespace

int main(int count, char** arguments) {
  begin(count, arguments);
  keys();
  advice_by_pidfd();
  seals();
  guards();
  flags_of_transfers();
  secret_memory();
  written_into_a_child();
  return 0;
}
