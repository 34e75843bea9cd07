// Addresses that cannot be had: what is said of it.
#include "core/os/address_space.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cerrno>

#include "core/tests/conformance/scene.h"

namespace outcore::os {
namespace {

class DataLimit {
 public:
  explicit DataLimit(uint64_t bytes) {
    ::getrlimit(RLIMIT_DATA, &before_);
    const rlimit less{bytes, before_.rlim_max};
    ::setrlimit(RLIMIT_DATA, &less);
  }
  ~DataLimit() { ::setrlimit(RLIMIT_DATA, &before_); }
  DataLimit(const DataLimit&) = delete;
  DataLimit& operator=(const DataLimit&) = delete;

 private:
  rlimit before_{};
};

TEST(AddressSpace, ATableBeyondTheLimitOfDataNamesThatLimit) {
  if (OUTCORE_TEST_IS_SANITIZED) GTEST_SKIP() << "sanitizers have more than any limit";
  constexpr uint64_t kBytes = uint64_t{1} << 36;
  Result<std::byte*> table = Error{0, ""};
  {
    const DataLimit limit(kBytes / 2);
    table = allocate_table(kBytes);
  }
  ASSERT_FALSE(table.ok());
  EXPECT_EQ(table.code(), ENOMEM);
  EXPECT_NE(table.message().find("ulimit -d"), std::string::npos) << table.message();
}

}  // namespace
}  // namespace outcore::os
