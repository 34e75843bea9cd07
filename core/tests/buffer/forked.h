// Forked: a member of a job's buffer that forks, and what its children are asked.
#pragma once

#include <sys/wait.h>

#include <algorithm>
#include <cstdio>
#include <vector>

#include "core/os/kernel_features.h"
#include "core/tests/buffer/job.h"
#include "core/tests/conformance/scene.h"

namespace outcore::scene::of_job {

// Runs it in a child of this process. The exit status, or -signal.
template <typename Work>
int status_in_child(const Work& work) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(work());
  return status_of(child);
}

inline bool is_member(pid_t process) {
  const std::vector<pid_t> members = Job::facts().members;
  return std::find(members.begin(), members.end(), process) != members.end();
}

class Forked : public testing::Test {
 protected:
  void SetUp() override {
    OUTCORE_NEEDS_THREADS_IN_CHILD();
    if (const std::string why = why_no_buffers(); !why.empty()) GTEST_SKIP() << why;
  }

  // A member with the job's file mapped does `work`, which forks. Its exit status.
  template <typename Work>
  int in_member(const Work& work, Delivery delivery = Delivery::kAuto) {
    return job_.end(job_.begin([&] { return as_member(work, delivery); }));
  }
  template <typename Work>
  int as_member(const Work& work, Delivery delivery = Delivery::kAuto) {
    RuntimeOptions options = Job::options(kLimit);
    options.delivery = delivery;
    auto runtime = Runtime::start(options);
    if (!runtime) return std::fprintf(stderr, "%s\n", runtime.message().c_str()), kNoRuntime;
    auto region = runtime.value().map(job_.path());
    if (!region) return std::fprintf(stderr, "%s\n", region.message().c_str()), kNoRegion;
    return work(runtime.value(), region.value());
  }
  // All pages, in an order by chance.
  bool is_all_right(const Region& region, uint64_t seed = 1) const {
    for (uint64_t i = 0; i < job_.file_pages(); ++i)
      if (const uint64_t x = mix(seed + i); !job_.is_right(region, x % job_.file_pages(), x >> 40))
        return false;
    return true;
  }

  Job job_{4096};  // twice the limit
};

}  // namespace outcore::scene::of_job
