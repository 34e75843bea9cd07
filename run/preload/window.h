// Window: the range of addresses in which mappings with in-thread delivery lie, and the one
// instruction whose system calls may point there. Any other call that points there is trapped, and
// made after its pages were brought in: calls_trapped.cc
// (docs/internals/decisions/0038-the-window.md). One for the process.
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

  // Whether the environment names a place; then SIGSYS is never blocked. The environment is read at
  // the first call, because constructors of other libraries run before ours.
  static bool is_offered() {
    const Offer offer = offer_.load(std::memory_order_relaxed);
    return offer == Offer::kUnknown ? read_environment() : offer == Offer::kThere;
  }
  // From now on traps are answered, also before the window is ready: another process may have sent
  // this one an address of the window. Called at the beginning, when the program's SIGSYS handler
  // is known.
  static void answer_traps();
  // Whether it was tried and can be used. Reads one word.
  static bool is_ready() { return is_ready_.load(std::memory_order_acquire); }
  // Whether it is ready, and all of the range lies in it. Async-signal-safe.
  static bool covers(const void* address, uint64_t size_bytes);
  // Whether any of the range lies where the processes of this run have their windows, each at the
  // same addresses. Any thread.
  static bool may_be_a_peers(const void* address, uint64_t size_bytes);

  // Gets it ready, if that was not tried before. Any thread; takes no other lock of ours.
  bool prepare();
  // As mmap() without an address, at a place in the window. MAP_FAILED: there is none, or the
  // kernel refuses; nothing has changed.
  void* map(size_t size_bytes, int protection, int flags, int fd, off_t offset);
  // As the system call, by our instruction: -errno. Async-signal-safe. REQUIRES: ready.
  static long call(long number, const long (&arguments)[6]);
  // Lets the trapped call be made again when the handler returns: by our instruction, on the
  // caller's own stack; the caller gets its result. REQUIRES: ready.
  static void call_anew(long number, long long* registers);
  // Whether the kernel still calls our handlers.
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
  static std::atomic<uint64_t> base_;  // of the place that the environment names; 0: none

  WindowPlace place_;
  std::string why_not_;
  std::atomic<bool> is_tried_{false};  // from then on why_not_ does not change
  std::atomic<uint64_t> next_{0};      // where the next mapping is tried, from the base
};

// The handler of SIGSYS: calls_trapped.cc.
void on_trap(int signal, siginfo_t* info, void* context);
// Set while a thread tests the filter; and how many of its calls were trapped, which are not made.
extern constinit thread_local bool is_trying_traps;
extern constinit thread_local unsigned trap_count;
// What the program wants done with SIGSYS, found when ours was installed.
void set_program_trap_action(const struct sigaction& action);
// Calls on ranges of the window go by our instruction from now on: window_ranges.cc.
void pass_ranges();

}  // namespace outcore::preload
