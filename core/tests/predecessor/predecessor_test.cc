// Defects of UMap, each shown to be absent here; with in-thread and message delivery where the
// delivery matters.
#include <sys/mman.h>
#include <sys/stat.h>

#include <thread>

#include "core/os/memory_limit.h"
#include "core/tests/conformance/faulty_store.h"
#include "core/tests/conformance/mechanism.h"

namespace outcore {
namespace {

using namespace scene;

class Predecessor : public OnMechanism {};
INSTANTIATE_TEST_SUITE_P(
    Mechanisms, Predecessor,
    testing::Values(Mechanism{Delivery::kInThread, FrameKind::kShared, 64 * kKiB},
                    Mechanism{Delivery::kInThread, FrameKind::kPrivate, 4 * kKiB},
                    Mechanism{Delivery::kMessages, FrameKind::kShared, 4 * kKiB},
                    Mechanism{Delivery::kMprotect, FrameKind::kShared, 4 * kKiB}),
    [](const testing::TestParamInfo<Mechanism>& of) { return name_of(of.param); });

TEST_P(Predecessor, TheOffsetOfAMappingCounts) {
  const std::string path = file_of(16 * page_bytes());
  MapOptions options = map_options(Access::kReadWrite);
  options.offset = 5 * page_bytes();
  Region region = runtime_->map(path, options).value();
  EXPECT_EQ(first_difference(region.data(), region.size_bytes(), options.offset),
            11 * page_bytes());
  region.data()[0] = std::byte{0x0F};
  ASSERT_TRUE(region.unmap().ok());
  const Bytes now = read_file(path);
  EXPECT_EQ(now[0], byte_at(0));
  EXPECT_EQ(now[options.offset], std::byte{0x0F});
}

TEST_P(Predecessor, AShortLastPageEndsInZerosNotInAnotherPagesBytes) {
  // Buffers are reused: what an earlier page left there must not appear.
  const uint64_t size = data_bytes() + 100;
  const std::string path = file_of(size);
  const Region region = map(path, Access::kReadOnly).value();
  for (int pass = 0; pass < 3; ++pass) {
    ASSERT_EQ(first_difference(region.data(), size), size);
    for (uint64_t at = size; at < (size + 4095) / 4096 * 4096; ++at)
      ASSERT_EQ(region.data()[at], std::byte{0}) << at;
  }
}

TEST_P(Predecessor, WritesToPinnedPagesAreKept) {
  const std::string path = file_of(data_bytes());
  Region region = map(path, Access::kReadWrite).value();
  ASSERT_TRUE(region.pin(0, page_bytes()).ok());
  ASSERT_TRUE(region.flush().ok());
  region.data()[8] = std::byte{0x88};  // no fault reports this write
  ASSERT_TRUE(region.unpin(0, page_bytes()).ok());
  ASSERT_EQ(
      first_difference(region.data() + page_bytes(), data_bytes() - page_bytes(), page_bytes()),
      data_bytes() - page_bytes());  // everything else passes through the budget
  EXPECT_EQ(region.data()[8], std::byte{0x88});
  ASSERT_TRUE(region.unmap().ok());
  EXPECT_EQ(read_file(path)[8], std::byte{0x88});
}

TEST_P(Predecessor, AForkedChildDoesNotReadZeros) {
  OUTCORE_NEEDS_FORK();
  const std::string path = file_of(data_bytes());
  const Region region = map(path, Access::kReadWrite).value();
  ASSERT_EQ(region.data()[0], byte_at(0));
  const Ending ending = in_child([&] {
    ::signal(SIGSEGV, SIG_DFL);  // independent of the handler of the test
    return region.data()[0] == std::byte{0} ? 10 : 11;
  });
  EXPECT_FALSE(ending.has_exited(10)) << "zeros";
  EXPECT_FALSE(ending.has_exited(11)) << "bytes of the parent's frames";
  EXPECT_EQ(region.data()[0], byte_at(0));
}

TEST_P(Predecessor, AFixedMappingDoesNotOverwriteItsNeighbour) {
  const std::string path = file_of(4 * page_bytes());
  const Reservation reservation = runtime_->reserve(16 * page_bytes()).value();
  MapOptions options = map_options(Access::kReadWrite);
  options.address = reservation.data();
  const Region region = runtime_->map(path, options).value();
  region.data()[3 * page_bytes()] = std::byte{0x44};
  options.address = reservation.data() + 3 * page_bytes();
  EXPECT_FALSE(runtime_->map(file_of(page_bytes(), "other"), options).ok());
  EXPECT_EQ(region.data()[3 * page_bytes()], std::byte{0x44});
  // Nor memory that does not belong to Outcore at all.
  void* foreign =
      ::mmap(nullptr, page_bytes(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  std::memset(foreign, 0x66, page_bytes());
  options.address = foreign;
  EXPECT_FALSE(runtime_->map(folder_ / "other", options).ok());
  EXPECT_EQ(static_cast<std::byte*>(foreign)[page_bytes() - 1], std::byte{0x66});
  ::munmap(foreign, page_bytes());
}

TEST_P(Predecessor, AStoreErrorDoesNotEndTheProcess) {
  const auto store = std::make_shared<FaultyStore>(pattern(4 * page_bytes()));
  MapOptions options = map_options(Access::kReadWrite);
  options.advice = Advice::kRandom;
  Region region = runtime_->map(store, options).value();
  region.data()[0] = std::byte{1};
  store->write_error = EIO;
  store->read_error = EIO;
  EXPECT_EQ(region.flush().code(), EIO);
  EXPECT_EQ(read_of(region.data() + 3 * page_bytes()).signal, SIGBUS);
  store->write_error = store->read_error = 0;
  static_cast<void>(region.retry_failed());
  EXPECT_TRUE(region.flush().ok());
  EXPECT_EQ(region.data()[3 * page_bytes()], byte_at(3 * page_bytes()));
}

TEST_P(Predecessor, SignalsDoNotEndTheProcess) {
  static std::atomic<uint64_t> heard;
  heard = 0;
  struct sigaction action {
  }, before{};
  action.sa_handler = [](int) { ++heard; };  // without SA_RESTART: EINTR everywhere
  ::sigaction(SIGUSR1, &action, &before);
  const std::string path = file_of(data_bytes());
  Region region = map(path, Access::kReadWrite).value();
  std::atomic<bool> is_done = false;
  const pthread_t reader = ::pthread_self();
  std::thread sender([&] {
    while (!is_done) ::pthread_kill(reader, SIGUSR1), std::this_thread::yield();
  });
  for (int pass = 0; pass < 2; ++pass) {
    for (uint64_t at = 0; at < data_bytes(); at += 4096) region.data()[at] = byte_at(at);
    EXPECT_TRUE(region.flush().ok());
  }
  EXPECT_EQ(first_difference(region.data(), data_bytes()), data_bytes());
  EXPECT_TRUE(region.unmap().ok());
  is_done = true;
  sender.join();
  ::sigaction(SIGUSR1, &before, nullptr);
  EXPECT_GT(heard, 0u);
  EXPECT_TRUE(read_file(path) == pattern(data_bytes()));
}

TEST_P(Predecessor, UnmapBesideABusyRegionNeitherStallsNorCrashesIt) {
  const std::string busy_path = file_of(data_bytes(), "busy");
  const std::string path = file_of(8 * page_bytes(), "short-lived");
  const Region busy = map(busy_path, Access::kReadWrite).value();
  std::atomic<bool> is_done = false;
  std::atomic<uint64_t> wrong = 0;
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < 3; ++t)
    threads.emplace_back([&, t] {
      for (uint64_t at = t * 4096; !is_done; at = (at + 5 * 4096) % data_bytes())
        wrong += busy.data()[at] != byte_at(at);
    });
  for (int i = 0; i < 40; ++i) {
    Region region = map(path, Access::kReadWrite).value();
    EXPECT_EQ(first_difference(region.data(), 8 * page_bytes()), 8 * page_bytes());
    region.data()[0] = byte_at(0);
    ASSERT_TRUE(region.unmap().ok());
  }
  is_done = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0u);
}

TEST_P(Predecessor, FlushAndEvictionDoNotWaitForEachOther) {
  const std::string path = file_of(data_bytes());
  Region region = map(path, Access::kReadWrite).value();
  std::atomic<bool> is_done = false;
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < 3; ++t)
    threads.emplace_back([&, t] {
      for (uint64_t at = t * 4096; !is_done; at = (at + 7 * 4096) % data_bytes())
        region.data()[at + t] = byte_at(at + t);
    });
  for (int i = 0; i < 30 || runtime_->metrics().counters.evictions < 100; ++i)
    ASSERT_TRUE(region.flush().ok());
  is_done = true;
  for (std::thread& thread : threads) thread.join();
  ASSERT_TRUE(region.unmap().ok());
  EXPECT_TRUE(read_file(path) == pattern(data_bytes()));
}

TEST_P(Predecessor, UnmapLeaksNeitherMemoryNorDescriptorsNorMappings) {
  const std::string path = file_of(4 * page_bytes());
  const auto once = [&](Access access) {
    Region region = map(path, access).value();
    EXPECT_EQ(region.data()[0], region.data()[0]);
    if (access != Access::kReadOnly) region.data()[page_bytes()] = std::byte{1};
    EXPECT_TRUE(region.pin(0, 1).ok());
    EXPECT_TRUE(region.unmap().ok());
  };
  const Access all[] = {Access::kReadOnly, Access::kReadWrite, Access::kPrivate};
  for (int i = 0; i < 3; ++i)
    // Allocates everything that is allocated once and kept.
    for (const Access access : all) once(access);
  const uint64_t descriptors = count_descriptors();
  const uint64_t mappings = count_lines_of("/proc/self/maps");
  const uint64_t threads = count_lines_of("/proc/self/status");
  const uint64_t used = runtime_->metrics().gauges.used_bytes;
  for (int i = 0; i < 50; ++i)
    for (const Access access : all) once(access);
  EXPECT_EQ(count_descriptors(), descriptors);
  EXPECT_EQ(runtime_->metrics().gauges.used_bytes, used);
  EXPECT_EQ(count_lines_of("/proc/self/status"), threads);
#if !OUTCORE_TEST_IS_SANITIZED
  EXPECT_LE(count_lines_of("/proc/self/maps"), mappings + 2);  // the heap of the test itself
#else
  static_cast<void>(mappings);
#endif
}

#if !OUTCORE_TEST_IS_SANITIZED  // sanitizers keep freed memory for a while, and have shadow memory
uint64_t resident_kib() {
  std::ifstream in("/proc/self/status");
  for (std::string word; in >> word;)
    if (word == "VmRSS:") {
      uint64_t kib = 0;
      in >> kib;
      return kib;
    }
  return 0;
}

TEST_P(Predecessor, UnmapGivesMemoryBack) {
  const std::string path = file_of(data_bytes());
  const auto once = [&] {
    Region region = map(path, Access::kReadWrite).value();
    for (uint64_t at = 0; at < data_bytes(); at += 4096) region.data()[at] = std::byte{1};
    EXPECT_TRUE(region.unmap().ok());
  };
  for (int i = 0; i < 3; ++i) once();
  const uint64_t before = resident_kib();
  for (int i = 0; i < 20; ++i) once();
  EXPECT_LE(resident_kib(), before + 1024) << "20 times the budget passed through";
}
#endif

TEST(PredecessorDefaults, TheDefaultBudgetHeedsTheCgroup) {
  const Folder root;
  const auto file = [&](const std::string& name, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(root / name).parent_path());
    std::ofstream(root / name) << text;
  };
  file("proc/meminfo", "MemTotal: 67108864 kB\nMemFree: 1024 kB\nMemAvailable: 67108864 kB\n");
  file("proc/self/mountinfo",
       "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw\n");
  file("proc/self/cgroup", "0::/job\n");
  file("sys/fs/cgroup/job/memory.max", std::to_string(512 * kMiB) + "\n");
  file("sys/fs/cgroup/job/memory.current", std::to_string(112 * kMiB) + "\n");
  file("sys/fs/cgroup/job/memory.stat", "anon 5\n");
  const os::MemoryAvailable available = os::memory_available(root.path());
  EXPECT_EQ(available.bytes, 400 * kMiB);
  EXPECT_EQ(os::default_budget_of(available).first, 200 * kMiB);
}

// In a real cgroup, if this process may create one.
TEST(PredecessorDefaults, TheDefaultBudgetHeedsARealCgroup) {
  OUTCORE_NEEDS_FORK();
  std::string group;
  for (const char* mount : {"/sys/fs/cgroup/memory", "/sys/fs/cgroup"}) {
    const std::string made = std::string(mount) + "/outcore-test-" + std::to_string(::getpid());
    if (!std::filesystem::exists(std::string(mount) + "/cgroup.procs")) continue;
    if (::mkdir(made.c_str(), 0755) != 0) continue;
    const bool is_v1 = std::filesystem::exists(made + "/memory.limit_in_bytes");
    if (is_v1 || std::filesystem::exists(made + "/memory.max")) {
      group = made;
      std::ofstream(made + (is_v1 ? "/memory.limit_in_bytes" : "/memory.max")) << 256 * kMiB;
      break;
    }
    ::rmdir(made.c_str());
  }
  if (group.empty())
    GTEST_SKIP() << "no cgroup with a memory controller can be made here: run as root";
  const Ending ending = in_child([&] {
    std::ofstream(group + "/cgroup.procs") << ::getpid() << std::flush;
    const auto [bytes, why] = default_budget();
    std::fprintf(stderr, "%llu: %s", static_cast<unsigned long long>(bytes), why.c_str());
    return bytes <= 128 * kMiB ? 0 : 1;
  });
  ::rmdir(group.c_str());
  EXPECT_TRUE(ending.has_exited(0)) << ending;
}

}  // namespace
}  // namespace outcore
