// Several actors at once, of all processes: each on a range of one file that no other touches, at
// byte boundaries of chance, so that they share pages. What each does leaves its range as its own
// model says, whatever the others do meanwhile.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "own.h"
#include "steps.h"

namespace storm {

namespace {

const Range& my_range() { return stage->ranges[me.actor()]; }

// A part of the range that a window of this process shows; false: none does.
bool find_shown(int prot, Window*& window, uint64_t& offset, uint64_t& count) {
  const Range& r = my_range();
  const unsigned begin = static_cast<unsigned>(random.below(kWindowsMax));
  for (unsigned i = 0; i < kWindowsMax; ++i) {
    Window& w = own.windows[(begin + i) % kWindowsMax];
    if (!w.is_used || !w.is_shared || w.file != r.file || (w.prot & prot) != prot) continue;
    const uint64_t w_from = w.first * kPageBytes, w_end = w_from + w.pages * kPageBytes;
    const uint64_t from = r.from > w_from ? r.from : w_from;
    const uint64_t end = r.end < w_end ? r.end : w_end;
    if (from >= end) continue;
    const uint64_t at = from + random.below(end - from);
    window = &w;
    offset = at - w_from;
    count = random.size(end - at);
    return true;
  }
  return false;
}

// Some bytes of the range, and new ones for them.
struct Piece {
  uint64_t at;
  uint64_t count;
  uint8_t* bytes;
};
Piece pick_piece(uint64_t count_max) {
  const Range& r = my_range();
  const uint64_t at = r.from + random.below(r.end - r.from);
  uint64_t count = random.size(r.end - at);
  if (count > count_max) count = count_max;
  random.fill(scratch(), count);
  return {at, count, scratch()};
}

void put_in_model(const Piece& p) {
  std::memcpy(bytes_of(my_range().file) + p.at, p.bytes, p.count);
}

int open_mine(int flags) {
  char path[16];
  path_of(my_range().file, path);
  const int number = ::open(path, flags | O_CLOEXEC);
  if (number < 0) mismatch("open of f%u beside others: errno %d", my_range().file, errno);
  return number;
}

void write_by_window() {
  Window* w;
  uint64_t offset, count;
  if (!find_shown(PROT_READ | PROT_WRITE, w, offset, count)) return;
  random.fill(scratch(), count);
  write_window(*w, offset, scratch(), count);
}

void read_by_window() {
  Window* w;
  uint64_t offset, count;
  if (find_shown(PROT_READ, w, offset, count)) check_window(*w, offset, count);
}

void write_by_descriptor() {
  const Piece p = pick_piece(64 * 1024);
  for (const Descriptor& d : own.descriptors) {
    if (!d.is_used || d.file != my_range().file || !d.may_write || d.is_appending) continue;
    expect(::pwrite(d.number, p.bytes, p.count, as_off(p.at)), static_cast<long>(p.count),
           "pwrite");
    return put_in_model(p);
  }
}

void read_by_descriptor() {
  const Piece p = pick_piece(64 * 1024);
  for (const Descriptor& d : own.descriptors) {
    if (!d.is_used || d.file != my_range().file || !d.may_read) continue;
    expect(::pread(d.number, p.bytes, p.count, as_off(p.at)), static_cast<long>(p.count), "pread");
    return check_bytes(p.bytes, bytes_of(d.file) + p.at, p.count, "pread of f", d.file, p.at);
  }
}

// By a descriptor that is opened for it, so that who has the file mapped hears of one more.
void write_anew() {
  const Piece p = pick_piece(16 * 1024);
  const int number = open_mine(O_WRONLY);
  expect(::pwrite(number, p.bytes, p.count, as_off(p.at)), static_cast<long>(p.count), "pwrite");
  put_in_model(p);
  ::close(number);
}

void map_anew() {
  const Piece p = pick_piece(64 * 1024);
  const int number = open_mine(O_RDWR);
  const uint64_t from = p.at / kPageBytes * kPageBytes;
  const uint64_t bytes = p.at + p.count - from;
  void* at = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, number, as_off(from));
  if (at == MAP_FAILED) mismatch("mmap beside others: errno %d", errno);
  ::close(number);
  auto* there = static_cast<uint8_t*>(at) + (p.at - from);
  check_bytes(there, bytes_of(my_range().file) + p.at, p.count, "new mapping of f", my_range().file,
              p.at);
  std::memcpy(there, p.bytes, p.count);
  put_in_model(p);
  expect(::munmap(at, bytes), 0, "munmap");
}

void punch() {
  const Piece p = pick_piece(32 * 1024);
  for (const Descriptor& d : own.descriptors) {
    if (!d.is_used || d.file != my_range().file || !d.may_write) continue;
    expect(::fallocate(d.number, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, as_off(p.at),
                       as_off(p.count)),
           0, "fallocate");
    std::memset(bytes_of(d.file) + p.at, 0, p.count);
    return;
  }
}

void advise_or_sync() {
  for (Window& w : own.windows) {
    if (!w.is_used || !w.is_shared || w.file != my_range().file) continue;
    const uint64_t page = random.below(w.pages);
    const uint64_t bytes = random.size(w.pages - page) * kPageBytes;
    if (random.chance(50))
      expect(::msync(w.base + page * kPageBytes, bytes, MS_SYNC), 0, "msync");
    else
      expect(::madvise(w.base + page * kPageBytes, bytes, MADV_DONTNEED), 0, "madvise");
    return;
  }
}

// A forked child that uses what it has of the range, and ends.
void fork_child() {
  Window* w;
  uint64_t offset, count;
  const bool is_to_write = random.chance(50);
  if (!find_shown(PROT_READ | (is_to_write ? PROT_WRITE : 0), w, offset, count)) return;
  random.fill(scratch(), count);
  const pid_t child = ::fork();
  if (child < 0) mismatch("fork: errno %d", errno);
  if (child == 0) {
    if (is_to_write)
      write_window(*w, offset, scratch(), count);
    else
      check_window(*w, offset, count);
    ::_exit(0);
  }
  int status;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (status != 0) mismatch("a forked child beside others ended with status %d", status);
}

void allocate_and_free() {
  const uint64_t count = 64 * 1024 + random.below(256 * 1024);
  auto* bytes = static_cast<uint8_t*>(std::malloc(count));
  if (bytes == nullptr) mismatch("malloc beside others: errno %d", errno);
  const uint64_t n = count < kScratchBytes ? count : kScratchBytes;
  random.fill(scratch(), n);
  std::memcpy(bytes, scratch(), n);
  check_bytes(bytes, scratch(), n, "block of a moment ", 0, 0);
  std::free(bytes);
}

struct Deed {
  const char* name;
  unsigned weight;
  void (*run)();
};
constexpr Deed kDeeds[] = {
    {" write_by_window", 30, write_by_window},
    {" read_by_window", 20, read_by_window},
    {" write_by_descriptor", 10, write_by_descriptor},
    {" read_by_descriptor", 8, read_by_descriptor},
    {" write_anew", 2, write_anew},
    {" map_anew", 3, map_anew},
    {" punch", 3, punch},
    {" advise_or_sync", 6, advise_or_sync},
    {" fork_child", 2, fork_child},
    {" allocate_and_free", 3, allocate_and_free},
};

}  // namespace

void take_part() {
  const Range& r = my_range();
  if (r.from >= r.end) return;
  const uint64_t count = 1 + random.below(12);
  unsigned sum = 0;
  for (const Deed& d : kDeeds) sum += d.weight;
  for (uint64_t i = 0; i < count; ++i) {
    uint64_t at = random.below(sum);
    const Deed* d = kDeeds;
    for (; at >= d->weight; ++d) at -= d->weight;
    deed = d->name;
    d->run();
  }
  deed = "";
  check_file(r.file, r.from, r.end - r.from);
}

// The turn's own part is to share out the file; the actors take part in the second phase.
void step_together() {
  const unsigned file = pick_file();
  const uint64_t size = stage->file[file].size;
  unsigned count = 0;
  for (unsigned p = 0; p < kProcessesMax; ++p) count += stage->processes[p].is_alive ? 1 : 0;
  count *= stage->threads;
  if (size < count) return say(" nothing");
  unsigned part = 0;
  for (unsigned a = 0; a < kActorsMax; ++a) {
    if (!stage->processes[a / kThreadsMax].is_alive || a % kThreadsMax >= stage->threads) continue;
    stage->ranges[a] = {file, size * part / count, size * (part + 1) / count};
    ++part;
  }
  say(" f%u by %u", file, count);
  stage->is_for_all = true;
}

}  // namespace storm
