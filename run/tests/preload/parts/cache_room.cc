// cache_room: what the page cache is given from the budget, beside limits of all kinds.
#include "run/preload/cache_room.h"

#include <stdlib.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

using namespace outcore;  // NOLINT(google-build-using-namespace): a program
using preload::CacheRoom;

namespace {

constexpr uint64_t kMiB = 1 << 20, kBudget = 64 * kMiB;

void require(bool is_so, const char* what) {
  if (is_so) return;
  std::fprintf(stderr, "cache_room: %s\n", what);
  ::exit(1);
}

// A machine with much memory, and a cgroup with this limit.
class Root {
 public:
  explicit Root(uint64_t limit_bytes) {
    path_ = std::filesystem::temp_directory_path() / "outcore-root-XXXXXX";
    require(::mkdtemp(path_.data()) != nullptr, "no folder");
    file("/proc/meminfo",
         "MemTotal: 99999999 kB\nMemFree: 90000000 kB\nMemAvailable: 90000000 kB\n");
    file("/proc/self/cgroup", "0::/a\n");
    file("/proc/self/mountinfo", "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
    file("/sys/fs/cgroup/a/memory.max", std::to_string(limit_bytes));
    file("/sys/fs/cgroup/a/memory.current", "0");
    file("/sys/fs/cgroup/a/memory.stat", "");
  }
  ~Root() { std::filesystem::remove_all(path_); }
  Root(const Root&) = delete;
  Root& operator=(const Root&) = delete;
  const std::string& path() const { return path_; }

 private:
  void file(const std::string& name, const std::string& text) const {
    const std::filesystem::path at = path_ + name;
    std::filesystem::create_directories(at.parent_path());
    std::ofstream(at) << text;
  }
  std::string path_;
};

std::shared_ptr<Runtime::Impl> start(bool adapts_budget = false) {
  RuntimeOptions options;
  options.budget_bytes = kBudget;
  options.adapts_budget = adapts_budget;
  auto runtime = Runtime::Impl::start(options);
  require(runtime.ok(), "no runtime");
  return std::move(runtime).value();
}

// Of the budget, what is left for pages.
uint64_t left_of(Runtime::Impl& runtime) { return runtime.engine->pager().budget.limit(); }

void expect_what_is_written_up_to_the_most() {
  const Root root(100 * kMiB);
  const auto runtime = start();
  CacheRoom room;
  room.begin(*runtime, root.path());
  room.note_written(*runtime, 100 << 10);
  require(room.given_bytes() == 0, "less than a piece is given");
  room.note_written(*runtime, 1 * kMiB - (100 << 10));
  require(room.given_bytes() == kMiB / 4, "more than a piece is given by one call");
  for (int i = 0; i < 10; ++i) room.note_written(*runtime, 1);
  require(room.given_bytes() == kMiB, "not as much is given as is written");
  require(left_of(*runtime) == kBudget - kMiB, "pages have it, too");
  for (int i = 0; i < 100; ++i) room.note_written(*runtime, kMiB);
  const uint64_t most = CacheRoom::most_of(kBudget, std::thread::hardware_concurrency());
  require(room.given_bytes() > kMiB && room.given_bytes() <= most, "more than the most is given");
  require(left_of(*runtime) == kBudget - room.given_bytes(), "pages have some of it");
  require(runtime->engine->budget_bytes() == kBudget, "the budget is another");
  room.return_all(*runtime);
  require(room.given_bytes() == 0 && left_of(*runtime) == kBudget, "it is not taken back");
  room.note_written(*runtime, UINT64_MAX);
  require(room.given_bytes() == kMiB / 4, "nothing is given again");
  room.return_all(*runtime);
}

void expect_nothing(uint64_t limit_bytes, bool adapts_budget, const char* why) {
  const Root root(limit_bytes);
  const auto runtime = start(adapts_budget);
  CacheRoom room;
  room.begin(*runtime, root.path());
  for (int i = 0; i < 10; ++i) room.note_written(*runtime, kMiB);
  require(room.given_bytes() == 0, why);
}

}  // namespace

int main() {
  require(CacheRoom::most_of(kBudget, 2) == 3 * kMiB, "two processors");
  require(CacheRoom::most_of(8 * kMiB, 2) == 2 * kMiB, "a small budget");
  require(CacheRoom::most_of(1024 * kMiB, 500) == 16 * kMiB, "many processors");
  expect_what_is_written_up_to_the_most();
  expect_nothing(2 * kBudget, false, "given where there is room beside the budget");
  expect_nothing(100 * kMiB, true, "given from a budget that leaves room by itself");
  std::printf("right\n");
  return 0;
}
