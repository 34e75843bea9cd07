#include "python/src/interruptible.h"

#include <pthread.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "cli/assert.h"
#include "python/src/gil.h"
#include "python/src/region.h"

namespace outcore::python {

namespace nb = nanobind;

namespace {

constexpr auto kHearEvery = std::chrono::milliseconds(50);

struct Job {
  std::function<Status()> call;
  std::function<void()> ended;
  PyObject* keep = nullptr;  // a reference, from when it is left alone
  std::mutex guard;
  std::condition_variable changed;
  Status status;
  bool is_done = false, is_left = false;
};

// Ends what was left alone and is over. With the GIL.
int collect(void*);

class Workers {
 public:
  // False if there is no thread for it.
  bool give(const std::shared_ptr<Job>& job) {
    const std::lock_guard<std::mutex> locked(guard_);
    if (jobs_.size() + 1 > idle_ && !start()) return false;
    jobs_.push_back(job);
    wanted_.notify_one();
    return true;
  }
  std::vector<std::shared_ptr<Job>> take_left() {
    const std::lock_guard<std::mutex> locked(guard_);
    return std::exchange(left_, {});
  }

 private:
  bool start() {
    const sigset_t before = block_signals();  // inherited by the thread
    bool is_started = true;
    try {
      threads_.emplace_back([this] { work(); });  // waited for by nobody: see workers()
      ++idle_;
    } catch (const std::system_error&) {
      is_started = false;
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return is_started;
  }

  void work() {
    for (;;) {
      std::shared_ptr<Job> job;
      {
        std::unique_lock<std::mutex> lock(guard_);
        wanted_.wait(lock, [this] { return !jobs_.empty(); });
        job = std::move(jobs_.front());
        jobs_.pop_front();
        CLI_CHECK(idle_ != 0);
        --idle_;
      }
      Status status = job->call();
      // Idle before the waiting thread goes on: its next call finds this thread.
      {
        const std::lock_guard<std::mutex> locked(guard_);
        ++idle_;
      }
      finish(job, std::move(status));
    }
  }

  void finish(const std::shared_ptr<Job>& job, Status status) {
    {
      const std::lock_guard<std::mutex> locked(job->guard);
      job->status = std::move(status);
      job->is_done = true;
      job->changed.notify_one();
      if (!job->is_left) return;
    }
    {
      const std::lock_guard<std::mutex> locked(guard_);
      left_.push_back(job);
    }
    Py_AddPendingCall(collect, nullptr);  // where that fails, the next call collects
  }

  std::mutex guard_;
  std::condition_variable wanted_;
  std::deque<std::shared_ptr<Job>> jobs_;
  std::vector<std::shared_ptr<Job>> left_;
  std::vector<std::thread> threads_;
  size_t idle_ = 0;
};

// Of this process: a forked child has none of its parent's threads. Never destroyed, as threads
// wait in it until the process ends.
Workers& workers() {
  static Workers* all = new Workers;
  static uint64_t forks = fork_count();
  if (forks != fork_count()) {
    all = new Workers;
    forks = fork_count();
  }
  return *all;
}

int collect(void*) {
  for (const std::shared_ptr<Job>& job : workers().take_left()) {
    CLI_CHECK(job->is_done && job->keep != nullptr);
    job->ended();
    Py_DECREF(job->keep);
  }
  return 0;
}

}  // namespace

sigset_t block_signals() {
  sigset_t all, before;
  sigfillset(&all);
  for (const int signal : {SIGBUS, SIGSEGV, SIGILL, SIGFPE, SIGTRAP}) sigdelset(&all, signal);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  return before;
}

bool hears_signals() { return ::gettid() == ::getpid(); }

Status call_interruptibly(std::function<Status()> call, nb::object keep,
                          std::function<void()> ended) {
  collect(nullptr);
  const auto job = std::make_shared<Job>();
  job->call = std::move(call);
  job->ended = std::move(ended);
  if (!workers().give(job)) {
    const WithoutGil released;
    return job->call();
  }
  for (;;) {
    {
      const WithoutGil released;
      std::unique_lock<std::mutex> lock(job->guard);
      if (job->changed.wait_for(lock, kHearEvery, [&] { return job->is_done; }))
        return std::move(job->status);
    }
    if (PyErr_CheckSignals() == 0) continue;
    bool is_done;
    {
      const std::lock_guard<std::mutex> locked(job->guard);
      is_done = job->is_done;
      job->is_left = !is_done;
      if (!is_done) job->keep = keep.release().ptr();
    }
    nb::python_error raised;
    if (is_done) job->ended();
    throw raised;
  }
}

}  // namespace outcore::python
