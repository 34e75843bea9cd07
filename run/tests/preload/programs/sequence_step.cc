#include "sequence_step.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>

namespace sequence {

Options options;
uint64_t step_number = 0;
Random random(0);
Hash seen;
uint8_t signal_stack[kSignalStackBytes];

namespace {

constexpr size_t kLineMax = 4096;
char line[kLineMax];
size_t line_length = 0;

void append(const char* format, va_list arguments) {
  const int n = std::vsnprintf(line + line_length, kLineMax - line_length, format, arguments);
  if (n > 0) line_length += static_cast<size_t>(n);
  if (line_length >= kLineMax) line_length = kLineMax - 1;
}

// By write(2), so that nothing is lost or printed twice by exec, fork and _exit.
void print(int number) {
  if (line_length == kLineMax - 1) --line_length;
  line[line_length++] = '\n';
  size_t done = 0;
  while (done < line_length) {
    const ssize_t n = ::write(number, line + done, line_length - done);
    if (n < 0 && errno != EINTR) ::_exit(3);
    if (n > 0) done += static_cast<size_t>(n);
  }
  line_length = 0;
}

sigjmp_buf after_fault;
thread_local volatile sig_atomic_t is_expecting = 0;
Fault volatile fault;

void on_fault(int signal, siginfo_t* info, void*) {
  auto* address = static_cast<uint8_t*>(info->si_addr);
  if (!is_expecting) {
    for (unsigned i = 0; i < kAreasMax; ++i) {
      const Area& area = model.areas[i];
      if (!area.is_used || address < area.base || address >= area.base + area.count * kPageBytes)
        continue;
      mismatch("signal %d code %d at a%u+%lu where none may come", signal, info->si_code, i,
               address - area.base);
    }
    mismatch("signal %d code %d outside all memory", signal, info->si_code);
  }
  is_expecting = 0;
  auto* here = reinterpret_cast<uint8_t*>(&info);
  fault.signal = signal;
  fault.code = info->si_code;
  fault.address = address;
  fault.was_on_stack_of_signals = here >= signal_stack && here < signal_stack + kSignalStackBytes;
  siglongjmp(after_fault, 1);
}

}  // namespace

void say(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  append(format, arguments);
  va_end(arguments);
}

void begin_line(const char* kind) {
  line_length = 0;
  seen = Hash();
  say("%lu %s", step_number, kind);
}

void end_line() {
  say(" hash %016lx", seen.value());
  print(STDOUT_FILENO);
}

void mismatch(const char* format, ...) {
  static char so_far[kLineMax];
  line[line_length] = 0;
  std::snprintf(so_far, sizeof so_far, "%s", line);
  line_length = 0;
  say("MISMATCH step %lu seed %lu: ", step_number, options.seed);
  va_list arguments;
  va_start(arguments, format);
  append(format, arguments);
  va_end(arguments);
  say(" (in: %s)", so_far);
  print(STDOUT_FILENO);
  ::_exit(1);
}

long outcome(long value) { return value == -1 ? -errno : value; }

long answer(long got, long expected) {
  if (got < 0) {
    const char* name = strerrorname_np(static_cast<int>(-got));
    say(" = %s", name != nullptr ? name : "an unknown error");
  } else {
    say(" = %ld", got);
  }
  if (expected != kAnything && got != expected)
    mismatch("the call gave %ld, expected was %ld", got, expected);
  return got;
}

void check_memory(const Bytes& where) {
  for (uint64_t done = 0; done < where.count;) {
    const uint64_t page = (where.offset + done) / kPageBytes;
    const uint64_t at = (where.offset + done) % kPageBytes;
    const uint64_t left = where.count - done;
    const uint64_t n = left < kPageBytes - at ? left : kPageBytes - at;
    const uint8_t* expected = bytes_of(page_at(where.area, page)) + at;
    uint8_t got[kPageBytes];
    std::memcpy(got, where.address + done, n);
    seen.add(got, n);
    for (uint64_t i = 0; std::memcmp(got, expected, n) != 0 && i < n; ++i) {
      if (got[i] == expected[i]) continue;
      const Page& p = page_at(where.area, page);
      mismatch("memory a%u page %lu byte %lu is %02x, expected %02x (f%u page %u, %s%s)",
               where.area, page, at + i, got[i], expected[i], p.file, p.index,
               p.is_shared ? "shared" : "private", p.copy != nullptr ? ", copied" : "");
    }
    done += n;
  }
}

void check_span(const Span& s, uint64_t bytes_max) {
  for (uint64_t i = s.first; i < s.end(); ++i) {
    uint64_t n = readable_bytes(page_at(s.area, i));
    if (n > bytes_max) n = bytes_max;
    if (n > 0) check_memory({s.area, i * kPageBytes, n, address_of({s.area, i, 1})});
  }
}

void check_file(unsigned file, uint64_t at, uint64_t count, int number) {
  const File& f = model.files[file];
  const int own = number < 0 ? ::open(f.path, O_RDONLY | O_CLOEXEC) : -1;
  if (number < 0 && own < 0) mismatch("f%u does not open: errno %d", file, errno);
  uint8_t got[4 * kPageBytes];
  for (uint64_t done = 0; done < count;) {
    const uint64_t n = count - done < sizeof got ? count - done : sizeof got;
    const uint64_t left = at + done < f.size ? f.size - at - done : 0;
    const auto expected = static_cast<ssize_t>(n < left ? n : left);
    const ssize_t r = ::pread(own < 0 ? number : own, got, n, static_cast<off_t>(at + done));
    if (r != expected)
      mismatch("pread of f%u at %lu gave %ld, expected %ld", file, at + done, static_cast<long>(r),
               static_cast<long>(expected));
    seen.add(got, static_cast<uint64_t>(r));
    const uint8_t* wanted = f.bytes + at + done;
    for (ssize_t i = 0; std::memcmp(got, wanted, static_cast<size_t>(r)) != 0 && i < r; ++i)
      if (got[i] != wanted[i])
        mismatch("f%u byte %lu read by pread is %02x, expected %02x", file,
                 at + done + static_cast<uint64_t>(i), got[i], wanted[i]);
    if (r == 0) break;
    done += n;
  }
  if (own >= 0) ::close(own);
}

void check_everything() {
  for (unsigned i = 0; i < kFilesMax; ++i) {
    check_file(i, 0, model.files[i].size + 1, -1);
    seen.add(model.files[i].size);
  }
  for (unsigned i = 0; i < kAreasMax; ++i)
    if (model.areas[i].is_used) check_span({i, 0, model.areas[i].count}, kPageBytes);
}

void install_handlers(int flags) {
  struct sigaction action = {};
  action.sa_sigaction = on_fault;
  action.sa_flags = SA_SIGINFO | flags;
  ::sigemptyset(&action.sa_mask);
  if (::sigaction(SIGSEGV, &action, nullptr) != 0 || ::sigaction(SIGBUS, &action, nullptr) != 0)
    mismatch("sigaction: errno %d", errno);
}

Fault touch(uint8_t* at, bool is_write, uint8_t* value) {
  fault.signal = 0;
  if (sigsetjmp(after_fault, 1) == 0) {
    is_expecting = 1;
    if (is_write)
      *static_cast<volatile uint8_t*>(at) = *value;
    else
      *value = *static_cast<volatile uint8_t*>(at);
    is_expecting = 0;
  }
  return {fault.signal, fault.code, fault.address, fault.was_on_stack_of_signals};
}

Fault expected_fault(const Page& page, uint8_t* at, bool is_write) {
  const int need = is_write ? PROT_WRITE : PROT_READ;
  if (page.kind == PageKind::kGone) return {SIGSEGV, SEGV_MAPERR, at, false};
  if ((page.prot & need) == 0) return {SIGSEGV, SEGV_ACCERR, at, false};
  if (is_behind_end(page)) return {SIGBUS, BUS_ADRERR, at, false};
  return {0, 0, nullptr, false};
}

void touch_and_check(unsigned area, uint64_t offset, bool is_write) {
  const Page& page = page_at(area, offset / kPageBytes);
  uint8_t* at = model.areas[area].base + offset;
  const Fault wanted = expected_fault(page, at, is_write);
  if (is_write && wanted.signal == 0 && offset % kPageBytes >= writable_bytes(page)) return;
  uint8_t value = static_cast<uint8_t>(random.next());
  say(" %s a%u+%lu", is_write ? "write" : "read", area, offset);
  const Fault got = touch(at, is_write, &value);
  if (got.signal != 0) say(" signal %d code %d", got.signal, got.code);
  if (got.signal != wanted.signal || (got.signal != 0 && got.code != wanted.code))
    mismatch("the touch raised signal %d, expected %d code %d", got.signal, wanted.signal,
             wanted.code);
  if (got.signal != 0 && got.address != at)
    mismatch("si_addr is %ld bytes off", static_cast<long>(got.address - at));
  const Bytes byte{area, offset, 1, at};
  if (got.signal == 0 && is_write) write_memory(byte, &value);
  if (got.signal == 0) check_memory(byte);
}

}  // namespace sequence
