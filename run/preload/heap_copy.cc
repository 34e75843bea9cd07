#include "run/preload/heap_copy.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <ctime>
#include <new>

#include "core/base/assert.h"
#include "core/base/units.h"
#include "core/os/process_stat.h"
#include "core/os/wait.h"
#include "core/store/scratch_store.h"
#include "run/preload/real.h"

namespace outcore::preload {

namespace {

constexpr uint64_t kStepNs = 1'000'000;

enum Step : uint32_t { kNotBegun, kBegun, kAsked, kDone };

void make_robust(pthread_mutex_t* lock) {
  pthread_mutexattr_t kind;
  ::pthread_mutexattr_init(&kind);
  ::pthread_mutexattr_setpshared(&kind, PTHREAD_PROCESS_SHARED);
  ::pthread_mutexattr_setrobust(&kind, PTHREAD_MUTEX_ROBUST);
  ::pthread_mutex_init(lock, &kind);
  ::pthread_mutexattr_destroy(&kind);
}

}  // namespace

struct HeapCopy::Shared {
  pthread_mutex_t childs_life, parents_life;
  std::atomic<uint32_t> step{kNotBegun};
  std::atomic<int> error{0};
  std::atomic<pid_t> child{0};
};

std::unique_ptr<HeapCopy> HeapCopy::prepare(const std::string& folder) {
  std::unique_ptr<HeapCopy> copy(new (std::nothrow) HeapCopy);
  if (copy == nullptr) return errno = ENOMEM, nullptr;
  void* p = real().mmap(nullptr, base::kSystemPage, PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED) return nullptr;
  copy->shared_ = new (p) Shared;
  make_robust(&copy->shared_->childs_life);
  make_robust(&copy->shared_->parents_life);
  copy->is_ours_ = ::pthread_mutex_lock(&copy->shared_->parents_life) == 0;
  std::string at = folder;
  const int fd = store::open_scratch_file(&at);
  if (fd < 0) return errno = -fd, nullptr;
  copy->file_ = fd;
  return copy;
}

bool HeapCopy::reserve(uint64_t size_bytes) {
  OC_ASSERT(file_ >= 0);
  size_bytes_ = size_bytes;
  return ::ftruncate(file_, static_cast<off_t>(size_bytes)) == 0;
}

HeapCopy::~HeapCopy() {
  close_file();
  // A robust lock that a thread holds is in a list of that thread, which leads through the page. So
  // it is unlocked first; otherwise the thread would write to whatever the program maps there.
  if (is_ours_) ::pthread_mutex_unlock(&shared_->parents_life);
  if (has_childs_life_) ::pthread_mutex_unlock(&shared_->childs_life);
  if (shared_ != nullptr) real().munmap(shared_, base::kSystemPage);
}

void HeapCopy::close_file() {
  if (file_ >= 0) ::close(file_);
  file_ = -1;
}

// 0: the child is gone. No FILE of the C library is used: it would allocate from the program's
// heap, which may be locked.
long HeapCopy::threads_of_child() const {
  char path[32], text[1024];
  std::snprintf(path, sizeof path, "/proc/%d/stat", static_cast<int>(shared_->child.load()));
  const int fd = real().open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  const ssize_t n = real().read(fd, text, sizeof text);
  ::close(fd);
  const os::ProcessStat stat({text, static_cast<size_t>(std::max<ssize_t>(n, 0))});
  return static_cast<long>(stat.number(os::ProcessStat::kThreads));
}

bool HeapCopy::is_wanted(uint64_t wait_ns_max, bool may_have_failed) {
  OC_ASSERT(shared_ != nullptr);
  const uint64_t start_ns = os::now_ns();
  while (os::now_ns() - start_ns < wait_ns_max) {
    const uint32_t step = shared_->step.load();
    if (step == kAsked) return true;
    if (step == kNotBegun && may_have_failed && os::now_ns() - start_ns > 100 * kStepNs)
      return false;
    // The child's first thread has ended: the child has ended, or is another program, or goes on in
    // other threads.
    if (has_childs_life_ && threads_of_child() <= 1) return false;
    if (step == kNotBegun || has_childs_life_) {
      os::wait_between_processes(&shared_->step, step, kStepNs);
      continue;
    }
    timespec until;
    ::clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += kStepNs;
    if (until.tv_nsec >= 1'000'000'000) ++until.tv_sec, until.tv_nsec -= 1'000'000'000;
    const int result = ::pthread_mutex_clocklock(&shared_->childs_life, CLOCK_MONOTONIC, &until);
    has_childs_life_ = result == 0 || result == EOWNERDEAD;
  }
  return true;
}

void HeapCopy::finish(int error) {
  OC_CHECK(shared_ != nullptr);
  shared_->error.store(error);
  shared_->step.store(kDone);
  os::wake_between_processes(&shared_->step);
}

void HeapCopy::become_childs() {
  OC_ASSERT(shared_ != nullptr);
  shared_->child.store(::getpid());
  ::pthread_mutex_lock(&shared_->childs_life);
  // On a busy machine the parent may have stopped waiting, and made the copy, before this.
  uint32_t not_begun = kNotBegun;
  shared_->step.compare_exchange_strong(not_begun, kBegun);
  os::wake_between_processes(&shared_->step);
}

int HeapCopy::lay_over(std::byte* address, uint64_t size_bytes, uint64_t offset) {
  OC_ASSERT(file_ >= 0 && offset + size_bytes <= size_bytes_);
  void* p = real().mmap(address, size_bytes, PROT_NONE, MAP_PRIVATE | MAP_FIXED | MAP_NORESERVE,
                        file_, static_cast<off_t>(offset));
  return p == address ? 0 : errno;
}

int HeapCopy::fetch() {
  OC_CHECK(shared_ != nullptr);
  uint32_t begun = kBegun;
  shared_->step.compare_exchange_strong(begun, kAsked);
  for (uint32_t step = kAsked; (step = shared_->step.load()) != kDone;) {
    const int result = ::pthread_mutex_trylock(&shared_->parents_life);
    if (result == 0) ::pthread_mutex_unlock(&shared_->parents_life);
    if (result != EBUSY && shared_->step.load() != kDone) return ESRCH;
    os::wait_between_processes(&shared_->step, step, 100 * kStepNs);
  }
  return shared_->error.load();
}

}  // namespace outcore::preload
