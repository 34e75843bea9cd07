// fds DIR [BYTES]: descriptors have the numbers that they have always had, whatever is mapped; a
// mapping lives on when all of them are closed; locks stay; and what stdio writes is seen.
#include <cstring>
#include <filesystem>

#include "program.h"

using namespace program;

namespace {

void expect_number(int number, int expected, const char* what) {
  if (number != expected) fail("%s gave descriptor %d, expected %d", what, number, expected);
  std::printf("%s %d\n", what, number);
}

// Whether anybody in this process has a file open that has no name.
bool has_removed() {
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code none;
    if (std::filesystem::read_symlink(entry, none).string().ends_with("/fds (deleted)"))
      return true;
  }
  return false;
}

// The lock that this process has on a file, as another one sees it.
bool is_locked(int number) {
  const pid_t asking = ::fork();
  if (asking == 0) {
    struct flock lock {};
    lock.l_type = F_WRLCK;
    const bool is_asked = ::fcntl(number, F_GETLK, &lock) == 0;
    ::_exit(is_asked && lock.l_type == F_WRLCK && lock.l_pid == ::getppid() ? 0 : 1);
  }
  return code_of(asking) == 0;
}

// A mapping that stays the kernel's, as another process has the file open, too, costs no lock of
// POSIX, which the first close of any descriptor of the file would; nor does one that is taken.
void locks_stay(uint64_t bytes) {
  const int number = make_file("fds", bytes, 5);
  int ends[2];
  require(::pipe(ends) == 0, "pipe");
  const pid_t other = ::fork();
  if (other == 0) {
    char byte;
    ::close(ends[1]);
    ::_exit(::read(ends[0], &byte, 1) == 0 ? 0 : 1);
  }
  struct flock lock {};
  lock.l_type = F_WRLCK;
  require(::fcntl(number, F_SETLK, &lock) == 0, "a lock");
  for (const bool is_alone : {false, true}) {
    if (is_alone) {
      ::close(ends[1]);
      require(code_of(other) == 0, "the other process");
    }
    uint64_t* words = map(number, bytes, PROT_READ | PROT_WRITE);
    require(is_filled(words, bytes / 8, 5), "the mapping shows the file");
    require(is_locked(number), "the lock is there while it is mapped");
    require(::munmap(words, bytes) == 0 && is_locked(number), "the lock is there afterwards");
  }
  ::close(ends[0]);
  require(::unlink("fds") == 0 && has_removed(), "it is there as long as it is open");
  ::close(number);
  require(!has_removed(), "nobody has it open");
  std::printf("locks stay\n");
}

// stdio writes past whoever looks at calls: a mapping shows it all the same, whether standard
// output became the file before it was mapped or afterwards.
void standard_output_is_seen(uint64_t bytes) {
  for (const bool is_first : {true, false}) {
    const int number = make_file("fds", bytes, 6);
    std::fflush(stdout);
    const int before = ::dup(STDOUT_FILENO);
    if (is_first) require(::dup2(number, STDOUT_FILENO) == STDOUT_FILENO, "dup2");
    uint64_t* words = map(number, bytes, PROT_READ | PROT_WRITE);
    require(is_filled(words, bytes / 8, 6), "the mapping shows the file");
    words[1] = 7;
    if (!is_first) require(::dup2(number, STDOUT_FILENO) == STDOUT_FILENO, "dup2 of a mapped one");
    require(::lseek(number, 0, SEEK_SET) == 0, "lseek");
    std::printf("8 bytes.");
    std::fflush(stdout);
    require(::dup2(before, STDOUT_FILENO) == STDOUT_FILENO && ::close(before) == 0, "dup2 back");
    require(std::memcmp(words, "8 bytes.", 8) == 0 && words[1] == 7, "the mapping shows all");
    require(::munmap(words, bytes) == 0, "munmap");
    uint64_t back[2] = {};
    require(::pread(number, back, sizeof back, 0) == sizeof back, "pread");
    require(std::memcmp(back, "8 bytes.", 8) == 0 && back[1] == 7, "the file has all");
    require(::close(number) == 0 && ::unlink("fds") == 0, "close, unlink");
  }
  std::printf("standard output is seen\n");
}

}  // namespace

int main(int count, char** arguments) {
  const uint64_t bytes = begin(count, arguments);
  // What was inherited is not ours to count.
  for (int i = 3; i < 256; ++i) ::close(i);
  expect_number(::open("/dev/null", O_RDONLY), 3, "open");
  expect_number(make_file("fds", bytes, 1), 4, "open of the file");
  uint64_t* words = map(4, bytes, PROT_READ | PROT_WRITE);
  require(is_filled(words, bytes / 8, 1), "the mapping shows the file");
  expect_number(::open("fds", O_RDONLY), 5, "open after mmap");
  uint64_t* again = map(5, bytes, PROT_READ);
  expect_number(::dup(4), 6, "dup");
  require(again[7] == word_at(1, 7), "the second mapping shows the file");
  ::close(3);
  ::close(4);
  expect_number(::open("/dev/null", O_RDONLY), 3, "open after close");
  int ends[2];
  require(::pipe(ends) == 0, "pipe");
  expect_number(ends[0], 4, "pipe");
  expect_number(ends[1], 7, "pipe");
  expect_number(::fcntl(3, F_DUPFD, 100), 100, "F_DUPFD");
  require(::dup2(3, 50) == 50, "dup2");
  // A closed number is closed, whoever asks.
  for (int i = 3; i < 1024; ++i) ::close(i);
  for (int i = 3; i < 1024; ++i)
    require(::fcntl(i, F_GETFD) == -1 && errno == EBADF, "a closed descriptor is closed");
  std::printf("closed 3 to 1023\n");
  require(is_filled(words, bytes / 8, 1), "the mapping lives without descriptors");
  fill(words, bytes / 8, 2);
  require(is_filled(again, bytes / 8, 2), "the other mapping shows what was written");
  require(::munmap(words, bytes) == 0 && ::munmap(again, bytes) == 0, "munmap");
  expect_number(::open("fds", O_RDONLY), 3, "open after all");
  uint64_t back[512];
  for (uint64_t at = 0; at < bytes; at += sizeof back) {
    require(::pread(3, back, sizeof back, static_cast<off_t>(at)) == sizeof back, "pread");
    require(is_filled(back, 512, 2, at / 8), "the file has what was written");
  }
  std::printf("the file has what was written\n");
  // The space of what was removed is free with its last descriptor, however that is closed.
  constexpr void (*kWays[])() = {[] { ::close(3); }, [] { ::closefrom(3); },
                                 [] { ::close_range(3, ~0u, 0); }};
  for (const auto close_all : kWays) {
    close_all();
    ::unlink("fds");
    expect_number(make_file("fds", bytes, 3), 3, "open of another");
    words = map(3, bytes, PROT_READ | PROT_WRITE);
    fill(words, bytes / 8, 4);
    require(::munmap(words, bytes) == 0 && ::unlink("fds") == 0, "munmap, unlink");
    require(has_removed(), "it is there as long as it is open");
    close_all();
    require(!has_removed(), "nobody has it open");
  }
  locks_stay(bytes);
  standard_output_is_seen(bytes);
  return 0;
}
