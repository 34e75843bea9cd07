// Steps that move bytes of mapped files and mapped memory through the kernel and through stdio.
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "sequence_kinds.h"
#include "sequence_pick.h"

namespace sequence {

namespace {

// From one file to another, or to a part of the same that does not overlap.
struct Copy {
  Descriptor* from;
  Descriptor* to;
  uint64_t from_at;
  uint64_t to_at;
  uint64_t count;     // asked for
  uint64_t expected;  // what there is
};

Copy pick_copy() {
  Copy c{&pick_descriptor(true, false), nullptr, 0, 0, 0, 0};
  Descriptor* to = nullptr;
  for (unsigned i = 0; i < 4 && (to == nullptr || to->file == c.from->file); ++i)
    to = &pick_descriptor(false, true);
  c.to = to;
  if (!may_read(*c.from)) return c;  // its slot was needed
  const File& from = model.files[c.from->file];
  const File& f = model.files[c.to->file];
  c.from_at = random.below(from.size + 1);
  c.to_at = is_appending(*c.to) ? f.size : random.below(f.size + 1);
  c.count = random.size(f.size_max / 2);
  if (c.count > f.size_max - c.to_at) c.count = f.size_max - c.to_at;
  if (c.from->file == c.to->file) {
    const uint64_t apart = c.from_at < c.to_at ? c.to_at - c.from_at : c.from_at - c.to_at;
    if (c.count > apart) c.count = apart;
  }
  c.expected = from.size - c.from_at < c.count ? from.size - c.from_at : c.count;
  say(" d%u f%u at %lu to d%u f%u at %lu bytes %lu", slot_of(*c.from), c.from->file, c.from_at,
      slot_of(*c.to), c.to->file, c.to_at, c.count);
  return c;
}

void finish_copy(const Copy& c) {
  uint8_t* bytes = scratch();
  const File& from = model.files[c.from->file];
  for (uint64_t done = 0; done < c.expected; done += kScratchBytes) {
    const uint64_t left = c.expected - done;
    const uint64_t n = left < kScratchBytes ? left : kScratchBytes;
    std::memcpy(bytes, from.bytes + c.from_at + done, n);
    write_file(c.to->file, c.to_at + done, bytes, n);
  }
  check_file(c.to->file, c.to_at, c.expected < 65536 ? c.expected : 65536, -1);
}

void seek(Descriptor& d, uint64_t at) {
  position_of(d) = at;
  if (::lseek(d.number, static_cast<off_t>(at), SEEK_SET) < 0) mismatch("lseek: errno %d", errno);
}

// What came out of the kernel: where it was put, and what it must be.
void check_arrived(const Bytes& where, const uint8_t* expected) {
  if (where.area != kNoArea) {
    write_memory(where, expected);
    check_memory(where);
  } else if (std::memcmp(where.address, expected, where.count) != 0) {
    mismatch("other bytes came out than went in");
  }
}

// Memory for what comes out: of an area or beside.
Bytes pick_target(uint64_t count_max) {
  Bytes to{kNoArea, 0, count_max, scratch() + kScratchBytes / 2};
  if (random.chance(70)) to = pick_writable(count_max);
  say_bytes(to);
  return to;
}

}  // namespace

void step_copy_file_range() {
  const Copy c = pick_copy();
  if (c.count == 0) return say(" not done");
  auto from_at = static_cast<off_t>(c.from_at), to_at = static_cast<off_t>(c.to_at);
  const bool has_positions = random.chance(70) || c.from->position == c.to->position;
  if (!has_positions) seek(*c.from, c.from_at), seek(*c.to, c.to_at);
  const ssize_t n = ::copy_file_range(c.from->number, has_positions ? &from_at : nullptr,
                                      c.to->number, has_positions ? &to_at : nullptr, c.count, 0);
  answer(outcome(n), is_appending(*c.to) ? -EBADF : static_cast<long>(c.expected));
  if (n < 0) return;
  if (!has_positions) position_of(*c.from) += c.expected, position_of(*c.to) += c.expected;
  finish_copy(c);
}

void step_sendfile() {
  const Copy c = pick_copy();
  if (c.count == 0) return say(" not done");
  auto from_at = static_cast<off_t>(c.from_at);
  seek(*c.to, c.to_at);
  const ssize_t n = ::sendfile(c.to->number, c.from->number, &from_at, c.count);
  answer(outcome(n), is_appending(*c.to) ? -EINVAL : static_cast<long>(c.expected));
  if (n < 0) return;
  position_of(*c.to) += c.expected;
  finish_copy(c);
}

void step_pipe() {
  constexpr uint64_t kBytesMax = 60000;  // less than a pipe takes at once
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) mismatch("pipe: errno %d", errno);
  const Bytes from = pick_readable(kBytesMax);
  say_bytes(from);
  uint8_t* bytes = scratch();
  read_memory(from, bytes);
  answer(outcome(::write(ends[1], from.address, from.count)), static_cast<long>(from.count));
  Bytes to = pick_target(from.count);
  answer(outcome(::read(ends[0], to.address, to.count)), static_cast<long>(to.count));
  check_arrived(to, bytes);
  ::close(ends[0]);
  ::close(ends[1]);
}

void step_socket() {
  constexpr uint64_t kBytesMax = 60000;
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    mismatch("socketpair: errno %d", errno);
  const Bytes from = pick_readable(kBytesMax);
  say_bytes(from);
  uint8_t* bytes = scratch();
  read_memory(from, bytes);
  const bool has_message = random.chance(50);
  iovec vector = {from.address, from.count};
  msghdr message = {};
  message.msg_iov = &vector;
  message.msg_iovlen = 1;
  answer(outcome(has_message ? ::sendmsg(ends[0], &message, 0)
                             : ::send(ends[0], from.address, from.count, 0)),
         static_cast<long>(from.count));
  const Bytes to = pick_target(from.count);
  vector = {to.address, to.count};
  answer(outcome(has_message ? ::recvmsg(ends[1], &message, MSG_WAITALL)
                             : ::recv(ends[1], to.address, to.count, MSG_WAITALL)),
         static_cast<long>(to.count));
  check_arrived(to, bytes);
  ::close(ends[0]);
  ::close(ends[1]);
}

// Several MiB in one call, straight from memory: the same again and again where it is smaller.
void step_big_write() {
  constexpr uint64_t kBytes = 3 << 20;
  constexpr unsigned kVectorsMax = 64;
  const char path[] = "./big";
  const int number = ::open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (number < 0) mismatch("open of the big file: errno %d", errno);
  Bytes from{};
  for (unsigned i = 0; i < 5; ++i) {  // the longest of some
    const Bytes one = pick_readable(kScratchBytes / 2);
    if (one.count > from.count) from = one;
  }
  say_bytes(from);
  uint8_t* bytes = scratch();
  read_memory(from, bytes);
  iovec vectors[kVectorsMax];
  unsigned count = 0;
  while (count < kVectorsMax && count * from.count < kBytes)
    vectors[count++] = {from.address, from.count};
  answer(outcome(count == 1 ? ::write(number, from.address, from.count)
                            : ::writev(number, vectors, static_cast<int>(count))),
         static_cast<long>(count * from.count));
  uint8_t* back = scratch() + kScratchBytes / 2;
  for (unsigned i = 0; i < count; ++i) {
    const ssize_t n = ::pread(number, back, from.count, static_cast<off_t>(i * from.count));
    if (n != static_cast<ssize_t>(from.count)) mismatch("the big file is short");
    if (std::memcmp(back, bytes, from.count) != 0) mismatch("the big file has other bytes");
    seen.add(back, from.count);
  }
  ::close(number);
  ::unlink(path);
}

// Calls whose memory must not be touched say so, and change nothing.
void step_wrong_buffer() {
  const Descriptor& d = pick_descriptor(true, true);
  const File& f = model.files[d.file];
  const Span s = pick_span(true);
  const uint64_t page = s.first + random.below(s.count);
  uint8_t* at = address_of({s.area, page, 1});
  const Page& p = page_at(s.area, page);
  const auto file_at = static_cast<off_t>(random.below(f.size + 1));
  say(" d%u at %ld a%u+%lu", slot_of(d), static_cast<long>(file_at), s.area, page);
  if (readable_bytes(p) == 0) answer(outcome(::pwrite(d.number, at, 100, file_at)), -EFAULT);
  if (p.kind == PageKind::kGone || (p.prot & PROT_WRITE) == 0 || is_behind_end(p)) {
    const long expected = f.size - static_cast<uint64_t>(file_at) > 0 ? -EFAULT : 0;
    answer(outcome(::pread(d.number, at, 100, file_at)), expected);
  }
}

void step_stdio_read() {
  const unsigned file = pick_file();
  const File& f = model.files[file];
  FILE* stream = std::fopen(f.path, "re");
  if (stream == nullptr) mismatch("fopen: errno %d", errno);
  const uint64_t at = random.below(f.size + 1);
  say(" f%u at %lu", file, at);
  Bytes to = pick_target(random.size(64 * 1024));
  if (to.area != kNoArea && shows(to, file, at, at + to.count, true))
    to = {kNoArea, 0, to.count, scratch() + kScratchBytes / 2};
  if (std::fseek(stream, static_cast<long>(at), SEEK_SET) != 0) mismatch("fseek: %d", errno);
  const uint64_t count = f.size - at < to.count ? f.size - at : to.count;
  answer(static_cast<long>(std::fread(to.address, 1, to.count, stream)), static_cast<long>(count));
  to.count = count;
  check_arrived(to, f.bytes + at);
  std::fclose(stream);
}

void step_stdio_write() {
  const unsigned file = pick_file();
  const File& f = model.files[file];
  FILE* stream = std::fopen(f.path, "r+e");
  if (stream == nullptr) mismatch("fopen: errno %d", errno);
  const uint64_t at = random.below(f.size + 1);
  say(" f%u at %lu", file, at);
  Bytes from{kNoArea, 0, random.size(64 * 1024), scratch() + kScratchBytes / 2};
  if (random.chance(60)) {
    const Bytes memory = pick_readable(from.count);
    if (!shows(memory, file, at, at + memory.count, false)) from = memory;
  }
  if (from.count > f.size_max - at) from.count = f.size_max - at;
  say_bytes(from);
  uint8_t* bytes = scratch();
  if (from.area == kNoArea) {
    random.fill(from.address, from.count);
    std::memcpy(bytes, from.address, from.count);
  } else {
    read_memory(from, bytes);
  }
  if (std::fseek(stream, static_cast<long>(at), SEEK_SET) != 0) mismatch("fseek: %d", errno);
  answer(static_cast<long>(std::fwrite(from.address, 1, from.count, stream)),
         static_cast<long>(from.count));
  answer(outcome(std::fflush(stream)), 0);
  write_file(file, at, bytes, from.count);
  check_file(file, at, from.count, -1);
  std::fclose(stream);
}

// A path that lies in mapped memory.
void step_path() {
  const unsigned file = pick_file();
  const File& f = model.files[file];
  Bytes where{};
  const uint64_t count = std::strlen(f.path) + 1;
  for (unsigned i = 0; i < 8 && where.count < count; ++i) where = pick_writable(4 * kPageBytes);
  if (where.count < count) return say(" not done");
  where.count = count;
  say(" f%u", file);
  const auto* path = reinterpret_cast<const char*>(where.address);
  std::memcpy(where.address, f.path, count);
  write_memory(where, reinterpret_cast<const uint8_t*>(f.path));
  struct stat status;
  answer(outcome(::stat(path, &status)), 0);
  if (static_cast<uint64_t>(status.st_size) != f.size) mismatch("stat found another size");
  const int number = ::open(path, O_RDONLY | O_CLOEXEC);
  if (number < 0) mismatch("open by a path in mapped memory: errno %d", errno);
  check_file(file, random.below(f.size + 1), 100, number);
  ::close(number);
  answer(outcome(::access(path, R_OK)), 0);
}

}  // namespace sequence
