// Fibers: the threads of a simulation. One runs at a time; a seed decides which, and time is
// simulated. It replaces the futexes of os/wait.h, so that the engine sleeps on it.
//
// Fibers may belong to processes, which share memory and are killed or stopped as a whole, between
// any two points.
//
// Every wait, wake, yield and reading of the clock is a scheduling point, and so is every step() of
// the simulated kernel and store. A failure ends the run where it happens: interrupted fibers are
// left as they are, with what they own.
#pragma once

#include <ucontext.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "core/os/wait.h"
#include "core/tests/sim/random.h"

namespace outcore::sim {

class Fibers final : public os::WaitHooks {
 public:
  struct Limits {
    uint64_t steps_max = 2'000'000;  // more steps count as a livelock
    bool is_traced = false;          // every event goes to stderr
    uint64_t interleave_every = 1;   // so many interleave()s are one step, on the average
    uint64_t step_ns_max = 1000, yield_ns_max = 20'000;  // how long these take
  };

  Fibers(uint64_t seed, const Limits& limits);
  ~Fibers() override;
  Fibers(const Fibers&) = delete;
  Fibers& operator=(const Fibers&) = delete;

  // Called before run(), or from a fiber; it is of that one's process, if none is said. 0: none.
  void add(const std::string& name, std::function<void()> body);
  void add(const std::string& name, uint32_t process, std::function<void()> body);
  // Runs until every fiber has ended; false after a failure. While it runs, it is os::wait_hooks.
  bool run();
  // What went wrong, the last events, and the place of every fiber; empty if nothing failed.
  const std::string& failure() const { return failure_; }
  // Adds to the report of a failure; set by the simulation.
  std::function<std::string()> describe;

  // -- processes; from a fiber of none --
  // Its fibers stay where they are for ever, with all that they have; its descriptors name nothing
  // any more.
  void kill(uint32_t process);
  void stop(uint32_t process, bool is_stopped);
  bool is_stopped(uint32_t process) const { return stopped_.contains(process); }
  // No other fiber runs meanwhile, whatever `look` asks for.
  void without_points(const std::function<void()>& look);
  // Words between processes are known by this address of theirs; set by the simulation.
  std::function<std::atomic<uint32_t>*(std::atomic<uint32_t>*)> common_word;

  // -- from a fiber --
  // A scheduling point. `what` must be a literal; it and the numbers appear in the trace.
  void step(const char* what, uint64_t a = 0, uint64_t b = 0);
  // Ends the run with a failure.
  [[noreturn]] void fail(const std::string& why);
  void require(bool is_true, const char* what, uint64_t a = 0, uint64_t b = 0);
  void let_pass(uint64_t ns);
  // Whether the running fiber is inside a fault handler; for stores and tests.
  bool is_in_fault() const { return current_ != nullptr && current_->is_in_fault; }
  void set_in_fault(bool on) { current_->is_in_fault = on; }
  Random& random() { return random_; }
  uint64_t steps() const { return steps_; }
  // A hash of everything that happened so far: equal for equal runs.
  uint64_t trace_hash() const { return trace_hash_; }
  // The text of failure(), for a signal handler (when an assertion of the engine fails).
  std::string report(const std::string& why) const;

  // -- WaitHooks --
  void wait(std::atomic<uint32_t>* word, uint32_t while_value, uint64_t timeout_ns) override;
  void wake_all(std::atomic<uint32_t>* word) override;
  void yield() override;
  uint64_t now_ns() override;
  void pause(uint64_t ns) override { let_pass(ns); }
  void wait_between_processes(std::atomic<uint32_t>* word, uint32_t while_value,
                              uint64_t timeout_ns) override;
  void wake_between_processes(std::atomic<uint32_t>* word) override;
  void note_descriptor(int fd, bool is_open) override;
  void interleave() override;

 private:
  enum class State : uint8_t { kRunnable, kWaiting, kEnded };
  struct Fiber {
    std::string name;
    uint32_t process = 0;
    std::function<void()> body;
    ucontext_t context{};
    std::byte* stack = nullptr;
    void* history = nullptr;  // for ThreadSanitizer
    State state = State::kRunnable;
    std::atomic<uint32_t>* word = nullptr;
    uint32_t while_value = 0;
    uint64_t deadline_ns = 0;
    bool is_lost = false;  // only its time limit woke it, although the word had changed
    bool is_in_fault = false;
    uint64_t weight = 1;
    const char* place = "not started";
    uint64_t a = 0, b = 0;
  };
  struct Event {
    uint64_t ns = 0;
    uint32_t fiber = 0;
    const char* what = nullptr;
    uint64_t a = 0, b = 0;
  };
  static constexpr size_t kEventsKept = 80;
  static constexpr size_t kStackBytes = 256 << 10;

  static void enter(unsigned high, unsigned low);
  void note(const char* what, uint64_t a, uint64_t b);
  void switch_away();
  void sleep_on(std::atomic<uint32_t>* word, uint32_t while_value, uint64_t timeout_ns);
  bool is_asleep(const Fiber& fiber) const {
    return fiber.state == State::kEnded || (fiber.process != 0 && is_stopped(fiber.process));
  }
  Fiber* pick();

  const Limits limits_;
  Random random_;
  std::vector<std::unique_ptr<Fiber>> fibers_;
  Fiber* current_ = nullptr;
  uint32_t current_index_ = 0;
  ucontext_t home_{};
  void* home_history_ = nullptr;
  uint64_t now_ns_ = 1'000'000'000;
  uint64_t steps_ = 0;
  uint64_t switch_permille_;
  uint64_t points_left_ = 0;  // interleave()s until the next step
  bool has_points_ = true;
  std::set<uint32_t> stopped_;                     // processes
  std::map<uint32_t, std::set<int>> descriptors_;  // of each process
  uint64_t trace_hash_ = 0;
  bool has_failed_ = false;
  std::string failure_;
  Event event_[kEventsKept];
  uint64_t event_count_ = 0;
};

}  // namespace outcore::sim
