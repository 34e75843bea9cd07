// Window: the addresses in which mappings with in-thread delivery lie, and the one instruction
// whose system calls may point there. Any other call that does is trapped, and comes out right:
// calls_trapped.cc (docs/internals/decisions/0038-the-window.md). One for the process.
//
// `outcore run` has chosen the place and installed the filter. Whether both are there is tried
// before the first mapping is put there.
#pragma once

#include <signal.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

#include "run/preload/window_place.h"

namespace outcore::preload {

class Window {
 public:
  static Window& instance();

  // The environment names a place: SIGSYS is never blocked. Looked up when it is asked first: the
  // constructors of other libraries run before ours.
  static bool is_offered() {
    const Offer offer = offer_.load(std::memory_order_relaxed);
    return offer == Offer::kUnknown ? read_environment() : offer == Offer::kThere;
  }
  // Traps are answered from now on: another process may have told this one an address of the
  // window. At the beginning, with the handler that is there for SIGSYS.
  static void answer_traps();
  // It was tried and can be used. One look at memory.
  static bool is_ready() { return is_ready_.load(std::memory_order_acquire); }
  // All of the range lies in it, and it is ready. Async-signal-safe.
  static bool covers(const void* address, uint64_t size_bytes);

  // Gets it ready, if that was not tried before. Any thread; takes no other lock of ours.
  bool prepare();
  // As mmap() without an address, at a place in the window. MAP_FAILED: there is none, or the
  // kernel refuses; nothing has changed.
  void* map(size_t size_bytes, int protection, int flags, int fd, off_t offset);
  // As the system call, by our instruction: -errno. Async-signal-safe. REQUIRES: ready.
  static long call(long number, const long (&arguments)[6]);
  // The trapped call is made when the handler returns, by our instruction, on the caller's own
  // stack; its answer goes where that of the trapped one would. REQUIRES: ready.
  static void call_anew(long number, long long* registers);
  // Our handlers are still those that the kernel calls.
  bool has_handlers() const;
  // Why it is not ready, for people. Empty: it is, or was not tried.
  std::string why_not();

  // As sigaction(SIGSYS), of the program's own handler. False: traps are not answered, and the call
  // goes to the kernel.
  static bool exchange_program_action(const struct sigaction* now, struct sigaction* before);

 private:
  Window() = default;
  std::string set_up();
  std::string map_instruction() const;
  static void* map_at(void* wanted, size_t size_bytes, int protection, int flags, int fd,
                      off_t offset);
  bool is_filter_right();

  enum class Offer : uint8_t { kUnknown, kNone, kThere };
  static bool read_environment();

  static std::atomic<Offer> offer_;
  static std::atomic<bool> is_ready_, is_answering_;
  static uint64_t base_;

  WindowPlace place_;
  std::string why_not_;
  std::atomic<bool> is_tried_{false};  // and why_not_ stays as it is
  std::atomic<uint64_t> next_{0};      // where the next mapping is tried, from the base
};

// The handler of SIGSYS: calls_trapped.cc.
void on_trap(int signal, siginfo_t* info, void* context);
// While a thread tries the filter: how many of its calls were trapped; they are not carried out.
extern constinit thread_local bool is_trying_traps;
extern constinit thread_local unsigned trap_count;
// What the program wants done with SIGSYS, found when ours was installed.
void set_program_trap_action(const struct sigaction& action);
// Calls on ranges of the window go by our instruction from now on: window_ranges.cc.
void pass_ranges();

}  // namespace outcore::preload
