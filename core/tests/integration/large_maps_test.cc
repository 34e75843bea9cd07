// Large files that are hardly used: what is done to all of a region takes no longer for what was
// never in memory. The page words of the others would be page faults, one for each 512 of them.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <filesystem>
#include <fstream>
#include <optional>
#include <string>

#include "core/tests/conformance/mechanism.h"

namespace outcore {
namespace {

using namespace scene;

class LargeMap : public testing::Test {
 protected:
  static constexpr uint64_t kBytes = uint64_t{64} << 30, kPage = 4096;
  static constexpr uint64_t kWordFaults = kBytes / kPage / 512;

  void SetUp() override {
    std::ofstream(path_, std::ios::binary).put('x');
    std::filesystem::resize_file(path_, kBytes);
    RuntimeOptions options;
    options.ignore_environment = true;
    options.budget_bytes = 16 << 20;
    runtime_ = Runtime::start(options).value();
  }
  Region map() {
    MapOptions options;
    options.access = Access::kReadWrite;
    options.page_bytes = kPage;
    return runtime_->map(path_, options).value();
  }
  static void write(Region& region, char value) {
    for (const uint64_t at : {uint64_t{0}, kBytes / 3, kBytes / 2, kBytes - 1})
      region.data()[at] = static_cast<std::byte>(value);
  }
  void expect_stored(char value) const {
    for (const uint64_t at : {uint64_t{0}, kBytes / 3, kBytes / 2, kBytes - 1}) {
      std::ifstream file(path_, std::ios::binary);
      file.seekg(static_cast<std::streamoff>(at));
      EXPECT_EQ(file.get(), value) << at;
    }
  }
  // Page faults of this process meanwhile.
  template <typename Work>
  static uint64_t faults_of(const Work& work) {
    rusage before, after;
    ::getrusage(RUSAGE_SELF, &before);
    work();
    ::getrusage(RUSAGE_SELF, &after);
    return static_cast<uint64_t>(after.ru_minflt - before.ru_minflt);
  }

  Folder folder_;
  const std::string path_ = folder_ / "large";
  std::optional<Runtime> runtime_;
};

TEST_F(LargeMap, IsFlushedByWhatWasTouched) {
  Region region = map();
  write(region, 'a');
  EXPECT_LT(faults_of([&] { ASSERT_TRUE(region.flush().ok()); }), kWordFaults / 8);
  expect_stored('a');
}

TEST_F(LargeMap, IsEvictedByWhatWasTouched) {
  Region region = map();
  write(region, 'b');
  const auto evict = [&] { ASSERT_TRUE(region.advise(0, kBytes, Advice::kDontNeed).ok()); };
  EXPECT_LT(faults_of(evict), kWordFaults / 8);
  EXPECT_EQ(region.metrics().resident_bytes, 0u);
  expect_stored('b');
  EXPECT_EQ(region.data()[kBytes / 2], std::byte{'b'});
}

TEST_F(LargeMap, IsMappedTwiceByWhatWasTouched) {
  Region region = map(), again;
  write(region, 'c');
  EXPECT_LT(faults_of([&] { again = map(); }), kWordFaults / 8);
  EXPECT_EQ(again.data()[kBytes / 3], std::byte{'c'});
  write(again, 'd');
  EXPECT_EQ(region.data()[kBytes - 1], std::byte{'d'});
  EXPECT_LT(faults_of([&] { ASSERT_TRUE(again.unmap().ok()); }), kWordFaults / 8);
  EXPECT_LT(faults_of([&] { ASSERT_TRUE(region.unmap().ok()); }), kWordFaults / 8);
  expect_stored('d');
}

}  // namespace
}  // namespace outcore
