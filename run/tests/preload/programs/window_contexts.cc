// window_contexts DIR [CASE]: what a program has on its stacks, in its registers and in its
// environment is its own: contexts are resumed as often as it likes, the handler of a fault calls
// into a mapping with all signals blocked, and a call there changes no register of vectors.
#include <sys/resource.h>
#include <ucontext.h>

#include <iterator>

#include "window_cases.h"

using namespace program;

namespace {

Mapped file;

[[noreturn]] void fail_round(int round, const char* what) { fail("round %d: %s", round, what); }

// -- contexts that are resumed --

constexpr int kRounds = 20;
ucontext_t here, there;
char other_stack[256 << 10];

[[noreturn]] void come_back() {
  for (;;) ::setcontext(&here);
}

void make_other(void (*f)()) {
  require(::getcontext(&there) == 0, "getcontext");
  there.uc_stack.ss_sp = other_stack;
  there.uc_stack.ss_size = sizeof other_stack;
  there.uc_link = nullptr;
  ::makecontext(&there, f, 0);
}

// Nothing that lies below the caller's frame outlasts it.
[[gnu::noinline]] void overwrite_below(int with) {
  volatile char locals[16 << 10];
  for (volatile char& each : locals) each = static_cast<char>(with);
}

// A page that was evicted, and the calls of C that find their buffers there.
void touch(int round) {
  file.evict();
  const uint64_t at = kRoomBytes + static_cast<uint64_t>(round) * kPageBytes;
  if (file.words()[at / 8] != word_at(1, at / 8)) fail_round(round, "the page shows the file");
  if (::uname(file.as<utsname>(kA)) != 0) fail_round(round, "uname into the mapping");
}

// The frame that called swapcontext is gone on with once more in each round.
void resume_swapped() {
  file = map_new_file();
  make_other(come_back);
  static volatile int round;
  volatile int mine[64];
  for (size_t i = 0; i < std::size(mine); ++i) mine[i] = static_cast<int>(i) + 1000;
  round = 0;
  require(::swapcontext(&here, &there) == 0, "swapcontext");
  round = round + 1;
  overwrite_below(round);
  touch(round);
  for (size_t i = 0; i < std::size(mine); ++i)
    if (mine[i] != static_cast<int>(i) + 1000) fail_round(round, "the frame is another");
  if (round < kRounds) ::setcontext(&here);
  require(round == kRounds, "setcontext does not return");
  require_works(file);
}

void resume_got() {
  file = map_new_file();
  static volatile int round;
  round = 0;
  require(::getcontext(&here) == 0, "getcontext");
  round = round + 1;
  overwrite_below(round);
  touch(round);
  if (round < kRounds) ::setcontext(&here);
  require(round == kRounds, "setcontext does not return");
  require_works(file);
}

// Two that take turns, as coroutines do; each goes on where it was.
volatile int answered;

void answer_turns() {
  for (int turn = 1;; ++turn) {
    overwrite_below(turn);
    touch(turn);
    answered = turn;
    if (::swapcontext(&there, &here) != 0) fail_round(turn, "swapcontext back");
  }
}

void take_turns() {
  file = map_new_file();
  make_other(answer_turns);
  for (int turn = 1; turn <= kRounds; ++turn) {
    if (::swapcontext(&here, &there) != 0) fail_round(turn, "swapcontext");
    overwrite_below(-turn);
    touch(turn);
    if (answered != turn) fail_round(turn, "the other one goes on elsewhere");
  }
  require_works(file);
}

bool is_blocked(int signal) {
  sigset_t mask;
  require(::pthread_sigmask(SIG_BLOCK, nullptr, &mask) == 0, "pthread_sigmask");
  return sigismember(&mask, signal) == 1;
}

// What was blocked when a context was saved is blocked when it is resumed, each time.
void resume_with_mask() {
  file = map_new_file();
  make_other(come_back);
  static volatile int round;
  round = 0;
  sigset_t some;
  sigemptyset(&some);
  sigaddset(&some, SIGUSR1);
  require(::pthread_sigmask(SIG_BLOCK, &some, nullptr) == 0, "pthread_sigmask");
  require(::swapcontext(&here, &there) == 0, "swapcontext");
  round = round + 1;
  if (!is_blocked(SIGUSR1)) fail_round(round, "SIGUSR1 is blocked");
  if (is_blocked(SIGUSR2)) fail_round(round, "SIGUSR2 is not");
  touch(round);
  require(::pthread_sigmask(SIG_UNBLOCK, &some, nullptr) == 0, "pthread_sigmask");
  sigset_t others;
  sigemptyset(&others);
  sigaddset(&others, SIGUSR2);
  require(::pthread_sigmask(SIG_BLOCK, &others, nullptr) == 0, "pthread_sigmask");
  if (round < kRounds) ::setcontext(&here);
  require(round == kRounds, "setcontext does not return");
}

// -- handlers of faults, with all signals blocked --

unsigned char* guard;
volatile int faults;
bool (*work_in_fault)();
volatile bool is_work_well;

void handle_fault(int, siginfo_t* info, void*) {
  if (info->si_addr != guard) fail("a fault elsewhere comes to the program's handler");
  faults = faults + 1;
  file.evict();
  is_work_well = work_in_fault();
  require(::mprotect(guard, kPageBytes, PROT_READ | PROT_WRITE) == 0, "mprotect");
}

void fault_and(bool (*work)()) {
  file = map_new_file();
  guard = static_cast<unsigned char*>(
      ::mmap(nullptr, kPageBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  require(guard != MAP_FAILED, "mmap of the guard");
  struct sigaction action {};
  action.sa_sigaction = handle_fault;
  action.sa_flags = SA_SIGINFO;
  sigfillset(&action.sa_mask);
  require(::sigaction(SIGSEGV, &action, nullptr) == 0, "sigaction");
  work_in_fault = work;
  for (int round = 1; round <= 3; ++round) {
    require(::mprotect(guard, kPageBytes, PROT_NONE) == 0, "mprotect");
    *static_cast<volatile unsigned char*>(guard) = 1;
    if (faults != round) fail_round(round, "the handler is called once");
    if (!is_work_well) fail_round(round, "the handler's call into the mapping succeeds");
  }
  require(!is_blocked(SIGUSR1), "the mask is as before");
  require_works(file);
}

bool touch_mapping() {
  constexpr uint64_t at = kRoomBytes + 8 * kPageBytes;
  return file.words()[at / 8] == word_at(1, at / 8);
}
bool ask_name() { return ::uname(file.as<utsname>(kA)) == 0; }
bool ask_usage() { return ::getrusage(RUSAGE_SELF, file.as<rusage>(kB)) == 0; }
bool ask_usage_raw() {
  return call_raw(SYS_getrusage, RUSAGE_SELF, reinterpret_cast<long>(file.at(kA))) == 0;
}

// -- registers of vectors --

constexpr unsigned kStackAlignment = 64;

// getrusage by an instruction of the program's own, with the stack at that place in a line of the
// cache; whether a whole register of vectors is afterwards what it was.
[[gnu::target("avx"), gnu::noinline]] bool keeps_vector(unsigned residue, unsigned char* at) {
  unsigned char before[32], after[32];
  for (size_t i = 0; i < sizeof before; ++i) before[i] = static_cast<unsigned char>(i + 1);
  std::memset(after, 0, sizeof after);
  long result;
  asm volatile(
      "vmovdqu %[before], %%ymm5\n\t"
      "movq %%rsp, %%r12\n\t"
      "andq $-64, %%rsp\n\t"
      "subq $4096, %%rsp\n\t"  // past the red zone
      "addq %[residue], %%rsp\n\t"
      "movl %[number], %%eax\n\t"
      "syscall\n\t"
      "movq %%r12, %%rsp\n\t"
      "vmovdqu %%ymm5, %[after]\n\t"
      : "=&a"(result), [after] "=m"(after)
      : [before] "m"(before), [residue] "r"(uint64_t{residue}), [number] "i"(SYS_getrusage),
        "D"(long{RUSAGE_SELF}), "S"(at)
      : "rcx", "r11", "r12", "memory", "xmm5");
  if (result != 0) fail("getrusage into the mapping is %ld", result);
  return std::memcmp(before, after, sizeof before) == 0;
}

volatile int vectors_kept;

void count_kept_vectors(int) {
  for (unsigned residue = 0; residue < kStackAlignment; residue += 4) {
    if (!keeps_vector(residue, file.at(kA))) fail("with the stack at %u YMM5 is lost", residue);
    vectors_kept = vectors_kept + 1;
  }
}

void keep_vectors(bool is_handed_back, int flags) {
  if (!__builtin_cpu_supports("avx")) return;
  file = map_new_file();
  if (is_handed_back) hand_back(file);
  constexpr size_t kStackBytes = 1 << 20;
  void* const memory =
      ::mmap(nullptr, kStackBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  require(memory != MAP_FAILED, "mmap of the stack");
  const stack_t stack{memory, 0, kStackBytes};
  require(::sigaltstack(&stack, nullptr) == 0, "sigaltstack");
  struct sigaction action {};
  action.sa_handler = count_kept_vectors;
  action.sa_flags = flags;
  require(::sigaction(SIGUSR1, &action, nullptr) == 0, "sigaction");
  vectors_kept = 0;
  require(::raise(SIGUSR1) == 0, "raise");
  count_kept_vectors(0);
  require(vectors_kept == 2 * kStackAlignment / 4, "each was tried");
}

// -- the environment --

// Where a mapping lies that some `outcore run` has made a place for. Not root's may stay with the
// kernel: where nothing tells who else opens a file for writing.
void require_in_window(bool is_offered, const Mapped& p) {
  constexpr uint64_t first = 0x4000'0000'0000, end = 0x5000'0000'0000;
  const auto at = reinterpret_cast<uint64_t>(p.m);
  if (is_offered && ::geteuid() == 0 && (at < first || at >= end))
    fail("the mapping lies at %p", p.m);
}

bool is_window_offered() {
  const char* const place = std::getenv("OUTCORE_RUN_WINDOW");
  return place != nullptr && *place != 0 && std::strncmp(place, "none", 4) != 0;
}

void map_then(void (*change_environment)()) {
  const bool is_offered = is_window_offered();
  change_environment();
  file = map_new_file();
  require_in_window(is_offered, file);
  require_works(file);
}

// As programs do that write their state over what `ps` shows.
void overwrite_environment() {
  for (char** each = ::environ; *each != nullptr; ++each) std::memset(*each, 0, std::strlen(*each));
}

const Case kCases[] = {
    {"swapped", resume_swapped},
    {"got", resume_got},
    {"turns", take_turns},
    {"mask", resume_with_mask},
    {"fault-and-touch", [] { fault_and(touch_mapping); }},
    {"fault-and-uname", [] { fault_and(ask_name); }},
    {"fault-and-getrusage", [] { fault_and(ask_usage); }},
    {"fault-and-raw-call", [] { fault_and(ask_usage_raw); }},
    {"vectors", [] { keep_vectors(false, 0); }},
    {"vectors-on-other-stack", [] { keep_vectors(false, SA_ONSTACK); }},
    {"vectors-handed-back", [] { keep_vectors(true, 0); }},
    {"vectors-handed-back-on-other-stack", [] { keep_vectors(true, SA_ONSTACK); }},
    {"same-environment", [] { map_then([] {}); }},
    {"no-environment", [] { map_then([] { ::clearenv(); }); }},
    {"overwritten-environment", [] { map_then(overwrite_environment); }},
};

}  // namespace

int main(int count, char** arguments) { return run_cases(count, arguments, kCases); }
