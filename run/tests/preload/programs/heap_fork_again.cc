// heap_fork_again FOLDER : forks of forked children, and many forks, with large allocations: a
// grandchild has the bytes of its parent, and nothing of a fork that is over writes to memory.
#include <initializer_list>

#include "program.h"

using namespace program;

namespace {

constexpr uint64_t kBytes = 2 << 20, kWords = kBytes / 8;

uint64_t* allocate(uint64_t seed) {
  auto* words = static_cast<uint64_t*>(std::malloc(kBytes));
  require(words != nullptr, "malloc");
  fill(words, kWords, seed);
  return words;
}

// Forks `depth` generations, each of which writes a part of its own before it forks.
[[noreturn]] void be_child(uint64_t* words, uint64_t depth, bool has_touched) {
  if (has_touched) words[depth] = depth;
  if (depth > 1) {
    const pid_t child = ::fork();
    if (child == 0) be_child(words, depth - 1, has_touched);
    require(code_of(child) == 0, "a grandchild ended well");
  }
  for (uint64_t i = 8; i < kWords; ++i) require(words[i] == word_at(1, i), "bytes of the parent");
  for (uint64_t i = depth; has_touched && i <= 4; ++i) require(words[i] == i, "of the child");
  ::_exit(0);
}

void test_generations() {
  for (const bool has_touched : {true, false}) {
    uint64_t* words = allocate(1);
    const pid_t child = ::fork();
    if (child == 0) be_child(words, 4, has_touched);
    require(code_of(child) == 0, "the child ended well");
    require(is_filled(words, kWords, 1), "the parent's own bytes");
    std::free(words);
    std::printf("generations: right\n");
  }
}

// After each fork pages are mapped, where what belonged to it may have been.
void test_many_forks() {
  constexpr unsigned kRounds = 8, kPages = 16;
  uint64_t* words = allocate(2);
  uint64_t* pages[kRounds][kPages];
  for (unsigned round = 0; round < kRounds; ++round) {
    const pid_t child = ::fork();
    if (child == 0) ::_exit(0);
    require(code_of(child) == 0, "a child that touched nothing");
    for (uint64_t*& page : pages[round]) {
      page = map(-1, kPageBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS);
      fill(page, kPageBytes / 8, 3);
    }
  }
  for (const auto& of_round : pages)
    for (const uint64_t* page : of_round)
      require(is_filled(page, kPageBytes / 8, 3), "pages mapped after a fork");
  require(is_filled(words, kWords, 2), "what was allocated before");
  std::free(words);
  std::printf("many forks: right\n");
}

}  // namespace

int main(int argc, char** argv) {
  begin(argc, argv);
  test_generations();
  test_many_forks();
  return 0;
}
