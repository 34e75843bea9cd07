// What is told of a buffer's pages: those that come back, though they leave by another's decision,
// and those that are written.
#include <atomic>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <memory>
#include <thread>

#include "core/base/json.h"
#include "core/os/kernel_features.h"
#include "core/tests/buffer/job.h"

namespace outcore {
namespace {

using base::Json;
using scene::Job;
using scene::kPage;

class MemberFigures : public testing::Test {
 protected:
  static constexpr uint64_t kLimit = 4 << 20, kFilePages = 2 * kLimit / kPage;

  void SetUp() override {
    const auto kernel = os::detect_kernel_features({});
    if (!kernel.ok() || !kernel.value().has_sigbus || !kernel.value().has_write_tracking)
      GTEST_SKIP() << "this kernel cannot share pages in a buffer";
  }
  // Misses bring in a page each.
  static RuntimeOptions options(uint64_t limit_bytes) {
    RuntimeOptions options = Job::options(limit_bytes);
    options.fetch = Fetch::kPage;
    options.readahead_bytes = 0;
    return options;
  }
  void read_once(const Region& region) const {
    for (uint64_t page = 0; page < kFilePages; ++page)
      ASSERT_TRUE(job_.is_right(region, page, page));
  }
  const Job job_{kFilePages};
};

TEST_F(MemberFigures, WhatAMemberBringsInAgainHasLeft) {
  const Runtime runtime = Runtime::start(options(kLimit)).value();
  const Region region = const_cast<Runtime&>(runtime).map(job_.path()).value();
  ASSERT_EQ(Job::facts().files, 1u);
  read_once(region);
  EXPECT_EQ(runtime.metrics().counters.refaults, 0u);
  read_once(region);
  const Counters counted = runtime.metrics().counters;
  // Each page that is not there at the second time, and no other, has been there before.
  EXPECT_GT(counted.refaults, 0u);
  EXPECT_EQ(counted.fills + counted.prefetch_fills - counted.refaults, kFilePages);
}

// Each read waits until there are two: so two threads bring in the same page, as where one has
// waited for the other as long as anybody believes in it.
class TwoReaders final : public Store {
 public:
  uint64_t size_bytes() const override { return kPage; }
  int read(uint64_t, std::span<std::byte> into) override {
    readers_.fetch_add(1);
    readers_.notify_all();
    for (uint32_t seen = readers_.load(); seen < 2; seen = readers_.load()) readers_.wait(seen);
    std::memset(into.data(), 1, into.size());
    return 0;
  }
  int write(uint64_t, std::span<const std::byte>) override { return -EROFS; }
  StoreTraits traits() const override {
    StoreTraits traits;
    traits.is_fault_safe = true;
    return traits;
  }
  std::string uri() const override { return "two-readers:"; }
  std::string contents_id() const override { return "two readers"; }
  uint32_t readers() const { return readers_.load(); }

 private:
  std::atomic<uint32_t> readers_{0};
};

TEST_F(MemberFigures, APageThatTwoThreadsBringInCameOnce) {
  Runtime runtime = Runtime::start(options(kLimit)).value();
  const auto store = std::make_shared<TwoReaders>();
  const Region region = runtime.map(store).value();
  ASSERT_EQ(Job::facts().files, 1u);
  const volatile std::byte* const bytes = region.data();
  const auto touch = [&] { ASSERT_EQ(static_cast<int>(bytes[0]), 1); };
  std::thread other(touch);
  touch();
  other.join();
  EXPECT_EQ(store->readers(), 2u);
  const Counters counted = runtime.metrics().counters;
  EXPECT_EQ(counted.refaults, 0u);
  EXPECT_EQ(counted.fills + counted.prefetch_fills, 1u);
}

TEST_F(MemberFigures, ABufferThatIsLargeEnoughHasNone) {
  Runtime runtime = Runtime::start(options(4 * kLimit)).value();
  const Region region = runtime.map(job_.path()).value();
  for (int i = 0; i < 3; ++i) read_once(region);
  EXPECT_EQ(runtime.metrics().counters.refaults, 0u);
}

TEST_F(MemberFigures, TheRecordTellsThemAndTheBuffer) {
  RuntimeOptions recorded = options(kLimit);
  const std::string path = job_.folder() / "run.json";
  recorded.report_file = path;
  Counters counted;
  {
    Runtime runtime = Runtime::start(recorded).value();
    const Region region = runtime.map(job_.path()).value();
    for (int i = 0; i < 2; ++i) read_once(region);
    counted = runtime.metrics().counters;
  }
  std::ifstream file(path);
  std::string line;
  ASSERT_TRUE(std::getline(file, line));
  const Json record = Json::parse_or_null(line);
  EXPECT_EQ(record["counters"].value("refaults", uint64_t{0}), counted.refaults);
  EXPECT_EQ(record["buffer"].value("name", ""), "job");
  EXPECT_EQ(record["buffer"].value("limit_bytes", uint64_t{0}), kLimit);
  EXPECT_LE(record["buffer"].value("used_bytes_max", UINT64_MAX), kLimit);
  EXPECT_GT(record["buffer"].value("used_bytes_max", uint64_t{0}), kLimit / 2);
  const Json& of_file = record["files"][size_t{0}];
  EXPECT_EQ(of_file.value("touched_bytes", uint64_t{0}), job_.file_bytes());
  if (record.value("lost_events", uint64_t{1}) == 0) {
    double seen = 0;
    for (const Json& cell : of_file["heat"]["refaults"])
      seen += std::max(0.0, cell.as<double>().value_or(0));
    EXPECT_GT(seen, 0);
  }
  // Of what leaves a buffer a member is told nothing, and so there is no curve.
  EXPECT_TRUE(record["miss_curve"]["points"].items().empty());
  // The limit is the buffer's at each moment.
  for (const Json& limit : record["timeline"]["budget_bytes"])
    EXPECT_EQ(limit.as<uint64_t>().value_or(0), kLimit);
  EXPECT_TRUE(record["tuner"].items().empty()) << record["tuner"].dump();
}

TEST_F(MemberFigures, WhatIsWrittenIsToldUntilItIsStored) {
  constexpr uint64_t kWritten = 10;
  Runtime runtime = Runtime::start(options(4 * kLimit)).value();
  MapOptions how;
  how.access = Access::kReadWrite;
  Region region = runtime.map(job_.path(), how).value();
  ASSERT_EQ(Job::facts().files, 1u);
  EXPECT_EQ(Job::facts().written_bytes, 0u);
  for (uint64_t page = 0; page < kWritten; ++page) region.data()[page * kPage] = std::byte{1};
  EXPECT_GE(Job::facts().written_bytes, kWritten * kPage);
  EXPECT_LE(Job::facts().written_bytes, Job::facts().resident_bytes);
  ASSERT_TRUE(region.unmap().ok());
  EXPECT_EQ(Job::facts().written_bytes, 0u);
}

}  // namespace
}  // namespace outcore
