// Limits of the process: locked memory, few descriptors, small signal stacks, sizes larger than any
// address space.
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include <atomic>
#include <csignal>
#include <fstream>
#include <thread>
#include <vector>

#include "core/os/signal_delivery.h"
#include "core/tests/conformance/faulty_store.h"
#include "core/tests/conformance/mechanism.h"
#include "core/tests/conformance/signal_stack.h"

namespace outcore {
namespace {

using namespace scene;

class LimitsOf : public OnMechanism {};
OUTCORE_ON_ALL_MECHANISMS(LimitsOf);

// Increments every system page; more than the budget, so that pages are evicted.
void count_up(const Region& region, uint64_t size_bytes) {
  for (uint64_t at = 0; at < size_bytes; at += 4096)
    reinterpret_cast<uint64_t&>(region.data()[at]) += 1;
}

void expect_counts(const std::string& path, uint64_t count) {
  const Bytes bytes = read_file(path);
  for (uint64_t at = 0; at < bytes.size(); at += 4096)
    ASSERT_EQ(reinterpret_cast<const uint64_t&>(bytes[at]), count) << "at " << at;
}

TEST_P(LimitsOf, MemoryThatTheProgramLocksFromNowOnLeavesAllTheSame) {
  if (OUTCORE_TEST_IS_SANITIZED) GTEST_SKIP() << "a sanitizer's shadow cannot be locked";
  const std::string path = folder_ / "data";
  write_file(path, Bytes(data_bytes()));
  if (::mlockall(MCL_FUTURE | MCL_ONFAULT) != 0) GTEST_SKIP() << "RLIMIT_MEMLOCK is too small";
  Result<Region> region = map(path, Access::kReadWrite);
  if (region.ok()) count_up(*region, data_bytes());
  ::munlockall();
  if (!region.ok() && region.code() == EAGAIN) GTEST_SKIP() << region.message();
  ASSERT_TRUE(region.ok()) << region.message();
  ASSERT_TRUE(region->unmap().ok());
  expect_counts(path, 1);
}

TEST_P(LimitsOf, ARegionThatTheProgramLockedIsUnmapped) {
  if (OUTCORE_TEST_IS_SANITIZED) GTEST_SKIP() << "sanitizers make munlock do nothing";
  constexpr unsigned kOnFault = 1;  // MLOCK_ONFAULT
  const std::string path = folder_ / "data";
  const uint64_t size = budget_bytes() / 4;
  write_file(path, Bytes(size));
  Region region = map(path, Access::kReadWrite).value();
  if (::syscall(SYS_mlock2, region.data(), size, kOnFault) != 0)
    GTEST_SKIP() << "RLIMIT_MEMLOCK is too small";
  count_up(region, size);
  ASSERT_TRUE(region.unmap().ok());
  expect_counts(path, 1);
}

// Whatever fails for lack of a descriptor must fail in map(); the next map() must work or fail in
// the same way.
TEST_P(LimitsOf, WithoutDescriptorsAMapFailsAndNoTouchHangs) {
  if (OUTCORE_TEST_IS_SANITIZED) GTEST_SKIP() << "a sanitizer needs descriptors for its checks";
  const std::string path = file_of(16 * page_bytes());
  rlimit all{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &all), 0);
  for (uint64_t more = 0; more < 8; ++more) {
    Runtime runtime = Runtime::start(options()).value();
    rlimit few = all;
    few.rlim_cur = count_descriptors() + more;
    for (const bool is_limited : {true, false}) {
      ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, is_limited ? &few : &all), 0);
      const Result<Region> region = runtime.map(path, map_options(Access::kReadOnly));
      const bool is_mapped = region.ok();
      const std::byte seen = is_mapped ? region->data()[4096] : byte_at(4096);
      ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &all), 0);
      EXPECT_EQ(seen, byte_at(4096));
      ASSERT_TRUE(is_mapped || is_limited) << more << ": " << region.message();
    }
  }
}

// A program whose standard descriptors are closed prints into whatever gets their numbers.
TEST_P(LimitsOf, NoDescriptorOfOursIsAStandardOne) {
  OUTCORE_NEEDS_THREADS_IN_CHILD();
  const std::string path = folder_ / "data";
  write_file(path, Bytes(data_bytes()));
  const Ending ending = in_child([&] {
    for (int fd = 0; fd <= STDERR_FILENO; ++fd) ::close(fd);
    Runtime runtime = Runtime::start(options()).value();
    MapOptions scratch = map_options(Access::kReadWrite);
    scratch.size_bytes = data_bytes();
    for (const std::string& uri : {std::string("scratch:"), path}) {
      Region region =
          runtime.map(uri, uri == path ? map_options(Access::kReadWrite) : scratch).value();
      count_up(region, data_bytes());
      for (int fd = 0; fd <= STDERR_FILENO; ++fd)
        if (::fcntl(fd, F_GETFD) >= 0) return 10 + fd;
      if (!region.unmap().ok()) return 20;
    }
    return 0;
  });
  EXPECT_TRUE(ending.has_exited(0)) << ending;
  expect_counts(path, 1);
}

// A thread whose signal stack is small: the handler evicts and writes back on it.
TEST_P(LimitsOf, AFaultNeedsLittleSignalStack) {
  if (OUTCORE_TEST_IS_SANITIZED) GTEST_SKIP() << "a sanitizer's frames are larger";
  const std::string path = folder_ / "data";
  write_file(path, Bytes(data_bytes()));
  Region region = map(path, Access::kReadWrite).value();
  const size_t used_bytes = signal_stack_used([&] {
    for (int pass = 0; pass < 2; ++pass) count_up(region, data_bytes());
  });
  RecordProperty("signal_stack_bytes", static_cast<int>(used_bytes));
  // Who has as much room is answered, and must not need more.
  if (GetParam().delivery != Delivery::kMessages) {
    EXPECT_LE(used_bytes, signal_frame_bytes() + os::kHandlerRoomBytes);
  }
  ASSERT_TRUE(region.unmap().ok());
  expect_counts(path, 2);
}

// Smaller stacks are not enough: then the thread gets SIGBUS, and memory below its stack is
// unchanged.
TEST_P(LimitsOf, AFaultOnATooSmallSignalStackIsRefusedAndChangesNothingBesideIt) {
  if (OUTCORE_TEST_IS_SANITIZED) GTEST_SKIP() << "a sanitizer's frames are larger";
  const size_t frame_bytes = (signal_frame_bytes() + kKiB - 1) / kKiB * kKiB;
  const size_t stack_bytes = frame_bytes + 2 * kKiB;
  constexpr size_t below_bytes = 64 * kKiB;
  auto* const memory =
      static_cast<std::byte*>(::mmap(nullptr, below_bytes + stack_bytes, PROT_READ | PROT_WRITE,
                                     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(memory, MAP_FAILED);
  std::memset(memory, 0xA5, below_bytes);
  Region region = map(file_of(4 * page_bytes()), Access::kReadOnly).value();
  Touch touch{};
  const auto* const nowhere = reinterpret_cast<const std::byte*>(uintptr_t{16});
  std::thread([&] {
    // The loader looks up functions that the test's own handler calls, which needs stack, too.
    static_cast<void>(read_of(nowhere));
    stack_t stack{};
    stack.ss_sp = memory + below_bytes;
    stack.ss_size = stack_bytes;
    ASSERT_EQ(::sigaltstack(&stack, nullptr), 0);
    touch = read_of(region.data() + 4096);
    stack.ss_flags = SS_DISABLE;
    ASSERT_EQ(::sigaltstack(&stack, nullptr), 0);
  }).join();
  // With message delivery, a fault needs no stack of the thread.
  EXPECT_EQ(touch.signal, GetParam().delivery == Delivery::kMessages ? 0 : SIGBUS);
  for (size_t i = 0; i < below_bytes; ++i) ASSERT_EQ(memory[i], std::byte{0xA5}) << i;
  EXPECT_EQ(region.data()[4096], byte_at(4096));  // on the usual stack
  ::munmap(memory, below_bytes + stack_bytes);
}

struct Touching {
  Region* region;
  uint64_t size_bytes;
  std::atomic<bool> is_cancelled{false};
  std::atomic<uint64_t> touched{0};
};

// Reads and writes every page continuously. Once it is told to end, it does so one more time and
// then allows its cancellation.
void* touch_until_cancelled(void* argument) {
  auto& t = *static_cast<Touching*>(argument);
  for (bool is_last = false; !is_last;) {
    is_last = t.is_cancelled.load();
    count_up(*t.region, t.size_bytes);
    if (!t.region->flush().ok()) return nullptr;
    t.touched += 1;
  }
  ::pthread_testcancel();
  return nullptr;
}

// A fault reads and a flush writes: these are cancellation points of POSIX that the program does
// not know of.
TEST_P(LimitsOf, AThreadThatIsCancelledFinishesItsFaultsAndCalls) {
  if (OUTCORE_TEST_IS_SANITIZED) GTEST_SKIP() << "sanitizers take pthread_cancel's unwinding over";
  constexpr int kThreads = 2;
  const std::string path = folder_ / "data";
  write_file(path, Bytes(data_bytes()));
  Region region = map(path, Access::kReadWrite).value();
  uint64_t touched = 0;
  for (int i = 0; i < kThreads; ++i) {
    Touching touching{&region, data_bytes()};
    pthread_t thread;
    ASSERT_EQ(::pthread_create(&thread, nullptr, touch_until_cancelled, &touching), 0);
    while (touching.touched == 0) std::this_thread::yield();
    ASSERT_EQ(::pthread_cancel(thread), 0);
    touching.is_cancelled = true;
    void* result = nullptr;
    ASSERT_EQ(::pthread_join(thread, &result), 0);
    EXPECT_EQ(result, PTHREAD_CANCELED);
    EXPECT_GE(touching.touched, 2u) << "it was ended within a fault or a call";
    touched += touching.touched;
  }
  count_up(region, data_bytes());
  ASSERT_TRUE(region.unmap().ok());
  expect_counts(path, touched + 1);
}

uint64_t address_space_bytes() {
  uint64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return pages * 4096;
}

// Tables, frames and the region need addresses: whichever finds none first, the call says so.
TEST(Limits, FewAddressesAreAnErrorAndNeverTheEnd) {
  if (OUTCORE_TEST_IS_SANITIZED) GTEST_SKIP() << "a sanitizer needs all addresses";
  OUTCORE_NEEDS_THREADS_IN_CHILD();
  const Folder folder;
  write_file(folder / "a", Bytes(kMiB));
  const Ending ending = in_child([&] {
    bool is_mapped = false;
    for (uint64_t more = kMiB / 2; !is_mapped && more < 4096 * kMiB; more += more / 4) {
      const rlimit most{address_space_bytes() + more, RLIM_INFINITY};
      if (::setrlimit(RLIMIT_AS, &most) != 0) return 2;
      Result<Runtime> runtime = Runtime::start(options_with(kMiB));
      if (!runtime) continue;
      const Result<Region> region = runtime.value().map(folder / "a");
      if (!region && region.code() != ENOMEM) return 3;
      is_mapped = region.ok() && region.value().data()[5000] == std::byte{0};
    }
    return is_mapped ? 0 : 4;
  });
  EXPECT_TRUE(ending.has_exited(0)) << ending;
}

// The kernel ends whoever makes a file larger than it may be, also one in memory (SIGXFSZ).
TEST(Limits, OnTheSizeOfFilesAreAnErrorAndNoSignal) {
  OUTCORE_NEEDS_THREADS_IN_CHILD();
  const Folder folder;
  write_file(folder / "a", Bytes(kMiB));
  for (const rlim_t most : {rlim_t{4096}, rlim_t{64 * 1024}}) {
    const Ending ending = in_child([&] {
      const rlimit limit{most, most};
      if (::setrlimit(RLIMIT_FSIZE, &limit) != 0) return 2;
      Result<Runtime> runtime = Runtime::start(options_with(kMiB));
      if (!runtime) return 3;
      MapOptions shared;
      shared.delivery = Delivery::kMprotect;  // whose frames are a file in memory
      const Result<Region> in_memory = runtime.value().map(folder / "a", shared);
      if (in_memory.code() != EFBIG) return 4;
      MapOptions longer;
      longer.access = Access::kReadWrite;
      longer.may_create = true;
      longer.size_bytes = 2 * kMiB;
      if (runtime.value().map(folder / "a", longer).code() != EFBIG) return 5;
      MapOptions written;
      written.access = Access::kReadWrite;
      if (runtime.value().map(folder / "a", written).code() != EFBIG) return 9;
      const Result<Region> scratch = runtime.value().map("scratch:", longer);
      if (scratch.code() != EFBIG) return 6;
      if (scratch.message().find("ulimit -f") == std::string::npos) return 8;
      const Result<Region> region = runtime.value().map(folder / "a");
      return region && region.value().data()[5000] == std::byte{0} ? 0 : 7;
    });
    EXPECT_TRUE(ending.has_exited(0)) << ending;
  }
  EXPECT_EQ(read_file(folder / "a").size(), kMiB);
}

// A store of the program may return any size.
struct Endless : Store {
  explicit Endless(uint64_t size) : size_(size) {}
  uint64_t size_bytes() const override { return size_; }
  int read(uint64_t, std::span<std::byte>) override { return 0; }
  int write(uint64_t, std::span<const std::byte>) override { return 0; }
  std::string uri() const override { return "endless:"; }
  const uint64_t size_;
};

TEST(Sizes, ThatNoAddressSpaceHasAreRefused) {
  Runtime runtime = Runtime::start(options_with(2 * kMiB)).value();
  for (const uint64_t size :
       {~uint64_t{0}, ~uint64_t{0} - 4095, uint64_t{1} << 61, (uint64_t{1} << 46) + 1}) {
    const Result<Region> region = runtime.map(std::make_shared<Endless>(size), {});
    ASSERT_FALSE(region.ok()) << size;
    EXPECT_EQ(region.code(), EINVAL) << region.message();
  }
  MapOptions part;  // of a store larger than can be mapped at once
  part.offset = uint64_t{1} << 47;
  part.size_bytes = 8192;
  part.access = Access::kReadWrite;
  const Result<Region> region = runtime.map(std::make_shared<Endless>(uint64_t{1} << 48), part);
  ASSERT_TRUE(region.ok()) << region.message();
  EXPECT_EQ(region->data()[5000], std::byte{0});
}

}  // namespace
}  // namespace outcore
