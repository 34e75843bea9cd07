// rewriting DIR BYTES: writes a mapped file from end to end and says so; then looks at each word
// and writes another in its place, round after round, until there is a file "stop". At last it
// compares all of them once more, in its memory and in the file.
#include "program.h"

using namespace program;

namespace {

// What a read of the file gives, as another process would have it.
void require_file(int number, uint64_t bytes, uint64_t round) {
  uint64_t words[kPageBytes / 8];
  for (uint64_t at = 0; at < bytes; at += kPageBytes) {
    if (::pread(number, words, kPageBytes, static_cast<off_t>(at)) != kPageBytes)
      fail("cannot read at %llu", static_cast<unsigned long long>(at));
    if (!is_filled(words, kPageBytes / 8, round, at / 8))
      fail("the file has other bytes at %llu", static_cast<unsigned long long>(at));
  }
}

}  // namespace

int main(int count, char** arguments) {
  const uint64_t bytes = begin(count, arguments), words_count = bytes / 8;
  const int number = ::open("rewriting", O_RDWR | O_CREAT | O_TRUNC, 0600);
  require(number >= 0 && ::ftruncate(number, static_cast<off_t>(bytes)) == 0, "ftruncate");
  uint64_t* const words = map(number, bytes, PROT_READ | PROT_WRITE);
  uint64_t round = 1;
  fill(words, words_count, round);
  std::printf("written\n");
  for (; ::access("stop", F_OK) != 0; ++round) {
    for (uint64_t i = 0; i < words_count; ++i) {
      if (words[i] != word_at(round, i))
        fail("round %llu: another word at %llu", static_cast<unsigned long long>(round),
             static_cast<unsigned long long>(8 * i));
      words[i] = word_at(round + 1, i);
    }
  }
  require(is_filled(words, words_count, round), "all of it is there");
  require(::msync(words, bytes, MS_SYNC) == 0, "msync");
  require_file(number, bytes, round);
  std::printf("%llu rounds, and all of it is there\n", static_cast<unsigned long long>(round));
  return 0;
}
