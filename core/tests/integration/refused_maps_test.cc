// A map that is refused has changed nothing: the file is as long as it was, or is not there.
#include <gtest/gtest.h>

#include <cerrno>
#include <filesystem>

#include "core/tests/conformance/faulty_store.h"
#include "core/tests/conformance/mechanism.h"

namespace outcore {
namespace {

using namespace scene;

class RefusedMap : public testing::Test {
 protected:
  static constexpr uint64_t kLong = 1 << 20;

  void SetUp() override { write_file(path_, Bytes(5, std::byte{'x'})); }
  static Runtime start() {
    RuntimeOptions options;
    options.ignore_environment = true;
    options.budget_bytes = 4 << 20;
    return Runtime::start(options).value();
  }
  static MapOptions to_enlarge() {
    MapOptions options;
    options.access = Access::kReadWrite;
    options.size_bytes = kLong;
    options.may_create = true;
    return options;
  }
  static MapOptions to_write() {
    MapOptions options;
    options.access = Access::kReadWrite;
    return options;
  }
  // Of a file that is there, and of one that is not.
  void expect_refused(Runtime& runtime, const MapOptions& options, int code) const {
    const auto region = runtime.map(path_, options);
    EXPECT_EQ(region.code(), code) << region.message();
    EXPECT_EQ(std::filesystem::file_size(path_), 5u);
  }
  void expect_not_made(Runtime& runtime, const MapOptions& options) const {
    EXPECT_FALSE(runtime.map(new_path_, options).ok());
    EXPECT_FALSE(std::filesystem::exists(new_path_));
  }

  Folder folder_;
  const std::string path_ = folder_ / "data", new_path_ = folder_ / "new";
};

TEST_F(RefusedMap, ForItsNumbers) {
  Runtime runtime = start();
  MapOptions odd = to_enlarge(), zeros = odd, away = odd, large = odd, far = odd, pages = odd;
  odd.offset = 4097;
  zeros.on_error = OnError::kZeroFill;
  large.page_bytes = 5000;
  far.offset = UINT64_MAX - 4095;
  for (const MapOptions& options : {odd, zeros, large, far}) {
    expect_refused(runtime, options, EINVAL);
    expect_not_made(runtime, options);
  }
  away.address = reinterpret_cast<void*>(uintptr_t{0x10000000});
  pages.page_bytes = 16 << 20;
  expect_refused(runtime, away, EINVAL);
  expect_refused(runtime, pages, EINVAL);
}

TEST_F(RefusedMap, AsAnotherRuntimeWritesIt) {
  Runtime other = start(), runtime = start();
  const Region region = other.map(path_, to_write()).value();
  expect_refused(runtime, to_enlarge(), EBUSY);
}

TEST_F(RefusedMap, AsItIsMappedOtherwise) {
  Runtime runtime = start();
  Region region = runtime.map(path_, to_write()).value();
  expect_refused(runtime, to_enlarge(), EBUSY);
  MapOptions pages = to_enlarge();
  pages.page_bytes = 65536;
  expect_refused(runtime, pages, EBUSY);
  region.data()[0] = std::byte{'y'};
  EXPECT_TRUE(region.unmap().ok());
  EXPECT_EQ(read_file(path_)[0], std::byte{'y'});
}

TEST_F(RefusedMap, OrGrowthOrReservationOfMoreThanThereIs) {
  Runtime runtime = start();
  write_file(path_, Bytes(8192));
  MapOptions second = to_write();
  second.offset = 4096;
  Region region = runtime.map(path_, second).value();
  EXPECT_EQ(region.grow(UINT64_MAX).code(), EINVAL);
  EXPECT_EQ(region.grow(UINT64_MAX - 4096).code(), EINVAL);
  EXPECT_EQ(runtime.reserve(UINT64_MAX).code(), EINVAL);
  EXPECT_EQ(runtime.reserve(4096, reinterpret_cast<void*>(uintptr_t{4097})).code(), EINVAL);
}

TEST_F(RefusedMap, ButNotOfALinkToWhatIsNotThereYet) {
  Runtime runtime = start();
  std::filesystem::create_symlink(new_path_, folder_ / "link");
  Region region = runtime.map(folder_ / "link", to_enlarge()).value();
  region.data()[0] = std::byte{'y'};
  EXPECT_TRUE(region.unmap().ok());
  EXPECT_EQ(std::filesystem::file_size(new_path_), kLong);
  EXPECT_EQ(read_file(new_path_)[0], std::byte{'y'});
}

}  // namespace
}  // namespace outcore
