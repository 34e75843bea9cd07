// written_together FOLDER [BYTES] [SEED] [KINDS]: processes that write one file, each by a mapping
// of its own, beside readers of mappings and by calls, killed ones, strangers that open it, and all
// that makes the file go back to the kernel. Each writes ever larger numbers into cells of its own,
// of pages that all write, and says how far it has come: whoever looks, however it does, finds what
// was said before, or what was just being written.
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>

#include <algorithm>
#include <atomic>
#include <vector>

#include "program.h"

using namespace program;

namespace {

constexpr const char* kFile = "together";
constexpr uint64_t kWriters = 4, kCells = 64, kPageWords = kPageBytes / 8;
using Cell = std::atomic<uint64_t>;

struct Common {
  Cell said[kWriters][kCells];
  std::atomic<uint64_t> touches{0};
  std::atomic<uint32_t> is_over{0}, has_last_begun{0};
};
Common* common = nullptr;
uint64_t bytes = 0;

struct Random {
  uint64_t x;
  uint64_t next(uint64_t below) {
    x = x * 6364136223846793005u + 1442695040888963407u;
    return (x >> 33) % below;
  }
};

uint64_t place_of(uint64_t writer, uint64_t cell) {
  const uint64_t pages = bytes / kPageBytes;
  return (cell * (pages / kCells) + cell % 3) * kPageWords + 16 + writer;
}

// One process's way to the file.
struct Way {
  int fd = -1;
  uint64_t* words = nullptr;
  void open_it(int flags = O_RDWR) {
    fd = ::open(kFile, flags | O_CLOEXEC);
    require(fd >= 0, "open");
  }
  void map_it() { words = map(fd, bytes, PROT_READ | PROT_WRITE); }
  void end_map() {
    require(::munmap(words, bytes) == 0, "munmap");
    words = nullptr;
  }
  void close_it() {
    require(::close(fd) == 0, "close");
    fd = -1;
  }
  Cell& at(uint64_t writer, uint64_t cell) const {
    return *reinterpret_cast<Cell*>(words + place_of(writer, cell));
  }
};

void check(uint64_t seen, uint64_t before, uint64_t writer, uint64_t cell, const char* how) {
  const uint64_t after = common->said[writer][cell].load() + 1;
  if (seen < before || seen > after)
    fail("%s: cell %lu of writer %lu: %lu is not in %lu to %lu", how, cell, writer, seen, before,
         after);
}

void look_by_mapping(const Way& way, uint64_t writer, uint64_t cell) {
  const uint64_t before = common->said[writer][cell].load();
  check(way.at(writer, cell).load(), before, writer, cell, "a mapping");
}

void look_by_call(const Way& way, uint64_t writer, uint64_t cell) {
  const uint64_t before = common->said[writer][cell].load();
  uint64_t seen = 0;
  const auto at = static_cast<off_t>(place_of(writer, cell) * 8);
  require(::pread(way.fd, &seen, 8, at) == 8, "pread");
  check(seen, before, writer, cell, "pread");
}

// By instructions of its own: no library sees it.
void look_as_stranger(Random& random) {
  const long fd = call_raw(SYS_open, reinterpret_cast<long>(kFile), O_RDONLY, 0);
  require(fd >= 0, "a stranger's open");
  for (int i = 0; i < 40; ++i) {
    const uint64_t writer = random.next(kWriters), cell = random.next(kCells);
    const uint64_t before = common->said[writer][cell].load();
    uint64_t seen = 0;
    const auto at = static_cast<long>(place_of(writer, cell) * 8);
    require(call_raw(SYS_pread64, fd, reinterpret_cast<long>(&seen), 8, at) == 8, "its pread");
    check(seen, before, writer, cell, "a stranger");
  }
  call_raw(SYS_close, fd, 0, 0);
}

void run_child(void (*work)(Random&), uint64_t seed) {
  const pid_t child = ::fork();
  if (child == 0) {
    Random random{seed};
    work(random);
    ::_exit(0);
  }
  const int code = code_of(child);
  if (code != 0) fail("a child ended with %d", code);
}

void write_cell(const Way& way, uint64_t writer, uint64_t cell, bool by_call) {
  Cell& said = common->said[writer][cell];
  const uint64_t next = said.load() + 1;
  if (by_call) {
    const auto at = static_cast<off_t>(place_of(writer, cell) * 8);
    require(::pwrite(way.fd, &next, 8, at) == 8, "pwrite");
  } else {
    // What a killed one wrote may be there without its word.
    const uint64_t seen = way.at(writer, cell).load();
    if (seen != next - 1 && seen != next)
      fail("its own cell %lu of writer %lu: %lu, and not %lu", cell, writer, seen, next - 1);
    way.at(writer, cell).store(next);
  }
  said.store(next);
}

// What a process does beside writing; letters of KINDS.
void disturb(char kind, Way& way, Random& random, uint64_t writer) {
  switch (kind) {
    case 'm':  // unmaps and maps again
      way.end_map();
      way.map_it();
      break;
    case 'o':  // closes and opens again
      way.end_map();
      way.close_it();
      way.open_it();
      way.map_it();
      break;
    case 'd': {  // a second descriptor
      const int more = ::open(kFile, O_RDONLY | O_CLOEXEC);
      require(more >= 0, "a second open");
      ::close(more);
      break;
    }
    case 's':
      require(::msync(way.words, bytes, MS_SYNC) == 0, "msync");
      break;
    case 'f':
      require(::fsync(way.fd) == 0, "fsync");
      break;
    case 'w':
      write_cell(way, writer, random.next(kCells), true);
      break;
    case 'x':
      run_child(look_as_stranger, random.next(1 << 30));
      break;
    case 'c': {  // a child that uses what it has inherited
      const pid_t child = ::fork();
      if (child == 0) {
        for (int i = 0; i < 10; ++i) {
          look_by_mapping(way, random.next(kWriters), random.next(kCells));
          look_by_call(way, random.next(kWriters), random.next(kCells));
        }
        ::_exit(0);
      }
      const int code = code_of(child);
      if (code != 0) fail("a forked child ended with %d", code);
      break;
    }
    case 'p':  // a part of it is made read-only, and writable again
      require(::mprotect(way.words, kPageBytes, PROT_READ) == 0, "mprotect");
      require(::mprotect(way.words, kPageBytes, PROT_READ | PROT_WRITE) == 0, "mprotect again");
      break;
    case 'g': {  // makes it longer, and as long as it was
      require(::ftruncate(way.fd, static_cast<off_t>(bytes + kPageBytes)) == 0, "ftruncate");
      require(::ftruncate(way.fd, static_cast<off_t>(bytes)) == 0, "ftruncate back");
      break;
    }
    default:
      break;
  }
}

void write_some(uint64_t writer, uint64_t seed, uint64_t rounds, const char* kinds) {
  Random random{seed * kWriters + writer + 1};
  Way way;
  way.open_it();
  way.map_it();
  if (writer == kWriters - 1) common->has_last_begun.store(1);
  const uint64_t kind_count = std::strlen(kinds);
  for (uint64_t i = 0; i < rounds && common->is_over.load() == 0; ++i) {
    write_cell(way, writer, random.next(kCells), false);
    look_by_mapping(way, random.next(kWriters), random.next(kCells));
    // Pages come and go: there is room for half of them.
    for (int k = 0; k < 2; ++k)
      require(way.words[random.next(bytes / kPageBytes) * kPageWords + 8] == 0,
              "what nobody writes");
    if (random.next(8) == 0) look_by_call(way, random.next(kWriters), random.next(kCells));
    if (kind_count != 0 && random.next(60) == 0)
      disturb(kinds[random.next(kind_count)], way, random, writer);
    common->touches.fetch_add(1);
  }
  if (seed % 2 == 0) {  // else they end with the process
    way.end_map();
    way.close_it();
  }
}

pid_t begin_writer(uint64_t writer, uint64_t seed, uint64_t rounds, const char* kinds) {
  const pid_t child = ::fork();
  require(child >= 0, "fork");
  if (child == 0) {
    write_some(writer, seed, rounds, kinds);
    if (writer % 2 == 0) ::_exit(0);
    std::exit(0);
  }
  return child;
}

void check_all(const char* when) {
  Way way;
  way.open_it(O_RDONLY);
  for (uint64_t w = 0; w < kWriters; ++w)
    for (uint64_t c = 0; c < kCells; ++c) look_by_call(way, w, c);
  way.close_it();
  std::printf("%s: right\n", when);
}

void run_generation(const char* name, uint64_t seed, uint64_t rounds, const char* kinds) {
  pid_t children[kWriters];
  for (uint64_t w = 0; w < kWriters; ++w) children[w] = begin_writer(w, seed, rounds, kinds);
  for (const pid_t child : children) {
    const int code = code_of(child);
    if (code != 0) fail("%s: a writer ended with %d", name, code);
  }
  check_all(name);
}

void kill_some(uint64_t seed, const char* kinds) {
  Random random{seed};
  pid_t children[kWriters];
  common->has_last_begun.store(0);
  for (uint64_t w = 0; w < kWriters; ++w) children[w] = begin_writer(w, seed, UINT64_MAX, kinds);
  // It is not killed, and so there is somebody all the time who stores what the others wrote.
  while (common->has_last_begun.load() == 0) ::sched_yield();
  for (int kills = 0; kills < 12; ++kills) {
    const uint64_t until = common->touches.load() + random.next(800);
    while (common->touches.load() < until) ::sched_yield();
    const uint64_t w = random.next(kWriters - 1);
    ::kill(children[w], SIGKILL);
    const int code = code_of(children[w]);
    if (code != 1000 + SIGKILL) fail("a writer ended by itself: %d", code);
    children[w] = begin_writer(w, seed + static_cast<uint64_t>(kills) + 1, UINT64_MAX, kinds);
  }
  common->is_over.store(1);
  for (const pid_t child : children) {
    const int code = code_of(child);
    if (code != 0) fail("a writer beside killed ones ended with %d", code);
  }
  common->is_over.store(0);
  check_all("killed writers");
}

constexpr uint64_t kRecordWords = 500, kRecords = 200;

void* write_records(void* fd) {
  static std::atomic<uint64_t> next{1};
  uint64_t record[kRecordWords];
  for (uint64_t i = 0; i < kRecords; ++i) {
    std::fill_n(record, kRecordWords, next.fetch_add(1));
    require(::write(*static_cast<int*>(fd), record, sizeof record) == sizeof record, "write");
  }
  return nullptr;
}

// Threads that write by one descriptor share its position: each record is there once, in one piece.
void write_by_threads() {
  constexpr const char* kRecordFile = "records";
  constexpr uint64_t kAll = kWriters * kRecords, kBytes = kAll * kRecordWords * 8;
  int fd = ::open(kRecordFile, O_RDWR | O_CREAT | O_TRUNC, 0600);
  require(fd >= 0 && ::ftruncate(fd, kBytes) == 0 && ::close(fd) == 0, "the file of records");
  fd = ::open(kRecordFile, O_RDWR | O_CLOEXEC);
  require(fd >= 0, "open");
  pthread_t threads[kWriters];
  for (pthread_t& thread : threads)
    require(::pthread_create(&thread, nullptr, write_records, &fd) == 0, "pthread_create");
  for (const pthread_t thread : threads) ::pthread_join(thread, nullptr);
  require(::lseek(fd, 0, SEEK_CUR) == static_cast<off_t>(kBytes), "the position");
  std::vector<bool> seen(kAll + 1);
  for (uint64_t i = 0; i < kAll; ++i) {
    uint64_t record[kRecordWords];
    const auto at = static_cast<off_t>(i * sizeof record);
    require(::pread(fd, record, sizeof record, at) == sizeof record, "pread");
    const bool is_whole = std::count(record, record + kRecordWords, record[0]) == kRecordWords;
    if (!is_whole || record[0] == 0 || record[0] > kAll || seen[record[0]])
      fail("record %lu is not whole, missing, or there twice", i);
    seen[record[0]] = true;
  }
  require(::close(fd) == 0 && ::unlink(kRecordFile) == 0, "close");
  std::printf("threads of one descriptor: right\n");
}

}  // namespace

int main(int count, char** arguments) {
  bytes = begin(count, arguments, 8 << 20);
  const uint64_t seed = count > 3 ? std::strtoull(arguments[3], nullptr, 0) : 1;
  common = static_cast<Common*>(
      ::mmap(nullptr, sizeof(Common), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  require(common != MAP_FAILED, "common memory");
  const int fd = ::open(kFile, O_RDWR | O_CREAT | O_TRUNC, 0600);
  require(fd >= 0 && ::ftruncate(fd, static_cast<off_t>(bytes)) == 0, "the file");
  ::close(fd);
  if (count > 4) {
    run_generation(arguments[4], seed, 1500, arguments[4]);
  } else {
    write_by_threads();
    run_generation("writers", seed, 1500, "");
    run_generation("writers that flush", seed + 1, 800, "sfd");
    run_generation("writers that come and go", seed + 2, 800, "mo");
    kill_some(seed + 3, "");
    for (const char* kinds : {"x", "w", "c", "p", "g", "xwcpgmosfd"})
      run_generation(kinds, seed + static_cast<uint64_t>(kinds[0]), 500, kinds);
    kill_some(seed + 5, "sfdm");
  }
  require(::unlink(kFile) == 0, "unlink");
  return 0;
}
