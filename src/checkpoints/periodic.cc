// Checkpoints by themselves. See outcore/periodic_checkpoints.h.
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

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

#include "checkpoints/parts.h"
#include "outcore/periodic_checkpoints.h"

namespace outcore {
namespace {

constexpr uint64_t kEveryMsMin = 10, kEveryMsMax = uint64_t{1} << 42;

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

struct PeriodicCheckpoints::Impl {
  std::vector<CheckpointPart> parts;
  PeriodicOptions options;
  std::shared_ptr<versioned::Pool> pool;
  const pid_t process = ::getpid();
  std::atomic<uint64_t> made{0};
  std::mutex mutex;  // of those below
  std::condition_variable changed;
  bool is_over = false;
  Status last;
  std::thread thread;

  std::string prefix() const { return options.name + " "; }
  // Its name and a time, and nothing else: another's name may begin with ours.
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
      next = std::max(next + std::chrono::milliseconds(options.every_ms),
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
    const auto one = checkpoint(prefix() + time_text(), parts, options.checkpoint);
    Status s = one.status();
    if (s.ok()) s = prune();
    made += one.ok() ? 1 : 0;
    {
      const std::lock_guard<std::mutex> lock(mutex);
      last = s;
    }
    if (options.told) options.told(one);
  }

  Status prune() {
    std::vector<CheckpointInfo> own;
    for (const versioned::CheckpointInfo& one : pool->checkpoints()) {
      if (!is_own(one.about.name)) continue;
      CheckpointInfo info;
      info.name = one.about.name;
      info.number = one.about.number;
      info.time_s = static_cast<int64_t>(one.about.time_ns / 1'000'000'000);
      own.push_back(std::move(info));
    }
    auto gone = choose_to_prune(own, options.keep);
    if (!gone) return gone.error();
    Status s = gone->empty() ? Status() : pool->remove(gone.value());
    return s.code() == EBUSY ? Status() : s;  // somebody reads one: it goes next time
  }

  void end() {
    if (!thread.joinable()) return;
    {
      const std::lock_guard<std::mutex> lock(mutex);
      is_over = true;
    }
    changed.notify_all();
    if (std::this_thread::get_id() == thread.get_id()) return;  // told() has enough
    thread.join();
    pool.reset();
  }
};

PeriodicCheckpoints::PeriodicCheckpoints(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
PeriodicCheckpoints::PeriodicCheckpoints(PeriodicCheckpoints&&) noexcept = default;
PeriodicCheckpoints& PeriodicCheckpoints::operator=(PeriodicCheckpoints&& other) noexcept {
  static_cast<void>(end());
  impl_ = std::move(other.impl_);
  return *this;
}
PeriodicCheckpoints::~PeriodicCheckpoints() { static_cast<void>(end()); }

Result<PeriodicCheckpoints> PeriodicCheckpoints::start(std::vector<CheckpointPart> parts,
                                                       const PeriodicOptions& options) try {
  const std::string attempted = "make checkpoints periodically";
  if (options.every_ms < kEveryMsMin || options.every_ms > kEveryMsMax)
    return Error{EINVAL, attempted + ": every " + std::to_string(options.every_ms) +
                             " ms: at least 10 will do"};
  if (options.name.empty() || options.name.size() > 200)
    return Error{EINVAL, attempted + ": give them a name of 1 to 200 bytes"};
  if (auto any = choose_to_prune({}, options.keep); !any) return any.error();
  const CheckpointOptions& each = options.checkpoint;
  if (static_cast<bool>(each.quiesce) != static_cast<bool>(each.resume))
    return Error{EINVAL, attempted + ": give both quiesce and resume, or neither"};
  auto found = checkpoints::look_up(attempted, parts, each);
  if (!found) return found.error();
  if (!found->heaps.empty() && !each.quiesce)
    return Error{EINVAL, attempted +
                             ": a heap is a part: give a quiesce function, which keeps threads "
                             "from allocating in it"};
  auto impl = std::make_unique<Impl>();
  impl->parts = std::move(parts);
  impl->options = options;
  impl->pool = found->pool;
  // Signals of the program are for its own threads.
  sigset_t all, before;
  sigfillset(&all);
  for (const int signal : {SIGBUS, SIGSEGV, SIGILL, SIGFPE, SIGTRAP}) sigdelset(&all, signal);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  Status s;
  try {
    impl->thread = std::thread([shared = impl.get()] { shared->run(); });
  } catch (const std::system_error& why) {
    s = Error{why.code().value(), attempted + ": start a thread: " + why.what()};
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (!s.ok()) return s.error();
  return PeriodicCheckpoints(std::move(impl));
} catch (const std::bad_alloc&) {
  return Error{ENOMEM, "make checkpoints periodically: no memory"};
}

Status PeriodicCheckpoints::end() {
  if (impl_ == nullptr) return {};
  if (impl_->process != ::getpid()) {  // a forked child has neither thread nor pool
    static_cast<void>(impl_.release());
    return {};
  }
  impl_->end();
  const std::lock_guard<std::mutex> lock(impl_->mutex);
  return impl_->last;
}

uint64_t PeriodicCheckpoints::made() const { return impl_ == nullptr ? 0 : impl_->made.load(); }

}  // namespace outcore
