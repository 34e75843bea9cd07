// grow_reopened FOLDER : a file is mapped by a descriptor for reading, then also by one for
// writing, and becomes longer: both mappings show what came to it.
#include <initializer_list>

#include "program.h"

using namespace program;

int main(int count, char** arguments) {
  begin(count, arguments);
  constexpr uint64_t kBytes = 4 * kPageBytes, kPageWords = kPageBytes / 8;
  ::close(make_file("short", kPageBytes, 1));
  const int reader = ::open("short", O_RDONLY);
  const uint64_t* first = map(reader, kBytes, PROT_READ);
  require(is_filled(first, kPageWords, 1), "the page that is there");
  const int writer = ::open("short", O_RDWR);
  const uint64_t* second = map(writer, kBytes, PROT_READ);
  uint64_t words[3 * kPageWords];
  fill(words, 3 * kPageWords, 2);
  require(::pwrite(writer, words, sizeof words, kPageBytes) == sizeof words, "pwrite");
  for (const uint64_t* words_mapped : {first, second}) {
    require(is_filled(words_mapped, kPageWords, 1), "what was there");
    require(is_filled(words_mapped + kPageWords, 3 * kPageWords, 2), "what came to it");
  }
  std::puts("right");
  return 0;
}
