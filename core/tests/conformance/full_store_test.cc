// Full stores: memory is full of bytes that cannot be stored. Threads that need room get an error
// at once.
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "core/os/uapi.h"
#include "core/tests/conformance/faulty_store.h"
#include "core/tests/conformance/mechanism.h"

namespace outcore {
namespace {

using namespace scene;

class FullStoreOn : public OnMechanism {
 protected:
  RuntimeOptions options() const override {
    RuntimeOptions options = OnMechanism::options();
    options.wait_ms_max = 3'600'000;  // a thread that waits, waits longer than any test may take
    return options;
  }
  // Writes a byte to one page after the other until that fails; returns how many succeeded.
  static uint64_t fill(Region& region, Bytes& expected, Status* failed) {
    for (uint64_t page = 0;; ++page) {
      const uint64_t at = page * region.page_bytes();
      if (at >= region.size_bytes()) return page;
      const std::byte value{static_cast<unsigned char>(page | 1)};
      if (*failed = region.write(at, {&value, 1}); !failed->ok()) return page;
      expected[at] = value;
    }
  }
};
OUTCORE_ON_ALL_MECHANISMS(FullStoreOn);

TEST_P(FullStoreOn, WhoNeedsRoomIsToldAtOnceThatTheStoreIsFull) {
  for (const bool is_fault_safe : {true, false}) {
    const auto store = std::make_shared<FaultyStore>(
        pattern(data_bytes()), is_fault_safe ? FaultyStore::safe() : FaultyStore::unsafe());
    Region region = map(store, Access::kReadWrite).value();
    Bytes expected = pattern(data_bytes());
    store->write_error = ENOSPC;
    Status failed;
    const uint64_t pages = fill(region, expected, &failed);
    ASSERT_EQ(failed.code(), ENOSPC) << failed.message();
    EXPECT_NE(failed.message().find("make room"), std::string::npos) << failed.message();
    EXPECT_GT(pages * page_bytes(), budget_bytes() / 2) << "as much as there is memory for";
    EXPECT_EQ(write_of(region.data() + pages * page_bytes(), std::byte{1}).signal, SIGBUS);
    EXPECT_EQ(read_of(region.data() + (pages + 1) * page_bytes()).signal, SIGBUS);

    store->write_error = 0;
    const Status stored = region.flush();
    EXPECT_TRUE(stored.ok()) << "all of it is stored: " << stored.message();
    EXPECT_FALSE(region.metrics().is_degraded);
    const std::byte value{1};
    EXPECT_TRUE(region.write(pages * page_bytes(), {&value, 1}).ok()) << "there is room again";
    expected[pages * page_bytes()] = value;
    EXPECT_EQ(read_of(region.data() + (pages + 1) * page_bytes()).signal, 0);
    ASSERT_TRUE(region.unmap().ok());
    EXPECT_TRUE(store->bytes() == expected) << "nothing is lost";
  }
}

TEST_P(FullStoreOn, WriteBacksAreTriedLessAndLessOften) {
  const auto store = std::make_shared<FaultyStore>(pattern(data_bytes()));
  Region region = map(store, Access::kReadWrite).value();
  Bytes expected = pattern(data_bytes());
  store->write_error = ENOSPC;
  Status failed;
  const uint64_t pages = fill(region, expected, &failed);
  const uint64_t tried = store->writes;
  constexpr uint64_t kTouches = 20'000;
  std::byte one;
  for (uint64_t i = 0; i < kTouches; ++i)
    ASSERT_EQ(region.read(pages * page_bytes(), {&one, 1}).code(), ENOSPC);
  EXPECT_LT(store->writes - tried, kTouches / 4) << "not one for each touch";
  store->write_error = 0;
}

TEST_P(FullStoreOn, AFlushOfOtherPagesNeitherTellsNorForgetsWhatIsNotStored) {
  const auto store = std::make_shared<FaultyStore>(pattern(data_bytes()));
  Region region = map(store, Access::kReadWrite).value();
  Bytes expected = pattern(data_bytes());
  store->write_error = ENOSPC;
  Status failed;
  const uint64_t pages = fill(region, expected, &failed);
  const uint64_t half = pages / 2 * page_bytes(), end = pages * page_bytes();
  EXPECT_TRUE(region.flush(end, data_bytes() - end).ok()) << "nothing was written there";
  EXPECT_TRUE(region.metrics().is_degraded);
  EXPECT_EQ(region.flush(0, half).code(), ENOSPC);
  store->write_error = 0;
  EXPECT_TRUE(region.flush(0, half).ok());
  EXPECT_TRUE(region.flush(half, data_bytes() - half).ok());
  EXPECT_FALSE(region.metrics().is_degraded) << "part by part all of it was stored";
  ASSERT_TRUE(region.unmap().ok());
  EXPECT_TRUE(store->bytes() == expected);
}

TEST_P(FullStoreOn, AnotherErrorBesideAFullStoreIsStillTold) {
  const auto store = std::make_shared<FaultyStore>(pattern(data_bytes()));
  Region region = map(store, Access::kReadWrite).value();
  Bytes expected = pattern(data_bytes());
  store->write_error = ENOSPC;
  Status failed;
  fill(region, expected, &failed);
  store->write_error = EIO;
  EXPECT_EQ(region.advise(0, page_bytes(), Advice::kDontNeed).code(), EIO);
  store->write_error = 0;
  EXPECT_EQ(region.flush().code(), EIO) << "once, though all is well meanwhile";
  EXPECT_TRUE(region.flush().ok());
  EXPECT_FALSE(region.metrics().is_degraded);
  ASSERT_TRUE(region.unmap().ok());
  EXPECT_TRUE(store->bytes() == expected);
}

TEST_P(FullStoreOn, CleanPagesStillLeave) {
  const auto store = std::make_shared<FaultyStore>(pattern(data_bytes()));
  Region region = map(store, Access::kReadWrite).value();
  Bytes expected = pattern(data_bytes());
  store->write_error = ENOSPC;
  for (uint64_t page = 0; page < budget_bytes() / page_bytes() / 4; ++page)
    region.data()[page * page_bytes()] = expected[page * page_bytes()] = std::byte{0xAB};
  for (int pass = 0; pass < 3; ++pass)
    for (uint64_t at = 0; at < data_bytes(); at += page_bytes())
      ASSERT_EQ(region.data()[at], expected[at]) << at;
  store->write_error = 0;
  static_cast<void>(region.flush());
  ASSERT_TRUE(region.unmap().ok());
  EXPECT_TRUE(store->bytes() == expected);
}

// Makes the kernel refuse poison, in all threads.
bool refuse_poison() {
  sock_filter steps[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_ioctl, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args[1])),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<uint32_t>(OC_UFFDIO_POISON), 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EINVAL),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog filter{sizeof steps / sizeof steps[0], steps};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &filter) == 0;
}

class WithoutPoisonOn : public FullStoreOn {};
INSTANTIATE_TEST_SUITE_P(Messages, WithoutPoisonOn,
                         testing::Values(Mechanism{Delivery::kMessages, FrameKind::kShared},
                                         Mechanism{Delivery::kMessages, FrameKind::kPrivate}),
                         [](const auto& of) { return name_of(of.param); });

TEST_P(WithoutPoisonOn, AFailureThatCannotBeToldEndsTheProgramAndNotInALoop) {
  OUTCORE_NEEDS_FORK();
  const Ending ending = in_child([&] {
    ::signal(SIGABRT, SIG_DFL);
    Runtime runtime = Runtime::start(options()).value();
    const auto store = std::make_shared<FaultyStore>(pattern(4 * page_bytes()));
    const Region region = runtime.map(store, map_options(Access::kReadOnly)).value();
    if (!refuse_poison()) return 3;
    store->read_error = EIO;
    return static_cast<int>(region.data()[page_bytes()]);
  });
  if (ending.has_exited(3)) GTEST_SKIP() << "seccomp is not to be had here";
  EXPECT_TRUE(ending.was_killed_by(SIGABRT)) << ending;
  EXPECT_NE(ending.text.find("faulty:store"), std::string::npos) << ending;
}

}  // namespace
}  // namespace outcore
