// used_otherwise FOLDER [BYTES] [WAYS]: two processes write a file together, and other processes of
// the run come to it otherwise than by open() and mmap() alone: they make it empty, longer or
// shorter, get a descriptor from somebody else, map one that they have inherited. Whoever looks
// afterwards, by its mapping or by calls, finds what was written last.
#include <atomic>
#include <initializer_list>

#include "asked.h"

using namespace asked;

namespace {

constexpr uint64_t kAt = 5, kFar = 3 * kPageBytes / 8;  // words

void make_files() {
  for (const char* name : {kFile, kOther, kLeased}) {
    const int fd = ::open(name, kFlags | O_CREAT | O_TRUNC, 0600);
    require(fd >= 0 && ::ftruncate(fd, static_cast<off_t>(bytes)) == 0 && ::close(fd) == 0, name);
  }
}

// Two that have written it, and have the pages in memory.
void begin_both(const Other& a, const Other& b) {
  a.begin();
  b.begin();
  a.ask('s', kAt, 1);
  b.ask('s', kFar, 2);
  b.expect('r', kAt, 1, "together");
  a.expect('r', kFar, 2, "together");
}

// -- the ways --

void make_it_empty() {
  make_files();
  const Other a, b, c, lessor;
  begin_both(a, b);
  c.use_another();
  require(lessor.ask('L') == 0, "a lease");
  c.ask('o');  // one thread is just opening a file
  lessor.ask('W');
  require(c.ask('O', 0, O_WRONLY | O_TRUNC) == 0, "an open that makes it empty");
  require(c.ask('g', 0, bytes) == 0, "ftruncate");
  c.ask('w', kAt, 77);
  for (const Other* one : {&a, &b}) {
    one->expect('r', kAt, 77, "made empty");
    one->expect('p', kAt, 77, "made empty");
    one->expect('r', kFar, 0, "made empty");
  }
  lessor.ask('U');
  c.ask('j');
  std::printf("made empty: right\n");
}

// Whoever has had it once has it through the kernel now.
void begin_beside_the_kernel() {
  make_files();
  const Other a, b, c;
  begin_both(a, b);
  require(b.ask('g', 0, bytes + kPageBytes) == 0, "ftruncate");
  c.begin();
  c.expect('r', kAt, 1, "begun again");
  a.ask('s', kAt, 3);
  c.expect('r', kAt, 3, "begun again");
  c.ask('s', kFar, 4);
  a.expect('r', kFar, 4, "begun again");
  a.expect('p', kFar, 4, "begun again");
  std::printf("begun again: right\n");
}

void map_what_is_inherited() {
  make_files();
  const Other a, b;
  begin_both(a, b);
  require(b.ask('i', kAt, 1) == 0, "a child");
  a.ask('s', kAt, 6);
  b.expect('r', kAt, 6, "inherited");
  std::printf("inherited: right\n");
}

void change_it_by_its_name() {
  for (int round = 0; round < 8; ++round) {
    make_files();
    const Other a, b, c;
    begin_both(a, b);
    if (round % 2 == 0)
      require(c.ask('t', 0, 0) == 0 && c.ask('t', 0, bytes) == 0, "truncate");
    else
      require(b.ask('k', kAt) == 0, "truncate by a child");
    for (const Other* one : {&a, &b}) {
      one->expect('r', kAt, 0, "by its name");
      one->expect('p', kFar, 0, "by its name");
    }
  }
  std::printf("by its name: right\n");
}

// One of them cannot store what it has written: the change is refused, or what was written before
// it does not come back.
void change_what_cannot_be_stored(char kind) {
  make_files();
  uint64_t error = 0;
  {
    const Other a, b, c;
    begin_both(a, b);
    require(b.ask('x', 0, kPageBytes) == 0, "setrlimit");
    if (kind == 'O')
      error = c.ask('O', 0, O_WRONLY | O_TRUNC);
    else
      error = (kind == 't' ? c : a).ask(kind, 0, kPageBytes);
    if (error != 0 && error != EIO) fail("a change ended with %lu", error);
    require(b.ask('x', 0, RLIM_INFINITY) == 0, "setrlimit back");
    if (error != 0) {
      a.expect('r', kFar, 2, "refused");
      a.expect('p', kFar, 2, "refused");
    }
  }
  const uint64_t expected = error != 0 ? bytes : kind == 'O' ? 0 : kPageBytes;
  const int fd = ::open(kFile, O_RDONLY | O_CLOEXEC);
  require(fd >= 0, "open");
  const off_t size = ::lseek(fd, 0, SEEK_END);
  if (size != static_cast<off_t>(expected))
    fail("'%c': %ld bytes, and not %lu", kind, size, expected);
  ::close(fd);
  std::printf("what cannot be stored: right\n");
}

void get_a_descriptor() {
  make_files();
  int ends[2];
  require(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) == 0, "socketpair");
  {
    const Other sender(ends[0]), receiver(ends[1]), a, b;
    sender.begin(O_RDONLY);
    sender.ask('S');  // it is under way while the others begin
    sender.ask('C');
    begin_both(a, b);
    receiver.ask('R');
    receiver.expect('p', kAt, 1, "received");
    a.ask('s', kAt, 8);
    receiver.expect('p', kAt, 8, "received");
  }
  ::close(ends[0]);
  ::close(ends[1]);
  const Other a, b, c;
  require(a.ask('O', 0, O_RDWR) == 0 && b.ask('O', 0, O_RDWR) == 0, "open");
  a.ask('M');
  a.ask('s', kAt, 9);
  c.ask('G', static_cast<uint64_t>(a.process), a.ask('#'));
  c.expect('p', kAt, 9, "got");
  c.ask('w', kAt, 10);
  a.expect('r', kAt, 10, "got");
  std::printf("descriptors of others: right\n");
}

// A process that has one file, and a child that writes the other one, too, and then touches what it
// has inherited. Each child needs for that what the other one still writes.
void be_child_of(const char* own, const char* others, std::atomic<uint32_t>* stage) {
  const auto write_it = [](const char* name) {
    const int fd = ::open(name, kFlags);
    require(fd >= 0, "open");
    uint64_t* const words = map(fd, bytes, PROT_READ | PROT_WRITE);
    words[kAt] = kAt;
    return words;
  };
  const auto reach = [stage](uint32_t all) {
    stage->fetch_add(1);
    while (stage->load() < all) ::sched_yield();
  };
  const uint64_t* const words = write_it(own);
  reach(2);
  const pid_t child = ::fork();
  if (child == 0) {
    write_it(others);
    reach(4);
    require(words[kAt] == kAt, "what is inherited");
    ::_exit(0);
  }
  ::_exit(code_of(child));
}

void need_each_other() {
  auto* const stages = static_cast<std::atomic<uint32_t>*>(
      ::mmap(nullptr, kPageBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  require(stages != MAP_FAILED, "common memory");
  for (int round = 0; round < 8; ++round) {
    make_files();
    pid_t both[2];
    for (pid_t& process : both)
      if ((process = ::fork()) == 0)
        be_child_of(&process == both ? kFile : kOther, &process == both ? kOther : kFile,
                    &stages[round]);
    for (const pid_t process : both) require(code_of(process) == 0, "a parent");
  }
  std::printf("two that need each other: right\n");
}

// One of them can have no part in the buffer, whose memory file is larger than its files may be.
void stay_outside() {
  make_files();
  for (const bool is_first : {true, false}) {
    const Other a, b;
    require((is_first ? a : b).ask('x', 0, uint64_t{1} << 30) == 0, "setrlimit");
    begin_both(a, b);
    a.ask('s', kAt, 12);
    b.expect('r', kAt, 12, "outside");
    b.ask('w', kFar, 13);
    a.expect('r', kFar, 13, "outside");
    a.expect('p', kFar, 13, "outside");
  }
  std::printf("outside of the buffer: right\n");
}

// To read it only; its writers are there.
void read_only() {
  make_files();
  const Other a, b, c;
  begin_both(a, b);
  c.begin(O_RDONLY);
  c.ask('N');
  c.expect('p', kAt, 1, "to read");
  std::printf("to read: right\n");
}

}  // namespace

int main(int count, char** arguments) {
  bytes = begin(count, arguments);
  const char* const only = count > 3 ? arguments[3] : "";
  const auto is_asked = [only](char way) {
    return *only == 0 || std::strchr(only, way) != nullptr;
  };
  if (is_asked('e')) make_it_empty();
  if (is_asked('k')) begin_beside_the_kernel();
  if (is_asked('i')) map_what_is_inherited();
  if (is_asked('n')) change_it_by_its_name();
  for (const char kind : {'O', 't', 'g'})
    if (is_asked(kind)) change_what_cannot_be_stored(kind);
  if (is_asked('d')) get_a_descriptor();
  if (is_asked('c')) need_each_other();
  if (is_asked('r')) read_only();
  if (is_asked('o')) stay_outside();
  for (const char* name : {kFile, kOther, kLeased}) require(::unlink(name) == 0, "unlink");
  return 0;
}
