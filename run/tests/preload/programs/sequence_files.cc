// Steps on the files that are mapped: descriptors, reads, writes and sizes.
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>

#include "sequence_kinds.h"
#include "sequence_pick.h"

namespace sequence {

namespace {

constexpr unsigned kPartsMax = 5;
constexpr uint64_t kPartBytesMax = 64 * 1024;

// Where a transfer goes in the file, and the memory that it goes from or to.
struct Transfer {
  Descriptor* descriptor;
  bool has_position;  // of its own: pread and its kin
  uint64_t at;
  uint64_t count;
  unsigned parts;
  iovec vectors[kPartsMax];
  Bytes memory[kPartsMax];
};

// Memory for one part: of an area, unless that shows what the transfer works on at the other end.
void pick_part(Transfer& t, bool is_write, uint64_t first, uint64_t end) {
  const uint64_t wanted = random.size(kPartBytesMax);
  Bytes part{kNoArea, 0, wanted, scratch() + kScratchBytes / 2 + t.count};
  if (random.chance(60)) {
    const Bytes memory = pick_bytes(!is_write, wanted);
    if (!shows(memory, t.descriptor->file, first, end, !is_write)) part = memory;
  }
  if (part.area == kNoArea && is_write) random.fill(part.address, part.count);
  say_bytes(part);
  t.memory[t.parts] = part;
  t.vectors[t.parts++] = {part.address, part.count};
  t.count += part.count;
}

// `count` may only shrink afterwards.
void clip(Transfer& t, uint64_t count_max) {
  while (t.count > count_max) {
    Bytes& last = t.memory[t.parts - 1];
    const uint64_t over = t.count - count_max;
    const uint64_t cut = over < last.count ? over : last.count;
    last.count -= cut;
    t.vectors[t.parts - 1].iov_len = last.count;
    t.count -= cut;
    if (last.count == 0 && t.parts > 1) --t.parts;
    if (t.count == 0) return;
  }
}

Transfer pick_transfer(bool is_write, bool has_position, bool is_vector) {
  Transfer t{&pick_descriptor(!is_write, is_write), has_position, 0, 0, 0, {}, {}};
  const File& f = model.files[t.descriptor->file];
  t.at = position_of(*t.descriptor);
  if (has_position) t.at = random.below(f.size + (random.chance(10) ? 3 * kPageBytes : 1));
  // Linux appends with pwrite as well.
  if (is_write && is_appending(*t.descriptor)) t.at = f.size;
  if (is_write && t.at > f.size_max) t.at = f.size_max;
  const unsigned parts = is_vector ? 1 + static_cast<unsigned>(random.below(kPartsMax)) : 1;
  say(" d%u f%u at %lu", slot_of(*t.descriptor), t.descriptor->file, t.at);
  while (t.parts < parts) pick_part(t, is_write, t.at, t.at + kPartsMax * kPartBytesMax);
  return t;
}

void read_into(bool has_position, bool is_vector) {
  Transfer t = pick_transfer(false, has_position, is_vector);
  Descriptor& d = *t.descriptor;
  const File& f = model.files[d.file];
  const uint64_t left = t.at < f.size ? f.size - t.at : 0;
  const auto expected = static_cast<long>(t.count < left ? t.count : left);
  const auto at = static_cast<off_t>(t.at);
  const auto parts = static_cast<int>(t.parts);
  const iovec& one = t.vectors[0];
  const ssize_t n = is_vector && has_position
                        ? (random.chance(50) ? ::preadv(d.number, t.vectors, parts, at)
                                             : ::preadv2(d.number, t.vectors, parts, at, 0))
                    : is_vector    ? ::readv(d.number, t.vectors, parts)
                    : has_position ? ::pread(d.number, one.iov_base, one.iov_len, at)
                                   : ::read(d.number, one.iov_base, one.iov_len);
  uint64_t done = 0;
  answer(outcome(n), expected);
  if (!has_position) position_of(d) += static_cast<uint64_t>(n);
  for (unsigned i = 0; i < t.parts && done < static_cast<uint64_t>(n); ++i) {
    Bytes part = t.memory[i];
    if (part.count > static_cast<uint64_t>(n) - done) part.count = static_cast<uint64_t>(n) - done;
    const uint8_t* bytes = f.bytes + t.at + done;
    if (part.area != kNoArea) {
      write_memory(part, bytes);
    } else if (std::memcmp(part.address, bytes, part.count) != 0) {
      mismatch("other bytes than the file has");
    }
    done += part.count;
  }
  for (unsigned i = 0; i < t.parts; ++i)  // later parts may lie over earlier ones
    if (t.memory[i].area != kNoArea) check_memory(t.memory[i]);
}

void write_from(bool has_position, bool is_vector) {
  Transfer t = pick_transfer(true, has_position, is_vector);
  Descriptor& d = *t.descriptor;
  const File& f = model.files[d.file];
  if (!has_position && !is_appending(d) && position_of(d) != t.at) {
    position_of(d) = t.at;
    answer(outcome(::lseek(d.number, static_cast<off_t>(t.at), SEEK_SET)), kAnything);
  }
  clip(t, f.size_max - t.at);
  uint8_t* bytes = scratch();
  uint64_t done = 0;
  for (unsigned i = 0; i < t.parts; ++i) {
    const Bytes& part = t.memory[i];
    if (part.area == kNoArea)
      std::memcpy(bytes + done, part.address, part.count);
    else
      read_memory(part, bytes + done);
    done += part.count;
  }
  const auto at = static_cast<off_t>(t.at);
  const auto parts = static_cast<int>(t.parts);
  const iovec& one = t.vectors[0];
  const ssize_t n = is_vector && has_position
                        ? (random.chance(50) ? ::pwritev(d.number, t.vectors, parts, at)
                                             : ::pwritev2(d.number, t.vectors, parts, at, 0))
                    : is_vector    ? ::writev(d.number, t.vectors, parts)
                    : has_position ? ::pwrite(d.number, one.iov_base, one.iov_len, at)
                                   : ::write(d.number, one.iov_base, one.iov_len);
  answer(outcome(n), static_cast<long>(t.count));
  write_file(d.file, t.at, bytes, t.count);
  if (!has_position && t.count > 0) position_of(d) = t.at + t.count;
  check_file(d.file, t.at, t.count, may_read(d) ? d.number : -1);
}

}  // namespace

void step_open() {
  const unsigned file = pick_file();
  int flags = random.chance(50) ? O_RDWR : random.chance(80) ? O_RDONLY : O_WRONLY;
  if (flags != O_RDONLY && random.chance(20)) flags |= O_APPEND;
  if (flags != O_RDONLY && random.chance(3)) flags |= O_TRUNC;
  open_file(file, flags);
}

void step_close() {
  Descriptor& d = pick_descriptor(false, false);
  say(" d%u", slot_of(d));
  close_descriptor(d);
}

void step_dup() {
  const Descriptor from = pick_descriptor(false, false);
  Descriptor* to = nullptr;
  for (Descriptor& d : model.descriptors)
    if (d.number < 0) to = &d;
  if (to != nullptr) {
    to->number = random.chance(50) ? ::dup(from.number) : ::fcntl(from.number, F_DUPFD_CLOEXEC, 3);
    if (to->number < 0) mismatch("dup: errno %d", errno);
  } else {  // over an open one, which that closes
    to = &model.descriptors[random.below(kDescriptorsMax)];
    if (to->number == from.number) return say(" not done");
    const int n = random.chance(50) ? ::dup2(from.number, to->number)
                                    : ::dup3(from.number, to->number, O_CLOEXEC);
    if (n != to->number) mismatch("dup2: errno %d", errno);
  }
  const int number = to->number;
  *to = from;
  to->number = number;
  ::fcntl(number, F_SETFD, FD_CLOEXEC);
  say(" d%u", slot_of(*to));
}

void step_lseek() {
  Descriptor& d = pick_descriptor(false, false);
  const File& f = model.files[d.file];
  const uint64_t to = random.below(f.size + 1);
  say(" d%u", slot_of(d));
  const int from = random.chance(50) ? SEEK_SET : random.chance(50) ? SEEK_CUR : SEEK_END;
  auto offset = static_cast<off_t>(to);
  if (from == SEEK_CUR) offset -= static_cast<off_t>(position_of(d));
  if (from == SEEK_END) offset -= static_cast<off_t>(f.size);
  answer(outcome(::lseek(d.number, offset, from)), static_cast<long>(to));
  position_of(d) = to;
}

void step_read() { read_into(false, false); }
void step_readv() { read_into(false, true); }
void step_pread() { read_into(true, false); }
void step_preadv() { read_into(true, true); }
void step_write() { write_from(false, false); }
void step_writev() { write_from(false, true); }
void step_pwrite() { write_from(true, false); }
void step_pwritev() { write_from(true, true); }

void step_ftruncate() {
  const Descriptor& d = pick_descriptor(false, true);
  const File& f = model.files[d.file];
  uint64_t size = random.below(f.size_max + 1);
  if (random.chance(40)) size = f.size - random.below(f.size + 1) / 8;
  if (random.chance(20)) size -= size % kPageBytes;
  const bool is_by_path = random.chance(20);
  say(" d%u f%u from %lu to %lu%s", slot_of(d), d.file, f.size, size, is_by_path ? " by path" : "");
  const auto length = static_cast<off_t>(size);
  answer(outcome(is_by_path ? ::truncate(f.path, length) : ::ftruncate(d.number, length)), 0);
  resize_file(d.file, size);
  // Whoever has mapped it sees at once what is there and what is not.
  unsigned touched = 0;
  for (unsigned a = 0; a < kAreasMax; ++a)
    for (uint64_t i = 0; model.areas[a].is_used && i < model.areas[a].count && touched < 3; ++i) {
      const Page& page = page_at(a, i);
      if (page.kind != PageKind::kFile || page.file != d.file || !random.chance(5)) continue;
      touch_and_check(a, i * kPageBytes + random.below(kPageBytes), random.chance(30));
      ++touched;
    }
}

void step_fallocate() {
  const Descriptor& d = pick_descriptor(false, true);
  const File& f = model.files[d.file];
  const int modes[] = {0, FALLOC_FL_KEEP_SIZE, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                       FALLOC_FL_ZERO_RANGE, FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE};
  const int mode = modes[random.below(sizeof modes / sizeof modes[0])];
  uint64_t at = random.below(f.size_max);
  uint64_t count = random.size(f.size_max - at);
  if (random.chance(40)) {
    at -= at % kPageBytes;
    if (count > kPageBytes) count -= count % kPageBytes;
  }
  say(" d%u f%u mode %d at %lu bytes %lu", slot_of(d), d.file, mode, at, count);
  const int r = ::fallocate(d.number, mode, static_cast<off_t>(at), static_cast<off_t>(count));
  const long got = outcome(r);
  answer(got, kAnything);  // not every file system has every mode
  if (got != 0) return;
  if (mode != 0 && mode != FALLOC_FL_KEEP_SIZE) zero_file(d.file, at, count);
  if ((mode & FALLOC_FL_KEEP_SIZE) == 0 && at + count > f.size) resize_file(d.file, at + count);
  check_file(d.file, at > 10 ? at - 10 : 0, count < 65536 ? count + 20 : 65536, -1);
}

void step_fsync() {
  const Descriptor& d = pick_descriptor(false, true);
  say(" d%u f%u", slot_of(d), d.file);
  answer(outcome(random.chance(50) ? ::fsync(d.number) : ::fdatasync(d.number)), 0);
}

void step_fadvise() {
  const Descriptor& d = pick_descriptor(false, false);
  const int all[] = {POSIX_FADV_NORMAL,   POSIX_FADV_RANDOM,   POSIX_FADV_SEQUENTIAL,
                     POSIX_FADV_WILLNEED, POSIX_FADV_DONTNEED, POSIX_FADV_DONTNEED};
  const int advice = all[random.below(sizeof all / sizeof all[0])];
  say(" d%u f%u advice %d", slot_of(d), d.file, advice);
  answer(-::posix_fadvise(d.number, 0, 0, advice), 0);
}

}  // namespace sequence
