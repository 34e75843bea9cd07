#include "core/tests/sim/fibers.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

// ThreadSanitizer keeps a history for each fiber, if it knows the fibers.
#ifdef __SANITIZE_THREAD__
#include <sanitizer/tsan_interface.h>
#endif

namespace outcore::sim {
namespace {

#ifdef __SANITIZE_THREAD__
void* new_history() { return __tsan_create_fiber(0); }
void* current_history() { return __tsan_get_current_fiber(); }
void switch_history(void* to) { __tsan_switch_to_fiber(to, 0); }
#else
void* new_history() { return nullptr; }
void* current_history() { return nullptr; }
void switch_history(void*) {}
#endif

constexpr size_t kGuardBytes = 4096;

std::string format_event(uint64_t ns, const char* what, uint64_t a, uint64_t b,
                         const std::string& fiber) {
  char line[256];
  std::snprintf(line, sizeof line, "%10.3f us  %-12s %s %llu %llu\n",
                static_cast<double>(ns) / 1000, fiber.c_str(), what,
                static_cast<unsigned long long>(a), static_cast<unsigned long long>(b));
  return line;
}

}  // namespace

Fibers::Fibers(uint64_t seed, const Limits& limits) : limits_(limits), random_(seed) {
  // Some runs switch fibers at nearly every point, others let a fiber run for long.
  constexpr uint64_t kChoices[] = {50, 200, 500, 900};
  switch_permille_ = random_.one_of(kChoices);
}

Fibers::~Fibers() {
  if (has_failed_) return;  // fibers were interrupted: there may be pointers to their stacks
  for (const auto& fiber : fibers_) ::munmap(fiber->stack, kStackBytes + kGuardBytes);
}

void Fibers::add(const std::string& name, std::function<void()> body) {
  add(name, current_ == nullptr ? 0 : current_->process, std::move(body));
}

void Fibers::add(const std::string& name, uint32_t process, std::function<void()> body) {
  auto fiber = std::make_unique<Fiber>();
  fiber->name = name;
  fiber->process = process;
  fiber->body = std::move(body);
  // Now and then a fiber is much slower than the others.
  fiber->weight = random_.chance(200) ? 1 : 16;
  void* stack = ::mmap(nullptr, kStackBytes + kGuardBytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (stack == MAP_FAILED || ::mprotect(stack, kGuardBytes, PROT_NONE) != 0) std::abort();
  fiber->stack = static_cast<std::byte*>(stack);
  ::getcontext(&fiber->context);
  fiber->context.uc_stack.ss_sp = fiber->stack + kGuardBytes;
  fiber->context.uc_stack.ss_size = kStackBytes;
  fiber->context.uc_link = nullptr;
  const auto self = reinterpret_cast<uint64_t>(this);
  ::makecontext(&fiber->context, reinterpret_cast<void (*)()>(&Fibers::enter), 2,
                static_cast<unsigned>(self >> 32), static_cast<unsigned>(self));
  fiber->history = new_history();
  fibers_.push_back(std::move(fiber));
}

void Fibers::enter(unsigned high, unsigned low) {
  auto* self = reinterpret_cast<Fibers*>(uint64_t{high} << 32 | low);
  Fiber* fiber = self->current_;
  fiber->body();
  fiber->body = nullptr;
  fiber->state = State::kEnded;
  fiber->place = "ended";
  self->switch_away();
  std::abort();
}

bool Fibers::run() {
  os::WaitHooks* const before = os::wait_hooks;
  os::wait_hooks = this;
  home_history_ = current_history();
  while (!has_failed_) {
    Fiber* next = pick();
    if (next == nullptr) break;
    current_ = next;
    switch_history(next->history);
    ::swapcontext(&home_, &next->context);
    current_ = nullptr;
  }
  os::wait_hooks = before;
  return !has_failed_;
}

Fibers::Fiber* Fibers::pick() {
  for (;;) {
    uint64_t weight = 0, earliest = UINT64_MAX;
    bool is_any_left = false;
    for (const auto& fiber : fibers_) {
      if (is_asleep(*fiber)) continue;
      is_any_left = true;
      if (fiber->state == State::kWaiting && fiber->deadline_ns <= now_ns_) {
        fiber->state = State::kRunnable;
        // In practice the time limit would hide this: a sleeper that only its time limit wakes.
        fiber->is_lost = fiber->word != nullptr && fiber->word->load() != fiber->while_value;
      }
      if (fiber->state == State::kRunnable)
        weight += fiber->weight;
      else
        earliest = std::min(earliest, fiber->deadline_ns);
    }
    if (!is_any_left) return nullptr;
    if (weight == 0) {
      now_ns_ = earliest;  // every wait has a limit, so there is one
      continue;
    }
    uint64_t at = random_.below(weight);
    for (size_t i = 0; i < fibers_.size(); ++i) {
      Fiber& fiber = *fibers_[i];
      if (fiber.state != State::kRunnable || is_asleep(fiber)) continue;
      current_index_ = static_cast<uint32_t>(i);
      if (at < fiber.weight) return &fiber;
      at -= fiber.weight;
    }
  }
}

void Fibers::switch_away() {
  Fiber* fiber = current_;
  switch_history(home_history_);
  ::swapcontext(&fiber->context, &home_);
}

void Fibers::note(const char* what, uint64_t a, uint64_t b) {
  if (current_ != nullptr) current_->place = what, current_->a = a, current_->b = b;
  event_[event_count_++ % kEventsKept] = {now_ns_, current_index_, what, a, b};
  trace_hash_ = (trace_hash_ ^ now_ns_ ^ current_index_ << 1) * 0x9E3779B97F4A7C15ull + a * 31 + b;
  if (limits_.is_traced)
    std::fputs(format_event(now_ns_, what, a, b, fibers_[current_index_]->name).c_str(), stderr);
}

void Fibers::step(const char* what, uint64_t a, uint64_t b) {
  if (current_ == nullptr || !has_points_) return;  // before and after the run
  note(what, a, b);
  now_ns_ += random_.below(limits_.step_ns_max);
  if (++steps_ > limits_.steps_max) fail("livelock: too many steps");
  if (random_.chance(switch_permille_)) switch_away();
}

void Fibers::fail(const std::string& why) {
  failure_ = report(why);
  has_failed_ = true;
  switch_away();
  std::abort();
}

void Fibers::require(bool is_true, const char* what, uint64_t a, uint64_t b) {
  if (is_true) return;
  fail(std::string("broken: ") + what + " (" + std::to_string(a) + ", " + std::to_string(b) + ")");
}

std::string Fibers::report(const std::string& why) const {
  std::string text = why + "\nthe last events:\n";
  const uint64_t from = event_count_ > kEventsKept ? event_count_ - kEventsKept : 0;
  for (uint64_t i = from; i < event_count_; ++i) {
    const Event& e = event_[i % kEventsKept];
    text += format_event(e.ns, e.what, e.a, e.b, fibers_[e.fiber]->name);
  }
  text += "fibers, and where they are:\n";
  for (const auto& f : fibers_)
    text += (f.get() == current_ ? "> " : "  ") +
            format_event(f->deadline_ns, f->place, f->a, f->b, f->name);
  return describe ? text + describe() : text;
}

void Fibers::let_pass(uint64_t ns) {
  note("sleep", ns, 0);
  ++steps_;
  current_->word = nullptr;
  current_->deadline_ns = now_ns_ + ns;
  current_->state = State::kWaiting;
  switch_away();
}

void Fibers::wait(std::atomic<uint32_t>* word, uint32_t while_value, uint64_t timeout_ns) {
  step("wait", while_value, timeout_ns);
  if (current_ == nullptr) std::abort();
  // Interrupted, as a futex may be.
  if (random_.chance(20) || word->load() != while_value) return;
  sleep_on(word, while_value, timeout_ns);
  if (current_->is_lost)
    fail("lost wake-up: the word changed from " + std::to_string(while_value) +
         ", and nobody woke its sleeper");
}

void Fibers::sleep_on(std::atomic<uint32_t>* word, uint32_t while_value, uint64_t timeout_ns) {
  Fiber& fiber = *current_;
  fiber.word = word;
  fiber.while_value = while_value;
  fiber.deadline_ns = now_ns_ + timeout_ns;
  fiber.is_lost = false;
  fiber.state = State::kWaiting;
  switch_away();
  fiber.word = nullptr;
}

// Who is killed between a change and its wake-up leaves others asleep, who look again by
// themselves: so nobody is blamed for it.
void Fibers::wait_between_processes(std::atomic<uint32_t>* word, uint32_t while_value,
                                    uint64_t timeout_ns) {
  step("wait for another process", while_value, timeout_ns);
  if (random_.chance(20) || word->load() != while_value) return;
  sleep_on(common_word ? common_word(word) : word, while_value, timeout_ns);
}

void Fibers::wake_between_processes(std::atomic<uint32_t>* word) {
  step("wakes other processes");
  wake_all(common_word ? common_word(word) : word);
}

void Fibers::note_descriptor(int fd, bool is_open) {
  if (current_ == nullptr || current_->process == 0) return;
  std::set<int>& its = descriptors_[current_->process];
  if (is_open)
    its.insert(fd);
  else
    its.erase(fd);
}

void Fibers::interleave() {
  if (current_ == nullptr || !has_points_ || points_left_-- != 0) return;
  points_left_ = random_.below(2 * limits_.interleave_every - 1);
  step("a word");
}

void Fibers::without_points(const std::function<void()>& look) {
  has_points_ = false;
  look();
  has_points_ = true;
}

void Fibers::kill(uint32_t process) {
  if (process == 0 || (current_ != nullptr && current_->process != 0)) std::abort();
  note("kills", process, 0);
  for (const auto& fiber : fibers_)
    if (fiber->process == process) fiber->state = State::kEnded;
  // The numbers must not be another's: who finds a dead one's number would find what that has.
  const int nothing = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  if (nothing < 0) std::abort();
  for (const int fd : descriptors_[process]) ::dup3(nothing, fd, O_CLOEXEC);
  ::close(nothing);
  descriptors_.erase(process);
  stopped_.erase(process);
}

void Fibers::stop(uint32_t process, bool is_stopped) {
  note(is_stopped ? "stops" : "lets go on", process, 0);
  if (is_stopped) {
    stopped_.insert(process);
    return;
  }
  stopped_.erase(process);
  // Waits are interrupted: who was to wake them was stopped as well.
  for (const auto& fiber : fibers_)
    if (fiber->process == process && fiber->state == State::kWaiting)
      fiber->state = State::kRunnable, fiber->is_lost = false;
}

void Fibers::wake_all(std::atomic<uint32_t>* word) {
  for (const auto& fiber : fibers_)
    if (fiber->state == State::kWaiting && fiber->word == word) fiber->state = State::kRunnable;
  step("woke others");
}

void Fibers::yield() {
  if (current_ == nullptr) return;
  note("yield", 0, 0);
  now_ns_ += random_.below(limits_.yield_ns_max);
  if (++steps_ > limits_.steps_max) fail("livelock: too many steps");
  switch_away();
}

uint64_t Fibers::now_ns() {
  step("clock");
  return now_ns_;
}

}  // namespace outcore::sim
