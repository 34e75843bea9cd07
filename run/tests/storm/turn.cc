#include "turn.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <ucontext.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <cstring>

#include "own.h"

namespace storm {

thread_local Me me;
thread_local Random random(0);
thread_local Hash seen;
thread_local const char* deed = "";

namespace {

constexpr size_t kLineMax = 2048;
char line[kLineMax];
size_t line_length = 0;

void append(char* to, size_t& length, const char* format, va_list arguments) {
  const int n = std::vsnprintf(to + length, kLineMax - length, format, arguments);
  if (n > 0) length += static_cast<size_t>(n);
  if (length >= kLineMax - 1) length = kLineMax - 2;
}

// By write(2), so that nothing is lost or printed twice by exec, fork and _exit.
void print(char* text, size_t length) {
  text[length++] = '\n';
  for (size_t done = 0; done < length;) {
    const ssize_t n = ::write(STDOUT_FILENO, text + done, length - done);
    if (n < 0 && errno != EINTR) ::_exit(3);
    if (n > 0) done += static_cast<size_t>(n);
  }
}

void on_fault(int signal, siginfo_t* info, void* context) {
  const auto* address = static_cast<uint8_t*>(info->si_addr);
  for (unsigned i = 0; i < kWindowsMax; ++i) {
    const Window& w = own.windows[i];
    if (!w.is_used || address < w.base || address >= w.base + w.pages * kPageBytes) continue;
    mismatch("signal %d code %d in window w%u of f%u, byte %lu of %lu pages, protection %d", signal,
             info->si_code, i, w.file, address - w.base, w.pages, w.prot);
  }
  for (unsigned i = 0; i < kBlocksMax; ++i) {
    const Block& b = own.blocks[i];
    if (address >= b.bytes && address < b.bytes + b.count)
      mismatch("signal %d code %d in block b%u at %lu", signal, info->si_code, i,
               address - b.bytes);
  }
  // Where the instruction is says whose fault it is.
  const auto* state = static_cast<ucontext_t*>(context);
  const auto instruction = static_cast<uint64_t>(state->uc_mcontext.gregs[REG_RIP]);
  Dl_info where = {};
  ::dladdr(reinterpret_cast<void*>(instruction), &where);
  mismatch("signal %d code %d at %p, in no window or block, by %s+%lx", signal, info->si_code,
           info->si_addr, where.dli_fname != nullptr ? where.dli_fname : "nothing",
           instruction - reinterpret_cast<uint64_t>(where.dli_fbase));
}

// Handlers of a fork use files, as those of programs do.
void open_a_file() {
  const int number = ::open("./f0", O_RDONLY | O_CLOEXEC);
  char byte;
  if (::pread(number, &byte, 1, 0) < 0) mismatch("pread within fork: errno %d", errno);
  ::close(number);
}

}  // namespace

void say(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  append(line, line_length, format, arguments);
  va_end(arguments);
}

void begin_line(const char* kind) {
  line_length = 0;
  seen = Hash();
  say("%lu p%u.%u %s", stage->step, me.process, me.thread, kind);
}

void end_line() {
  say(" hash %016lx", seen.value());
  print(line, line_length);
  line_length = 0;
}

void mismatch(const char* format, ...) {
  char text[kLineMax];
  size_t length = 0;
  va_list arguments;
  va_start(arguments, format);
  append(text, length, format, arguments);
  va_end(arguments);
  char whole[2 * kLineMax];
  std::snprintf(whole, sizeof whole, "MISMATCH seed %lu step %lu p%u.%u: %s (in: %.*s)",
                stage->seed, stage->step, me.process, me.thread, text,
                static_cast<int>(line_length), line);
  print(whole, std::strlen(whole));
  stage->has_failed = 1;
  wake(stage->at_work);
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

void expect(long got, long expected, const char* what) {
  if (got != expected) mismatch("%s gave %ld, expected was %ld", what, got, expected);
}

void check_bytes(const uint8_t* got, const uint8_t* expected, uint64_t count, const char* what,
                 unsigned index, uint64_t at) {
  static thread_local uint8_t copy[kPageBytes];
  for (uint64_t done = 0; done < count; done += kPageBytes) {
    const uint64_t n = count - done < kPageBytes ? count - done : kPageBytes;
    std::memcpy(copy, got + done, n);
    seen.add(copy, n);
    if (std::memcmp(copy, expected + done, n) == 0) continue;
    uint64_t i = 0;
    while (copy[i] == expected[done + i]) ++i;
    uint64_t others = 0;
    for (uint64_t k = i; k < n; ++k) others += copy[k] != expected[done + k] ? 1 : 0;
    mismatch("%s%u at %lu (page %lu): %02x, expected %02x; %lu bytes of this piece differ", what,
             index, at + done + i, (at + done + i) / kPageBytes, copy[i], expected[done + i],
             others);
  }
}

void install_handlers() {
  if (stage->level >= 3) ::pthread_atfork(open_a_file, open_a_file, open_a_file);
  struct sigaction action = {};
  action.sa_sigaction = on_fault;
  action.sa_flags = SA_SIGINFO;
  sigemptyset(&action.sa_mask);
  for (const int signal : {SIGSEGV, SIGBUS}) ::sigaction(signal, &action, nullptr);
}

}  // namespace storm
