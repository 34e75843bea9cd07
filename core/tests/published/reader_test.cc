// look_at() and list_published(): what others have counted, without asking them.
#include <grp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "core/tests/conformance/scene.h"
#include "core/tests/published/child.h"
#include "outcore/sight.h"

namespace outcore {
namespace {

using namespace scene;

bool is_listed(pid_t process) {
  const std::vector<pid_t> all = list_published();
  EXPECT_TRUE(std::is_sorted(all.begin(), all.end()));
  return std::find(all.begin(), all.end(), process) != all.end();
}

// Who touches fills, and counts before it goes on: a thread that reads ahead may count what is
// there already a moment later.
RuntimeOptions options_without_guesses() {
  RuntimeOptions options = options_with(2 * kMiB);
  options.fetch = Fetch::kPage;
  options.readahead_bytes = 0;
  return options;
}

// Maps the file and reads all of it.
int read_whole(const std::string& path, const std::function<void()>& be_ready) {
  Result<Runtime> runtime = Runtime::start(options_without_guesses());
  if (!runtime) return 2;
  const Result<Region> region = runtime.value().map(path);
  if (!region || first_difference(region.value().data(), kMiB) != kMiB) return 3;
  be_ready();
  return 0;
}

std::vector<uint64_t> counts_of(const Metrics& metrics) {
  std::vector<uint64_t> counts{metrics.gauges.used_bytes, metrics.gauges.bounce_bytes};
  const auto& latencies = metrics.fault_latency.count;
  counts.insert(counts.end(), latencies.begin(), latencies.end());
#define OUTCORE_COUNT(name, unit, help) counts.push_back(metrics.counters.name);
  OUTCORE_COUNTERS(OUTCORE_COUNT)
#undef OUTCORE_COUNT
  for (const auto& region : metrics.regions) counts.push_back(region.resident_bytes);
  return counts;
}

class Sight : public testing::Test {
 protected:
  Sight() { write_file(path_, pattern(kMiB)); }
  const Folder folder_;
  const std::string path_ = folder_ / "a";
};

TEST_F(Sight, ARuntimeOfThisProcessIsSeenAsItsMetricsSay) {
  EXPECT_EQ(look_at(::getpid()).code(), ENOENT);
  EXPECT_FALSE(is_listed(::getpid()));
  {
    Runtime runtime = Runtime::start(options_without_guesses()).value();
    const Region region = runtime.map(path_).value();
    ASSERT_EQ(first_difference(region.data(), kMiB), kMiB);
    // Threads of the runtime may go on counting: seen between two looks that agree.
    Metrics own = runtime.metrics();
    auto seen = look_at(::getpid());
    for (Metrics after; counts_of(own) != counts_of(after = runtime.metrics()); own = after)
      seen = look_at(::getpid());
    ASSERT_TRUE(seen.ok()) << seen.message();
    ASSERT_EQ(seen.value().size(), 1u);
    const PublishedRuntime& told = seen.value().front();
    EXPECT_EQ(told.process, ::getpid());
    EXPECT_FALSE(told.version.empty());
    EXPECT_EQ(told.policy, "auto");
    EXPECT_EQ(told.policy_now, runtime.metrics().policies.at(0).policy);
    EXPECT_EQ(told.shared_buffer, "");
    EXPECT_EQ(told.metrics.gauges.budget_bytes, 2 * kMiB);
    EXPECT_EQ(told.metrics.gauges.used_bytes, own.gauges.used_bytes);
    EXPECT_EQ(told.metrics.gauges.bounce_bytes, own.gauges.bounce_bytes);
#define OUTCORE_SAME(name, unit, help) \
  EXPECT_EQ(told.metrics.counters.name, own.counters.name) << #name;
    OUTCORE_COUNTERS(OUTCORE_SAME)
#undef OUTCORE_SAME
    EXPECT_EQ(told.metrics.fault_latency.count, own.fault_latency.count);
    ASSERT_EQ(told.metrics.regions.size(), 1u);
    EXPECT_EQ(told.metrics.regions[0].uri, own.regions[0].uri);
    EXPECT_EQ(told.metrics.regions[0].size_bytes, kMiB);
    EXPECT_EQ(told.metrics.regions[0].resident_bytes, own.regions[0].resident_bytes);
    EXPECT_EQ(told.metrics.regions[0].access, "read-only");
    EXPECT_TRUE(is_listed(::getpid()));
  }
  EXPECT_EQ(look_at(::getpid()).code(), ENOENT);
}

TEST_F(Sight, WhatAProcessHadCountedIsKeptAfterItsEnd) {
  std::vector<int> kept;
  {
    Child child([&](const auto& be_ready) { return read_whole(path_, be_ready); });
    ASSERT_TRUE(child.is_ready());
    const pid_t process = child.process();
    kept = keep_published(process);
    ASSERT_EQ(kept.size(), 1u);
    child.kill();
    EXPECT_TRUE(keep_published(process).empty());
    const auto seen = look_at_kept(kept[0]);
    ASSERT_TRUE(seen.ok()) << seen.message();
    EXPECT_EQ(seen.value().process, process);
    EXPECT_GE(seen.value().metrics.counters.fills, kMiB / 4096);
    EXPECT_EQ(seen.value().metrics.regions.size(), 1u);
  }
  ::close(kept[0]);
}

TEST_F(Sight, WhatIsNotKeptIsRefused) {
  EXPECT_TRUE(keep_published(::getpid()).empty());
  EXPECT_TRUE(keep_published(-1).empty());
  const int file = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC);
  const int other = ::memfd_create("outcore-published", MFD_CLOEXEC);  // its name alone
  for (const int descriptor : {-1, 1 << 20, file, other})
    EXPECT_EQ(look_at_kept(descriptor).code(), EINVAL) << descriptor;
  ::close(file);
  ::close(other);
}

TEST_F(Sight, SeveralRuntimesOfAProcessComeTheOldestFirst) {
  const Runtime one = Runtime::start(options_with(1 * kMiB)).value();
  const Runtime two = Runtime::start(options_with(2 * kMiB)).value();
  const Runtime three = Runtime::start(options_with(3 * kMiB)).value();
  const auto seen = look_at(::getpid());
  ASSERT_TRUE(seen.ok()) << seen.message();
  ASSERT_EQ(seen.value().size(), 3u);
  for (size_t i = 0; i < 3; ++i)
    EXPECT_EQ(seen.value()[i].metrics.gauges.budget_bytes, (i + 1) * kMiB);
}

TEST_F(Sight, ARuntimeIsOneByHoweverManyDescriptors) {
  const Runtime runtime = Runtime::start(options_with(1 * kMiB)).value();
  const std::vector<int> kept = keep_published(::getpid());
  ASSERT_EQ(kept.size(), 1u);
  std::vector<int> copies(1000);
  for (int& copy : copies) copy = ::dup(kept[0]);
  EXPECT_EQ(look_at(::getpid()).value().size(), 1u);
  const std::vector<int> again = keep_published(::getpid());
  EXPECT_EQ(again.size(), 1u);
  for (const int descriptor : again) ::close(descriptor);
  for (const int copy : copies) ::close(copy);
  ::close(kept[0]);
}

TEST_F(Sight, WhatAStoreCountedStaysWhenItIsUnmapped) {
  Runtime runtime = Runtime::start(options_without_guesses()).value();
  Region region = runtime.map(path_).value();
  ASSERT_EQ(first_difference(region.data(), kMiB), kMiB);
  const Metrics before = look_at(::getpid()).value().front().metrics;
  ASSERT_TRUE(region.unmap().ok());
  const Metrics after = look_at(::getpid()).value().front().metrics, own = runtime.metrics();
  EXPECT_TRUE(after.regions.empty());
  EXPECT_GT(before.counters.faults, 0u);
  EXPECT_EQ(after.counters.faults, before.counters.faults);
  EXPECT_EQ(after.counters.read_bytes, before.counters.read_bytes);
  EXPECT_EQ(after.counters.fault_ns, before.counters.fault_ns);
  EXPECT_EQ(after.fault_latency.count, before.fault_latency.count);
  EXPECT_EQ(own.fault_latency.count, before.fault_latency.count);
}

TEST_F(Sight, AChildThatIsStoppedIsSeen) {
  Child child([&](const auto& be_ready) { return read_whole(path_, be_ready); });
  ASSERT_TRUE(child.is_ready());
  child.stop();
  const auto seen = look_at(child.process());
  ASSERT_TRUE(seen.ok()) << seen.message();
  EXPECT_EQ(seen.value().front().process, child.process());
  EXPECT_EQ(seen.value().front().metrics.regions.size(), 1u);
  EXPECT_GE(seen.value().front().metrics.counters.read_bytes, kMiB);
  EXPECT_TRUE(is_listed(child.process()));
  ::kill(child.process(), SIGCONT);
  EXPECT_EQ(child.end(), 0);
}

TEST_F(Sight, AChildOfAProcessWithARuntimeIsSeenForItselfAlone) {
  Runtime runtime = Runtime::start(options_with(kMiB)).value();
  const Region region = runtime.map(path_).value();
  ASSERT_EQ(first_difference(region.data(), kMiB), kMiB);
  const Counters before = runtime.metrics().counters;
  Child bare([&](const auto& be_ready) {
    be_ready();
    return 0;
  });
  ASSERT_TRUE(bare.is_ready());
  EXPECT_EQ(look_at(bare.process()).code(), ENOENT);
  EXPECT_FALSE(is_listed(bare.process()));
  Child child([&](const auto& be_ready) { return read_whole(path_, be_ready); });
  ASSERT_TRUE(child.is_ready());
  const auto seen = look_at(child.process());
  ASSERT_TRUE(seen.ok()) << seen.message();
  ASSERT_EQ(seen.value().size(), 1u);
  EXPECT_EQ(seen.value()[0].metrics.gauges.budget_bytes, 2 * kMiB);
  EXPECT_EQ(child.end(), 0);
  EXPECT_EQ(runtime.metrics().counters.faults, before.faults);
}

TEST_F(Sight, WhoIsGoneIsNoProcessAndIsNotListed) {
  Child child([&](const auto& be_ready) { return read_whole(path_, be_ready); });
  const pid_t process = child.process();
  ASSERT_TRUE(is_listed(process));
  ::kill(process, SIGKILL);
  siginfo_t about{};
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(process), &about, WEXITED | WNOWAIT), 0);
  EXPECT_FALSE(look_at(process).ok()) << "a zombie has nothing any more";
  EXPECT_FALSE(is_listed(process));
  child.kill();
  const auto seen = look_at(process);
  EXPECT_EQ(seen.code(), ESRCH);
  EXPECT_NE(seen.message().find("there is no such process"), std::string::npos);
  EXPECT_FALSE(is_listed(process));
}

TEST_F(Sight, NumbersThatAreNoProcessesAreToldInOneLine) {
  for (const pid_t process : {0, -1, INT32_MIN, INT32_MAX}) {
    const auto seen = look_at(process);
    EXPECT_EQ(seen.code(), ESRCH) << process;
    EXPECT_EQ(seen.message().find('\n'), std::string::npos);
    EXPECT_NE(seen.message().find(std::to_string(process)), std::string::npos);
  }
  EXPECT_EQ(look_at(1).code() == ESRCH, false);
}

// In a process of its own, which is nobody special: what it is told about `process`.
int code_as_another_user(pid_t process) {
  Child looker([&](const auto& be_ready) {
    if (::setgroups(0, nullptr) != 0 || ::setgid(65534) != 0 || ::setuid(65534) != 0) return 255;
    const auto seen = look_at(process);
    const std::vector<pid_t> all = list_published();
    be_ready();
    if (std::find(all.begin(), all.end(), process) != all.end()) return 254;
    if (seen.ok()) return 252;
    return seen.message().find('\n') == std::string::npos ? seen.code() : 253;
  });
  return looker.end();
}

TEST_F(Sight, AnotherUsersProcessIsNotForUsButRootSeesIt) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, to become somebody else";
  Child child([&](const auto& be_ready) { return read_whole(path_, be_ready); });
  ASSERT_TRUE(child.is_ready());
  EXPECT_EQ(code_as_another_user(child.process()), EACCES);
  std::filesystem::permissions(folder_.path(), std::filesystem::perms::all);
  Child theirs([&](const auto& be_ready) {
    if (::setgroups(0, nullptr) != 0 || ::setgid(65534) != 0 || ::setuid(65534) != 0) return 255;
    return read_whole(path_, be_ready);
  });
  ASSERT_TRUE(theirs.is_ready());
  EXPECT_TRUE(look_at(theirs.process()).ok());
  EXPECT_TRUE(is_listed(theirs.process()));
}

TEST_F(Sight, AProcessThatMayNotBeDumpedIsForRootAlone) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, to become somebody else";
  std::filesystem::permissions(folder_.path(), std::filesystem::perms::all);
  Child hidden([&](const auto& be_ready) {
    if (::setgroups(0, nullptr) != 0 || ::setgid(65534) != 0 || ::setuid(65534) != 0) return 255;
    ::prctl(PR_SET_DUMPABLE, 0);
    return read_whole(path_, be_ready);
  });
  ASSERT_TRUE(hidden.is_ready());
  EXPECT_EQ(code_as_another_user(hidden.process()), EACCES);
}

TEST_F(Sight, CountsOfAStoreThatComesAndGoesAreOfOneMomentEach) {
  Runtime runtime = Runtime::start(options_with(2 * kMiB)).value();
  write_file(folder_ / "b", pattern(kMiB));
  std::atomic<bool> is_over{false};
  std::thread mapper([&] {
    for (int i = 0; !is_over; ++i) {
      const Region region = runtime.map(folder_ / (i % 2 == 0 ? "a" : "b")).value();
      static_cast<void>(first_difference(region.data(), 64 * kKiB));
    }
  });
  for (int i = 0; i < 200; ++i) {
    const auto seen = look_at(::getpid());
    ASSERT_TRUE(seen.ok()) << seen.message();
    for (const RegionMetrics& region : seen.value().front().metrics.regions) {
      EXPECT_LE(region.resident_bytes, kMiB);
      const std::string end = region.uri.empty() ? "" : region.uri.substr(region.uri.size() - 2);
      EXPECT_TRUE(end == "" || end == "/a" || end == "/b") << region.uri;
    }
  }
  is_over = true;
  mapper.join();
}

// Whoever makes rates of them takes a counter that falls for one that began again.
TEST_F(Sight, CountersNeverFallWhileStoresComeAndGo) {
  Runtime runtime = Runtime::start(options_with(2 * kMiB)).value();
  std::atomic<bool> is_over{false};
  std::thread mapper([&] {
    while (!is_over) {
      const Region region = runtime.map(path_).value();
      for (uint64_t at = 0; at < 32 * kKiB; at += 4 * kKiB)
        static_cast<void>(*static_cast<const volatile std::byte*>(region.data() + at));
    }
  });
  uint64_t last = 0;
  int falls = 0, jumps = 0;
  for (int i = 0; i < 400; ++i) {
    const uint64_t now = look_at(::getpid()).value().front().metrics.counters.faults;
    falls += now < last;
    const uint64_t later = runtime.metrics().counters.faults;
    jumps += now > later;
    last = now;
  }
  is_over = true;
  mapper.join();
  EXPECT_EQ(falls, 0);
  EXPECT_EQ(jumps, 0) << "more was told than had been counted";
}

}  // namespace
}  // namespace outcore
