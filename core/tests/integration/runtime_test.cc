// Runtimes: several in a process; their options, metrics and signal handling.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <numeric>
#include <thread>

#include "core/tests/conformance/faulty_store.h"
#include "core/tests/conformance/mechanism.h"
#include "outcore/array.h"

namespace outcore {
namespace {

using namespace scene;

Runtime start(uint64_t budget_bytes) { return Runtime::start(options_with(budget_bytes)).value(); }

TEST(Runtimes, SeveralLiveInOneProcessEachWithItsBuffer) {
  const Folder folder;
  write_file(folder / "a", pattern(4 * kMiB));
  write_file(folder / "b", pattern(4 * kMiB, kGiB));
  Runtime one = start(kMiB), other = start(2 * kMiB);
  const Region a = one.map(folder / "a").value(), b = other.map(folder / "b").value();
  std::thread reader([&] { EXPECT_EQ(first_difference(b.data(), 4 * kMiB, kGiB), 4 * kMiB); });
  EXPECT_EQ(first_difference(a.data(), 4 * kMiB), 4 * kMiB);
  reader.join();
  EXPECT_LE(one.metrics().gauges.used_bytes_max, kMiB);
  EXPECT_LE(other.metrics().gauges.used_bytes_max, 2 * kMiB);
  EXPECT_EQ(one.metrics().regions.size(), 1u);
}

TEST(Runtimes, OneAloneMapsAFileForWriting) {
  const Folder folder;
  write_file(folder / "a", pattern(kMiB));
  Runtime one = start(kMiB), other = start(kMiB);
  MapOptions writing;
  writing.access = Access::kReadWrite;
  Region first = one.map(folder / "a", writing).value();
  for (int i = 0; i < 2; ++i) {
    const Result<Region> refused = other.map(folder / "a", writing);
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.code(), EBUSY);
    EXPECT_NE(refused.message().find("another runtime of this process"), std::string::npos)
        << refused.message();
  }
  {
    const Region again = one.map(folder / "a", writing).value();  // one buffer for both
    again.data()[5] = std::byte{1};
    EXPECT_EQ(first.data()[5], std::byte{1});
  }
  EXPECT_TRUE(other.map(folder / "a").ok()) << "to read";
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
  // AddressSanitizer's allocator may be locked, by a thread that begins, when the child is made.
  GTEST_SKIP() << "sanitizers do not let a forked child start threads, or let it wait for ever";
#endif
  const pid_t child = ::fork();
  if (child == 0) {  // the child has none of its parent's runtimes
    bool is_free = false;
    {
      auto own = Runtime::start(options_with(kMiB));
      is_free = own.ok() && own.value().map(folder / "a", writing).ok();
    }
    ::_exit(is_free ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  ASSERT_TRUE(first.unmap().ok());
  Region second = other.map(folder / "a", writing).value();
  EXPECT_EQ(second.data()[5], std::byte{1});
  EXPECT_EQ(one.map(folder / "a", writing).code(), EBUSY);
  ASSERT_TRUE(second.unmap().ok());
  EXPECT_TRUE(one.map(folder / "a", writing).ok());
}

TEST(Runtimes, ComeAndGo) {
  const Folder folder;
  write_file(folder / "a", pattern(kMiB));
  for (int i = 0; i < 20; ++i) {
    Runtime runtime = start(kMiB);
    Runtime moved = std::move(runtime);
    const Region region = moved.map(folder / "a").value();
    ASSERT_EQ(first_difference(region.data(), kMiB), kMiB);
  }
}

TEST(Runtimes, RefuseABudgetThatIsTooSmallWithTheLeast) {
  const Result<Runtime> tiny = Runtime::start(options_with(64 * kKiB));
  ASSERT_FALSE(tiny.ok());
  EXPECT_EQ(tiny.code(), EINVAL);
  EXPECT_NE(tiny.message().find("least"), std::string::npos) << tiny.message();
  RuntimeOptions large_pages = options_with(2 * kMiB);
  large_pages.page_bytes = 16 * kMiB;
  const Result<Runtime> refused = Runtime::start(large_pages);
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.message().find("least"), std::string::npos) << refused.message();
  Runtime runtime = start(2 * kMiB);
  MapOptions options;
  options.page_bytes = 16 * kMiB;
  options.size_bytes = 64 * kMiB;
  EXPECT_EQ(runtime.map("memory:", options).code(), EINVAL);
}

TEST(Runtimes, RefuseOptionsThatAreNoneWithWhatWouldDo) {
  RuntimeOptions options = options_with(4 * kMiB);
  options.policy = "lru";
  Result<Runtime> refused = Runtime::start(options);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.code(), EINVAL);
  EXPECT_NE(refused.message().find("s3-fifo"), std::string::npos) << refused.message();
  options.policy.reset();
  options.page_bytes = 5000;
  EXPECT_EQ(Runtime::start(options).code(), EINVAL);
  options.page_bytes.reset();
  options.kernel = "windows";
  EXPECT_EQ(Runtime::start(options).code(), EINVAL);
}

TEST(Runtimes, RefuseMapsThatCannotBeWithTheReason) {
  const Folder folder;
  write_file(folder / "a", pattern(kMiB));
  Runtime runtime = start(4 * kMiB);
  const auto code_of = [&](const std::string& uri, const MapOptions& options) {
    const Result<Region> region = runtime.map(uri, options);
    EXPECT_TRUE(region.ok() || !region.message().empty());
    return region.code();
  };
  EXPECT_EQ(code_of(folder / "none", {}), ENOENT);
  EXPECT_EQ(code_of(folder / "a", {.offset = 100}), EINVAL);
  EXPECT_EQ(code_of(folder / "a", {.offset = 2 * kMiB}), EINVAL);
  EXPECT_EQ(code_of(folder / "a", {.page_bytes = 5000}), EINVAL);
  EXPECT_EQ(code_of(folder / "a", {.page_bytes = 32 * kMiB}), EINVAL);
  EXPECT_EQ(code_of("nonsense:x", {}), EINVAL);
  EXPECT_EQ(runtime.map(std::shared_ptr<Store>()).code(), EINVAL);
}

TEST(Runtimes, PutOnASmallerKernelUseWhatItHas) {
  const Folder folder;
  write_file(folder / "a", pattern(4 * kMiB));
  for (const char* kernel : {"5.15", "6.1", "6.8", "all"}) {
    RuntimeOptions options = options_with(kMiB);
    options.kernel = kernel;
    Runtime runtime = Runtime::start(options).value();
    for (const Access access : {Access::kReadOnly, Access::kReadWrite, Access::kPrivate}) {
      MapOptions map;
      map.access = access;
      Result<Region> region = runtime.map(folder / "a", map);
      ASSERT_TRUE(region.ok()) << kernel << ": " << region.message();
      ASSERT_EQ(first_difference(region->data(), 4 * kMiB), 4 * kMiB) << kernel;
      if (access != Access::kReadOnly) region->data()[7] = byte_at(7);
      ASSERT_TRUE(region->unmap().ok());
    }
  }
}

TEST(MetricsOf, ARuntimeArePlausible) {
  const Folder folder;
  constexpr uint64_t kBytes = 8 * kMiB;
  write_file(folder / "a", pattern(kBytes));
  Runtime runtime = start(2 * kMiB);
  MapOptions options;
  options.access = Access::kReadWrite;
  options.advice = Advice::kRandom;
  options.delivery = Delivery::kInThread;
  Result<Region> mapped = runtime.map(folder / "a", options);
  if (mapped.code() == EPERM) GTEST_SKIP() << mapped.message();
  Region region = std::move(mapped).value();
  for (uint64_t at = 0; at < kBytes; at += 4096) region.data()[at] = std::byte{1};
  const Metrics m = runtime.metrics();
  const uint64_t pages = kBytes / 4096;
  EXPECT_EQ(m.counters.fills, pages);
  EXPECT_GE(m.counters.faults, pages);
  EXPECT_EQ(m.counters.read_bytes, kBytes);
  EXPECT_LE(m.counters.evictions, m.counters.fills);
  EXPECT_GE(m.counters.evictions, (kBytes - 2 * kMiB) / 4096);
  EXPECT_EQ(m.counters.fill_errors, 0u);
  EXPECT_EQ(m.gauges.budget_bytes, 2 * kMiB);
  EXPECT_LE(m.gauges.used_bytes, m.gauges.used_bytes_max);
  EXPECT_LE(m.gauges.used_bytes_max, m.gauges.budget_bytes);
  EXPECT_GT(m.gauges.bounce_bytes, 0u);
  EXPECT_EQ(m.gauges.degraded, 0u);
  uint64_t latencies = 0;
  for (const uint64_t count : m.fault_latency.count) latencies += count;
  EXPECT_EQ(latencies, m.counters.faults);
  ASSERT_EQ(m.regions.size(), 1u);
  EXPECT_EQ(m.regions[0].counters.fills, m.counters.fills);
  EXPECT_LE(m.regions[0].resident_bytes, m.gauges.used_bytes - m.gauges.bounce_bytes);
  ASSERT_TRUE(region.unmap().ok());
  const Metrics after = runtime.metrics();
  EXPECT_EQ(after.counters.written_bytes, kBytes) << "counters outlive their region";
  EXPECT_EQ(after.gauges.used_bytes, after.gauges.bounce_bytes);
  EXPECT_TRUE(after.regions.empty());
}

TEST(MetricsOf, CallsThatBringPagesInCountHowLongTheyWaited) {
  const Folder folder;
  constexpr uint64_t kBytes = kMiB, kPages = kBytes / 4096;
  write_file(folder / "a", pattern(kBytes));
  Runtime runtime = start(4 * kMiB);
  Region region = runtime.map(folder / "a", {}).value();
  const auto waits = [&] { return runtime.metrics().counters.call_waits; };
  std::vector<std::byte> bytes(kBytes);
  ASSERT_TRUE(region.read(0, std::span(bytes).first(kBytes / 2)).ok());
  const Metrics read = runtime.metrics();
  EXPECT_EQ(read.counters.call_waits, kPages / 2) << "one a page";
  EXPECT_EQ(read.counters.faults, 0u);
  EXPECT_EQ(read.counters.fault_ns, 0u);
  EXPECT_GT(read.counters.call_wait_ns, 0u);
  const auto& latency = read.fault_latency.count;
  EXPECT_EQ(std::accumulate(latency.begin(), latency.end(), uint64_t{0}), kPages / 2);
  EXPECT_EQ(read.regions.at(0).counters.call_waits, kPages / 2);

  ASSERT_TRUE(region.read(0, std::span(bytes).first(kBytes / 2)).ok());
  ASSERT_TRUE(region.pin(0, kBytes / 4).ok());
  ASSERT_TRUE(region.unpin(0, kBytes / 4).ok());
  ASSERT_TRUE(region.prefault(0, kBytes / 2).ok());
  EXPECT_EQ(waits(), kPages / 2) << "what is there is not waited for";
  {
    const UncountedWaits uncounted;
    ASSERT_TRUE(region.read(kBytes / 2, std::span(bytes).first(kBytes / 4)).ok());
  }
  EXPECT_EQ(waits(), kPages / 2) << "another thread counts it";
  ASSERT_TRUE(region.pin(kBytes / 4 * 3, kBytes / 4).ok());
  ASSERT_TRUE(region.unpin(kBytes / 4 * 3, kBytes / 4).ok());
  EXPECT_EQ(waits(), kPages / 4 * 3);
  EXPECT_EQ(runtime.metrics().counters.faults, 0u);
}

TEST(MetricsOf, ACallThatBringsARangeInCountsWhatItFoundMissing) {
  const Folder folder;
  write_file(folder / "a", pattern(kMiB));
  Runtime runtime = start(4 * kMiB);
  Region region = runtime.map(folder / "a", {}).value();
  ASSERT_TRUE(region.prefault(0, kMiB).ok());
  const Metrics m = runtime.metrics();
  // Prefetch threads are faster for some of the pages.
  EXPECT_LE(m.counters.call_waits, kMiB / 4096);
  EXPECT_GE(m.counters.call_waits, 1u);
  EXPECT_GT(m.counters.call_wait_ns, 0u);
}

TEST(MetricsOf, ARuntimeThatNobodyEndsAreWrittenOnceAtExit) {
  OUTCORE_NEEDS_FORK();
  const Folder folder;
  write_file(folder / "a", pattern(kMiB));
  const std::string to = folder / "metrics.json";
  const Ending ending = in_child([&] {
    RuntimeOptions options = options_with(2 * kMiB);
    options.metrics_at_exit = to;
    auto* runtime = new Runtime(Runtime::start(options).value());
    auto* region = new Region(runtime->map(folder / "a", {}).value());
    static_cast<void>(*static_cast<volatile std::byte*>(region->data()));
    {  // a runtime that ends normally writes to its own file
      options.metrics_at_exit = to + ".other";
      const Runtime other = Runtime::start(options).value();
    }
    ::exit(5);
    return 0;
  });
  ASSERT_TRUE(ending.has_exited(5)) << ending;
  for (const std::string& path : {to, to + ".other"}) {
    const Bytes text = read_file(path);
    const std::string json(reinterpret_cast<const char*>(text.data()), text.size());
    EXPECT_EQ(json.find("budget_bytes"), json.rfind("budget_bytes")) << json;
    EXPECT_NE(json.find("budget_bytes"), std::string::npos) << json;
  }
}

TEST(ArrayOf, ARegionChecksBoundsAndAlignmentOnce) {
  Runtime runtime = start(kMiB);
  const auto map = [&](Access access) {
    return runtime.map(std::make_shared<FaultyStore>(Bytes(100'001)), {.access = access}).value();
  };
  Array<uint64_t> words = Array<uint64_t>::of(map(Access::kReadWrite), 8, 100).value();
  EXPECT_EQ(words.size(), 100u);
  words[99] = 7;
  EXPECT_EQ(words.span().back(), 7u);
  EXPECT_EQ(words.region().data() + 8, reinterpret_cast<std::byte*>(words.begin()));
  EXPECT_EQ(Array<uint64_t>::of(map(Access::kReadWrite)).code(), EINVAL) << "no multiple";
  EXPECT_EQ(Array<uint64_t>::of(map(Access::kReadWrite), 4, 1).code(), EINVAL) << "alignment";
  EXPECT_EQ(Array<uint64_t>::of(map(Access::kReadWrite), 8, 12'500).code(), EINVAL) << "too many";
  EXPECT_EQ(Array<uint64_t>::of(map(Access::kReadWrite), 200'000, 1).code(), EINVAL) << "past it";
  EXPECT_EQ(Array<uint64_t>::of(map(Access::kReadWrite), 8, ~uint64_t{0} / 8).code(), EINVAL);
  EXPECT_EQ(Array<uint64_t>::of(map(Access::kReadOnly), 0, 1).code(), EACCES);
  EXPECT_TRUE(Array<const uint64_t>::of(map(Access::kReadOnly), 0, 1).ok());
  EXPECT_EQ(Array<char>::of(Region()).code(), EINVAL);
}

TEST(Handlers, OfTheProgramSeeFaultsThatAreNotOutcores) {
  Runtime runtime = start(kMiB);
  const Folder folder;
  write_file(folder / "short", pattern(4096));
  const int fd = ::open((folder / "short").c_str(), O_RDONLY);
  auto* plain = static_cast<std::byte*>(::mmap(nullptr, 8192, PROT_READ, MAP_SHARED, fd, 0));
  ::close(fd);
  const Touch past = read_of(plain + 4096 + 123);
  EXPECT_EQ(past.signal, SIGBUS);
  EXPECT_EQ(past.address, plain + 4096 + 123);
  EXPECT_EQ(write_of(plain, std::byte{1}).signal, SIGSEGV);
  ::munmap(plain, 8192);
}

TEST(Handlers, ASignalThatSomebodySentReachesTheProgram) {
  Runtime runtime = start(kMiB);
  EXPECT_EQ(touch_of([] { ::raise(SIGBUS); }).signal, SIGBUS);
  EXPECT_EQ(touch_of([] { ::raise(SIGSEGV); }).signal, SIGSEGV);
}

TEST(Threads, ThatEndRightAfterAFaultLeaveNothingBehind) {
  const Folder folder;
  write_file(folder / "a", pattern(8 * kMiB));
  for (const Delivery delivery : {Delivery::kInThread, Delivery::kMessages, Delivery::kMprotect}) {
    Runtime runtime = start(kMiB);
    MapOptions options;
    options.access = Access::kReadWrite;
    options.delivery = delivery;
    Result<Region> region = runtime.map(folder / "a", options);
    if (region.code() == EPERM) continue;
    ASSERT_TRUE(region.ok()) << region.message();
    std::atomic<uint64_t> wrong = 0;
    for (uint64_t round = 0; round < 40; ++round) {
      std::vector<std::thread> threads;
      for (uint64_t t = 0; t < 16; ++t)
        threads.emplace_back([&, at = (round * 16 + t) * 5 % 2048 * 4096] {
          wrong += region->data()[at] != byte_at(at);
        });
      for (std::thread& thread : threads) thread.join();
    }
    EXPECT_EQ(wrong, 0u);
    EXPECT_TRUE(region->unmap().ok());
  }
}

// With mprotect each page among absent ones is a mapping of its own, and the kernel limits their
// number.
TEST(Mprotect, HoldsNoMorePagesThanTheKernelGivesMappings) {
  std::ifstream in("/proc/sys/vm/max_map_count");
  uint64_t mappings_max = 0;
  in >> mappings_max;
  if (mappings_max == 0 || mappings_max > 70'000)
    GTEST_SKIP() << "vm.max_map_count is " << mappings_max << ": too many to use up";
  RuntimeOptions options = options_with(2 * mappings_max * 4096);
  options.readahead_bytes = 0;
  Runtime runtime = Runtime::start(options).value();
  MapOptions map;
  map.access = Access::kReadWrite;
  map.delivery = Delivery::kMprotect;
  map.size_bytes = 2 * mappings_max * 4096;
  const Region region = runtime.map("memory:", map).value();
  for (uint64_t at = 0; at < map.size_bytes; at += 8192) {
    const Touch touch =
        at % 3 == 0 ? write_of(region.data() + at, std::byte{1}) : read_of(region.data() + at);
    ASSERT_EQ(touch.signal, 0) << "page " << at / 8192;
  }
  std::ifstream maps("/proc/self/maps");
  const auto used = std::count(std::istreambuf_iterator<char>(maps), {}, '\n');
  EXPECT_GT(used, static_cast<long>(mappings_max / 2));
  EXPECT_LT(used, static_cast<long>(mappings_max / 8 * 7)) << "the program needs some, too";
  for (uint64_t at = 0; at < map.size_bytes; at += 7 * 8192)
    ASSERT_EQ(region.data()[at], std::byte{at % 3 == 0}) << at;
}

// A process that exits while other threads fault must not hang or crash.
TEST(Threads, ThatFaultWhileTheProcessExitsDoNotHinderIt) {
  OUTCORE_NEEDS_FORK();
  const Folder folder;
  write_file(folder / "a", pattern(8 * kMiB));
  for (const Delivery delivery : {Delivery::kInThread, Delivery::kMessages}) {
    const Ending ending = in_child([&] {
      Runtime runtime = start(kMiB);
      MapOptions options;
      options.delivery = delivery;
      Result<Region> region = runtime.map(folder / "a", options);
      if (!region.ok()) return region.code() == EPERM ? 0 : 1;
      std::atomic<uint64_t> touches = 0;
      std::vector<std::thread> threads;  // never joined: the process exits while they run
      for (uint64_t t = 0; t < 4; ++t)
        threads.emplace_back([&, t] {
          for (uint64_t at = t * 4096;; at = (at + 4 * 4096) % (8 * kMiB)) {
            static_cast<void>(*static_cast<volatile std::byte*>(region->data() + at));
            ++touches;
          }
        });
      while (touches < 1000) std::this_thread::yield();
      ::_exit(0);
    });
    EXPECT_TRUE(ending.has_exited(0)) << ending;
  }
}

}  // namespace
}  // namespace outcore
