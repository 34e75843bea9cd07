// written_by_calls DIR [BYTES [mapped]]: a database that maps its file for reading, and writes
// pages of it by calls, anywhere. What is read through the mapping is what was written last, at
// each moment; at the end in the file, too, unless it is to be looked at as it is mapped alone.
// Half of it through another mapping.
#include <vector>

#include "program.h"

using namespace program;

int main(int count, char** arguments) {
  const uint64_t bytes = begin(count, arguments), pages = bytes / kPageBytes;
  constexpr uint64_t kWordsAPage = kPageBytes / 8, kTurns = 20000;
  const int number = make_file("written", bytes, 1);
  uint64_t* words = map(number, bytes, PROT_READ);
  std::vector<uint64_t> round(pages, 1);
  uint64_t page_words[kWordsAPage], chance = 1;
  const auto require_page = [&](const uint64_t* there, uint64_t page) {
    if (!is_filled(there, kWordsAPage, round[page], page * kWordsAPage))
      fail("page %lu is not as it was written last", page);
  };
  for (uint64_t turn = 0; turn < kTurns; ++turn) {
    if (turn == kTurns / 2) {
      require(::munmap(words, bytes) == 0, "munmap");
      words = map(number, bytes, PROT_READ);
    }
    chance = word_at(chance, turn);
    const uint64_t read = chance % pages, written = (chance >> 32) % pages;
    require_page(words + read * kWordsAPage, read);
    fill(page_words, kWordsAPage, ++round[written], written * kWordsAPage);
    require(::pwrite(number, page_words, kPageBytes, static_cast<off_t>(written * kPageBytes)) ==
                static_cast<ssize_t>(kPageBytes),
            "pwrite");
    if (turn % 2 == 0) require_page(words + written * kWordsAPage, written);
  }
  for (uint64_t page = 0; page < pages; ++page) {
    require_page(words + page * kWordsAPage, page);
    if (count > 3) continue;
    require(::pread(number, page_words, kPageBytes, static_cast<off_t>(page * kPageBytes)) ==
                static_cast<ssize_t>(kPageBytes),
            "pread");
    require_page(page_words, page);
  }
  std::printf("right\n");
  return 0;
}
