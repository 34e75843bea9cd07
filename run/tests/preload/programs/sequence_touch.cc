// Steps that touch memory: plainly, where it must fail, under masks, in handlers and in threads.
#include <pthread.h>
#include <unistd.h>

#include "sequence_kinds.h"
#include "sequence_pick.h"

namespace sequence {

namespace {

// Fills memory with random bytes, and the model with the same.
void write_random(const Bytes& where, Random& from) {
  uint8_t* bytes = scratch();
  from.fill(bytes, where.count);
  std::memcpy(where.address, bytes, where.count);
  write_memory(where, bytes);
}

void read_and_write() {
  const Bytes to_read = pick_readable(2 * kPageBytes);
  say_bytes(to_read);
  check_memory(to_read);
  const Bytes to_write = pick_writable(2 * kPageBytes);
  say_bytes(to_write);
  write_random(to_write, random);
  check_memory(to_write);
}

}  // namespace

void step_read_memory() {
  const Bytes where = pick_readable(random.chance(10) ? 1 << 20 : 4 * kPageBytes);
  say_bytes(where);
  check_memory(where);
}

void step_write_memory() {
  const Bytes where = pick_writable(random.chance(10) ? 1 << 20 : 4 * kPageBytes);
  say_bytes(where);
  const uint64_t at = (8 - where.offset % 8) % 8;
  if (random.chance(30) && where.count >= at + 8) {  // a locked instruction: read and write at once
    const Bytes word{where.area, where.offset + at, 8, where.address + at};
    uint64_t old, sum;
    read_memory(word, reinterpret_cast<uint8_t*>(&old));
    const uint64_t more = random.next();
    const uint64_t got =
        __atomic_fetch_add(reinterpret_cast<uint64_t*>(word.address), more, __ATOMIC_SEQ_CST);
    if (got != old) mismatch("an addition found %lx, expected %lx", got, old);
    sum = old + more;
    write_memory(word, reinterpret_cast<uint8_t*>(&sum));
    say(" add");
  } else {
    write_random(where, random);
  }
  check_memory(where);
}

void step_touch() {
  for (unsigned i = 0; i < 4; ++i) {
    const Span s = pick_span(true);
    const uint64_t page = s.first + random.below(s.count);
    touch_and_check(s.area, page * kPageBytes + random.below(kPageBytes), random.chance(50));
  }
}

// A mapping that is longer than its file: to its last byte, and one further.
void step_touch_behind_end() {
  const Descriptor& d = pick_descriptor(true, true);
  say(" d%u", slot_of(d));
  File& f = model.files[d.file];
  if (f.size == 0 || f.size == f.size_max) {
    const uint64_t size = 1 + random.below(f.size_max - 1);
    say(" ftruncate %lu", size);
    answer(outcome(::ftruncate(d.number, static_cast<off_t>(size))), 0);
    resize_file(d.file, size);
  }
  const uint64_t longer = (f.pages() + 1 + random.below(4)) * kPageBytes;
  const uint64_t place = random.below(model.pages_max - longer / kPageBytes + 1);
  map_file(d, 0, longer, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, {kArena, place}, 0);
  const uint64_t first = place * kPageBytes;
  const bool is_write = random.chance(50);
  touch_and_check(kArena, first + f.size - 1, is_write);
  touch_and_check(kArena, first + f.pages() * kPageBytes, is_write);
  touch_and_check(kArena, first + longer - 1, !is_write);
  if (random.chance(50)) return;
  const uint64_t cut = random.below(f.size);
  say(" ftruncate %lu", cut);
  answer(outcome(::ftruncate(d.number, static_cast<off_t>(cut))), 0);
  resize_file(d.file, cut);
  touch_and_check(kArena, first + f.pages() * kPageBytes, is_write);
  if (cut > 0) touch_and_check(kArena, first + cut - 1, is_write);
}

// A program may block every signal and touch its memory all the same.
void step_masked() {
  sigset_t all, before;
  ::sigfillset(&all);
  ::sigprocmask(SIG_BLOCK, &all, &before);
  read_and_write();
  // What is blocked stays blocked, as the program sees it.
  sigset_t now;
  ::sigprocmask(SIG_BLOCK, nullptr, &now);
  const int signals[] = {SIGBUS, SIGSEGV, SIGUSR1, SIGTERM, SIGIO};
  say(" mask");
  for (const int signal : signals) {
    say(" %d", ::sigismember(&now, signal));
    if (::sigismember(&now, signal) != 1) mismatch("signal %d is no longer blocked", signal);
  }
  ::sigprocmask(SIG_SETMASK, &before, nullptr);
}

namespace {

Bytes handler_reads, handler_writes;
volatile sig_atomic_t handled = 0;

void on_usr1(int) {
  check_memory(handler_reads);
  Random numbers(options.seed, step_number, 99);
  write_random(handler_writes, numbers);
  check_memory(handler_writes);
  handled = handled + 1;
}

}  // namespace

void step_usr1() {
  struct sigaction action = {}, before = {};
  action.sa_handler = on_usr1;
  action.sa_flags = random.chance(50) ? SA_RESTART : 0;
  if (random.chance(30)) ::sigfillset(&action.sa_mask);
  ::sigaction(SIGUSR1, &action, &before);
  handler_reads = pick_readable(2 * kPageBytes);
  handler_writes = pick_writable(2 * kPageBytes);
  say_bytes(handler_reads);
  say_bytes(handler_writes);
  const sig_atomic_t was = handled;
  answer(outcome(random.chance(50) ? ::raise(SIGUSR1) : ::kill(::getpid(), SIGUSR1)), 0);
  if (handled != was + 1) mismatch("the handler of SIGUSR1 did not run");
  ::sigaction(SIGUSR1, &before, nullptr);
}

void step_sigaltstack() {
  stack_t ours = {}, before = {};
  ours.ss_sp = signal_stack;
  ours.ss_size = kSignalStackBytes;
  answer(outcome(::sigaltstack(&ours, &before)), 0);
  install_handlers(SA_ONSTACK);
  read_and_write();
  const Span s = pick_span(true);
  for (uint64_t i = s.first; i < s.end(); ++i) {
    uint8_t* at = address_of({s.area, i, 1});
    const Fault wanted = expected_fault(page_at(s.area, i), at, false);
    if (wanted.signal == 0) continue;
    uint8_t value = 0;
    const Fault got = touch(at, false, &value);
    say(" a%u+%lu signal %d", s.area, i, got.signal);
    if (got.signal != wanted.signal || got.address != at) mismatch("expected %d", wanted.signal);
    if (!got.was_on_stack_of_signals) mismatch("the handler ran on the program's own stack");
    break;
  }
  install_handlers(0);
  ours.ss_flags = SS_DISABLE;
  answer(outcome(::sigaltstack(&ours, nullptr)), 0);
}

namespace {

constexpr unsigned kThreadsMax = 64;
constexpr unsigned kTouches = 64;

// A thread's part of the memory, and what it must hold. Parts do not overlap, but share pages.
struct Part {
  Bytes where;
  uint8_t* expected;
  unsigned number;
  uint64_t wrong;
};

// The same in the thread, on memory, and afterwards on the model.
template <typename Read, typename Write>
void touch_part(const Part& part, Read read, Write write) {
  Random numbers(options.seed, step_number, part.number + 1);
  for (unsigned i = 0; i < kTouches; ++i) {
    const uint64_t at = numbers.below(part.where.count);
    const uint64_t left = part.where.count - at;
    uint8_t bytes[512];
    const uint64_t count = numbers.size(left < sizeof bytes ? left : sizeof bytes);
    if (numbers.chance(50)) {
      read(at, count);
    } else {
      numbers.fill(bytes, count);
      write(at, bytes, count);
    }
  }
}

void* run_part(void* argument) {
  Part& part = *static_cast<Part*>(argument);
  touch_part(
      part,
      [&part](uint64_t at, uint64_t count) {
        part.wrong += std::memcmp(part.where.address + at, part.expected + at, count) != 0;
      },
      [&part](uint64_t at, const uint8_t* bytes, uint64_t count) {
        std::memcpy(part.where.address + at, bytes, count);
        std::memcpy(part.expected + at, bytes, count);
      });
  return nullptr;
}

}  // namespace

void step_threads() {
  const unsigned threads = options.threads < kThreadsMax ? options.threads : kThreadsMax;
  Bytes all = pick_writable(kScratchBytes / 2);
  say_bytes(all);
  if (threads == 0 || all.count < threads) return;
  static Part parts[kThreadsMax];
  pthread_t ids[kThreadsMax];
  read_memory(all, scratch());
  const uint64_t share = all.count / threads;
  for (unsigned i = 0; i < threads; ++i) {
    parts[i] = {{all.area, all.offset + i * share, share, all.address + i * share},
                scratch() + i * share,
                i,
                0};
    if (::pthread_create(&ids[i], nullptr, run_part, &parts[i]) != 0) mismatch("no thread");
  }
  for (unsigned i = 0; i < threads; ++i) ::pthread_join(ids[i], nullptr);
  for (unsigned i = 0; i < threads; ++i) {
    const Bytes& where = parts[i].where;
    if (parts[i].wrong != 0) mismatch("thread %u read %lu times wrong", i, parts[i].wrong);
    touch_part(
        parts[i], [](uint64_t, uint64_t) {},
        [&where](uint64_t at, const uint8_t* bytes, uint64_t count) {
          write_memory({where.area, where.offset + at, count, where.address + at}, bytes);
        });
  }
  check_memory(all);
}

}  // namespace sequence
