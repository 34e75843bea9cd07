// Steps with other processes: fork, vfork, spawn, exec, and one that opens a file by itself.
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>

#include "sequence_kinds.h"
#include "sequence_pick.h"

extern char** environ;

namespace sequence {

namespace {

constexpr uint64_t kBytesMax = 8192;

long code_of(pid_t child) {
  int status = 0;
  while (::waitpid(child, &status, 0) < 0)
    if (errno != EINTR) mismatch("waitpid: errno %d", errno);
  if (WIFSIGNALED(status)) mismatch("the child ended by signal %d", WTERMSIG(status));
  return WEXITSTATUS(status);
}

pid_t fork_or_end() {
  const pid_t child = ::fork();
  if (child < 0) mismatch("fork: errno %d", errno);
  return child;
}

// This program as another process, with these arguments.
long run_self(const char* what, const char* path, uint64_t at, uint64_t count, uint64_t more) {
  char numbers[3][32];
  std::snprintf(numbers[0], sizeof numbers[0], "%lu", at);
  std::snprintf(numbers[1], sizeof numbers[1], "%lu", count);
  std::snprintf(numbers[2], sizeof numbers[2], "%lu", more);
  char self[] = "/proc/self/exe", word[32], file[600];
  std::snprintf(word, sizeof word, "%s", what);
  std::snprintf(file, sizeof file, "%s", path);
  char* arguments[] = {self, word, file, numbers[0], numbers[1], numbers[2], nullptr};
  pid_t child;
  const int error = ::posix_spawn(&child, self, nullptr, nullptr, arguments, environ);
  if (error != 0) mismatch("posix_spawn: errno %d", error);
  return code_of(child);
}

char true_path[] = "/bin/true";
char* true_arguments[] = {true_path, nullptr};

uint64_t hash_of(const uint8_t* bytes, uint64_t count) {
  Hash hash;
  hash.add(bytes, count);
  return hash.value();
}

}  // namespace

void step_fork_read() {
  const Span s = pick_span(false);
  const unsigned file = pick_file();
  say_span(s);
  Bytes reads[4];
  for (Bytes& where : reads) where = pick_readable(kBytesMax);
  const pid_t child = fork_or_end();
  if (child == 0) {  // it says what is wrong, and returns 1
    check_span(s, kPageBytes);
    for (const Bytes& where : reads) check_memory(where);
    check_file(file, 0, kBytesMax, -1);
    ::_exit(0);
  }
  answer(code_of(child), 0);
  look_at(s);
}

// The child writes to what it inherited; what is shared the parent sees, what is private it does
// not.
void step_fork_write() {
  constexpr unsigned kWrites = 3;
  Bytes writes[kWrites];
  for (Bytes& where : writes) {
    where = pick_writable(kBytesMax);
    say_bytes(where);
  }
  const pid_t child = fork_or_end();
  Random numbers(options.seed, step_number, 7);
  uint8_t* bytes = scratch();
  struct {
    unsigned file;
    uint64_t at, count;
  } written[kWrites * (kBytesMax / kPageBytes + 1)];
  unsigned written_count = 0;
  for (const Bytes& where : writes) {
    numbers.fill(bytes, where.count);
    if (child == 0) {
      std::memcpy(where.address, bytes, where.count);
      write_memory(where, bytes);
      check_memory(where);
      continue;
    }
    // Page by page, for one may be shared and the next not.
    for (uint64_t done = 0; done < where.count;) {
      const uint64_t at = where.offset + done;
      const uint64_t left = where.count - done, here = kPageBytes - at % kPageBytes;
      const uint64_t n = left < here ? left : here;
      const Page& page = page_at(where.area, at / kPageBytes);
      if (page.kind == PageKind::kFile && page.is_shared) {
        write_memory({where.area, at, n, nullptr}, bytes + done);
        written[written_count++] = {page.file, page.index * kPageBytes + at % kPageBytes, n};
      }
      done += n;
    }
  }
  if (child == 0) ::_exit(0);
  answer(code_of(child), 0);
  for (const Bytes& where : writes) check_memory(where);
  // The child ended without unmapping: its bytes are in the files.
  for (unsigned i = 0; i < written_count; ++i)
    check_file(written[i].file, written[i].at, written[i].count, -1);
}

// The child maps the file by itself, writes, and ends without unmapping.
void step_fork_map() {
  const unsigned file = pick_file();
  const File& f = model.files[file];
  say(" f%u", file);
  if (f.size == 0) return say(" not done");
  const uint64_t at = random.below(f.size);
  const uint64_t count = random.size(f.size - at < kBytesMax ? f.size - at : kBytesMax);
  say(" at %lu bytes %lu", at, count);
  uint8_t* bytes = scratch();
  random.fill(bytes, count);
  const pid_t child = fork_or_end();
  if (child == 0) {
    const int number = ::open(f.path, O_RDWR);
    void* map = ::mmap(nullptr, f.size, PROT_READ | PROT_WRITE, MAP_SHARED, number, 0);
    if (map == MAP_FAILED) mismatch("mmap in the child: errno %d", errno);
    auto* memory = static_cast<uint8_t*>(map);
    if (std::memcmp(memory, f.bytes, f.size < kBytesMax ? f.size : kBytesMax) != 0)
      mismatch("the child's own mapping shows other bytes");
    std::memcpy(memory + at, bytes, count);
    ::_exit(0);
  }
  answer(code_of(child), 0);
  write_file(file, at, bytes, count);
  check_file(file, at, count, -1);
}

void step_fork_exec() {
  const pid_t child = fork_or_end();
  if (child == 0) {
    ::execv(true_path, true_arguments);
    ::_exit(99);
  }
  answer(code_of(child), 0);
}

void step_vfork() {
  const bool is_exec = random.chance(50);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
  const pid_t child = ::vfork();
#pragma GCC diagnostic pop
  if (child == 0) {
    if (is_exec) ::execv(true_path, true_arguments);
    ::_exit(7);
  }
  if (child < 0) mismatch("vfork: errno %d", errno);
  answer(code_of(child), is_exec ? 0 : 7);
}

void step_spawn() {
  pid_t child;
  answer(-::posix_spawn(&child, true_path, nullptr, nullptr, true_arguments, environ), 0);
  answer(code_of(child), 0);
}

// Another process, which inherits nothing, writes to a file that may be mapped here.
void step_poke() {
  const unsigned file = pick_file();
  const File& f = model.files[file];
  if (f.size == 0) return say(" not done");
  const uint64_t at = random.below(f.size);
  const uint64_t count = random.size(f.size - at < kBytesMax ? f.size - at : kBytesMax);
  const uint64_t seed = random.next();
  const bool is_mapping = random.chance(50);
  say(" f%u at %lu bytes %lu %s", file, at, count, is_mapping ? "by mapping" : "by pwrite");
  uint8_t* bytes = scratch();
  Random(seed).fill(bytes, count);
  answer(run_self(is_mapping ? "--poke" : "--pwrite", f.path, at, count, seed), 0);
  write_file(file, at, bytes, count);
  check_file(file, at, count, -1);
}

// Another process reads a file that may be mapped here, and written to.
void step_peek() {
  const unsigned file = pick_file();
  const File& f = model.files[file];
  if (f.size == 0) return say(" not done");
  const uint64_t at = random.below(f.size);
  const uint64_t count = random.size(f.size - at < 65536 ? f.size - at : 65536);
  say(" f%u at %lu bytes %lu", file, at, count);
  answer(run_self("--peek", f.path, at, count, hash_of(f.bytes + at, count)), 0);
}

int be_other_process(int count, char** arguments) {
  if (count != 6) return 2;
  const char* what = arguments[1];
  const uint64_t at = std::strtoull(arguments[3], nullptr, 10);
  const uint64_t bytes = std::strtoull(arguments[4], nullptr, 10);
  const uint64_t more = std::strtoull(arguments[5], nullptr, 10);
  const bool is_peeking = std::strcmp(what, "--peek") == 0;
  const int number = ::open(arguments[2], is_peeking ? O_RDONLY : O_RDWR);
  if (number < 0 || bytes > kScratchBytes) return 2;
  uint8_t* buffer = scratch();
  const auto offset = static_cast<off_t>(at);
  if (is_peeking) {
    if (::pread(number, buffer, bytes, offset) != static_cast<ssize_t>(bytes)) return 3;
    return hash_of(buffer, bytes) == more ? 0 : 1;
  }
  Random(more).fill(buffer, bytes);
  if (std::strcmp(what, "--pwrite") == 0)
    return ::pwrite(number, buffer, bytes, offset) == static_cast<ssize_t>(bytes) ? 0 : 3;
  void* map = ::mmap(nullptr, at + bytes, PROT_READ | PROT_WRITE, MAP_SHARED, number, 0);
  if (map == MAP_FAILED) return 3;
  std::memcpy(static_cast<uint8_t*>(map) + at, buffer, bytes);
  ::_exit(0);
}

// This program anew, in the middle: its mappings end unsynced, the files must have their bytes.
void step_exec() {
  char self[512];
  const ssize_t n = ::readlink("/proc/self/exe", self, sizeof self - 1);
  if (n <= 0) mismatch("readlink: errno %d", errno);
  self[n] = 0;
  char numbers[5][32], state[300] = "", folder[] = ".";
  const uint64_t values[5] = {options.seed, options.steps, step_number + 1, options.file_bytes,
                              options.threads};
  for (unsigned i = 0; i < 5; ++i) std::snprintf(numbers[i], sizeof numbers[i], "%lu", values[i]);
  for (const File& f : model.files) {
    const size_t length = std::strlen(state);
    std::snprintf(state + length, sizeof state - length, "%lu:%lu,", f.size,
                  hash_of(f.bytes, f.size));
  }
  char words[][16] = {"--seed",    "--steps", "--from", "--file-size",
                      "--threads", "--dir",   "--state"};
  char* arguments[24] = {self};
  unsigned count = 1;
  for (unsigned i = 0; i < 5; ++i) arguments[count++] = words[i], arguments[count++] = numbers[i];
  arguments[count++] = words[5], arguments[count++] = folder;
  arguments[count++] = words[6], arguments[count++] = state;
  char only[] = "--only", without[] = "--not";
  static char lists[2][2048];
  if (options.only != nullptr) {
    std::snprintf(lists[0], sizeof lists[0], "%s", options.only);
    arguments[count++] = only, arguments[count++] = lists[0];
  }
  if (options.without != nullptr) {
    std::snprintf(lists[1], sizeof lists[1], "%s", options.without);
    arguments[count++] = without, arguments[count++] = lists[1];
  }
  end_line();
  ::execv(self, arguments);
  begin_line("exec");
  mismatch("execv: errno %d", errno);
}

void resume() {
  const char* state = options.state;
  for (unsigned i = 0; i < kFilesMax; ++i) {
    File& f = model.files[i];
    char* end;
    const uint64_t size = std::strtoull(state, &end, 10);
    const uint64_t hash = std::strtoull(end + 1, &end, 10);
    state = end + 1;
    const int number = ::open(f.path, O_RDONLY | O_CLOEXEC);
    if (number < 0 || size > f.size_max) mismatch("f%u is not there after the exec", i);
    const off_t length = ::lseek(number, 0, SEEK_END);
    if (static_cast<uint64_t>(length) != size)
      mismatch("f%u has %ld bytes after the exec, expected %lu", i, static_cast<long>(length),
               size);
    for (uint64_t done = 0; done < size;) {
      const ssize_t n = ::pread(number, f.bytes + done, size - done, static_cast<off_t>(done));
      if (n <= 0) mismatch("f%u cannot be read after the exec", i);
      done += static_cast<uint64_t>(n);
    }
    f.size = size;
    if (hash_of(f.bytes, size) != hash) mismatch("f%u has other bytes after the exec", i);
    ::close(number);
  }
}

}  // namespace sequence
