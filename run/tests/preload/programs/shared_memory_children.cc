// shared_memory_children DIR [BYTES]: a file is mapped and written; then children that share this
// process's memory, but not its descriptors (vfork, posix_spawn, clone), close, replace and use
// descriptors of it as they like. Nothing of that is seen here: the file and its mapping still show
// the same bytes; and what the children write is seen.
#include <sched.h>
#include <signal.h>
#include <spawn.h>

#include "program.h"

using namespace program;

namespace {

char path[] = "./shared";
char true_path[] = "/bin/true";
uint64_t bytes = 0;

// A file of its own for each case, mapped for writing.
struct File {
  int number = -1;
  uint64_t* words = nullptr;

  explicit File(uint64_t seed, int number_flags = O_CLOEXEC) {
    ::unlink(path);
    number = make_file(path, bytes, seed);
    if (number_flags != 0) require(::fcntl(number, F_SETFD, FD_CLOEXEC) == 0, "F_SETFD");
    words = map(number, bytes, PROT_READ | PROT_WRITE);
    require(is_filled(words, bytes / 8, seed), "the mapping shows the file");
  }
  ~File() {
    require(::munmap(words, bytes) == 0, "munmap");
    ::close(number);
  }

  // The descriptor and the mapping show each other's bytes.
  void expect_one(const char* when, uint64_t seed) const {
    for (uint64_t i = 0; i < 32; ++i) {
      const uint64_t index = word_at(seed, i) % (bytes / 8), value = word_at(seed + 1, i);
      const auto at = static_cast<off_t>(index * 8);
      uint64_t back = 0;
      *static_cast<volatile uint64_t*>(words + index) = value;
      require(::pread(number, &back, 8, at) == 8, "pread");
      if (back != value) fail("%s: pread misses what was written by the mapping", when);
      const uint64_t other = ~value;
      require(::pwrite(number, &other, 8, at) == 8, "pwrite");
      if (*static_cast<volatile uint64_t*>(words + index) != other)
        fail("%s: the mapping misses what was written by pwrite", when);
    }
    std::printf("%s\n", when);
  }
};

// Runs `act` in a child that has this memory, and ends it there.
template <typename Act>
void by_vfork(const Act& act, int expected = 0) {
  const pid_t child = ::vfork();
  if (child == 0) {
    act();
    ::_exit(0);
  }
  const int code = code_of(child);
  if (code != expected) fail("a child of vfork ends with %d", code);
}

int call(void* act) {
  reinterpret_cast<void (*)()>(act)();
  return 0;
}
// The same by clone(); without CLONE_VFORK it runs beside its parent, which waits for the end.
void by_clone(int flags, void (*act)()) {
  static char stack[256 << 10];
  const pid_t child =
      ::clone(call, stack + sizeof stack, flags | SIGCHLD, reinterpret_cast<void*>(act));
  require(code_of(child) == 0, "a child of clone");
}

void close_all() {
  for (int i = 3; i < 200; ++i) ::close(i);
}

void execute(const char* program) {
  char* const words[] = {const_cast<char*>(program), nullptr};
  char* const names[] = {nullptr};
  ::execve(program, words, names);
}

void expect_untouched() {
  const File file(1);
  file.expect_one("at first", 1);
  by_vfork([] { ::close_range(3, ~0u, 0); });
  file.expect_one("after vfork, close_range", 2);
  by_vfork([] {
    close_all();
    execute(true_path);
  });
  file.expect_one("after vfork, close, exec", 3);
  by_vfork([&] {
    const int null = ::open("/dev/null", O_WRONLY);
    ::dup2(null, file.number);
    const uint64_t word = 0;
    static_cast<void>(::write(file.number, &word, sizeof word) + 1);
  });
  file.expect_one("after vfork, dup2 onto it", 4);
  by_vfork([&] {
    ::close(file.number);
    require(::open("/dev/zero", O_RDWR) >= 0, "open");
    require(::fcntl(0, F_DUPFD, 100) >= 100, "F_DUPFD");
  });
  file.expect_one("after vfork, another file with its number", 5);
  by_vfork([] { execute("/not/there"); });
  file.expect_one("after vfork, an exec that fails", 6);
  by_vfork([] {
    close_all();
    ::execl("/not/there", "there", "not", nullptr);
    ::execlp("not-there-either", "there", nullptr);
  });
  file.expect_one("after vfork, execl that fails", 7);
  by_clone(CLONE_VM | CLONE_VFORK, close_all);
  file.expect_one("after clone(CLONE_VM | CLONE_VFORK)", 8);
  by_clone(CLONE_VM, close_all);
  file.expect_one("after clone(CLONE_VM)", 9);
}

void expect_untouched_by_spawn() {
  const File file(10);
  posix_spawn_file_actions_t actions;
  require(::posix_spawn_file_actions_init(&actions) == 0, "actions");
  ::posix_spawn_file_actions_addclose(&actions, file.number);
  ::posix_spawn_file_actions_addopen(&actions, 9, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_adddup2(&actions, 9, file.number + 1);
  char* const words[] = {true_path, nullptr};
  pid_t child = 0;
  require(::posix_spawn(&child, true_path, &actions, nullptr, words, nullptr) == 0, "spawn");
  require(code_of(child) == 0, "a spawned child");
  file.expect_one("after posix_spawn", 11);
  const int error = ::posix_spawnp(&child, "not-there", &actions, nullptr, words, nullptr);
  // EACCES: a folder of PATH is closed to this user.
  require(error == ENOENT || error == EACCES, "a program that is not there");
  file.expect_one("after posix_spawnp that fails", 12);
  ::posix_spawn_file_actions_destroy(&actions);
}

// What a child writes or reads by its own descriptors is the file's.
void expect_childs_bytes() {
  const uint64_t written = 0x1122334455667788, before = 0x8877665544332211;
  {
    File file(20);
    file.words[77] = before;
    static uint64_t seen;
    by_vfork([&] {
      require(::pread(file.number, &seen, 8, 77 * 8) == 8, "pread of the child");
      require(::pwrite(file.number, &written, 8, 1000 * 8) == 8, "pwrite of the child");
    });
    require(seen == before, "the child reads what was written by the mapping");
    require(file.words[1000] == written, "the mapping shows what the child wrote");
    file.expect_one("after a write by a child of vfork", 21);
  }
  {
    File file(22);
    file.words[78] = before;
    static uint64_t seen;
    by_vfork([&] {
      const int again = ::open(path, O_RDWR);
      require(::pread(again, &seen, 8, 78 * 8) == 8, "pread of the child");
      require(::pwrite(again, &written, 8, 1001 * 8) == 8, "pwrite of the child");
    });
    require(seen == before, "the child that opens it reads what was written by the mapping");
    require(file.words[1001] == written, "the mapping shows what the child that opened it wrote");
    file.expect_one("after an open by a child of vfork", 23);
  }
  {
    File file(24);
    file.words[2] = before;
    require(::lseek(file.number, 16 << 10, SEEK_SET) == 16 << 10, "lseek");
    by_vfork([&] {
      ::dup2(file.number, 1);
      ::execl("/bin/echo", "echo", "-n", "8 bytes.", nullptr);
      ::_exit(1);
    });
    require(std::memcmp(file.words + (16 << 10) / 8, "8 bytes.", 8) == 0, "echo's bytes are seen");
    uint64_t back = 0;
    require(::pread(file.number, &back, 8, 16) == 8 && back == before, "and its own");
    file.expect_one("after a child of vfork became echo", 25);
  }
}

// A FILE that a child closes is still on the file here, whose mapping must show what it writes.
void expect_stdio() {
  ::unlink(path);
  ::close(make_file(path, bytes, 30));
  FILE* stream = std::fopen(path, "r+");
  require(stream != nullptr, "fopen");
  by_vfork(close_all);
  uint64_t* words = map(::fileno(stream), bytes, PROT_READ | PROT_WRITE);
  words[5] = 1;
  require(std::fseek(stream, 48, SEEK_SET) == 0, "fseek");
  const uint64_t word = 0x5555555555555555;
  require(std::fwrite(&word, 8, 1, stream) == 1 && std::fflush(stream) == 0, "fwrite");
  require(words[6] == word, "the mapping shows what fwrite wrote");
  require(::munmap(words, bytes) == 0 && std::fclose(stream) == 0, "munmap and fclose");
  std::printf("stdio\n");
}

void expect_own_signals() {
  File file(40);
  sigset_t faults, now;
  sigemptyset(&faults);
  sigaddset(&faults, SIGSEGV);
  require(::sigprocmask(SIG_BLOCK, &faults, nullptr) == 0, "sigprocmask");
  by_vfork([&] {
    ::signal(SIGTERM, SIG_IGN);
    ::signal(SIGSEGV, SIG_IGN);
    ::sigprocmask(SIG_UNBLOCK, &faults, nullptr);
  });
  struct sigaction action = {};
  require(::sigaction(SIGTERM, nullptr, &action) == 0, "sigaction");
  require(action.sa_handler == SIG_DFL, "SIGTERM is as it was");
  require(::sigaction(SIGSEGV, nullptr, &action) == 0, "sigaction");
  require(action.sa_handler == SIG_DFL, "SIGSEGV is as it was");
  require(::sigprocmask(SIG_BLOCK, nullptr, &now) == 0 && sigismember(&now, SIGSEGV) == 1,
          "what is blocked is as it was");
  require(::sigprocmask(SIG_UNBLOCK, &faults, nullptr) == 0, "sigprocmask");
  file.expect_one("signals", 41);
}

}  // namespace

int main(int count, char** arguments) {
  bytes = begin(count, arguments);
  expect_untouched();
  expect_untouched_by_spawn();
  expect_childs_bytes();
  expect_stdio();
  expect_own_signals();
  return 0;
}
