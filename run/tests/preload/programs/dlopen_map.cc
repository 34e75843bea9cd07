// dlopen_map DIR [BYTES]: a library loaded at run time reads mapped memory; and mmap, called
// through a pointer that dlsym found, is mmap. (By the C library's own handle it is one that nobody
// can take over.)
#include <dlfcn.h>

#include "program.h"

using namespace program;

namespace {

using Mmap = void*(void*, size_t, int, int, int, off_t);
using Munmap = int(void*, size_t);
using Msync = int(void*, size_t, int);
using Pwrite = ssize_t(int, const void*, size_t, off_t);
using Crc = unsigned long(unsigned long, const unsigned char*, unsigned);

template <typename F>
F* find(void* where, const char* name) {
  auto* f = reinterpret_cast<F*>(::dlsym(where, name));
  if (f == nullptr) fail("dlsym finds no %s", name);
  return f;
}

// What zlib's crc32 gives, bit by bit.
unsigned long crc_of(const unsigned char* bytes, uint64_t count) {
  uint32_t crc = ~0u;
  for (uint64_t i = 0; i < count; ++i) {
    crc ^= bytes[i];
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0xedb88320u : 0);
  }
  return ~crc;
}

void use(void* where, const char* mmap_name, int number, uint64_t bytes, uint64_t seed) {
  auto* mmap_found = find<Mmap>(where, mmap_name);
  void* at = mmap_found(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, number, 0);
  require(at != MAP_FAILED, "mmap through a pointer");
  auto* words = static_cast<uint64_t*>(at);
  require(is_filled(words, bytes / 8, seed), "the mapping shows the file");
  fill(words, bytes / 8, seed + 1);
  const uint64_t word = word_at(seed + 1, 5);
  uint64_t back = ~word;
  require(find<Msync>(where, "msync")(at, bytes, MS_SYNC) == 0, "msync through a pointer");
  require(::pread(number, &back, 8, 40) == 8 && back == word, "the file shows the mapping");
  back = 77;
  require(find<Pwrite>(where, "pwrite")(number, &back, 8, 8000) == 8, "pwrite through a pointer");
  require(words[1000] == 77, "the mapping shows what was written");
  words[1000] = word_at(seed + 1, 1000);
  require(find<Munmap>(where, "munmap")(at, bytes) == 0, "munmap through a pointer");
  require(::pread(number, &back, 8, 8000) == 8 && back == word_at(seed + 1, 1000), "it is kept");
  std::printf("%s\n", mmap_name);
}

}  // namespace

int main(int count, char** arguments) {
  const uint64_t bytes = begin(count, arguments);
  const int number = make_file("dlopen_map", bytes, 1);
  uint64_t* words = map(number, bytes, PROT_READ);
  require(is_filled(words, bytes / 16, 1), "the mapping shows the file");
  void* zlib = ::dlopen("libz.so.1", RTLD_NOW);
  if (zlib != nullptr) {
    auto* bytes_of_map = reinterpret_cast<const unsigned char*>(words);
    const unsigned long crc = find<Crc>(zlib, "crc32")(0, bytes_of_map, bytes);
    require(crc == crc_of(bytes_of_map, bytes), "the library reads the mapping");
  }
  require(is_filled(words, bytes / 8, 1), "the mapping is as it was");
  use(RTLD_DEFAULT, "mmap", number, bytes, 1);
  use(RTLD_DEFAULT, "mmap64", number, bytes, 2);
  require(is_filled(words, bytes / 8, 3), "the first mapping shows what the others wrote");
  require(::munmap(words, bytes) == 0, "munmap");
  if (zlib != nullptr) ::dlclose(zlib);
  std::printf("all is as it must be\n");
  return 0;
}
