// file_times DIR [BYTES [bare]]: times that a program sets after it has written through a mapping
// stay as it has set them, whatever call it sets them by. bare: no arguments of a call are mapped.
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <utime.h>

#include <functional>

#include "program.h"

using namespace program;

namespace {

constexpr long kSeconds = 1000000000;
uint64_t bytes = 0;
int folder = -1;

// A file `file`, written through a mapping.
struct Scene {
  int number = -1;
  uint64_t* words = nullptr;
};
using Call = std::function<long(const Scene&)>;

const timespec kTimes[2] = {{kSeconds, 0}, {kSeconds, 0}};
const timeval kOldTimes[2] = {{kSeconds, 0}, {kSeconds, 0}};
const utimbuf kOldestTimes = {kSeconds, kSeconds};

long time_of(const char* path) {
  struct stat about;
  require(::lstat(path, &about) == 0, "lstat");
  return about.st_mtime;
}

Scene written(uint64_t seed) {
  Scene scene;
  scene.number = make_file("file", bytes, seed);
  scene.words = map(scene.number, bytes, PROT_READ | PROT_WRITE);
  fill(scene.words, bytes / 8, seed + 1);
  return scene;
}

// The mapping is read once more, so that what was written leaves, and ends.
void expect_kept(const char* what, const Call& call) {
  static uint64_t seed = 100;
  const Scene scene = written(++seed);
  if (call(scene) != 0) fail("%s", what);
  if (time_of("file") != kSeconds) fail("%s sets the time", what);
  require(is_filled(scene.words, bytes / 8, seed + 1), "the mapping shows what was written");
  if (time_of("file") != kSeconds) fail("%s: the time changes while the mapping is read", what);
  require(::munmap(scene.words, bytes) == 0, "munmap");
  ::close(scene.number);
  if (time_of("file") != kSeconds) fail("%s: the time changes when the mapping ends", what);
  std::printf("%s is kept\n", what);
}

void calls_by_descriptor() {
  expect_kept("futimens", [](const Scene& s) { return ::futimens(s.number, kTimes); });
  expect_kept("futimes", [](const Scene& s) { return ::futimes(s.number, kOldTimes); });
  expect_kept("futimens of another descriptor", [](const Scene&) {
    const int other = ::open("file", O_RDONLY);
    const int result = ::futimens(other, kTimes);
    ::close(other);
    return result;
  });
  expect_kept("futimesat without a path",
              [](const Scene& s) { return ::futimesat(s.number, nullptr, kOldTimes); });
  expect_kept("utimensat of the empty path",
              [](const Scene& s) { return ::utimensat(s.number, "", kTimes, AT_EMPTY_PATH); });
}

void calls_by_path() {
  expect_kept("utime", [](const Scene&) { return ::utime("file", &kOldestTimes); });
  expect_kept("utimes", [](const Scene&) { return ::utimes("file", kOldTimes); });
  expect_kept("lutimes", [](const Scene&) { return ::lutimes("file", kOldTimes); });
  expect_kept("futimesat", [](const Scene&) { return ::futimesat(folder, "file", kOldTimes); });
  expect_kept("utimensat", [](const Scene&) { return ::utimensat(AT_FDCWD, "file", kTimes, 0); });
  expect_kept("utimensat in a folder",
              [](const Scene&) { return ::utimensat(folder, "file", kTimes, 0); });
  expect_kept("utimensat that follows no link", [](const Scene&) {
    return ::utimensat(folder, "file", kTimes, AT_SYMLINK_NOFOLLOW);
  });
  expect_kept("utimensat through a link",
              [](const Scene&) { return ::utimensat(folder, "link", kTimes, 0); });
}

void calls_by_number() {
  expect_kept("utime by number",
              [](const Scene&) { return ::syscall(SYS_utime, "file", &kOldestTimes); });
  expect_kept("utimes by number",
              [](const Scene&) { return ::syscall(SYS_utimes, "file", kOldTimes); });
  expect_kept("futimesat by number",
              [](const Scene&) { return ::syscall(SYS_futimesat, folder, "file", kOldTimes); });
  expect_kept("utimensat by number",
              [](const Scene&) { return ::syscall(SYS_utimensat, folder, "file", kTimes, 0); });
  expect_kept("utimensat by number, of a descriptor", [](const Scene& s) {
    return ::syscall(SYS_utimensat, s.number, nullptr, kTimes, 0);
  });
}

// The path and the times lie in a mapping themselves.
void arguments_in_a_mapping() {
  const int number = make_file("arguments", bytes, 7);
  struct Arguments {
    timespec times[2];
    char path[8];
  };
  auto* const there = reinterpret_cast<Arguments*>(map(number, bytes, PROT_READ | PROT_WRITE));
  std::memcpy(there->times, kTimes, sizeof kTimes);
  std::memcpy(there->path, "file", sizeof "file");
  expect_kept("utimensat with mapped arguments",
              [&](const Scene&) { return ::utimensat(AT_FDCWD, there->path, there->times, 0); });
  ::munmap(there, bytes);
  ::close(number);
}

void calls_of_children() {
  const auto in_a_child = [](const Call& call) {
    return [call](const Scene& s) -> long {
      const pid_t child = ::fork();
      if (child == 0) ::_exit(call(s) == 0 ? 0 : 1);
      return code_of(child);
    };
  };
  expect_kept("futimens of a child",
              in_a_child([](const Scene& s) { return ::futimens(s.number, kTimes); }));
  expect_kept("utimes of a child",
              in_a_child([](const Scene&) { return ::utimes("file", kOldTimes); }));
  expect_kept("utimensat of a child that shares the memory", [](const Scene&) -> long {
    const pid_t child = ::vfork();
    if (child == 0) ::_exit(::utimensat(AT_FDCWD, "file", kTimes, 0) == 0 ? 0 : 1);
    return code_of(child);
  });
}

// A link has times of its own, and errors are the kernel's.
void others_are_as_ever() {
  const Scene scene = written(900);
  require(::utimensat(AT_FDCWD, "link", kTimes, AT_SYMLINK_NOFOLLOW) == 0, "utimensat of a link");
  require(time_of("link") == kSeconds && time_of("file") != kSeconds, "only the link's changes");
  const auto tell = [](const char* what, long result) {
    std::printf("%s: %ld %s\n", what, result, result == 0 ? "" : std::strerror(errno));
  };
  tell("no such file", ::utimes("nowhere", kOldTimes));
  tell("no such descriptor", ::futimens(999, kTimes));
  tell("no path", ::syscall(SYS_utimensat, AT_FDCWD, nullptr, kTimes, 0));
  const timespec wrong[2] = {{0, -1}, {0, -1}};
  tell("no time", ::futimens(scene.number, wrong));
  require(::futimens(scene.number, nullptr) == 0 && time_of("file") > kSeconds, "the present time");
  ::munmap(scene.words, bytes);
  ::close(scene.number);
}

}  // namespace

int main(int count, char** arguments) {
  bytes = begin(count, arguments);
  folder = ::open(".", O_RDONLY | O_DIRECTORY);
  require(folder >= 0 && ::symlink("file", "link") == 0, "symlink");
  calls_by_descriptor();
  calls_by_path();
  calls_by_number();
  if (count < 4) arguments_in_a_mapping();
  calls_of_children();
  others_are_as_ever();
  return 0;
}
