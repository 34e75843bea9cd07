// mapped_again FOLDER [BYTES [read]]: a file is mapped, read and unmapped again and again, while it
// is changed in between: by calls, by others, by children; becomes longer and shorter; is replaced
// and removed. Each mapping shows what the file has. With `read` it is only read, eight times.

#include "program.h"

using namespace program;

namespace {

void read_again(int number, uint64_t bytes, uint64_t seed, int times) {
  for (int i = 0; i < times; ++i) {
    uint64_t* const words = map(number, bytes, PROT_READ);
    require(is_filled(words, bytes / 8, seed), "what is mapped again");
    require(::munmap(words, bytes) == 0, "munmap");
  }
}

void read_again(const char* path, uint64_t bytes, uint64_t seed, int times) {
  for (int i = 0; i < times; ++i) {
    const int number = ::open(path, O_RDONLY | O_CLOEXEC);
    require(number >= 0, "open");
    uint64_t* const words = map(number, bytes, PROT_READ);
    ::close(number);
    require(is_filled(words, bytes / 8, seed), "what is opened and mapped again");
    require(::munmap(words, bytes) == 0, "munmap");
  }
}

// A process that had nothing to do with the file so far.
void change_by_another(const char* path, uint64_t bytes, uint64_t seed) {
  const pid_t child = ::fork();
  if (child == 0) {
    const int number = ::open(path, O_RDWR);
    if (number < 0) ::_exit(1);
    uint64_t words[kPageBytes / 8];
    for (uint64_t at = 0; at < bytes; at += kPageBytes) {
      fill(words, kPageBytes / 8, seed, at / 8);
      if (::pwrite(number, words, kPageBytes, static_cast<off_t>(at)) != kPageBytes) ::_exit(2);
    }
    ::_exit(0);
  }
  require(code_of(child) == 0, "another process changes it");
}

// As a data loader does, which opens and maps its file for each batch.
void test_reading(uint64_t bytes) {
  ::close(make_file("read", bytes, 1));
  read_again("read", bytes, 1, 4);
  change_by_another("read", bytes, 2);
  read_again("read", bytes, 2, 4);
  const int number = ::open("read", O_RDWR);
  uint64_t word = 7;
  for (int i = 0; i < 200; ++i, ++word) {
    require(::pwrite(number, &word, 8, 8 * kPageBytes) == 8, "pwrite");
    const uint64_t* const words = map(number, bytes, PROT_READ);
    require(words[kPageBytes] == word && words[0] == word_at(2, 0), "what was written by a call");
    require(::munmap(const_cast<uint64_t*>(words), bytes) == 0, "munmap");
  }
  word = word_at(2, kPageBytes);
  require(::pwrite(number, &word, 8, 8 * kPageBytes) == 8, "pwrite");
  ::close(number);
  read_again("read", bytes, 2, 3);
}

// As gdbm does: the file grows by calls, and is mapped anew, for writing.
void test_growing(uint64_t bytes) {
  const int number = make_file("grown", kPageBytes, 3);
  uint64_t page[kPageBytes / 8];
  for (uint64_t size = kPageBytes; size < bytes; size += kPageBytes) {
    uint64_t* const words = map(number, size, PROT_READ | PROT_WRITE);
    require(words[size / 8 - 1] == word_at(3, size / 8 - 1), "the last page");
    words[size / 8 - 1] = words[0] = size;
    require(::munmap(words, size) == 0, "munmap");
    uint64_t written = 0;
    require(::pread(number, &written, 8, 0) == 8 && written == size, "read by a call");
    fill(page, kPageBytes / 8, 3, size / 8);
    require(::pwrite(number, page, kPageBytes, static_cast<off_t>(size)) == kPageBytes, "grow");
  }
  uint64_t* const all = map(number, bytes, PROT_READ);
  for (uint64_t size = kPageBytes; size < bytes; size += kPageBytes)
    require(all[size / 8 - 1] == size, "what was written in each round");
  require(::munmap(all, bytes) == 0, "munmap");
  // A child that has the descriptor writes by it, and by a mapping.
  const pid_t child = ::fork();
  if (child == 0) {
    uint64_t* const words = map(number, bytes, PROT_READ | PROT_WRITE);
    words[1] = 11;
    const uint64_t word = 12;
    ::_exit(::pwrite(number, &word, 8, 16) == 8 ? 0 : 1);
  }
  require(code_of(child) == 0, "the child");
  const uint64_t* const last = map(number, bytes, PROT_READ);
  require(last[1] == 11 && last[2] == 12, "what the child has written");
  require(::munmap(const_cast<uint64_t*>(last), bytes) == 0, "munmap");
  require(::ftruncate(number, static_cast<off_t>(bytes / 2)) == 0, "ftruncate");
  require(::ftruncate(number, static_cast<off_t>(bytes)) == 0, "ftruncate");
  const uint64_t* const zeros = map(number, bytes, PROT_READ);
  require(zeros[bytes / 16] == 0 && zeros[bytes / 8 - 1] == 0, "what was cut off");
  ::close(number);
}

// mremap, and other offsets than the mapping before had.
void test_moving(uint64_t bytes) {
  const int number = make_file("moved", bytes, 4);
  for (int i = 0; i < 4; ++i) {
    uint64_t* const half = map(number, bytes / 2, PROT_READ | PROT_WRITE);
    half[3] = half[3] + 1;
    void* const whole = ::mremap(half, bytes / 2, bytes, MREMAP_MAYMOVE);
    require(whole != MAP_FAILED, "mremap");
    auto* const words = static_cast<uint64_t*>(whole);
    require(words[3] == word_at(4, 3) + static_cast<uint64_t>(i) + 1, "the word that was written");
    require(is_filled(words + 4, bytes / 8 - 4, 4, 4), "what was moved");
    require(::munmap(words, bytes) == 0, "munmap");
    void* const end =
        ::mmap(nullptr, bytes / 4, PROT_READ, MAP_PRIVATE, number, static_cast<off_t>(bytes / 2));
    require(end != MAP_FAILED, "mmap");
    require(is_filled(static_cast<uint64_t*>(end), bytes / 32, 4, bytes / 16), "another part");
    require(::munmap(end, bytes / 4) == 0, "munmap");
  }
  ::close(number);
}

// Another file takes the name; the old one is removed, and its space comes back.
void test_replacing(uint64_t bytes) {
  ::close(make_file("name", bytes, 5));
  read_again("name", bytes, 5, 3);
  ::close(make_file("other", bytes, 6));
  require(::rename("other", "name") == 0, "rename");
  read_again("name", bytes, 6, 3);
  const int number = ::open("name", O_RDONLY);
  require(::unlink("name") == 0, "unlink");
  read_again(number, bytes, 6, 3);
  ::close(number);
}

}  // namespace

int main(int count, char** arguments) {
  const uint64_t bytes = begin(count, arguments);
  if (count > 3) {
    ::close(make_file("again", bytes, 1));
    settle("again");
    read_again("again", bytes, 1, 8);
    return 0;
  }
  test_reading(bytes);
  test_growing(bytes / 4);
  test_moving(bytes);
  test_replacing(bytes);
  const pid_t child = ::fork();
  if (child == 0) {
    test_reading(bytes);
    ::_exit(0);
  }
  require(code_of(child) == 0, "in a child");
  std::puts("right");
  return 0;
}
