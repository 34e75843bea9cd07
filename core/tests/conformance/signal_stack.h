// SignalStack: how much of a thread's signal stack its faults use.
#pragma once

#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

namespace outcore::scene {

// How much of a signal stack is used when a handler begins. AT_MINSIGSTKSZ is for the largest state
// that a thread may have (with AMX, four times what threads without it need).
inline size_t signal_frame_bytes() {
  static std::atomic<uintptr_t> here;
  constexpr size_t kStackBytes = 256 << 10, kPageBytes = 4 << 10;
  std::vector<std::byte> memory(kStackBytes + kPageBytes);
  // It ends at a page, as the stack below: how the frame is aligned takes up to 63 bytes.
  const auto bottom = (reinterpret_cast<uintptr_t>(memory.data()) + kPageBytes - 1) & -kPageBytes;
  std::thread([&] {
    stack_t stack{};
    stack.ss_sp = reinterpret_cast<void*>(bottom);
    stack.ss_size = kStackBytes;
    EXPECT_EQ(::sigaltstack(&stack, nullptr), 0);
    struct sigaction action {
    }, before{};
    action.sa_handler = [](int) { here = reinterpret_cast<uintptr_t>(__builtin_frame_address(0)); };
    action.sa_flags = SA_ONSTACK;
    EXPECT_EQ(::sigaction(SIGUSR2, &action, &before), 0);
    EXPECT_EQ(::pthread_kill(::pthread_self(), SIGUSR2), 0);
    EXPECT_EQ(::sigaction(SIGUSR2, &before, nullptr), 0);
    stack.ss_flags = SS_DISABLE;
    EXPECT_EQ(::sigaltstack(&stack, nullptr), 0);
  }).join();
  const uintptr_t top = bottom + kStackBytes;
  EXPECT_GT(here, bottom);
  EXPECT_LT(here, top);
  return top - here;
}

// What is used by `work`, on a thread of its own whose signal stack is small; below it there is
// nothing.
template <typename Work>
size_t signal_stack_used(const Work& work) {
  constexpr size_t kStackBytes = 24 << 10, kGuardBytes = 4 << 10;
  auto* const memory =
      static_cast<std::byte*>(::mmap(nullptr, kGuardBytes + kStackBytes, PROT_READ | PROT_WRITE,
                                     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  if (memory == MAP_FAILED) std::abort();
  EXPECT_EQ(::mprotect(memory, kGuardBytes, PROT_NONE), 0);
  std::byte* const begin = memory + kGuardBytes;
  std::memset(begin, 0xA5, kStackBytes);
  std::thread([&] {
    stack_t stack{};
    stack.ss_sp = begin;
    stack.ss_size = kStackBytes;
    EXPECT_EQ(::sigaltstack(&stack, nullptr), 0);
    work();
    stack.ss_flags = SS_DISABLE;
    EXPECT_EQ(::sigaltstack(&stack, nullptr), 0);
  }).join();
  size_t untouched = 0;
  while (untouched < kStackBytes && begin[untouched] == std::byte{0xA5}) ++untouched;
  ::munmap(memory, kGuardBytes + kStackBytes);
  return kStackBytes - untouched;
}

}  // namespace outcore::scene
