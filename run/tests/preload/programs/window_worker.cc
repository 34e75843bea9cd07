// window_worker DIR [CASE]: programs that are started as workers, and told the address of a mapping
// that their parent has: they map the file there, or name the address where they have nothing.
#include "window_cases.h"

using namespace program;

namespace {

// The program once more, as a worker that is told where its parent's mapping lies.
void run_worker(const char* task) {
  const Mapped file = map_new_file();
  char place[32];
  std::snprintf(place, sizeof place, "%lx", reinterpret_cast<unsigned long>(file.m));
  require(*file.at(kC) == (word_at(1, kC / 8) & 0xff), "a page");
  const pid_t child = ::fork();
  if (child == 0) {
    ::execl("/proc/self/exe", "window_worker", ".", task, place, nullptr);
    ::_exit(9);
  }
  const int code = code_of(child);
  if (code != 0) fail("the worker ended with %d", code);
  require_works(file);
}

// The rest is the parent's to look at.
void map_at(void* place) {
  const int number = ::open(kFile, O_RDWR);
  require(number >= 0, "the worker opens the file");
  void* const p =
      ::mmap(place, kMappedBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, number, 0);
  require(p == place, "the worker maps where its parent does");
  const Mapped mapped{number, static_cast<unsigned char*>(p)};
  require(is_filled(mapped.words(), kMappedBytes / 8, 1), "the worker's mapping shows the file");
  require(::munmap(p, kMappedBytes) == 0, "munmap");
}

void name_only(void* place) {
  unsigned char states[kMappedBytes / kPageBytes];
  errno = 0;
  require(::msync(place, kMappedBytes, MS_SYNC) == -1 && errno == ENOMEM, "msync of nothing");
  errno = 0;
  require(::madvise(place, kMappedBytes, MADV_WILLNEED) == -1 && errno == ENOMEM,
          "madvise of nothing");
  errno = 0;
  require(::mprotect(place, kMappedBytes, PROT_READ) == -1 && errno == ENOMEM,
          "mprotect of nothing");
  errno = 0;
  require(::mincore(place, kMappedBytes, states) == -1 && errno == ENOMEM, "mincore of nothing");
  require(::munmap(place, kMappedBytes) == 0, "munmap of nothing");
  errno = 0;
  require(::uname(static_cast<utsname*>(place)) == -1 && errno == EFAULT, "uname into nothing");
}

const Case kCases[] = {
    {"mapped", [] { run_worker("map"); }},
    {"named", [] { run_worker("name"); }},
};

}  // namespace

int main(int count, char** arguments) {
  if (count < 4) return run_cases(count, arguments, kCases);
  void* const place = reinterpret_cast<void*>(std::strtoul(arguments[3], nullptr, 16));
  if (std::strcmp(arguments[2], "map") == 0)
    map_at(place);
  else
    name_only(place);
  return 0;
}
