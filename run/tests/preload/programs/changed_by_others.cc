// changed_by_others DIR [BYTES]: a file is mapped and written, and then processes that have nothing
// of it from here change it: by its name (truncate), by a descriptor that they open in /proc, and
// by one that they take out of this process (pidfd_getfd). What they do is seen, and nothing that
// is gone comes back. What the program writes itself meanwhile hides nothing, and wakes nobody.
#include <dirent.h>
#include <sched.h>
#include <sys/fanotify.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <atomic>
#include <chrono>
#include <ctime>
#include <fstream>
#include <string>
#include <thread>

#include "program.h"

using namespace program;

namespace {

constexpr uint64_t kWord = 0x6c6c6f6820796d20;
char path[] = "./changed";
char self[256];
char* no_names[] = {nullptr};
uint64_t bytes = 0;

struct File {
  int number = -1;
  uint64_t* words = nullptr;

  explicit File(uint64_t seed) {
    ::unlink(path);
    number = make_file(path, bytes, seed);
    require(::fcntl(number, F_SETFD, FD_CLOEXEC) == 0, "F_SETFD");
    words = map(number, bytes, PROT_READ | PROT_WRITE);
    words[10] = kWord;
  }
  ~File() {
    require(::munmap(words, bytes) == 0, "munmap");
    ::close(number);
  }
};

// This program, but without us, as LD_PRELOAD is not in its names. Its exit code.
int run_alone(const char* kind, int number) {
  char pid[16], text[16];
  std::snprintf(pid, sizeof pid, "%d", ::getpid());
  std::snprintf(text, sizeof text, "%d", number);
  char* const words[] = {self, const_cast<char*>(kind), pid, text, nullptr};
  const pid_t child = ::fork();
  if (child == 0) {
    ::execve(self, words, no_names);
    ::_exit(99);
  }
  return code_of(child);
}

// The other reads the word that was written here, and writes one in the same page.
int be_opener(pid_t whose, int number) {
  char place[64];
  std::snprintf(place, sizeof place, "/proc/%d/fd/%d", static_cast<int>(whose), number);
  const int opened = ::open(place, O_RDWR);
  uint64_t word = 0;
  if (::pread(opened, &word, 8, 80) != 8) return 1;
  if (word != kWord) return 2;
  word = ~kWord;
  return ::pwrite(opened, &word, 8, 88) == 8 ? 0 : 3;
}

void expect_opened() {
  const File file(1);
  require(run_alone("--open", file.number) == 0, "the other reads what was written here");
  require(file.words[11] == ~kWord, "what the other wrote is seen");
  require(::msync(file.words, bytes, MS_SYNC) == 0, "msync");
  uint64_t back = 0;
  require(::pread(file.number, &back, 8, 88) == 8 && back == ~kWord, "the file has it still");
  std::printf("opened in /proc\n");
}

int be_taker(pid_t whose, int number) {
  const auto process = static_cast<int>(::syscall(SYS_pidfd_open, whose, 0));
  const auto taken = static_cast<int>(::syscall(SYS_pidfd_getfd, process, number, 0));
  if (taken < 0) return errno == EPERM || errno == ENOSYS ? 77 : 1;
  const uint64_t value = ~kWord;
  struct stat about;
  if (::fstat(taken, &about) != 0) return 2;
  return ::pwrite(taken, &value, 8, about.st_size / 2) == 8 ? 0 : 3;
}

// It opens nothing, and asks nobody: what it writes is seen a moment later.
void expect_taken_out(const File& file) {
  const int code = run_alone("--take-out", file.number);
  if (code == 77) {
    std::printf("pidfd_getfd is not permitted here\n");
    return;
  }
  require(code == 0, "the other writes");
  const auto* word = static_cast<volatile uint64_t*>(file.words + bytes / 16);
  const std::time_t end = std::time(nullptr) + 20;
  while (*word != ~kWord && std::time(nullptr) < end) ::sched_yield();
  require(*word == ~kWord, "what was written by a descriptor that was taken out is seen");
  std::printf("taken out\n");
}

// By a call, at the beginning of the file.
void write_word(const File& file) { require(::pwrite(file.number, &kWord, 8, 0) == 8, "pwrite"); }

void expect_taken_out_beside_writes() {
  const File file(4);
  std::atomic<bool> is_over{false};
  std::thread writer([&] {
    while (!is_over) write_word(file);
  });
  expect_taken_out(file);
  is_over = true;
  writer.join();
}

// How often the threads of Outcore that listen have been woken; 0 without them.
uint64_t wakings_of_listeners() {
  const std::string folder = "/proc/self/task/";
  DIR* const threads = ::opendir(folder.c_str());
  require(threads != nullptr, "opendir");
  uint64_t wakings = 0;
  while (const dirent* one = ::readdir(threads)) {
    std::ifstream status(folder + one->d_name + "/status");
    bool listens = false;
    for (std::string line; std::getline(status, line);) {
      listens = listens || line == "Name:\toutcore-watch";
      const std::string key = "voluntary_ctxt_switches:";
      if (listens && line.compare(0, key.size(), key) == 0)
        wakings += std::stoul(line.substr(key.size()));
    }
  }
  ::closedir(threads);
  return wakings;
}

// A thread that is woken for each costs more than the writes: it looks every 10 ms at most.
void expect_own_writes_to_wake_nobody() {
  constexpr uint64_t kWrites = 30000;
  const File file(5);
  const uint64_t before = wakings_of_listeners();
  const auto start = std::chrono::steady_clock::now();
  for (uint64_t i = 0; i < kWrites; ++i) write_word(file);
  const uint64_t wakings = wakings_of_listeners() - before;
  const auto looks = (std::chrono::steady_clock::now() - start) / std::chrono::milliseconds(10);
  if (wakings > 20 + 2 * static_cast<uint64_t>(looks))
    fail("%lu wakings for %lu writes in %ld looks", wakings, kWrites, static_cast<long>(looks));
  require(file.words[0] == kWord, "what was written by calls is seen");
  std::printf("own writes\n");
}

int be_cutter() {
  struct stat about;
  if (::stat(path, &about) != 0) return 1;
  if (::truncate(path, 0) != 0) return 2;
  return ::truncate(path, about.st_size) == 0 ? 0 : 3;
}

// The kernel asks before a file is made shorter: Linux 6.14; ext4, xfs, btrfs. Without it that is
// heard of when the file may be as long as before again.
bool is_asked_before() {
  constexpr uint64_t kPreAccess = 0x00100000;
  constexpr unsigned kPreContent = 8;
  const int group = ::fanotify_init(kPreContent | FAN_CLOEXEC, O_RDONLY | O_CLOEXEC);
  if (group < 0) return errno == EPERM;  // then the file is the kernel's
  const bool is_asked = ::fanotify_mark(group, FAN_MARK_ADD, kPreAccess, AT_FDCWD, path) == 0;
  ::close(group);
  return is_asked;
}

// Shorter, and as long as before: what was written is gone.
void expect_cut_off() {
  if (!is_asked_before()) {
    std::printf("nobody is asked before a file is made shorter here\n");
    return;
  }
  const File file(3);
  for (uint64_t i = 0; i < bytes / 8; i += 512) file.words[i] = kWord;
  require(run_alone("--cut", 0) == 0, "the other cuts it off");
  for (uint64_t i = 0; i < bytes / 8; i += 512)
    if (file.words[i] != 0) fail("word %lu is %lx and no zero", i, file.words[i]);
  require(::msync(file.words, bytes, MS_SYNC) == 0, "msync");
  uint64_t back[512];
  for (uint64_t at = 0; at < bytes; at += sizeof back) {
    require(::pread(file.number, back, sizeof back, static_cast<off_t>(at)) == sizeof back,
            "pread");
    require(back[0] == 0, "the file has zeros");
  }
  std::printf("cut off\n");
}

}  // namespace

int main(int count, char** arguments) {
  if (count == 4 && std::strncmp(arguments[1], "--", 2) == 0) {
    const auto whose = static_cast<pid_t>(std::strtol(arguments[2], nullptr, 10));
    const auto number = static_cast<int>(std::strtol(arguments[3], nullptr, 10));
    if (std::strcmp(arguments[1], "--open") == 0) return be_opener(whose, number);
    if (std::strcmp(arguments[1], "--take-out") == 0) return be_taker(whose, number);
    return be_cutter();
  }
  require(::readlink("/proc/self/exe", self, sizeof self - 1) > 0, "readlink");
  bytes = begin(count, arguments);
  expect_opened();
  expect_taken_out(File(2));
  expect_taken_out_beside_writes();
  expect_own_writes_to_wake_nobody();
  expect_cut_off();
  return 0;
}
