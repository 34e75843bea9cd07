#include "stage.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <ctime>

namespace storm {

Stage* stage = nullptr;

namespace {

constexpr uint64_t kAddress = 0x2000'0000'0000;
constexpr uint64_t kHeaderBytes = (sizeof(Stage) + kPageBytes - 1) / kPageBytes * kPageBytes;
constexpr uint64_t kBytes = kHeaderBytes + kFilesMax * kFileBytesMax;
int number_of_stage = -1;

void map_stage(int number) {
  const long at = ::syscall(SYS_mmap, kAddress, kBytes, PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_FIXED_NOREPLACE, number, 0L);
  if (at != static_cast<long>(kAddress)) {
    std::fprintf(stderr, "storm: the stage cannot be mapped at its address\n");
    ::_exit(3);
  }
  stage = reinterpret_cast<Stage*>(at);
}

}  // namespace

void make_stage() {
  number_of_stage = static_cast<int>(::syscall(SYS_memfd_create, "storm", 1U));  // close on exec
  if (number_of_stage < 0 ||
      ::syscall(SYS_ftruncate, number_of_stage, static_cast<long>(kBytes)) != 0) {
    std::fprintf(stderr, "storm: no memory for the stage\n");
    ::_exit(3);
  }
  // Out of the reach of what the steps close and replace.
  const long high = ::syscall(SYS_fcntl, number_of_stage, F_DUPFD_CLOEXEC, 900);
  ::syscall(SYS_close, number_of_stage);
  number_of_stage = static_cast<int>(high);
  map_stage(number_of_stage);
}

void open_stage(pid_t conductor, int number) {
  char path[64];
  std::snprintf(path, sizeof path, "/proc/%d/fd/%d", conductor, number);
  const long opened = ::syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC, 0);
  if (opened < 0) {
    std::fprintf(stderr, "storm: the stage cannot be opened: the conductor has ended\n");
    ::_exit(3);
  }
  number_of_stage = number;
  map_stage(static_cast<int>(opened));
  ::syscall(SYS_close, opened);
}

int stage_number() { return number_of_stage; }

uint8_t* bytes_of(unsigned file) {
  return reinterpret_cast<uint8_t*>(kAddress + kHeaderBytes + file * kFileBytesMax);
}

void write_model(unsigned file, uint64_t at, const uint8_t* from, uint64_t count) {
  if (count == 0) return;
  std::memcpy(bytes_of(file) + at, from, count);
  // Writers of ranges within the file come at the same time: they must not write the size.
  if (at + count > stage->file[file].size) stage->file[file].size = at + count;
}

void zero_model(unsigned file, uint64_t at, uint64_t count) {
  const uint64_t size = stage->file[file].size;
  if (at >= size) return;
  std::memset(bytes_of(file) + at, 0, count < size - at ? count : size - at);
}

void resize_model(unsigned file, uint64_t size) {
  File& f = stage->file[file];
  if (size < f.size) {
    std::memset(bytes_of(file) + size, 0, f.size - size);
    f.shrunk_to[f.shrinks % kShrinksMax] =
        static_cast<uint32_t>((size + kPageBytes - 1) / kPageBytes);
    ++f.shrinks;
  }
  f.size = size;
}

void path_of(unsigned file, char (&path)[16]) { std::snprintf(path, sizeof path, "./f%u", file); }

uint8_t* allocate_raw(uint64_t count) {
  const long at = ::syscall(SYS_mmap, nullptr, count, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1L, 0L);
  if (at == -1) {
    std::fprintf(stderr, "storm: no memory for the model\n");
    ::_exit(3);
  }
  return reinterpret_cast<uint8_t*>(at);
}

void sleep_on(std::atomic<uint32_t>& word, uint32_t value) {
  const timespec second = {1, 0};
  ::syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), FUTEX_WAIT, value, &second, nullptr, 0);
}

void wake(std::atomic<uint32_t>& word) {
  ::syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), FUTEX_WAKE, INT32_MAX, nullptr, nullptr,
            0);
}

bool has_ended(const Process& process) {
  char text[256];
  std::snprintf(text, sizeof text, "/proc/%d/stat", process.pid);
  const long number = ::syscall(SYS_openat, AT_FDCWD, text, O_RDONLY | O_CLOEXEC, 0);
  if (number < 0) return true;
  const long count = ::syscall(SYS_read, number, text, sizeof text - 1);
  ::syscall(SYS_close, number);
  if (count <= 0) return true;
  text[count] = 0;
  const char* end_of_name = std::strrchr(text, ')');
  return end_of_name == nullptr || end_of_name[2] == 'Z' || end_of_name[2] == 'X';
}

}  // namespace storm
