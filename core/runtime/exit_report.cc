#include "core/runtime/exit_report.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <new>
#include <vector>

#include "core/base/assert.h"
#include "core/base/earlier_output.h"
#include "core/base/error.h"
#include "core/os/file_calls.h"
#include "core/os/file_lock.h"
#include "core/os/wait.h"
#include "core/runtime/learnt_starts.h"
#include "core/runtime/run_recording.h"

namespace outcore::runtime {
namespace {

// The runtimes that have a report to make at exit. Never freed, because it may be used after the
// destruction of static objects.
struct Waiting {
  std::mutex lock;
  std::vector<std::weak_ptr<Runtime::Impl>> runtimes;
};
Waiting& waiting() {
  static Waiting* const all = new Waiting;
  return *all;
}

// REQUIRES: the mapping lock is held, so that no store ends meanwhile.
Metrics collect(Runtime::Impl& impl) {
  Metrics metrics;
  impl.engine->add_to(metrics);
  if (impl.governor != nullptr)
    metrics.gauges.budget_shrink_ns_max = impl.governor->shrink_ns_max();
  auto add = [&](const metrics::CounterBlock& block) {
    metrics.counters += block.sum();
    metrics.fault_latency += block.fault_latency();
  };
  add(impl.ended());
  for (const auto& [key, cache] : impl.caches) {
    add(cache->counters);
    metrics.gauges.degraded += cache->is_degraded();
  }
  for (const Region::Impl* region : impl.regions)
    metrics.regions.push_back(runtime::metrics_of(*region));
  return metrics;
}

bool is_wanted(const Runtime::Impl& impl) {
  return !impl.options.metrics_at_exit.empty() && impl.options.metrics_at_exit != "none";
}

// False: it cannot be locked, or others have had it for too long.
bool lock_briefly(int file) {
  constexpr uint64_t kNsMax = 1'000'000'000;
  const uint64_t start_ns = os::now_ns();
  int error = 0;
  while ((error = os::lock_file(file, true)) == -EAGAIN && os::now_ns() - start_ns < kNsMax)
    os::yield();
  return error == 0;
}

// Empties a file that has only what an earlier run left, as something will be written now. So
// nobody takes that for the report of a run that was killed. Another process of this run may be
// about to do the same: it is locked, or was waited for in vain.
void empty_if_left(const std::string& path) {
  const int file = open_to_append(path, false);
  struct stat about {};
  const auto is_left = [&] {
    return ::fstat(file, &about) == 0 && about.st_size != 0 && base::EarlierOutput::is_left(about);
  };
  if (file < 0) return;
  if (is_left()) {
    lock_briefly(file);
    if (is_left() && ::ftruncate(file, 0) != 0)
      std::fprintf(stderr, "outcore: %s\n",
                   base::system_error(errno, "empty " + path).message.c_str());
  }
  ::close(file);
}

// A file that lines are appended to. What cannot be written whole is taken back, as long as the
// file is locked: whoever appends locks it.
class LineFile {
 public:
  LineFile(const std::string& path, bool may_create) : path_(path) {
    // One that another has taken back before it was locked here is nobody's.
    for (int tries = 0; tries < 3; ++tries) {
      file_ = open_to_append(path, false);
      is_new_ = file_ == -ENOENT && may_create;
      if (is_new_) file_ = open_to_append(path);
      if (file_ < 0 || ::fstat(file_, &about_) != 0 || !S_ISREG(about_.st_mode)) return;
      is_locked_ = lock_briefly(file_);
      // One without a name is named by a descriptor, as /dev/stderr.
      if (::fstat(file_, &about_) != 0 || about_.st_nlink != 0 || os::is_path_of(about_, path_, 0))
        return;
      close();
    }
    file_ = -ESTALE;
  }
  ~LineFile() { close(); }
  LineFile(const LineFile&) = delete;
  LineFile& operator=(const LineFile&) = delete;

  // In one call, so that lines of processes that append at the same time are not mixed. 0 or
  // -errno.
  int append(std::string line) {
    if (file_ < 0) return file_;
    if (S_ISREG(about_.st_mode)) {
      const auto size = static_cast<uint64_t>(about_.st_size);
      rlimit most{};  // whoever makes a file larger than he may is ended by a signal
      if (::getrlimit(RLIMIT_FSIZE, &most) == 0 &&
          most.rlim_cur - std::min(most.rlim_cur, size) < line.size() + 1)
        return take_back(0, -EFBIG);
      // What another could not write to its end is not made longer.
      char last = '\n';
      if (size != 0 && ::pread(file_, &last, 1, about_.st_size - 1) == 1 && last != '\n')
        line.insert(line.begin(), '\n');
    }
    const ssize_t written = ::write(file_, line.data(), line.size());
    if (written == static_cast<ssize_t>(line.size())) return 0;
    return take_back(std::max<ssize_t>(written, 0), written < 0 ? -errno : -ENOSPC);
  }

 private:
  // The file is as it was, or gone where it was not. Returns the error.
  int take_back(ssize_t written, int error) const {
    struct stat now {};
    if (!is_locked_ || ::fstat(file_, &now) != 0) return error;
    const bool is_ours = written != 0 && now.st_size == about_.st_size + written;
    if (is_ours && ::ftruncate(file_, about_.st_size) != 0) return error;
    if (is_new_ && about_.st_size == 0 && os::is_path_of(now, path_, AT_SYMLINK_NOFOLLOW))
      ::unlink(path_.c_str());
    return error;
  }
  void close() {
    if (file_ < 0) return;
    if (is_locked_) ::flock(file_, LOCK_UN);  // a child that was forked meanwhile has it, too
    ::close(file_);
    file_ = -1;
  }

  const std::string& path_;
  struct stat about_ {};  // before anything is appended
  int file_ = -1;
  bool is_new_ = false, is_locked_ = false;
};

const char* remedy_for_lines(int error) {
  switch (-error) {
    case ENOSPC:
    case EDQUOT:
      return "free some space, or name a file elsewhere";
    case EFBIG:
      return "raise the limit of the size of files (ulimit -f)";
    default:
      return "name a file in a folder that you may write to";
  }
}

void append_line(const std::string& path, const std::string& line, const char* what,
                 bool may_create = true) {
  const int error = LineFile(path, may_create).append(line);
  if (error == 0 || (error == -ENOENT && !may_create)) return;  // or its owner has taken it away
  base::EarlierOutput::is_failure_told.store(true);
  std::fprintf(stderr, "outcore: %s\n",
               base::system_error(error, std::string("write ") + what + " to " + path,
                                  remedy_for_lines(error))
                   .message.c_str());
}

bool is_to_be_recorded(Runtime::Impl& impl) {
  // A child that came about without fork's handlers has no record of its own.
  return impl.recording->is_of_whole_run() && impl.sheet->memory().process.load() == ::getpid() &&
         !impl.recording->is_written.exchange(true);
}

// The same.
void write_record(Runtime::Impl& impl, const Metrics& metrics) noexcept {
  try {
    append_line(impl.recording->path(), impl.recording->finish(metrics) + "\n",
                "the record of the run", false);
  } catch (const std::bad_alloc&) {
    std::fputs("outcore: the record of the run cannot be written: no memory is left\n", stderr);
  }
}

// Within exit() or a destructor, which no exception may leave.
void keep_and_report(Runtime::Impl& impl) noexcept {
  try {
    if (const Status s = impl.learnt->keep(false); !s)
      std::fprintf(stderr, "outcore: %s\n", s.message().c_str());
  } catch (const std::bad_alloc&) {
    std::fputs("outcore: what was learnt cannot be kept: no memory is left\n", stderr);
  }
}

// Reports the runtimes that nobody has ended: those of `outcore run`, of the default heap, or that
// are in use during exit().
void report_all() {
  std::vector<std::shared_ptr<Runtime::Impl>> all;
  if (!lock_soon(waiting().lock)) return;
  for (const auto& each : waiting().runtimes)
    if (auto impl = each.lock(); impl != nullptr) all.push_back(std::move(impl));
  waiting().runtimes.clear();
  waiting().lock.unlock();
  for (const auto& impl : all) {
    if (impl->generation != process_generation()) continue;
    if (impl->learnt->keeps_at_exit.exchange(false)) keep_and_report(*impl);
    const bool is_recorded = is_to_be_recorded(*impl);
    const bool is_told = is_wanted(*impl) && !impl->is_reported.exchange(true);
    if (!is_recorded && !is_told) continue;
    if (!lock_soon(impl->mapping)) {
      std::fputs("outcore: nothing is reported of the run: another thread is mapping at its end\n",
                 stderr);
      continue;
    }
    const Metrics metrics = collect(*impl);
    impl->mapping.unlock();
    if (is_recorded) write_record(*impl, metrics);
    if (is_told) write_metrics(impl->options.metrics_at_exit, metrics);
  }
  // They must not be destroyed here: their memory stays in use until the process is gone.
  static auto* const kept = new std::vector<std::shared_ptr<Runtime::Impl>>;
  kept->swap(all);
}

void remember(const std::shared_ptr<Runtime::Impl>& impl) {
  static const int registered = std::atexit(report_all);
  static_cast<void>(registered);
  const std::lock_guard<std::mutex> guard(waiting().lock);
  std::erase_if(waiting().runtimes, [](const auto& each) { return each.expired(); });
  waiting().runtimes.push_back(impl);
}

}  // namespace

int open_to_append(const std::string& path, bool may_create) {
  // A pipe that nobody reads would be waited for, with signals blocked.
  const int flags = O_APPEND | O_CLOEXEC | O_NOCTTY | O_NONBLOCK | (may_create ? O_CREAT : 0);
  int file = ::open(path.c_str(), O_RDWR | flags, 0666);
  if (file < 0) file = ::open(path.c_str(), O_WRONLY | flags, 0666);
  return file >= 0 ? file : -errno;
}

bool lock_soon(std::mutex& lock) {
  constexpr uint64_t kNsMax = 1'000'000'000;
  const uint64_t start_ns = os::now_ns();
  while (!lock.try_lock()) {
    if (os::now_ns() - start_ns > kNsMax) return false;
    os::yield();
  }
  return true;
}

void write_metrics(const std::string& where, const Metrics& metrics) {
  if (where.empty() || where == "none") return;
  if (where == "text") {
    std::fputs(metrics.to_text().c_str(), stderr);
    return;
  }
  append_line(where, metrics.to_json() + "\n", "metrics");
}

Metrics collect_metrics(Runtime::Impl& impl) {
  const std::lock_guard<std::mutex> guard(impl.mapping);
  return collect(impl);
}

void report_at_exit(const std::shared_ptr<Runtime::Impl>& impl) {
  if (impl->recording->is_of_whole_run()) empty_if_left(impl->recording->path());
  if (is_wanted(*impl) && impl->options.metrics_at_exit != "text")
    empty_if_left(impl->options.metrics_at_exit);
  if (is_wanted(*impl) || impl->recording->is_of_whole_run()) remember(impl);
}

void keep_learnt_at_exit(const std::shared_ptr<Runtime::Impl>& impl) {
  OC_CHECK(impl != nullptr);
  if (!impl->learnt->keeps_at_exit.exchange(true)) remember(impl);
}

void report_end(Runtime::Impl& impl) {
  if (is_wanted(impl) && !impl.is_reported.exchange(true))
    write_metrics(impl.options.metrics_at_exit, collect_metrics(impl));
  if (is_to_be_recorded(impl)) write_record(impl, collect_metrics(impl));
  keep_and_report(impl);
}

}  // namespace outcore::runtime
