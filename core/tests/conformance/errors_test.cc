// Errors: fills and write-backs that fail, and how the program can recover.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>

#include "core/tests/conformance/faulty_store.h"
#include "core/tests/conformance/mechanism.h"

namespace outcore {
namespace {

using namespace scene;

class ErrorsOf : public OnMechanism {
 protected:
  RuntimeOptions options() const override {
    RuntimeOptions options = OnMechanism::options();
    options.wait_ms_max = 200;
    return options;
  }
  std::shared_ptr<FaultyStore> store_of(uint64_t size_bytes) {
    return std::make_shared<FaultyStore>(pattern(size_bytes));
  }
};
OUTCORE_ON_ALL_MECHANISMS(ErrorsOf);

TEST_P(ErrorsOf, AFailedReadRaisesBusErrorWithTheAddress) {
  const auto store = store_of(4 * page_bytes());
  MapOptions options = map_options(Access::kReadWrite);
  options.advice = Advice::kRandom;
  Region region = runtime_->map(store, options).value();
  store->read_error = EIO;
  const std::byte* at = region.data() + page_bytes() + 4096 % page_bytes() + 77;
  for (int i = 0; i < 2; ++i) {
    const Touch touch = read_of(at);
    ASSERT_EQ(touch.signal, SIGBUS);
    EXPECT_EQ(reinterpret_cast<uint64_t>(touch.address) / 4096,
              reinterpret_cast<uint64_t>(at) / 4096);
  }
  std::byte one;
  EXPECT_EQ(region.read(page_bytes() + 77, {&one, 1}).code(), EIO);
  EXPECT_EQ(region.pin(page_bytes(), 1).code(), EIO);
  store->read_error = 0;
  EXPECT_EQ(read_of(at).signal, SIGBUS) << "failed until it is told to try again";
  ASSERT_TRUE(region.retry_failed().ok());
  EXPECT_EQ(read_of(at).signal, 0);
  EXPECT_EQ(first_difference(region.data(), 4 * page_bytes()), 4 * page_bytes());
  EXPECT_EQ(write_of(region.data() + page_bytes() + 77, std::byte{1}).signal, 0);
  EXPECT_TRUE(region.unmap().ok());
  EXPECT_EQ(store->bytes()[page_bytes() + 77], std::byte{1});
}

TEST_P(ErrorsOf, AFileCutShortIsAnErrorNotZeros) {
  const std::string path = file_of(data_bytes());
  Region region = map(path, Access::kReadWrite).value();
  EXPECT_EQ(region.data()[0], byte_at(0));
  std::filesystem::resize_file(path, page_bytes() + 4096);
  EXPECT_EQ(read_of(region.data() + data_bytes() - 1).signal, SIGBUS);
  EXPECT_EQ(read_of(region.data() + data_bytes() / 2).signal, SIGBUS);
  EXPECT_EQ(read_of(region.data()).signal, 0);
}

TEST_P(ErrorsOf, ZeroFillGivesZerosAndSaysSo) {
  const auto store = store_of(4 * page_bytes());
  MapOptions options = map_options(Access::kReadOnly);
  options.on_error = OnError::kZeroFill;
  options.advice = Advice::kRandom;
  Region region = runtime_->map(store, options).value();
  store->read_error = EIO;
  for (uint64_t i = 0; i < page_bytes(); ++i)
    ASSERT_EQ(region.data()[page_bytes() + i], std::byte{0});
  EXPECT_TRUE(region.metrics().is_degraded);
  EXPECT_EQ(runtime_->metrics().gauges.degraded, 1u);
  store->read_error = 0;
  EXPECT_EQ(region.data()[2 * page_bytes()], byte_at(2 * page_bytes()));
}

TEST_P(ErrorsOf, ZerosForAFailedReadNeverReachTheStore) {
  const auto store = store_of(4 * page_bytes());
  MapOptions zero = map_options(Access::kReadWrite);
  zero.on_error = OnError::kZeroFill;
  for (const Access access : {Access::kReadWrite, Access::kPrivate}) {
    zero.access = access;
    const Result<Region> refused = runtime_->map(store, zero);
    ASSERT_EQ(refused.code(), EINVAL);
    EXPECT_NE(refused.message().find("on_error=signal"), std::string::npos) << refused.message();
  }
  zero.access = Access::kReadOnly;
  {
    Region reader = runtime_->map(store, zero).value();
    const Result<Region> writer = runtime_->map(store, map_options(Access::kReadWrite));
    EXPECT_FALSE(writer.ok());
    EXPECT_TRUE(writer.code() == EBUSY || writer.code() == ENOTSUP) << writer.message();
  }
  Region writer = runtime_->map(store, map_options(Access::kReadWrite)).value();
  const Result<Region> reader = runtime_->map(store, zero);
  EXPECT_FALSE(reader.ok());
  EXPECT_TRUE(reader.code() == EINVAL || reader.code() == ENOTSUP) << reader.message();
}

TEST_P(ErrorsOf, ZerosByDefaultEndWhereSomebodyWrites) {
  RuntimeOptions with_zeros = options();
  with_zeros.on_error = OnError::kZeroFill;
  Runtime runtime = Runtime::start(with_zeros).value();
  const auto store = store_of(4 * page_bytes());
  MapOptions options = map_options(Access::kReadOnly);
  options.advice = Advice::kRandom;
  Region reader = runtime.map(store, options).value();
  store->read_error = EIO;
  ASSERT_EQ(reader.data()[page_bytes()], std::byte{0});
  EXPECT_TRUE(reader.metrics().is_degraded);
  options.access = Access::kReadWrite;
  Result<Region> writer = runtime.map(store, options);
  if (writer.code() == ENOTSUP) GTEST_SKIP() << writer.message();
  ASSERT_TRUE(writer.ok()) << writer.message();
  EXPECT_EQ(write_of(writer->data() + page_bytes(), std::byte{1}).signal, SIGBUS);
  EXPECT_EQ(read_of(reader.data() + 2 * page_bytes()).signal, SIGBUS);
  store->read_error = 0;
  ASSERT_TRUE(writer->retry_failed().ok());
  EXPECT_EQ(write_of(writer->data() + page_bytes(), std::byte{1}).signal, 0);
  ASSERT_TRUE(writer->flush().ok());
  Bytes expected = pattern(4 * page_bytes());
  expected[page_bytes()] = std::byte{1};
  EXPECT_TRUE(store->bytes() == expected);
}

TEST_P(ErrorsOf, ZerosAreToldUntilTheyAreReadAgain) {
  const auto store = store_of(4 * page_bytes());
  MapOptions options = map_options(Access::kReadOnly);
  options.on_error = OnError::kZeroFill;
  options.advice = Advice::kRandom;
  Region region = runtime_->map(store, options).value();
  store->read_error = EIO;
  ASSERT_EQ(region.data()[page_bytes()], std::byte{0});
  ASSERT_EQ(region.data()[2 * page_bytes()], std::byte{0});
  store->read_error = 0;
  ASSERT_TRUE(region.flush().ok());
  EXPECT_TRUE(region.metrics().is_degraded) << "a flush mends nothing that was read";
  evict_all(region);
  EXPECT_TRUE(region.metrics().is_degraded) << "the zeros may have been believed";
  EXPECT_EQ(region.data()[page_bytes()], byte_at(page_bytes()));
  store->read_error = EIO;
  ASSERT_EQ(region.data()[0], std::byte{0});
  ASSERT_TRUE(region.pin(0, 1).ok());
  store->read_error = 0;
  EXPECT_EQ(region.retry_failed().code(), EBUSY);
  EXPECT_TRUE(region.metrics().is_degraded);
  ASSERT_TRUE(region.unpin(0, 1).ok());
  ASSERT_TRUE(region.retry_failed().ok());
  EXPECT_FALSE(region.metrics().is_degraded);
  EXPECT_EQ(first_difference(region.data(), 4 * page_bytes()), 4 * page_bytes());
}

TEST_P(ErrorsOf, ZeroFillOfAPartIsZerosInTheWholePage) {
  const auto store = store_of(4 * page_bytes());
  MapOptions options = map_options(Access::kReadOnly);
  options.on_error = OnError::kZeroFill;
  options.advice = Advice::kRandom;
  Result<Region> whole = runtime_->map(store, options);
  options.offset = page_bytes() / 2 / 4096 * 4096;  // in the middle of a page, if it has one
  options.size_bytes = 4096;
  Result<Region> part = runtime_->map(store, options);
  if (part.code() == ENOTSUP) GTEST_SKIP() << part.message();
  ASSERT_TRUE(part.ok()) << part.message();
  store->read_error = EIO;
  EXPECT_EQ(part->data()[0], std::byte{0});
  store->read_error = 0;
  for (uint64_t at = 0; at < page_bytes(); ++at)
    ASSERT_EQ(whole->data()[at], std::byte{0}) << at << ": the page is as its first view got it";
  EXPECT_EQ(whole->data()[page_bytes()], byte_at(page_bytes()));
}

TEST_P(ErrorsOf, ADiscardThatTheStoreRefusesKeepsWhatWasWritten) {
  const auto store = store_of(4 * page_bytes());
  Region region = map(store, Access::kReadWrite).value();
  region.data()[page_bytes() + 5] = std::byte{0xAA};
  store->discard_error = EIO;
  const Status refused = region.discard(page_bytes(), 2 * page_bytes());
  EXPECT_EQ(refused.code(), EIO);
  EXPECT_NE(refused.message().find("faulty:store"), std::string::npos) << refused.message();
  EXPECT_EQ(region.data()[page_bytes() + 5], std::byte{0xAA});
  evict_all(region);
  EXPECT_EQ(store->bytes()[page_bytes() + 5], std::byte{0xAA});
  region.data()[page_bytes() + 5] = std::byte{0xBB};
  store->discard_error = 0;
  ASSERT_TRUE(region.discard(page_bytes(), 2 * page_bytes()).ok());
  EXPECT_EQ(region.data()[page_bytes() + 5], std::byte{0});
  EXPECT_TRUE(region.unmap().ok());
  EXPECT_EQ(store->bytes()[page_bytes() + 5], std::byte{0});
}

TEST_P(ErrorsOf, AbortEndsTheProgramWithAMessage) {
  OUTCORE_NEEDS_FORK();
  const Ending ending = in_child([&] {
    ::signal(SIGABRT, SIG_DFL);
    Runtime runtime = Runtime::start(options()).value();
    const auto store = store_of(4 * page_bytes());
    MapOptions options = map_options(Access::kReadOnly);
    options.on_error = OnError::kAbort;
    const Region region = runtime.map(store, options).value();
    store->read_error = EIO;
    return static_cast<int>(region.data()[page_bytes()]);
  });
  EXPECT_TRUE(ending.was_killed_by(SIGABRT)) << ending;
  EXPECT_NE(ending.text.find("faulty:store"), std::string::npos) << ending;
}

TEST_P(ErrorsOf, WithoutAHandlerOfItsOwnTheProgramDiesOfBusErrorWithAMessage) {
  OUTCORE_NEEDS_FORK();
  const Ending ending = in_child([&] {
    const auto store = store_of(4 * page_bytes());
    ::signal(SIGBUS, SIG_DFL), ::signal(SIGSEGV, SIG_DFL);
    // Outcore's handlers belong to the parent, which had started a runtime before: the child starts
    // its own.
    Runtime runtime = Runtime::start(options()).value();
    const Region region = runtime.map(store, map_options(Access::kReadOnly)).value();
    store->read_error = EIO;
    return static_cast<int>(region.data()[page_bytes()]);
  });
  EXPECT_TRUE(WIFSIGNALED(ending.status)) << ending;
}

TEST_P(ErrorsOf, AFailedWriteBackKeepsTheBytesUntilAFlushSucceeds) {
  const auto store = store_of(4 * page_bytes());
  Region region = map(store, Access::kReadWrite).value();
  region.data()[page_bytes() + 5] = std::byte{0xAA};
  store->write_error = ENOSPC;
  const Status failed = region.flush();
  EXPECT_EQ(failed.code(), ENOSPC);
  EXPECT_NE(failed.message().find("faulty:store"), std::string::npos) << failed.message();
  EXPECT_NE(failed.message().find(std::to_string(page_bytes())), std::string::npos)
      << failed.message();
  EXPECT_TRUE(region.metrics().is_degraded);
  EXPECT_FALSE(region.advise(0, 4 * page_bytes(), Advice::kDontNeed).ok());
  EXPECT_EQ(region.data()[page_bytes() + 5], std::byte{0xAA}) << "kept in memory";
  EXPECT_EQ(region.unmap().code(), ENOSPC) << "and the region stays";
  ASSERT_TRUE(region.is_mapped());
  store->write_error = 0;
  region.data()[6] = std::byte{0xBB};
  ASSERT_TRUE(region.flush().ok());
  EXPECT_FALSE(region.metrics().is_degraded);
  EXPECT_EQ(store->bytes()[page_bytes() + 5], std::byte{0xAA});
  EXPECT_EQ(store->bytes()[6], std::byte{0xBB});
  EXPECT_EQ(store->bytes()[7], byte_at(7));
  EXPECT_TRUE(region.unmap().ok());
}

TEST_P(ErrorsOf, AnErrorOfTheKeepersIsReturnedByTheNextFlush) {
  const auto store = store_of(data_bytes());
  Region region = map(store, Access::kReadWrite).value();
  Bytes expected = pattern(data_bytes());
  store->write_error = EIO;
  // Dirty less than the budget; then clean pages evict it.
  for (uint64_t page = 0; page < 4; ++page)
    region.data()[page * page_bytes()] = expected[page * page_bytes()] = std::byte{0xCC};
  for (uint64_t at = 4 * page_bytes(); at < data_bytes(); at += page_bytes())
    ASSERT_EQ(region.data()[at], byte_at(at));
  EXPECT_GT(region.metrics().counters.write_back_errors, 0u);
  store->write_error = 0;
  const Status told = region.flush();
  EXPECT_EQ(told.code(), EIO) << "once, though all is well meanwhile";
  EXPECT_TRUE(region.flush().ok());
  EXPECT_TRUE(std::equal(expected.begin(), expected.end(), region.data()));
  EXPECT_TRUE(region.unmap().ok());
  EXPECT_TRUE(store->bytes() == expected);
}

TEST_P(ErrorsOf, ABudgetFullOfUnwritablePagesFailsFillsAndDoesNotHang) {
  const auto store = store_of(data_bytes());
  Region region = map(store, Access::kReadWrite).value();
  Bytes expected = pattern(data_bytes());
  store->write_error = EIO;
  uint64_t failed_at = data_bytes();
  for (uint64_t at = 0; at < data_bytes(); at += page_bytes()) {
    if (write_of(region.data() + at, std::byte{0xDD}).signal == SIGBUS) {
      failed_at = at;
      break;
    }
    expected[at] = std::byte{0xDD};
  }
  ASSERT_LT(failed_at, data_bytes());
  EXPECT_GT(failed_at, budget_bytes() / 2);
  store->write_error = 0;
  const Status told = region.flush();
  EXPECT_TRUE(told.ok() || told.code() == EIO) << told.message();
  EXPECT_EQ(write_of(region.data() + failed_at, std::byte{0xDD}).signal, 0) << "once there is room";
  expected[failed_at] = std::byte{0xDD};
  EXPECT_TRUE(std::equal(expected.begin(), expected.end(), region.data()));
  EXPECT_TRUE(region.unmap().ok());
  EXPECT_TRUE(store->bytes() == expected);
}

TEST_P(ErrorsOf, ForceUnmapsThoughBytesAreLost) {
  const auto store = store_of(4 * page_bytes());
  Region region = map(store, Access::kReadWrite).value();
  region.data()[0] = std::byte{1};
  store->write_error = EROFS;
  EXPECT_EQ(region.unmap(true).code(), EROFS);
  EXPECT_FALSE(region.is_mapped());
  EXPECT_EQ(runtime_->metrics().gauges.used_bytes, runtime_->metrics().gauges.bounce_bytes);
}

TEST_P(ErrorsOf, OneBadSpotHarmsNoOtherPage) {
  const auto store = store_of(8 * page_bytes());
  Region region = map(store, Access::kReadWrite).value();
  store->error_offset = 3 * page_bytes() + 5;
  store->write_error = EIO;
  Bytes expected = pattern(8 * page_bytes());
  for (uint64_t page = 0; page < 8; ++page)
    region.data()[page * page_bytes() + 5] = expected[page * page_bytes() + 5] = std::byte{0xEE};
  EXPECT_EQ(region.flush().code(), EIO);
  store->write_error = 0;
  static_cast<void>(region.flush());
  EXPECT_TRUE(store->bytes() == expected);
}

TEST_P(ErrorsOf, ADiscardedPageThatFailedBeforeIsZerosInSystemCalls) {
  const auto store = store_of(8 * page_bytes());
  Region region = map(store, Access::kReadWrite).value();
  store->read_error = EIO;
  ASSERT_EQ(read_of(region.data() + page_bytes()).signal, SIGBUS);
  store->read_error = 0;
  ASSERT_TRUE(region.discard(page_bytes(), page_bytes()).ok());
  ASSERT_TRUE(region.prefault(page_bytes(), page_bytes()).ok());
  const int fd = ::open((folder_ / "copy").c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600);
  ASSERT_EQ(::pwrite(fd, region.data() + page_bytes(), page_bytes(), 0),
            static_cast<ssize_t>(page_bytes()));
  ::close(fd);
  EXPECT_TRUE(read_file(folder_ / "copy") == Bytes(page_bytes()));
}

}  // namespace
}  // namespace outcore
