// neighbour: takes memory and gives it back as it is told, a line each on standard input: "take
// BYTES", "give" (all of it). It answers each with the bytes that it has.
#include <new>

#include "program.h"

using namespace program;

namespace {

struct Taken {
  Taken* before;
  uint64_t bytes;
};

}  // namespace

int main() {
  std::setvbuf(stdout, nullptr, _IONBF, 0);
  Taken* last = nullptr;
  uint64_t all = 0;
  char line[64];
  while (std::fgets(line, sizeof line, stdin) != nullptr) {
    if (std::strncmp(line, "take ", 5) == 0) {
      const uint64_t bytes = std::strtoull(line + 5, nullptr, 10) / kPageBytes * kPageBytes;
      require(bytes != 0, "a size");
      void* const at = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
      require(at != MAP_FAILED, "mmap");
      last = new (at) Taken{last, bytes};
      all += bytes;
    } else {
      require(std::strncmp(line, "give", 4) == 0, "take or give");
      while (last != nullptr) {
        const Taken taken = *last;
        require(::munmap(last, taken.bytes) == 0, "munmap");
        all -= taken.bytes;
        last = taken.before;
      }
    }
    std::printf("%llu\n", static_cast<unsigned long long>(all));
  }
  return 0;
}
