#include "checkpoints/capture/periodic_thread.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <ctime>
#include <mutex>
#include <new>
#include <string_view>
#include <system_error>
#include <thread>

#include "core/base/assert.h"
#include "core/os/wait.h"

namespace outcore::checkpoints {
namespace {

std::string time_text() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
  const auto seconds = static_cast<time_t>(ms / 1000);
  std::tm parts{};
  ::gmtime_r(&seconds, &parts);
  char day[32], text[48];
  std::strftime(day, sizeof day, "%Y-%m-%d %H:%M:%S", &parts);
  std::snprintf(text, sizeof text, "%s.%03d", day, static_cast<int>(ms % 1000));
  return text;
}

}  // namespace

struct PeriodicThread::State {
  Plan plan;
  std::atomic<uint64_t> made{0};
  std::mutex mutex;  // guards the members below
  std::condition_variable changed;
  bool is_over = false;
  Status last;
  std::thread thread;

  std::string prefix() const { return plan.name + " "; }
  // Whether the text is our name and a time, and nothing else: another name may begin with ours.
  bool is_own(const std::string& text) const {
    constexpr std::string_view kTime = "0000-00-00 00:00:00.000";
    if (!text.starts_with(prefix()) || text.size() != prefix().size() + kTime.size()) return false;
    const std::string_view rest = std::string_view(text).substr(prefix().size());
    return std::equal(rest.begin(), rest.end(), kTime.begin(), [](char c, char like) {
      return like == '0' ? c >= '0' && c <= '9' : c == like;
    });
  }

  void run() {
    auto next = std::chrono::steady_clock::now();
    for (;;) {
      next = std::max(next + std::chrono::milliseconds(plan.every_ms),
                      std::chrono::steady_clock::now());
      {
        std::unique_lock<std::mutex> lock(mutex);
        if (changed.wait_until(lock, next, [this] { return is_over; })) return;
      }
      try {
        make_one();
      } catch (const std::bad_alloc&) {
        const std::lock_guard<std::mutex> lock(mutex);
        last = Error{ENOMEM, "make a periodic checkpoint: no memory"};
      }
    }
  }

  void make_one() {
    std::shared_ptr<CheckpointTarget> target;
    const auto one = plan.make(prefix() + time_text(), &target);
    Status s = one.status();
    if (s.ok() && target != nullptr) s = prune(*target);
    made += one.ok() && one->number != 0 ? 1 : 0;
    {
      const std::lock_guard<std::mutex> lock(mutex);
      last = s;
    }
    if (plan.told) plan.told(one, s);
  }

  Status prune(CheckpointTarget& target) const {
    const auto all = target.checkpoints();
    if (!all) return all.status();
    std::vector<CheckpointInfo> own;
    for (const CheckpointInfo& one : all.value())
      if (is_own(one.name)) own.push_back(one);
    auto gone = choose_to_prune(own, plan.keep);
    if (!gone) return gone.error();
    OC_CHECK(gone->size() <= own.size());
    Status s = gone->empty() ? Status() : target.remove(gone.value());
    return s.code() == EBUSY ? Status() : s;  // somebody reads one of them: it is removed next time
  }
};

Result<std::unique_ptr<PeriodicThread>> PeriodicThread::start(const std::string& attempted,
                                                              Plan plan) {
  if (plan.every_ms < kEveryMsMin || plan.every_ms > kEveryMsMax)
    return Error{EINVAL, attempted + ": every " + std::to_string(plan.every_ms) +
                             " ms: at least 10 will do"};
  if (plan.name.empty() || plan.name.size() > 200)
    return Error{EINVAL, attempted + ": give them a name of 1 to 200 bytes"};
  if (auto any = choose_to_prune({}, plan.keep); !any) return any.error();
  OC_CHECK(plan.make != nullptr);
  auto state = std::make_unique<State>();
  state->plan = std::move(plan);
  try {
    const os::SignalBlock block;  // the thread inherits it: signals are for the program
    state->thread = std::thread([shared = state.get()] { shared->run(); });
  } catch (const std::system_error& why) {
    return Error{why.code().value(), attempted + ": start a thread: " + why.what()};
  }
  return std::unique_ptr<PeriodicThread>(new PeriodicThread(std::move(state)));
}

PeriodicThread::PeriodicThread(std::unique_ptr<State> state) : state_(std::move(state)) {
  OC_CHECK(state_ != nullptr);
}

void PeriodicThread::end() {
  {
    const std::lock_guard<std::mutex> lock(state_->mutex);
    state_->is_over = true;
  }
  state_->changed.notify_all();
  if (!state_->thread.joinable()) return;
  if (std::this_thread::get_id() == state_->thread.get_id()) return;
  state_->thread.join();
  state_->plan.make = nullptr;  // it may own the target
  state_->plan.told = nullptr;
}

PeriodicThread::~PeriodicThread() {
  end();
  OC_CHECK(!state_->thread.joinable() && "its own thread ends a thread of checkpoints");
}

Status PeriodicThread::last() const {
  const std::lock_guard<std::mutex> lock(state_->mutex);
  return state_->last;
}

uint64_t PeriodicThread::made() const { return state_->made.load(); }

}  // namespace outcore::checkpoints
