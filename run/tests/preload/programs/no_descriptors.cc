// no_descriptors DIR [BYTES]: a program has opened as many files as it may (RLIMIT_NOFILE), or may
// have none with a large number any more, and goes on: it maps, writes, stores, unmaps, forks and
// ends. Each call does what the kernel's does, and what was written is in the file.
#include <signal.h>
#include <sys/resource.h>

#include <initializer_list>

#include "program.h"

using namespace program;

namespace {

uint64_t bytes = 0;

void use_up_numbers() {
  const rlimit limit{200, 200};
  require(::setrlimit(RLIMIT_NOFILE, &limit) == 0, "setrlimit");
  while (::open("/dev/null", O_RDONLY | O_CLOEXEC) >= 0) {
  }
  require(errno == EMFILE, "numbers are used up");
}

// Numbers above are refused, some below are free.
void forbid_high_numbers() {
  const rlimit limit{200, 200};
  require(::setrlimit(RLIMIT_NOFILE, &limit) == 0, "setrlimit");
}

// All that the program may have, and many: none is left at any place.
void use_up_all_numbers() {
  rlimit limit;
  require(::getrlimit(RLIMIT_NOFILE, &limit) == 0, "getrlimit");
  limit.rlim_cur = limit.rlim_max < 2048 ? limit.rlim_max : 2048;
  require(::setrlimit(RLIMIT_NOFILE, &limit) == 0, "setrlimit");
  while (::open("/dev/null", O_RDONLY | O_CLOEXEC) >= 0) {
  }
  require(errno == EMFILE, "numbers are used up");
}

// What the process has when it does what it does.
struct Has {
  uint64_t* words;  // mapped from end to end, written
  int number;       // of the file
  int other;        // another file, full of words of seed 5, not mapped so far
};

int in_child(const Has& has, void (*what)(const Has&)) {
  const pid_t child = ::fork();
  if (child == 0) {
    what(has);
    ::_exit(0);
  }
  return code_of(child);
}

constexpr struct {
  const char* name;
  void (*live)(const Has&);
  int code;
} kWays[] = {
    {"msync",
     [](const Has& h) {
       require(::msync(h.words, bytes, MS_SYNC) == 0, "msync");
       require(::fsync(h.number) == 0, "fsync");
     },
     0},
    {"munmap", [](const Has& h) { require(::munmap(h.words, bytes) == 0, "munmap"); }, 0},
    {"munmap of a part",
     [](const Has& h) { require(::munmap(h.words + bytes / 32, bytes / 8) == 0, "munmap"); }, 0},
    {"mmap of another file",
     [](const Has& h) {
       uint64_t* words = map(h.other, bytes, PROT_READ | PROT_WRITE);
       require(is_filled(words, bytes / 8, 5), "its bytes");
       fill(words, bytes / 8, 6);
       uint64_t back = 0;
       require(::pread(h.other, &back, 8, 8) == 8 && back == word_at(6, 1), "pread");
     },
     0},
    {"mmap of it once more",
     [](const Has& h) {
       uint64_t* words = map(h.number, bytes, PROT_READ | PROT_WRITE);
       require(is_filled(words, bytes / 8, 2), "its bytes");
       words[0] = 7;
       require(h.words[0] == 7, "both show what is written");
       words[0] = word_at(2, 0);
     },
     0},
    {"mprotect and mremap",
     [](const Has& h) {
       require(::mprotect(h.words, bytes / 2, PROT_READ) == 0, "mprotect");
       require(::mprotect(h.words, bytes / 2, PROT_READ | PROT_WRITE) == 0, "mprotect");
       void* part = ::mremap(h.words, bytes / 4, bytes / 4, 0);
       require(part == h.words, "mremap");
       require(is_filled(h.words, bytes / 8, 2), "its bytes");
     },
     0},
    {"madvise",
     [](const Has& h) {
       require(::madvise(h.words, bytes, MADV_DONTNEED) == 0, "madvise");
       require(is_filled(h.words, bytes / 8, 2), "its bytes");
     },
     0},
    {"pwrite and pread",
     [](const Has& h) {
       uint64_t word = 9;
       require(::pwrite(h.number, &word, 8, 0) == 8 && h.words[0] == 9, "pwrite");
       h.words[0] = word_at(2, 0);
       require(::pread(h.number, &word, 8, 0) == 8 && word == word_at(2, 0), "pread");
     },
     0},
    {"growth",
     [](const Has& h) {
       require(::ftruncate(h.number, static_cast<off_t>(2 * bytes)) == 0, "ftruncate");
       uint64_t* words = map(h.number, 2 * bytes, PROT_READ | PROT_WRITE);
       require(words[bytes / 8] == 0 && is_filled(words, bytes / 8, 2), "its bytes");
     },
     0},
    {"open", [](const Has&) { require(::open("none", O_RDWR) < 0, "open"); }, 0},
    {"fork, the child reads",
     [](const Has& h) {
       const int code = in_child(h, [](const Has& own) {
         require(is_filled(own.words, bytes / 8, 2), "what the child reads");
       });
       require(code == 0 && is_filled(h.words, bytes / 8, 2), "fork");
     },
     0},
    {"fork, the child writes",
     [](const Has& h) {
       const int code = in_child(h, [](const Has& own) { fill(own.words, 512, 8); });
       require(code == 0 && is_filled(h.words, 512, 8), "what the child wrote");
       fill(h.words, 512, 2);
     },
     0},
    {"fork, the child maps",
     [](const Has& h) {
       const int code = in_child(h, [](const Has& own) {
         fill(map(own.other, bytes, PROT_READ | PROT_WRITE), bytes / 8, 6);
       });
       uint64_t back = 0;
       require(code == 0 && ::pread(h.other, &back, 8, 8) == 8 && back == word_at(6, 1), "fork");
     },
     0},
    {"exec",
     [](const Has&) {
       ::execl("/bin/true", "true", nullptr);
       ::_exit(99);
     },
     0},
    {"vfork and exec",
     [](const Has&) {
       const pid_t child = ::vfork();
       if (child == 0) {
         ::execl("/bin/true", "true", nullptr);
         ::_exit(99);
       }
       require(code_of(child) == 0, "vfork");
     },
     0},
    {"SIGTERM", [](const Has&) { ::raise(SIGTERM); }, 1000 + SIGTERM},
    {"abort", [](const Has&) { std::abort(); }, 1000 + SIGABRT},
    {"a crash", [](const Has&) { *reinterpret_cast<volatile int*>(16) = 1; }, 1000 + SIGSEGV},
    {"exit", [](const Has&) { std::exit(3); }, 3},
    {"return", [](const Has&) {}, 0}};

// Another process opens the file and reads, while the first lives.
void be_read_by_another() {
  ::close(make_file("file", bytes, 1));
  const pid_t child = ::fork();
  if (child == 0) {
    int ends[2];
    require(::pipe(ends) == 0, "pipe");
    const pid_t reader = ::fork();
    if (reader == 0) {
      char byte = 0;
      require(::read(ends[0], &byte, 1) == 1, "read");
      const int own = ::open("file", O_RDONLY);
      uint64_t word = 0;
      require(::pread(own, &word, 8, 8) == 8 && word == word_at(2, 1), "what another reads");
      ::_exit(0);
    }
    const int number = ::open("file", O_RDWR);
    const Has has{map(number, bytes, PROT_READ | PROT_WRITE), number, -1};
    fill(has.words, bytes / 8, 2);
    use_up_numbers();
    require(::write(ends[1], "x", 1) == 1 && code_of(reader) == 0, "another process");
    require(is_filled(has.words, bytes / 8, 2), "its bytes");
    ::_exit(0);
  }
  if (code_of(child) != 0) fail("a reader");
}

// A few numbers are left: the program maps a file that another process has open, and one of its
// own. All see what the others write.
void map_with_few(int left) {
  const int held = make_file("held", bytes, 1);
  ::close(make_file("file", bytes, 1));
  int to_parent[2], to_child[2];
  require(::pipe(to_parent) == 0 && ::pipe(to_child) == 0, "pipe");
  const pid_t child = ::fork();
  char byte = 0;
  if (child == 0) {
    ::close(held), ::close(to_child[1]), ::close(to_parent[0]);
    const int shared = ::open("held", O_RDWR), number = ::open("file", O_RDWR);
    map(make_file("first", bytes, 1), bytes, PROT_READ | PROT_WRITE)[0] = 1;
    use_up_all_numbers();
    const int last = ::dup2(number, 100);
    require(last == 100, "dup2");
    for (int i = 0; i < left; ++i) ::close(400 + i);  // where ours are looked for
    uint64_t* words = map(shared, bytes, PROT_READ | PROT_WRITE);
    words[512] = 5;
    uint64_t* own = map(number, bytes, PROT_READ | PROT_WRITE);
    fill(own, bytes / 8, 2);
    uint64_t word = 3;
    require(::pread(100, &word, 8, 4096) == 8 && word == word_at(2, 512), "its own file is read");
    word = 3;
    require(::pwrite(100, &word, 8, 8192) == 8 && own[1024] == 3, "its own file is written");
    own[1024] = word_at(2, 1024);
    require(::write(to_parent[1], "w", 1) == 1 && ::read(to_child[0], &byte, 1) == 1, "pipes");
    require(words[512] == 6, "what another process has written");
    ::_exit(0);
  }
  uint64_t word = 0;
  require(::read(to_parent[0], &byte, 1) == 1, "read");
  require(::pread(held, &word, 8, 4096) == 8 && word == 5, "what the child has written");
  word = 6;
  require(::pwrite(held, &word, 8, 4096) == 8 && ::write(to_child[1], "w", 1) == 1, "pwrite");
  if (code_of(child) != 0) fail("%d numbers are left: it ended", left);
  for (const int fd : {held, to_parent[0], to_parent[1], to_child[0], to_child[1]}) ::close(fd);
}

void look(const char* name) {
  const int number = ::open("file", O_RDONLY);
  uint64_t back[512];
  for (uint64_t at = 0; at < bytes; at += sizeof back) {
    require(::pread(number, back, sizeof back, static_cast<off_t>(at)) == sizeof back, "pread");
    if (!is_filled(back, 512, 2, at / 8)) fail("%s: bytes are lost", name);
  }
  ::close(number);
}

}  // namespace

int main(int count, char** arguments) {
  bytes = begin(count, arguments, 1 << 18);
  for (void (*const use_up)() : {use_up_numbers, forbid_high_numbers, use_up_all_numbers})
    for (const auto& way : kWays) {
      // A file that another process has is the kernel's.
      ::close(make_file("file", bytes, 1)), ::close(make_file("other", bytes, 5));
      const pid_t child = ::fork();
      if (child == 0) {
        const int number = ::open("file", O_RDWR), other = ::open("other", O_RDWR);
        const Has has{map(number, bytes, PROT_READ | PROT_WRITE), number, other};
        fill(has.words, bytes / 8, 2);
        use_up();
        way.live(has);
        ::_exit(0);
      }
      const int code = code_of(child);
      if (code != way.code) fail("%s: it ended with %d", way.name, code);
      look(way.name);
      std::printf("%s without descriptors\n", way.name);
    }
  // The first mapping comes when none is left.
  for (void (*const use_up)() : {use_up_numbers, forbid_high_numbers, use_up_all_numbers}) {
    ::close(make_file("file", bytes, 1));
    const pid_t child = ::fork();
    if (child == 0) {
      const int number = ::open("file", O_RDWR);
      use_up();
      fill(map(number, bytes, PROT_READ | PROT_WRITE), bytes / 8, 2);
      ::_exit(0);
    }
    if (code_of(child) != 0) fail("a first mapping: it ended");
    look("a first mapping");
  }
  for (int left = 0; left < 12; ++left) {
    map_with_few(left);
    look("few are left");
  }
  be_read_by_another();
  look("a reader");
  return 0;
}
