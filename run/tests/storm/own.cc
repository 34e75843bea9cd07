#include "own.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace storm {

Own own;

namespace {

// Hears of the shrinks of its file: private pages behind the new end are gone with them.
void hear_of_shrinks(Window& w) {
  const File& f = stage->file[w.file];
  for (; w.shrinks != f.shrinks; ++w.shrinks) {
    if (w.is_copied == nullptr) continue;
    const uint64_t left = f.shrunk_to[w.shrinks % kShrinksMax];
    for (uint64_t i = left > w.first ? left - w.first : 0; i < w.pages; ++i) w.is_copied[i] = false;
  }
}

}  // namespace

uint8_t* scratch() {
  static thread_local uint8_t* bytes = nullptr;
  if (bytes == nullptr) bytes = allocate_raw(2 * kScratchBytes);
  return bytes;
}

Window* pick_window_with(int prot) {
  Window* fitting[kWindowsMax];
  unsigned count = 0;
  for (Window& w : own.windows)
    if (w.is_used && (w.prot & prot) == prot && (prot == 0 || bytes_within(w) > 0))
      fitting[count++] = &w;
  return count > 0 ? fitting[random.below(count)] : nullptr;
}

Window* pick_window() { return pick_window_with(0); }

Window* free_window() {
  for (Window& w : own.windows)
    if (!w.is_used) return &w;
  return nullptr;
}

unsigned index_of(const Window& w) { return static_cast<unsigned>(&w - own.windows); }

void say_window(const Window& w) {
  say(" w%u(f%u %lu+%lu %s%s%s%s)", index_of(w), w.file, w.first, w.pages, w.is_shared ? "s" : "p",
      (w.prot & PROT_READ) != 0 ? "r" : "", (w.prot & PROT_WRITE) != 0 ? "w" : "",
      w.may_write ? "" : "!");
}

uint64_t bytes_within(Window& w) {
  hear_of_shrinks(w);
  const uint64_t size = stage->file[w.file].size;
  const uint64_t begin = w.first * kPageBytes;
  if (size <= begin) return 0;
  return size - begin < w.pages * kPageBytes ? size - begin : w.pages * kPageBytes;
}

const uint8_t* expected_at(Window& w, uint64_t offset, uint64_t& count) {
  const uint64_t left = kPageBytes - offset % kPageBytes;
  if (count > left) count = left;
  if (w.is_copied != nullptr && w.is_copied[offset / kPageBytes]) return w.copies + offset;
  return bytes_of(w.file) + w.first * kPageBytes + offset;
}

void check_window(Window& w, uint64_t offset, uint64_t count) {
  for (uint64_t done = 0; done < count;) {
    uint64_t n = count - done;
    const uint8_t* expected = expected_at(w, offset + done, n);
    check_bytes(w.base + offset + done, expected, n,
                w.is_shared ? "shared window w" : "private window w", index_of(w), offset + done);
    done += n;
  }
}

void note_written(Window& w, uint64_t offset, const uint8_t* from, uint64_t count) {
  if (w.is_shared) {
    std::memcpy(bytes_of(w.file) + w.first * kPageBytes + offset, from, count);
    return;
  }
  for (uint64_t done = 0; done < count;) {
    uint64_t n = count - done;
    const uint64_t page = (offset + done) / kPageBytes;
    const uint64_t left = kPageBytes - (offset + done) % kPageBytes;
    if (n > left) n = left;
    if (!w.is_copied[page]) {
      std::memcpy(w.copies + page * kPageBytes, bytes_of(w.file) + (w.first + page) * kPageBytes,
                  kPageBytes);
      w.is_copied[page] = true;
    }
    std::memcpy(w.copies + offset + done, from + done, n);
    done += n;
  }
}

void write_window(Window& w, uint64_t offset, const uint8_t* from, uint64_t count) {
  std::memcpy(w.base + offset, from, count);
  note_written(w, offset, from, count);
}

void prepare_private(Window& w) {
  w.copies = nullptr;
  w.is_copied = nullptr;
  if (w.is_shared) return;
  w.copies = allocate_raw(w.pages * kPageBytes);
  w.is_copied = reinterpret_cast<bool*>(allocate_raw(w.pages));
}

Window* split(Window& w, uint64_t page) {
  if (page == 0 || page >= w.pages) return &w;
  Window* rest = free_window();
  if (rest == nullptr) return nullptr;
  *rest = w;
  rest->base += page * kPageBytes;
  rest->first += page;
  rest->pages -= page;
  w.pages = page;
  if (w.is_copied != nullptr) {
    rest->copies += page * kPageBytes;
    rest->is_copied += page;
  }
  return rest;
}

Descriptor* pick_descriptor(bool is_to_read, bool is_to_write) {
  Descriptor* fitting[kDescriptorsMax];
  unsigned count = 0;
  for (Descriptor& d : own.descriptors)
    if (d.is_used && (d.may_read || !is_to_read) && (d.may_write || !is_to_write))
      fitting[count++] = &d;
  return count > 0 ? fitting[random.below(count)] : nullptr;
}

Descriptor* free_descriptor() {
  for (Descriptor& d : own.descriptors)
    if (!d.is_used) return &d;
  return nullptr;
}

unsigned index_of(const Descriptor& d) { return static_cast<unsigned>(&d - own.descriptors); }

// Newer files more often: older ones may have gone back to the kernel for good.
unsigned pick_file() {
  const unsigned newest = stage->files - 1;
  return random.chance(60)
             ? newest - static_cast<unsigned>(random.below(newest < 2 ? newest + 1 : 2))
             : static_cast<unsigned>(random.below(stage->files));
}

void close_descriptor(Descriptor& d) {
  d.is_used = false;
  if (::close(d.number) != 0) mismatch("close of d%u: errno %d", index_of(d), errno);
}

Descriptor* descriptor_of(unsigned file, bool is_to_read, bool is_to_write) {
  for (Descriptor& d : own.descriptors)
    if (d.is_used && d.file == file && (d.may_read || !is_to_read) && (d.may_write || !is_to_write))
      return &d;
  Descriptor* d = free_descriptor();
  if (d == nullptr) {
    d = &own.descriptors[random.below(kDescriptorsMax)];
    close_descriptor(*d);
  }
  char path[16];
  path_of(file, path);
  const int how = !is_to_write ? O_RDONLY : is_to_read || random.chance(70) ? O_RDWR : O_WRONLY;
  const int number = ::open(path, how | O_CLOEXEC);
  if (number < 0) mismatch("open of f%u: errno %d", file, errno);
  *d = {true, how != O_WRONLY, how != O_RDONLY, false, number, file};
  return d;
}

void check_file(unsigned file, uint64_t at, uint64_t count) {
  char path[16];
  path_of(file, path);
  const int number = ::open(path, O_RDONLY | O_CLOEXEC);
  if (number < 0) mismatch("open of f%u to check it: errno %d", file, errno);
  const uint64_t size = stage->file[file].size;
  const uint64_t there = at < size ? size - at : 0;
  if (count > kScratchBytes) count = kScratchBytes;
  const uint64_t expected = count < there ? count : there;
  uint8_t* bytes = scratch() + kScratchBytes;
  const ssize_t n = ::pread(number, bytes, count, static_cast<off_t>(at));
  if (n != static_cast<ssize_t>(expected))
    mismatch("pread of f%u at %lu: %zd bytes (errno %d), expected %lu of %lu", file, at, n, errno,
             expected, count);
  check_bytes(bytes, bytes_of(file) + at, expected, "file f", file, at);
  ::close(number);
}

void observe() {
  if (random.chance(25)) {
    const unsigned file = pick_file();
    check_file(file, random.below(stage->file[file].size + 1), random.size(32 * 1024));
  }
  for (Window& w : own.windows) {
    if (!w.is_used || (w.prot & PROT_READ) == 0 || !random.chance(50)) continue;
    const uint64_t there = bytes_within(w);
    if (there == 0) continue;
    const uint64_t offset = random.below(there);
    const uint64_t count = random.size(16 * 1024);
    check_window(w, offset, count < there - offset ? count : there - offset);
  }
  for (Block& b : own.blocks) {
    if (b.bytes == nullptr || !random.chance(30)) continue;
    const uint64_t offset = random.below(b.count);
    const uint64_t count = random.size(16 * 1024);
    check_bytes(b.bytes + offset, b.model + offset,
                count < b.count - offset ? count : b.count - offset, "block b",
                static_cast<unsigned>(&b - own.blocks), offset);
  }
}

void check_all_of_mine() {
  for (Window& w : own.windows)
    if (w.is_used && (w.prot & PROT_READ) != 0) check_window(w, 0, bytes_within(w));
  for (Block& b : own.blocks)
    if (b.bytes != nullptr)
      check_bytes(b.bytes, b.model, b.count, "block b", static_cast<unsigned>(&b - own.blocks), 0);
}

}  // namespace storm
