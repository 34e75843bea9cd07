// fork_past_end FOLDER [BYTES] : a part of a mapping lies past its file's end when a child is
// forked. Once the file has grown, whoever made it longer, parent, child and the child's child find
// its bytes there; until then a touch is a bus error in each of them.
#include <signal.h>

#include "program.h"

using namespace program;

namespace {

uint64_t bytes = 0, half = 0, half_words = 0;

struct File {
  int number;
  uint64_t* words;
};

// A file of half of the bytes, mapped with room for all of them and written through the mapping.
File make(int prot = PROT_READ | PROT_WRITE) {
  const File file{make_file("past_end", half, 1), nullptr};
  const int flags = prot == PROT_READ ? O_RDONLY : O_RDWR;
  const int number = ::open("past_end", flags);
  uint64_t* words = map(number, bytes, prot);
  ::close(number);
  if (prot != PROT_READ) fill(words, half_words, 2);
  return {file.number, words};
}

void grow(int number) {
  uint64_t page[kPageBytes / 8];
  for (uint64_t at = half; at < bytes; at += kPageBytes) {
    fill(page, kPageBytes / 8, 3, at / 8);
    require(::pwrite(number, page, kPageBytes, static_cast<off_t>(at)) == kPageBytes, "pwrite");
  }
}

void look(const uint64_t* words, uint64_t seed) {
  require(is_filled(words + half_words, half_words, 3, half_words), "the bytes that came later");
  require(is_filled(words, half_words, seed), "the bytes from before");
}

void run(const char* name, void (*what)()) {
  const pid_t child = ::fork();
  if (child == 0) {
    what();
    ::_exit(0);
  }
  const int code = code_of(child);
  if (code != 0 && code != 1000 + SIGBUS) fail("%s: it ended with %d", name, code);
  std::printf("%s: %d\n", name, code);
}

// Runs it in a child, and goes on when it has ended as it should.
template <typename What>
void in_child(const What& what, int code = 0) {
  const pid_t child = ::fork();
  if (child == 0) {
    what();
    ::_exit(0);
  }
  const int found = code_of(child);
  if (found != code) fail("a child ended with %d", found);
}

// A child that begins only when the parent has made the file longer.
template <typename What>
void in_child_after(int number, const What& what) {
  int ends[2];
  require(::pipe(ends) == 0, "pipe");
  const pid_t child = ::fork();
  if (child == 0) {
    char byte = 0;
    require(::read(ends[0], &byte, 1) == 1, "read");
    what();
    ::_exit(0);
  }
  grow(number);
  require(::write(ends[1], "g", 1) == 1, "write");
  const int code = code_of(child);
  if (code != 0) fail("a child ended with %d", code);
  ::close(ends[0]);
  ::close(ends[1]);
}

void touch_past_end(const uint64_t* words) {
  static_cast<void>(*const_cast<const volatile uint64_t*>(words + half_words));
}

constexpr struct {
  const char* name;
  void (*what)();
} kWays[] = {
    {"the parent makes it longer",
     [] {
       const File f = make();
       in_child_after(f.number, [&] { look(f.words, 2); });
       look(f.words, 2);
     }},
    {"the child does",
     [] {
       const File f = make();
       in_child([&] { grow(f.number), look(f.words, 2); });
       look(f.words, 2);
     }},
    {"the child writes there first",
     [] {
       const File f = make();
       in_child_after(f.number, [&] { fill(f.words + half_words, half_words, 3, half_words); });
       look(f.words, 2);
     }},
    {"its child looks",
     [] {
       const File f = make();
       in_child_after(f.number, [&] { in_child([&] { look(f.words, 2); }); });
       look(f.words, 2);
     }},
    {"its child makes it longer",
     [] {
       const File f = make();
       in_child([&] { in_child([&] { grow(f.number); }), look(f.words, 2); });
       look(f.words, 2);
     }},
    {"a system call is the first",
     [] {
       const File f = make();
       in_child_after(f.number, [&] {
         const int zeros = ::open("/dev/zero", O_RDONLY);
         char* at = reinterpret_cast<char*>(f.words + half_words);
         require(::read(zeros, at, 1) == 1 && *at == 0, "read into what came later");
         require(::pread(f.number, at, kPageBytes, static_cast<off_t>(half)) == kPageBytes,
                 "pread");
         fill(f.words + half_words, kPageBytes / 8, 3, half_words);
         look(f.words, 2);
       });
       look(f.words, 2);
     }},
    {"mremap in the child",
     [] {
       const File f = make();
       in_child_after(f.number, [&] {
         void* part = ::mremap(f.words + half_words, half, half, MREMAP_MAYMOVE);
         require(part != MAP_FAILED, "mremap of the part past the end");
         require(is_filled(static_cast<uint64_t*>(part), half_words, 3, half_words), "its bytes");
         require(is_filled(f.words, half_words, 2), "the rest");
       });
       look(f.words, 2);
     }},
    {"mremap in the parent, before",
     [] {
       File f = make();
       void* moved = ::mremap(f.words, bytes, bytes, MREMAP_MAYMOVE);
       void* larger = ::mremap(moved, half, half, 0);
       require(moved != MAP_FAILED && larger != MAP_FAILED, "mremap");
       f.words = static_cast<uint64_t*>(larger);
       in_child_after(f.number, [&] { look(f.words, 2); });
       look(f.words, 2);
     }},
    {"read-only",
     [] {
       const File f = make(PROT_READ);
       in_child_after(f.number, [&] { look(f.words, 1); });
       look(f.words, 1);
     }},
    {"all of it past the end",
     [] {
       const int number = make_file("past_end", half, 2);
       uint64_t* first = map(number, half, PROT_READ | PROT_WRITE);
       void* p = ::mmap(nullptr, half, PROT_READ | PROT_WRITE, MAP_SHARED, number,
                        static_cast<off_t>(half));
       require(p != MAP_FAILED, "mmap past the end");
       const uint64_t* words = static_cast<uint64_t*>(p);
       in_child_after(
           number, [&] { require(is_filled(words, half_words, 3, half_words), "in the child"); });
       require(is_filled(words, half_words, 3, half_words) && is_filled(first, half_words, 2),
               "in the parent");
     }},
    {"nobody makes it longer, the parent touches", [] { touch_past_end(make().words); }},
    {"nobody does, the child touches",
     [] {
       const File f = make();
       in_child([&] { touch_past_end(f.words); }, 1000 + SIGBUS);
       grow(f.number);
       look(f.words, 2);
     }},
    {"nobody does, its child touches", [] {
       const File f = make();
       in_child([&] { in_child([&] { touch_past_end(f.words); }, 1000 + SIGBUS); });
       grow(f.number);
       look(f.words, 2);
     }}};

}  // namespace

int main(int count, char** arguments) {
  bytes = begin(count, arguments, 256 * 1024);
  half = bytes / 2 / kPageBytes * kPageBytes;
  bytes = 2 * half;
  half_words = half / 8;
  for (const auto& way : kWays) run(way.name, way.what);
  return 0;
}
