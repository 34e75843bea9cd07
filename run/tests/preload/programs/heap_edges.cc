// heap_edges DIR: what a program does to parts of mappings and blocks, at edges that are not those
// of Outcore's pages, beside memory that is the kernel's, and by several threads at once.
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <ucontext.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstddef>

#include "program.h"

using namespace program;

namespace {

constexpr uint64_t kBytes = 128 << 10;
constexpr int kWritable = PROT_READ | PROT_WRITE;

std::byte* mapping(uint64_t bytes, int value) {
  void* const p = ::mmap(nullptr, bytes, kWritable, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  require(p != MAP_FAILED, "mmap");
  std::memset(p, value, bytes);
  return static_cast<std::byte*>(p);
}

bool has_all(const std::byte* p, uint64_t bytes, int value) {
  for (uint64_t i = 0; i < bytes; ++i)
    if (p[i] != std::byte(value)) return false;
  return true;
}

// A file, or a guard page, is mapped over one end; the rest goes.
void neighbours_stay(uint64_t at) {
  std::byte* const p = mapping(kBytes, 7);
  void* const other =
      ::mmap(p + at, kPageBytes, kWritable, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
  require(other == p + at, "a mapping over an end");
  std::memset(other, 42, kPageBytes);
  std::byte* const rest = at == 0 ? p + kPageBytes : p;
  require(has_all(rest, kBytes - kPageBytes, 7), "the rest");
  require(::munmap(rest, kBytes - kPageBytes) == 0, "munmap of the rest");
  require(has_all(p + at, kPageBytes, 42), "what was mapped over an end");
  std::free(std::malloc(kBytes));
  require(::munmap(other, kPageBytes) == 0, "munmap of the end");
}

void moved_and_left(uint64_t bytes) {
  std::byte* const p = mapping(bytes, 9);
  void* const moved = ::mremap(p, bytes, bytes, MREMAP_MAYMOVE | MREMAP_DONTUNMAP, nullptr);
  require(moved != MAP_FAILED && moved != p, "mremap leaves the old place");
  require(has_all(static_cast<std::byte*>(moved), bytes, 9), "what was moved");
  require(has_all(p, bytes, 0), "what it has left reads zero");
  require(::munmap(moved, bytes) == 0 && ::munmap(p, bytes) == 0, "munmap of both");
}

// What the program may not write just now becomes zero all the same.
void given_up_where(int protection) {
  std::byte* const p = mapping(kBytes, 7);
  require(::mprotect(p, kBytes, protection) == 0, "mprotect");
  require(::madvise(p + kPageBytes, kPageBytes, MADV_DONTNEED) == 0, "MADV_DONTNEED");
  require(::mprotect(p, kBytes, kWritable) == 0, "mprotect back");
  require(has_all(p, kPageBytes, 7), "before");
  require(has_all(p + kPageBytes, kPageBytes, 0), "what was given up");
  require(has_all(p + 2 * kPageBytes, kBytes - 2 * kPageBytes, 7), "behind");
  require(::madvise(p, kBytes - kPageBytes, MADV_DONTNEED) == 0, "MADV_DONTNEED again");
  require(has_all(p, kBytes - kPageBytes, 0), "all but the last page");
  require(has_all(p + kBytes - kPageBytes, kPageBytes, 7), "the last page");
  require(::munmap(p, kBytes) == 0, "munmap");
}

// Meanwhile another thread makes such memory executable, which only the kernel can.
std::atomic<bool> is_over{false};
void* map_again_and_again(void*) {
  while (!is_over) require(::munmap(mapping(64 << 10, 1), 64 << 10) == 0, "munmap beside");
  return nullptr;
}
void* map_executable(void*) {
  for (int i = 0; i < 300; ++i) {
    std::byte* const p = mapping(64 << 10, 3);
    require(::mprotect(p, 64 << 10, kWritable | PROT_EXEC) == 0, "mprotect for code");
    require(has_all(p, 64 << 10, 3), "what is to be code");
    std::memset(p, 4, 64 << 10);
    require(::munmap(p, 64 << 10) == 0, "munmap of code");
  }
  return nullptr;
}

void* unmap_first_half(void* p) {
  require(::munmap(p, kBytes) == 0, "munmap of the first half");
  return nullptr;
}

// One thread unmaps the first half, while another makes the second longer.
void grown_while_cut() {
  for (int i = 0; i < 300; ++i) {
    std::byte* const p = mapping(2 * kBytes, 5);
    pthread_t thread;
    require(::pthread_create(&thread, nullptr, unmap_first_half, p) == 0, "a thread");
    uint64_t bytes = kBytes;
    void* const half = ::mremap(p + kBytes, bytes, bytes + (64 << 10), 0);
    if (half != MAP_FAILED) bytes += 64 << 10;
    require(::pthread_join(thread, nullptr) == 0, "join");
    void* const more = ::mremap(p + kBytes, bytes, bytes + (64 << 10), MREMAP_MAYMOVE);
    require(more != MAP_FAILED, "mremap once more");
    auto* const all = static_cast<std::byte*>(more);
    require(has_all(all, kBytes, 5), "the second half");
    require(has_all(all + kBytes, bytes + (64 << 10) - kBytes, 0), "what is new reads zero");
    require(::munmap(more, bytes + (64 << 10)) == 0, "munmap of all");
  }
}

// One thread counts in every page, while another makes the memory what only the kernel can give.
struct Counted {
  std::byte* memory;
  std::atomic<uint64_t> rounds{0};
  std::atomic<bool> is_over{false};
};
void* count_in_all(void* p) {
  auto& counted = *static_cast<Counted*>(p);
  for (uint64_t round = 1; !counted.is_over; ++round) {
    for (uint64_t at = 0; at < kBytes; at += kPageBytes) {
      auto& cell = *reinterpret_cast<std::atomic<uint64_t>*>(counted.memory + at);
      require(cell.load(std::memory_order_relaxed) == round - 1, "what was counted is there");
      cell.store(round, std::memory_order_relaxed);
    }
    counted.rounds = round;
  }
  return nullptr;
}
void counts_go_on(bool is_code, uint64_t from, uint64_t bytes) {
  for (int i = 0; i < 6; ++i) {
    Counted counted{mapping(kBytes, 0)};
    pthread_t thread;
    require(::pthread_create(&thread, nullptr, count_in_all, &counted) == 0, "a thread");
    const auto goes_on = [&] {
      for (const uint64_t now = counted.rounds; counted.rounds < now + 2;) ::sched_yield();
    };
    goes_on();
    if (is_code)
      require(::mprotect(counted.memory + from, bytes, kWritable | PROT_EXEC) == 0, "for code");
    else
      require(::madvise(counted.memory + from, bytes, MADV_DONTFORK) == 0, "MADV_DONTFORK");
    goes_on();
    counted.is_over = true;
    require(::pthread_join(thread, nullptr) == 0, "join");
    require(::munmap(counted.memory, kBytes) == 0, "munmap");
  }
}

sigjmp_buf before_touch;
void go_back(int) { ::siglongjmp(before_touch, 1); }
bool can_be_read(const std::byte* p) {
  struct sigaction handler {
  }, saved{};
  handler.sa_handler = go_back;
  ::sigaction(SIGSEGV, &handler, &saved);
  bool is_read = false;
  if (sigsetjmp(before_touch, 1) == 0) {
    std::atomic<int> seen{std::to_integer<int>(*p)};
    is_read = seen.load() < 256;
  }
  ::sigaction(SIGSEGV, &saved, nullptr);
  return is_read;
}

// A part of inaccessible memory becomes the kernel's: the rest stays inaccessible.
void stays_inaccessible() {
  std::byte* const p = mapping(kBytes, 6);
  require(::mprotect(p, kBytes, PROT_NONE) == 0, "PROT_NONE");
  require(::madvise(p + kPageBytes, kPageBytes, MADV_DONTNEED) == 0, "MADV_DONTNEED");
  require(::mprotect(p + kBytes / 2, kPageBytes, PROT_READ | PROT_EXEC) == 0, "for code");
  for (uint64_t at = 0; at < kBytes; at += kPageBytes)
    require(can_be_read(p + at) == (at == kBytes / 2), "PROT_NONE stays");
  require(::mprotect(p, kBytes, PROT_READ) == 0, "PROT_READ");
  require(has_all(p, kPageBytes, 6) && has_all(p + kPageBytes, kPageBytes, 0), "what it had");
  require(has_all(p + 2 * kPageBytes, kBytes - 2 * kPageBytes, 6), "what it had behind");
  require(::munmap(p, kBytes) == 0, "munmap");
}

// As the kernel's own: what is locked cannot be given up, and can be protected and replaced.
void is_locked() {
  std::byte* const p = mapping(kBytes, 8);
  require(::mlock(p, kBytes) == 0, "mlock");
  require(::madvise(p + kPageBytes, kBytes / 2, MADV_DONTNEED) == -1 && errno == EINVAL,
          "MADV_DONTNEED of what is locked");
  require(has_all(p, kBytes, 8), "which stays");
  require(::mprotect(p, kPageBytes, PROT_READ) == 0, "mprotect to read");
  require(::mprotect(p + kBytes / 2, kBytes / 2, kWritable | PROT_EXEC) == 0, "mprotect for code");
  require(has_all(p, kBytes, 8), "which changes nothing");
  void* const other =
      ::mmap(p + kPageBytes, kPageBytes, kWritable, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
  require(other == p + kPageBytes, "a mapping over a part");
  require(has_all(p, kPageBytes, 8) && has_all(p + kPageBytes, kPageBytes, 0), "which is new");
  require(::munmap(p, kBytes) == 0, "munmap");
}

// What is inaccessible, or was given up in part, moves as it is.
void moves_protected(int protection) {
  std::byte* const p = mapping(kBytes, 5);
  require(::mprotect(p, kBytes, protection) == 0, "mprotect");
  require(::madvise(p, kPageBytes, MADV_DONTNEED) == 0, "MADV_DONTNEED");
  void* const moved = ::mremap(p, kBytes, 2 * kBytes, MREMAP_MAYMOVE);
  require(moved != MAP_FAILED, "mremap");
  auto* const q = static_cast<std::byte*>(moved);
  require(can_be_read(q + kPageBytes) == (protection != PROT_NONE), "its protection moves");
  require(::mprotect(q, 2 * kBytes, kWritable) == 0, "mprotect back");
  require(has_all(q, kPageBytes, 0), "what was given up");
  require(has_all(q + kPageBytes, kBytes - kPageBytes, 5), "what has moved");
  require(has_all(q + kBytes, kBytes, 0), "what is new");
  require(::munmap(q, 2 * kBytes) == 0, "munmap");
}

// What the kernel sees as several mappings is not moved as one.
void several_stay(int protection) {
  std::byte* const p = mapping(kBytes, 4);
  std::byte* const behind = mapping(kBytes, 4);
  require(::mprotect(p + kBytes / 2, kPageBytes, PROT_READ | PROT_EXEC) == 0, "for code");
  require(::mprotect(p + kBytes / 2, kPageBytes, protection) == 0, "mprotect of the middle");
  require(::mremap(p, kBytes, 4 * kBytes, MREMAP_MAYMOVE) == MAP_FAILED && errno == EFAULT,
          "mremap of several");
  require(has_all(p, kBytes / 2, 4), "which stay");
  require(::munmap(p, kBytes) == 0 && ::munmap(behind, kBytes) == 0, "munmap");
}

// A lock moves with what it is on.
void lock_moves() {
  std::byte* const p = mapping(kBytes, 4);
  require(::mprotect(p, kBytes, kWritable | PROT_EXEC) == 0, "for code");
  require(::mlock(p, kBytes) == 0, "mlock");
  void* const moved = ::mremap(p, kBytes, kBytes, MREMAP_MAYMOVE | MREMAP_DONTUNMAP, nullptr);
  require(moved != MAP_FAILED, "mremap");
  require(::madvise(p, kBytes, MADV_DONTNEED) == 0, "what is left is not locked");
  require(has_all(static_cast<std::byte*>(moved), kBytes, 4), "what has moved");
  require(::munmap(p, kBytes) == 0 && ::munmap(moved, kBytes) == 0, "munmap");
}

// A coroutine changes the memory that it stands on.
ucontext_t thread_context, coroutine_context;
std::byte* coroutine_stack = nullptr;
void change_own_stack() {
  std::byte here[100];
  std::memset(here, 7, sizeof here);
  require(::madvise(coroutine_stack, kBytes, MADV_DONTFORK) == 0, "MADV_DONTFORK of the stack");
  require(::mprotect(coroutine_stack, kPageBytes, PROT_NONE) == 0, "a guard page");
  require(has_all(here, sizeof here, 7), "what is on the stack");
  ::swapcontext(&coroutine_context, &thread_context);
}
void own_stack() {
  coroutine_stack = mapping(kBytes, 0);
  require(::getcontext(&coroutine_context) == 0, "getcontext");
  coroutine_context.uc_stack.ss_sp = coroutine_stack;
  coroutine_context.uc_stack.ss_size = kBytes;
  ::makecontext(&coroutine_context, change_own_stack, 0);
  require(::swapcontext(&thread_context, &coroutine_context) == 0, "a coroutine");
  require(::munmap(coroutine_stack, kBytes) == 0, "munmap");
}

// Threads lock, protect and give up memory at once.
void* lock_again_and_again(void*) {
  std::byte* const p = mapping(kBytes, 2);
  while (!is_over) require(::mlock(p, kBytes) == 0 && ::munlock(p, kBytes) == 0, "locks");
  require(::munmap(p, kBytes) == 0, "munmap");
  return nullptr;
}
void* give_up_again_and_again(void*) {
  std::byte* const p = mapping(kBytes, 2);
  for (int i = 0; i < 150; ++i) {
    require(::madvise(p + kPageBytes, kBytes - kPageBytes, MADV_DONTNEED) == 0, "MADV_DONTNEED");
    require(has_all(p + kPageBytes, kBytes - kPageBytes, 0), "what was given up is zero");
    std::memset(p + kPageBytes, 2, kBytes - kPageBytes);
    require(::mprotect(p, kBytes, PROT_READ) == 0, "mprotect to read");
    require(has_all(p, kBytes, 2), "what was written");
    require(::mprotect(p, kBytes, kWritable) == 0, "mprotect back");
  }
  require(::munmap(p, kBytes) == 0, "munmap");
  return nullptr;
}
void locks_beside() {
  is_over = false;
  pthread_t locks[2], others[2];
  for (pthread_t& thread : locks)
    require(::pthread_create(&thread, nullptr, lock_again_and_again, nullptr) == 0, "a thread");
  for (pthread_t& thread : others)
    require(::pthread_create(&thread, nullptr, give_up_again_and_again, nullptr) == 0, "a thread");
  for (const pthread_t thread : others) require(::pthread_join(thread, nullptr) == 0, "join");
  is_over = true;
  for (const pthread_t thread : locks) require(::pthread_join(thread, nullptr) == 0, "join");
}

// The process may have no more mappings: what needs another is refused, and nothing is lost.
void mappings_run_out() {
  constexpr uint64_t kMost = uint64_t{1} << 30;
  std::byte* const p = mapping(kBytes, 3);
  auto* const many = static_cast<std::byte*>(
      ::mmap(nullptr, kMost, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
  require(many != MAP_FAILED, "addresses");
  uint64_t used = 0;
  while (used < kMost && ::mprotect(many + used, kPageBytes, PROT_READ) == 0)
    used += 2 * kPageBytes;
  const bool is_out = used < kMost;
  require(!is_out || errno == ENOMEM, "no more mappings");
  const uint64_t room = is_out ? 40 * kPageBytes : 0;  // there are some again
  require(::mprotect(many + used - room, room, PROT_NONE) == 0, "mprotect gives back");
  uint64_t at = 0;
  while (at < kBytes && ::mprotect(p + at, kPageBytes, PROT_READ | PROT_EXEC) == 0)
    at += 2 * kPageBytes;
  require(at == kBytes || errno == ENOMEM, "refused for lack of mappings");
  require(has_all(p, kBytes, 3), "what was there");
  require(::munmap(many, kMost) == 0 && ::munmap(p, kBytes) == 0, "munmap");
}

}  // namespace

int main(int count, char** arguments) {
  begin(count, arguments);
  for (const uint64_t at : {uint64_t{0}, kBytes - kPageBytes}) neighbours_stay(at);
  std::puts("neighbours stay");
  for (const uint64_t bytes : {80 << 10, 128 << 10}) moved_and_left(bytes);
  std::puts("what has moved leaves zeros");
  for (const int protection : {kWritable, PROT_READ, PROT_NONE}) given_up_where(protection);
  std::puts("and what was given up is zero");
  grown_while_cut();
  std::puts("a mapping grows while it is cut");
  pthread_t beside[3], code[3];
  for (int i = 0; i < 3; ++i) {
    require(::pthread_create(&beside[i], nullptr, map_again_and_again, nullptr) == 0, "a thread");
    require(::pthread_create(&code[i], nullptr, map_executable, nullptr) == 0, "a thread");
  }
  for (const pthread_t thread : code) require(::pthread_join(thread, nullptr) == 0, "join");
  is_over = true;
  for (const pthread_t thread : beside) require(::pthread_join(thread, nullptr) == 0, "join");
  std::puts("and no thread takes what is another's");
  for (const bool is_code : {true, false})
    for (const uint64_t bytes : {kPageBytes, kBytes}) counts_go_on(is_code, kBytes - bytes, bytes);
  std::puts("nor loses what is written meanwhile");
  stays_inaccessible();
  std::puts("what is inaccessible stays so");
  is_locked();
  std::puts("what is locked is the kernel's to protect");
  for (const int protection : {PROT_READ, PROT_NONE}) moves_protected(protection);
  std::puts("and what is protected moves");
  for (const int protection : {PROT_READ | PROT_EXEC, PROT_NONE}) several_stay(protection);
  lock_moves();
  own_stack();
  std::puts("several mappings stay, locks move, and coroutines keep their stacks");
  locks_beside();
  std::puts("locks come and go beside what is given up");
  mappings_run_out();
  std::puts("nor do mappings run out unheard");
  return 0;
}
