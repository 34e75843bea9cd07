// Steps on files, by their descriptors and names.
#include <fcntl.h>
#include <sys/sendfile.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "own.h"
#include "steps.h"

namespace storm {

namespace {

// Memory for a call's bytes: beside, or a window of another file that may be read or written.
struct Buffer {
  uint8_t* bytes;
  uint64_t count;
  Window* window;
  uint64_t offset;
};

Buffer pick_buffer(unsigned file, bool is_to_write, uint64_t count_max) {
  if (random.chance(30)) {
    Window* w = pick_window_with(is_to_write ? PROT_READ | PROT_WRITE : PROT_READ);
    if (w != nullptr && w->file != file) {
      const uint64_t there = bytes_within(*w);
      const uint64_t offset = random.below(there);
      const uint64_t count = random.size(there - offset);
      say(" memory w%u+%lu", index_of(*w), offset);
      return {w->base + offset, count < count_max ? count : count_max, w, offset};
    }
  }
  return {scratch(), count_max, nullptr, 0};
}

// What must be in a buffer that is written from.
const uint8_t* fill_buffer(const Buffer& b) {
  if (b.window == nullptr) {
    random.fill(b.bytes, b.count);
    return b.bytes;
  }
  uint8_t* model = scratch();
  for (uint64_t done = 0; done < b.count;) {
    uint64_t n = b.count - done;
    const uint8_t* expected = expected_at(*b.window, b.offset + done, n);
    std::memcpy(model + done, expected, n);
    done += n;
  }
  return model;
}

}  // namespace

void make_file() {
  const unsigned file = stage->files;
  char path[16];
  path_of(file, path);
  const int number = ::open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (number < 0) mismatch("f%u cannot be made: errno %d", file, errno);
  const uint64_t size = random.chance(70) ? kFileBytesMax / 2 + random.below(kFileBytesMax / 2)
                                          : random.size(kFileBytesMax);
  random.fill(bytes_of(file), size);
  stage->file[file].size = size;
  if (::pwrite(number, bytes_of(file), size, 0) != static_cast<ssize_t>(size))
    mismatch("f%u cannot be written: errno %d", file, errno);
  ::close(number);
  ++stage->files;
}

void step_new_file() {
  if (stage->files == kFilesMax) return step_open();
  make_file();
  say(" f%u of %lu bytes", stage->files - 1, stage->file[stage->files - 1].size);
}

void step_open() {
  Descriptor* d = free_descriptor();
  if (d == nullptr) return step_close();
  const unsigned file = pick_file();
  char path[16];
  path_of(file, path);
  const int all[] = {O_RDONLY, O_RDWR, O_RDWR, O_WRONLY, O_RDWR | O_APPEND, O_WRONLY | O_APPEND};
  int flags = all[random.below(sizeof all / sizeof all[0])];
  const bool is_emptied = (flags & O_ACCMODE) != O_RDONLY && random.chance(6);
  if (is_emptied) flags |= O_TRUNC;
  const int number = ::open(path, flags | O_CLOEXEC);
  if (number < 0) mismatch("open of f%u: errno %d", file, errno);
  *d = {true,
        (flags & O_ACCMODE) != O_WRONLY,
        (flags & O_ACCMODE) != O_RDONLY,
        (flags & O_APPEND) != 0,
        number,
        file};
  if (is_emptied) resize_model(file, 0);
  say(" d%u f%u flags %d", index_of(*d), file, flags);
}

void step_close() {
  Descriptor* d = pick_descriptor(false, false);
  if (d == nullptr) return say(" nothing");
  say(" d%u f%u", index_of(*d), d->file);
  close_descriptor(*d);
}

void step_dup() {
  Descriptor* from = pick_descriptor(false, false);
  if (from == nullptr) return say(" nothing");
  Descriptor* to = free_descriptor();
  const Descriptor was = *from;
  int number;
  if (to != nullptr && random.chance(60)) {
    number = random.chance(50) ? ::dup(was.number) : ::fcntl(was.number, F_DUPFD_CLOEXEC, 50);
  } else {
    to = &own.descriptors[random.below(kDescriptorsMax)];
    if (to == from || !to->is_used) return say(" not done");
    number = random.chance(50) ? ::dup2(was.number, to->number)
                               : ::dup3(was.number, to->number, O_CLOEXEC);
    if (number != to->number) mismatch("dup2: %d, errno %d", number, errno);
  }
  if (number < 0) mismatch("dup: errno %d", errno);
  ::fcntl(number, F_SETFD, FD_CLOEXEC);
  *to = was;
  to->number = number;
  say(" d%u to d%u f%u", index_of(*from), index_of(*to), was.file);
}

void step_read() {
  Descriptor* d = pick_descriptor(true, false);
  if (d == nullptr) return say(" nothing");
  const uint64_t size = stage->file[d->file].size;
  const uint64_t at = random.below(size + 1);
  say(" d%u f%u at %lu", index_of(*d), d->file, at);
  const Buffer b = pick_buffer(d->file, true, random.size(kFileBytesMax / 2));
  const uint64_t expected = b.count < size - at ? b.count : size - at;
  const iovec parts[2] = {{b.bytes, b.count / 3}, {b.bytes + b.count / 3, b.count - b.count / 3}};
  long got;
  switch (random.below(4)) {
    case 0:
      got = ::pread(d->number, b.bytes, b.count, as_off(at));
      break;
    case 1:
      got = ::preadv(d->number, parts, 2, as_off(at));
      break;
    case 2:
      ::lseek(d->number, as_off(at), SEEK_SET);
      got = ::read(d->number, b.bytes, b.count);
      break;
    default:
      ::lseek(d->number, as_off(at), SEEK_SET);
      got = ::readv(d->number, parts, 2);
  }
  answer(outcome(got), static_cast<long>(expected));
  check_bytes(b.bytes, bytes_of(d->file) + at, expected, "read of f", d->file, at);
  if (b.window != nullptr) note_written(*b.window, b.offset, bytes_of(d->file) + at, expected);
}

void step_write() {
  Descriptor* d = pick_descriptor(false, true);
  if (d == nullptr) return say(" nothing");
  const uint64_t size = stage->file[d->file].size;
  const uint64_t at = d->is_appending ? size : random.below(size + 1);
  say(" d%u f%u at %lu", index_of(*d), d->file, at);
  Buffer b = pick_buffer(d->file, false, random.size(128 * 1024));
  if (b.count > kFileBytesMax - at) b.count = kFileBytesMax - at;
  if (b.count == 0) return say(" not done");
  const uint8_t* model = fill_buffer(b);
  const iovec parts[2] = {{b.bytes, b.count / 3}, {b.bytes + b.count / 3, b.count - b.count / 3}};
  long got;
  switch (random.below(4)) {
    case 0:
      got = ::pwrite(d->number, b.bytes, b.count, as_off(at));
      break;
    case 1:
      got = ::pwritev(d->number, parts, 2, as_off(at));
      break;
    case 2:
      ::lseek(d->number, as_off(at), SEEK_SET);
      got = ::write(d->number, b.bytes, b.count);
      break;
    default:
      ::lseek(d->number, as_off(at), SEEK_SET);
      got = ::writev(d->number, parts, 2);
  }
  answer(outcome(got), static_cast<long>(b.count));
  write_model(d->file, at, model, b.count);
}

void step_truncate() {
  const unsigned file = pick_file();
  const uint64_t was = stage->file[file].size;
  uint64_t size = random.below(kFileBytesMax + 1);
  if (random.chance(40)) size = was - random.below(was + 1) / 8;
  if (random.chance(20)) size -= size % kPageBytes;
  char path[16];
  path_of(file, path);
  const bool is_by_name = random.chance(40);
  say(" f%u from %lu to %lu%s", file, was, size, is_by_name ? " by name" : "");
  answer(outcome(is_by_name ? ::truncate(path, as_off(size))
                            : ::ftruncate(descriptor_of(file, false, true)->number, as_off(size))),
         0);
  resize_model(file, size);
}

void step_fallocate() {
  const unsigned file = pick_file();
  Descriptor* d = descriptor_of(file, false, true);
  const int modes[] = {0, FALLOC_FL_KEEP_SIZE, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                       FALLOC_FL_ZERO_RANGE, FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE};
  const int mode = modes[random.below(sizeof modes / sizeof modes[0])];
  const uint64_t at = random.below(kFileBytesMax);
  const uint64_t count = random.size(kFileBytesMax - at);
  say(" f%u mode %d at %lu bytes %lu", file, mode, at, count);
  const long got = outcome(::fallocate(d->number, mode, as_off(at), as_off(count)));
  answer(got, kAnything);  // not every file system has every mode
  if (got != 0) return;
  if (mode != 0 && mode != FALLOC_FL_KEEP_SIZE) zero_model(file, at, count);
  if ((mode & FALLOC_FL_KEEP_SIZE) == 0 && at + count > stage->file[file].size)
    resize_model(file, at + count);
}

// Bytes taken out of the middle of a file, or put in.
void step_move_bytes() {
  const unsigned file = pick_file();
  Descriptor* d = descriptor_of(file, false, true);
  const uint64_t size = stage->file[file].size;
  const uint64_t pages = size / kPageBytes;
  if (pages < 3) return say(" nothing");
  const uint64_t first = random.below(pages - 1);
  uint64_t count = random.size(pages - 1 - first);
  const bool is_insert = random.chance(50);
  if (is_insert && size + count * kPageBytes > kFileBytesMax)
    count = (kFileBytesMax - size) / kPageBytes;
  if (count == 0) return say(" not done");
  const uint64_t at = first * kPageBytes, bytes = count * kPageBytes;
  say(" f%u %s %lu+%lu", file, is_insert ? "insert" : "collapse", first, count);
  const long got =
      outcome(::fallocate(d->number, is_insert ? FALLOC_FL_INSERT_RANGE : FALLOC_FL_COLLAPSE_RANGE,
                          as_off(at), as_off(bytes)));
  answer(got, kAnything);
  if (got != 0) return;
  // All pages behind leave memory, private copies among them: as if it were shortened and grew.
  uint8_t* model = bytes_of(file);
  uint8_t* behind = scratch();
  const uint64_t taken = is_insert ? 0 : bytes, put = is_insert ? bytes : 0;
  const uint64_t moved = size - at - taken;
  std::memcpy(behind, model + at + taken, moved);
  resize_model(file, at);
  std::memcpy(model + at + put, behind, moved);
  stage->file[file].size = at + put + moved;
}

void step_fsync() {
  Descriptor* d = pick_descriptor(false, true);
  if (d == nullptr) return say(" nothing");
  say(" d%u f%u", index_of(*d), d->file);
  switch (random.below(4)) {
    case 0:
      answer(outcome(::fsync(d->number)), 0);
      break;
    case 1:
      answer(outcome(::fdatasync(d->number)), 0);
      break;
    case 2:
      answer(outcome(::sync_file_range(d->number, 0, 0, SYNC_FILE_RANGE_WRITE)), 0);
      break;
    default:
      answer(::posix_fadvise(d->number, 0, 0, POSIX_FADV_DONTNEED), 0);
  }
}

// From one file to another within the kernel.
void step_copy() {
  const unsigned from = pick_file(), to = pick_file();
  if (from == to) return say(" not done");
  Descriptor* out = descriptor_of(to, false, true);
  if (out->is_appending) return say(" not done");
  Descriptor* in = descriptor_of(from, true, false);
  if (!out->is_used || out->file != to) return say(" not done");  // its place was needed
  const uint64_t size = stage->file[from].size;
  uint64_t from_at = random.below(size + 1), to_at = random.below(stage->file[to].size + 1);
  uint64_t count = random.size(kFileBytesMax / 2);
  if (count > size - from_at) count = size - from_at;
  if (count > kFileBytesMax - to_at) count = kFileBytesMax - to_at;
  if (count == 0) return say(" not done");
  const uint64_t how = random.below(3);
  say(" f%u at %lu to f%u at %lu bytes %lu way %lu", from, from_at, to, to_at, count, how);
  for (uint64_t done = 0; done < count;) {
    off_t in_at = as_off(from_at + done), out_at = as_off(to_at + done);
    ssize_t n;
    if (how == 0) {
      n = ::copy_file_range(in->number, &in_at, out->number, &out_at, count - done, 0);
    } else if (how == 1) {
      ::lseek(out->number, out_at, SEEK_SET);
      n = ::sendfile(out->number, in->number, &in_at, count - done);
    } else {
      int ends[2];
      if (::pipe2(ends, O_CLOEXEC) != 0) mismatch("pipe: errno %d", errno);
      const uint64_t once = count - done < 32768 ? count - done : 32768;
      n = ::splice(in->number, &in_at, ends[1], nullptr, once, 0);
      if (n > 0) n = ::splice(ends[0], nullptr, out->number, &out_at, static_cast<size_t>(n), 0);
      ::close(ends[0]);
      ::close(ends[1]);
    }
    if (n <= 0) mismatch("the copy stopped after %lu bytes: %zd, errno %d", done, n, errno);
    done += static_cast<uint64_t>(n);
  }
  write_model(to, to_at, bytes_of(from) + from_at, count);
}

// Where holes are is the file system's affair; that no byte lies in one is not.
void step_seek_data() {
  const unsigned file = pick_file();
  Descriptor* d = descriptor_of(file, true, false);
  const uint64_t size = stage->file[file].size;
  if (size == 0) return say(" nothing");
  say(" f%u", file);
  for (uint64_t at = 0; at < size;) {
    const off_t data = ::lseek(d->number, as_off(at), SEEK_DATA);
    const uint64_t end = data < 0 ? size : static_cast<uint64_t>(data);
    for (uint64_t i = at; i < end; ++i)
      if (bytes_of(file)[i] != 0) mismatch("f%u has a byte at %lu, which lies in a hole", file, i);
    if (data < 0) break;
    at = static_cast<uint64_t>(::lseek(d->number, data, SEEK_HOLE));
  }
}

}  // namespace storm
