// second_opener DIR [BYTES]: a file is mapped and written; then other processes open it by
// themselves (cat, and one that stays) and see what was written before, and what is written later,
// by read and by a mapping of their own; and the first sees what they write.
#include "program.h"

using namespace program;

namespace {

char self[] = "/proc/self/exe";
char word[] = "--other";
char path[] = "./second_opener";

// What the other is asked: a kind, a word's index, and a value to write.
struct Question {
  char kind;  // r: pread, m: by mapping, w: pwrite, s: store by mapping, e: end
  uint64_t index;
  uint64_t value;
};

// The other process: answers questions from its standard input with one word each.
int be_other() {
  const int number = ::open(path, O_RDWR);
  const off_t bytes = ::lseek(number, 0, SEEK_END);
  require(bytes > 0, "the other finds the file");
  volatile uint64_t* words = nullptr;
  Question q;
  while (::read(0, &q, sizeof q) == sizeof q && q.kind != 'e') {
    const auto at = static_cast<off_t>(q.index * 8);
    uint64_t answer = q.value;
    if (words == nullptr && (q.kind == 'm' || q.kind == 's'))
      words = map(number, static_cast<uint64_t>(bytes), PROT_READ | PROT_WRITE);
    if (q.kind == 'r') require(::pread(number, &answer, 8, at) == 8, "pread of the other");
    if (q.kind == 'w') require(::pwrite(number, &q.value, 8, at) == 8, "pwrite of the other");
    if (q.kind == 'm') answer = words[q.index];
    if (q.kind == 's') words[q.index] = q.value;
    require(::write(1, &answer, 8) == 8, "answer of the other");
  }
  return 0;
}

struct Other {
  pid_t child;
  int to, from;

  uint64_t ask(char kind, uint64_t index, uint64_t value = 0) const {
    Question q = {};
    q.kind = kind, q.index = index, q.value = value;
    uint64_t answer = 0;
    require(::write(to, &q, sizeof q) == sizeof q, "ask");
    require(::read(from, &answer, 8) == 8, "the other answers");
    return answer;
  }
};

Other start(char* const* arguments) {
  int in[2], out[2];
  require(::pipe2(in, O_CLOEXEC) == 0 && ::pipe2(out, O_CLOEXEC) == 0, "pipe");
  const pid_t child = ::fork();
  if (child == 0) {
    ::dup2(in[0], 0);
    ::dup2(out[1], 1);
    ::execvp(arguments[0], arguments);
    ::_exit(99);
  }
  require(child > 0, "fork");
  ::close(in[0]);
  ::close(out[1]);
  return {child, in[1], out[0]};
}

void expect_cat(uint64_t bytes, uint64_t seed) {
  char cat[] = "cat";
  char* arguments[] = {cat, path, nullptr};
  const Other other = start(arguments);
  uint64_t at = 0;
  uint64_t words[512];
  auto* buffer = reinterpret_cast<char*>(words);
  for (uint64_t have = 0;;) {
    const ssize_t n = ::read(other.from, buffer + have, sizeof words - have);
    require(n >= 0, "read from cat");
    if (n == 0) break;
    have += static_cast<uint64_t>(n);
    if (have < sizeof words) continue;
    require(is_filled(words, 512, seed, at / 8), "cat shows what was written");
    at += have;
    have = 0;
  }
  require(at == bytes, "cat shows all of it");
  require(code_of(other.child) == 0, "cat ends well");
  ::close(other.to);
  ::close(other.from);
  std::printf("cat shows version %lu\n", seed);
}

}  // namespace

int main(int count, char** arguments) {
  if (count == 2 && std::strcmp(arguments[1], word) == 0) return be_other();
  const uint64_t bytes = begin(count, arguments), all = bytes / 8;
  const int number = make_file(path, bytes, 1);
  uint64_t* words = map(number, bytes, PROT_READ | PROT_WRITE);
  require(is_filled(words, all, 1), "the mapping shows the file");
  fill(words, all, 2);
  expect_cat(bytes, 2);
  fill(words, all, 3);
  expect_cat(bytes, 3);
  char* const other_arguments[] = {self, word, nullptr};
  const Other other = start(other_arguments);
  require(other.ask('r', 9) == word_at(3, 9), "the other reads what was written before");
  std::printf("another process reads\n");
  const char kinds[] = {'r', 'm'}, writing[] = {'w', 's'};
  for (uint64_t i = 0; i < 200; ++i) {
    const uint64_t index = word_at(7, i) % all, value = word_at(8, i);
    const char how = kinds[i >= 100 ? i % 2 : 0];
    *static_cast<volatile uint64_t*>(words + index) = value;
    require(other.ask(how, index) == value, "the other sees what is written later");
    other.ask(writing[i >= 100 ? i % 2 : 0], index, ~value);
    require(*static_cast<volatile uint64_t*>(words + index) == ~value, "what it writes is seen");
  }
  std::printf("and what is written later, either way\n");
  const Question last = {'e', 0, 0};
  require(::write(other.to, &last, sizeof last) == sizeof last, "ask");
  require(code_of(other.child) == 0, "the other ends well");
  fill(words, all, 4);
  require(::munmap(words, bytes) == 0, "munmap");
  expect_cat(bytes, 4);
  return 0;
}
