// Processes that share a buffer: what they read, how often, within which limit, and when they die.
#include <sched.h>
#include <sys/syscall.h>

#include <filesystem>
#include <thread>

#include "core/base/clock.h"
#include "core/os/kernel_features.h"
#include "core/tests/buffer/job.h"
#include "core/tests/conformance/scene.h"

namespace outcore {
namespace {

using namespace scene;

using namespace of_job;

// Touches pages as chance will have it until the job is over, or `touches` are done.
int read_at_random(const Job& job, uint64_t seed, uint64_t touches,
                   Delivery delivery = Delivery::kAuto) {
  RuntimeOptions options = Job::options(kLimit);
  options.delivery = delivery;
  auto runtime = Runtime::start(options);
  if (!runtime) return std::fprintf(stderr, "%s\n", runtime.message().c_str()), kNoRuntime;
  auto region = runtime.value().map(job.path());
  if (!region) return std::fprintf(stderr, "%s\n", region.message().c_str()), kNoRegion;
  job.shared().arrived.fetch_add(1);
  uint64_t x = seed;
  for (uint64_t i = 0; i < touches && job.shared().is_over.load() == 0; ++i) {
    x = mix(x + i);
    const uint64_t start_ns = base::now_ns();
    if (!job.is_right(region.value(), x % job.file_pages(), x >> 40)) return kWrong;
    const uint64_t took_ns = base::now_ns() - start_ns;
    uint64_t longest_ns = job.shared().longest_ns.load(std::memory_order_relaxed);
    while (took_ns > longest_ns &&
           !job.shared().longest_ns.compare_exchange_weak(longest_ns, took_ns)) {
    }
    job.shared().touches.fetch_add(1, std::memory_order_relaxed);
  }
  job.shared().read_bytes.fetch_add(runtime.value().metrics().counters.read_bytes);
  return 0;
}

// All pages, in the order of the file.
int read_all(const Job& job, uint64_t budget_bytes) {
  auto runtime = Runtime::start(Job::options(budget_bytes));
  if (!runtime) return std::fprintf(stderr, "%s\n", runtime.message().c_str()), kNoRuntime;
  auto region = runtime.value().map(job.path());
  if (!region) return std::fprintf(stderr, "%s\n", region.message().c_str()), kNoRegion;
  job.shared().arrived.fetch_add(1);
  while (job.shared().gate.load() == 0) ::sched_yield();
  for (uint64_t page = 0; page < job.file_pages(); ++page)
    if (!job.is_right(region.value(), page, page)) return kWrong;
  job.shared().read_bytes.fetch_add(runtime.value().metrics().counters.read_bytes);
  // Who leaves first must not take the pages along.
  job.shared().arrived.fetch_add(1);
  while (job.shared().arrived.load() < 8) ::sched_yield();
  return 0;
}

class Processes : public testing::Test {
 protected:
  void SetUp() override {
    OUTCORE_NEEDS_THREADS_IN_CHILD();
    if (const std::string why = why_no_buffers(); !why.empty()) GTEST_SKIP() << why;
  }
};

TEST_F(Processes, ReadAFileThatFitsOnceTogether) {
  Job job(1024);
  std::vector<pid_t> readers;
  for (int i = 0; i < 4; ++i) readers.push_back(job.begin([&] { return read_all(job, kLimit); }));
  while (job.shared().arrived.load() < 4) ::sched_yield();
  job.shared().gate.store(1);
  for (const pid_t reader : readers) EXPECT_EQ(job.end(reader), 0);
  EXPECT_GE(job.shared().read_bytes.load(), job.file_bytes());
  EXPECT_LE(job.shared().read_bytes.load(), job.file_bytes() * 105 / 100);
}

TEST_F(Processes, KeepOneLimitTogether) {
  Job job(8192);  // four times the limit
  for (uint64_t i = 0; i < 4; ++i)
    job.begin([&job, i] { return read_at_random(job, i, UINT64_MAX); });
  uint64_t seen = 0;
  while (job.shared().touches.load() < 100'000) {
    const BufferFacts facts = Job::facts();
    EXPECT_LE(facts.resident_bytes, kLimit);
    if (facts.evicted_pages != 0) ++seen;
  }
  EXPECT_GT(seen, 0u);
  EXPECT_EQ(Job::facts().members.size(), 4u);
  job.shared().is_over.store(1);
  for (const pid_t process : std::vector<pid_t>(job.processes())) EXPECT_EQ(job.end(process), 0);
}

TEST_F(Processes, LeaveNothingBehind) {
  Job job(256);
  EXPECT_EQ(job.end(job.begin([&] { return read_at_random(job, 1, 1000); })), 0);
  EXPECT_TRUE(Job::facts().members.empty());
  EXPECT_TRUE(std::filesystem::is_empty(job.folder() / "buffers"));
}

TEST_F(Processes, GoOnWhenOthersAreKilledAtAnyMoment) {
  Job job(8192);
  constexpr uint64_t kReaders = 5;
  const char* const asked = std::getenv("OUTCORE_KILLS");
  const int kills = asked != nullptr ? static_cast<int>(std::strtoull(asked, nullptr, 10)) : 150;
  uint64_t seed = 0, keepers_killed = 0;
  const auto begin = [&] {
    return job.begin([&job, s = ++seed] { return read_at_random(job, s, UINT64_MAX); });
  };
  for (uint64_t i = 0; i < kReaders; ++i) begin();
  for (int i = 0; i < kills; ++i) {
    // So much is done between two of them: they meet processes that begin, read and keep.
    const uint64_t until =
        job.shared().touches.load() + scene::mix(static_cast<uint64_t>(i)) % 2000;
    while (job.shared().touches.load() < until) ::sched_yield();
    const BufferFacts facts = Job::facts();
    EXPECT_LE(facts.resident_bytes, kLimit);
    const uint64_t chance = scene::mix(static_cast<uint64_t>(i) + 77);
    const auto& all = job.processes();
    pid_t victim = all[chance % all.size()];
    if (chance % 3 == 0 && std::find(all.begin(), all.end(), facts.keeping) != all.end())
      victim = facts.keeping, ++keepers_killed;
    job.kill(victim);
    begin();
  }
  EXPECT_GT(keepers_killed, 0u);
  // What the dead had is back: the living can use all of the limit but what they need themselves.
  const uint64_t beside = [&] {
    for (;;) {
      const BufferFacts facts = Job::facts();
      const uint64_t more = facts.coming_bytes + facts.used_bytes - facts.resident_bytes;
      if (facts.members.size() == kReaders && more <= kReaders * (256 << 10)) return more;
      ::sched_yield();
    }
  }();
  EXPECT_GT(beside, 0u);
  job.shared().is_over.store(1);
  for (const pid_t process : std::vector<pid_t>(job.processes())) EXPECT_EQ(job.end(process), 0);
  std::printf(
      "%d processes killed, %lu of them the one that kept; %lu touches, the longest %lu ms\n",
      kills, keepers_killed, job.shared().touches.load(),
      job.shared().longest_ns.load() / 1'000'000);
}

TEST_F(Processes, GoOnWhileTheOneThatKeepsStandsStill) {
  Job job(8192);
  const pid_t first = job.begin([&] { return read_at_random(job, 1, UINT64_MAX); });
  while (Job::facts().keeping != first) ::sched_yield();
  job.begin([&] { return read_at_random(job, 2, UINT64_MAX); });
  while (job.shared().touches.load() < 10'000) ::sched_yield();
  ASSERT_EQ(::kill(first, SIGSTOP), 0);
  const uint64_t before = job.shared().touches.load();
  while (job.shared().touches.load() < before + 5'000) ::sched_yield();
  EXPECT_LE(Job::facts().resident_bytes, kLimit);
  EXPECT_EQ(job.end(job.begin([&] { return read_at_random(job, 3, 1000); })), 0);
  ASSERT_EQ(::kill(first, SIGCONT), 0);
  job.shared().is_over.store(1);
  for (const pid_t process : std::vector<pid_t>(job.processes())) EXPECT_EQ(job.end(process), 0);
}

TEST_F(Processes, ShareByMessagesToo) {
  if (const auto kernel = os::detect_kernel_features("all"); !kernel.value().has_messages)
    GTEST_SKIP() << kernel.value().why_no_messages;
  Job job(8192);
  constexpr Delivery kDeliveries[] = {Delivery::kMessages, Delivery::kMessages,
                                      Delivery::kInThread};
  for (const Delivery delivery : kDeliveries)
    job.begin([&job, delivery] { return read_at_random(job, 1, UINT64_MAX, delivery); });
  while (job.shared().touches.load() < 20'000) ::sched_yield();
  EXPECT_EQ(Job::facts().files, 1u);
  EXPECT_LE(Job::facts().resident_bytes, kLimit);
  job.shared().is_over.store(1);
  for (const pid_t process : std::vector<pid_t>(job.processes())) EXPECT_EQ(job.end(process), 0);
}

// A page that cannot be read raises SIGBUS in whoever touches it, and in no other way; once it can
// be read again it is there.
TEST_F(Processes, TellOfAPageThatCannotBeReadEachTheirOwn) {
  for (const Delivery delivery : {Delivery::kInThread, Delivery::kMessages}) {
    if (delivery == Delivery::kMessages && !os::detect_kernel_features("all").value().has_messages)
      continue;
    Job job(64);
    const auto touch_the_end = [&] {
      RuntimeOptions options = Job::options(kLimit);
      options.delivery = delivery;
      auto runtime = Runtime::start(options);
      auto region = runtime.value().map(job.path());
      if (!region) return kNoRegion;
      if (::truncate(job.path().c_str(), 4096) != 0) return kWrong;
      static_cast<void>(job.is_right(region.value(), 60, 1));
      return kWrong;
    };
    EXPECT_EQ(job.end(job.begin(touch_the_end)), -SIGBUS) << static_cast<int>(delivery);
  }
}

TEST_F(Processes, PinWhatOthersWouldPushOut) {
  Job job(8192);
  const auto hold = [&] {
    auto runtime = Runtime::start(Job::options(kLimit));
    auto region = runtime.value().map(job.path());
    const Status pinned = region.value().pin(0, 64 * kPage);
    if (!pinned.ok()) return kNoRegion;
    job.shared().arrived.fetch_add(1);
    const uint64_t read = region.value().metrics().counters.read_bytes;
    while (job.shared().is_over.load() == 0)
      for (uint64_t page = 0; page < 64; ++page)
        if (!job.is_right(region.value(), page, page)) return kWrong;
    if (region.value().metrics().counters.read_bytes != read) return kWrong;
    if (!region.value().unpin(0, 64 * kPage).ok()) return kWrong;
    return region.value().unpin(0, kPage).code() == EINVAL ? 0 : kWrong;
  };
  const pid_t holder = job.begin(hold);
  while (job.shared().arrived.load() == 0) ::sched_yield();
  job.begin([&] { return read_at_random(job, 1, UINT64_MAX); });
  while (job.shared().touches.load() < 20'000) ::sched_yield();
  job.shared().is_over.store(1);
  EXPECT_EQ(job.end(holder), 0);
  for (const pid_t process : std::vector<pid_t>(job.processes())) EXPECT_EQ(job.end(process), 0);
}

TEST_F(Processes, CountHowLongTheirCallsWaitForWhatIsMissingAlone) {
  Job job(1024);
  const auto call = [&] {
    auto runtime = Runtime::start(Job::options(kLimit));
    auto region = runtime.value().map(job.path());
    const auto waits = [&] { return region.value().metrics().counters.call_waits; };
    std::byte bytes[kPage];
    if (!region.value().pin(0, 64 * kPage).ok() || waits() != 64) return kWrong;
    if (!region.value().unpin(0, 64 * kPage).ok()) return kWrong;
    if (!region.value().pin(0, 64 * kPage).ok() || waits() != 64) return kWrong;
    if (!region.value().prefault(0, 64 * kPage).ok() || waits() != 64) return kWrong;
    if (!region.value().read(64 * kPage, bytes).ok() || waits() != 65) return kWrong;
    const Counters counters = runtime.value().metrics().counters;
    return counters.call_wait_ns != 0 && counters.fault_ns == 0 ? 0 : kWrong;
  };
  EXPECT_EQ(job.end(job.begin(call)), 0);
}

TEST_F(Processes, CopyMuchByTransfersOfManyPages) {
  Job job(4096);  // twice the limit
  const auto call = [&] {
    auto runtime = Runtime::start(Job::options(kLimit));
    auto region = runtime.value().map(job.path());
    std::vector<std::byte> bytes(region.value().size_bytes());
    if (!region.value().read(0, bytes).ok() || !region.value().is_shared()) return kNotShared;
    if (region.value().metrics().counters.read_requests > 4096 / 4) return kWrong;
    for (uint64_t page = 0; page < 4096; ++page)
      if (std::memcmp(&bytes[page * kPage], region.value().data() + page * kPage, kPage) != 0)
        return kWrong;
    return 0;
  };
  EXPECT_EQ(job.end(job.begin(call)), 0);
}

TEST_F(Processes, ChangeTheLimitWhileTheyRun) {
  Job job(8192);
  for (uint64_t i = 0; i < 2; ++i)
    job.begin([&job, i] { return read_at_random(job, i, UINT64_MAX); });
  while (Job::facts().evicted_pages == 0) ::sched_yield();
  ASSERT_TRUE(resize_buffer("job", kLimit / 2).ok());
  while (Job::facts().used_bytes > kLimit / 2) ::sched_yield();
  ASSERT_TRUE(resize_buffer("job", uint64_t{1} << 45).ok());
  while (Job::facts().resident_bytes < kLimit) ::sched_yield();
  ASSERT_TRUE(resize_buffer("job", kLimit * 2).ok());
  while (Job::facts().resident_bytes < kLimit) ::sched_yield();
  job.shared().is_over.store(1);
  for (const pid_t process : std::vector<pid_t>(job.processes())) EXPECT_EQ(job.end(process), 0);
}

// Of a process that closes all of its descriptors, by a call that nobody sees, nobody else gets the
// zeros that the kernel would give for a page that is missing.
TEST_F(Processes, ReadOnWhateverAnotherOneCloses) {
  Job job(8192);
  const pid_t reader = job.begin([&] { return read_at_random(job, 1, UINT64_MAX); });
  for (int round = 0; round < 5; ++round) {
    const pid_t other = job.begin([&] {
      auto runtime = Runtime::start(Job::options(kLimit));
      auto region = runtime.value().map(job.path());
      if (!job.is_right(region.value(), 0, 1)) return kWrong;
      if (::syscall(SYS_close_range, 3u, ~0u, 0) != 0) return kNoRegion;
      for (uint64_t page = 0; page < job.file_pages(); ++page)
        if (!job.is_right(region.value(), page, page)) return kWrong;
      return 0;
    });
    EXPECT_EQ(job.end(other), -SIGBUS);
  }
  const uint64_t before = job.shared().touches.load();
  while (job.shared().touches.load() < before + 20'000) ::sched_yield();
  job.shared().is_over.store(1);
  EXPECT_EQ(job.end(reader), 0);
}

TEST_F(Processes, ReadAsManyAsLikeThroughTheRegion) {
  Job job(4096);
  const auto read = [&] {
    auto runtime = Runtime::start(Job::options(kLimit));
    auto region = runtime.value().map(job.path());
    std::vector<std::thread> threads;
    std::atomic<int> wrong{0};
    for (uint64_t t = 0; t < 24; ++t)
      threads.emplace_back([&, t] {
        for (uint64_t i = 0; i < 300; ++i) {
          const uint64_t page = (mix(t * 1000 + i) % 64) * 64;  // pages that lie far apart
          uint64_t word = 0;
          const Status s =
              region.value().read(page * kPage, {reinterpret_cast<std::byte*>(&word), sizeof word});
          if (!s.ok() || word != Job::word(page * kPage / 8)) wrong.fetch_add(1);
        }
      });
    for (std::thread& thread : threads) thread.join();
    return wrong.load() == 0 ? 0 : kWrong;
  };
  EXPECT_EQ(job.end(job.begin(read)), 0);
}

TEST_F(Processes, HaveRuntimesThatDoNotTakeEachOthersMemory) {
  Job job(4096);
  const auto two = [&] {
    auto first = Runtime::start(Job::options(kLimit));
    MapOptions own;
    own.access = Access::kPrivate;
    auto region = first.value().map(job.path(), own);
    if (!region) return kNoRegion;
    const uint64_t used = Job::facts().used_bytes;
    {
      auto second = Runtime::start(Job::options(kLimit));
      if (!second || Job::facts().used_bytes < used) return kWrong;
      // What the first has in the buffer the second has for itself.
      auto shared = first.value().map(job.path());
      auto again = second.value().map(job.path());
      if (!shared || !again) return kNoRegion;
      if (!job.is_right(shared.value(), 7, 1) || !job.is_right(again.value(), 7, 1)) return kWrong;
    }
    return Job::facts().used_bytes >= used ? 0 : kWrong;
  };
  EXPECT_EQ(job.end(job.begin(two)), 0);
}

TEST_F(Processes, SeeAFileThatHasChangedAsAnotherOne) {
  Job job(64);
  const pid_t old = job.begin([&] { return read_at_random(job, 1, UINT64_MAX); });
  while (job.shared().touches.load() < 1000) ::sched_yield();
  // Another file at the same path: who has the old one keeps it.
  std::filesystem::rename(job.path(), job.path() + ".old");
  std::vector<uint64_t> words(job.file_bytes() / 8, 5);
  FILE* const file = std::fopen(job.path().c_str(), "w");
  ASSERT_EQ(std::fwrite(words.data(), 8, words.size(), file), words.size());
  ASSERT_EQ(std::fclose(file), 0);
  Job::settle(job.path());
  const auto read_new = [&] {
    auto runtime = Runtime::start(Job::options(kLimit));
    auto region = runtime.value().map(job.path());
    if (Job::facts().files != 2) return kNoRegion;
    for (uint64_t i = 0; i < words.size(); ++i)
      if (reinterpret_cast<const uint64_t*>(region.value().data())[i] != 5) return kWrong;
    return 0;
  };
  EXPECT_EQ(job.end(job.begin(read_new)), 0);
  job.shared().is_over.store(1);
  EXPECT_EQ(job.end(old), 0);
}

}  // namespace
}  // namespace outcore
