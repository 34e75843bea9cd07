// What programs leave behind on the servers that hold their memory.
#include <fcntl.h>

#include <cstdlib>

#include "cli/command_line.h"
#include "outcore/store_catalog.h"
#include "redis/test_servers.h"

namespace outcore::cli {
namespace {

using redis_test::ServerOptions;
using redis_test::TestServers;

class FarPrograms : public CommandTest {
 protected:
  void SetUp() override {
    if (!TestServers::is_installed())
      GTEST_SKIP() << "redis-server is not installed: tools/install_packages.sh engines";
    ServerOptions options;
    options.maxmemory = "64mb";
    server_ = std::make_unique<TestServers>(options);
  }
  // A program in Python with 36 MiB in the servers' memory, which ends by `last`.
  Outcome ended_by(const std::string& last) const {
    return run("run -q --budget 4M --alloc 1M --store 'far://:open%20sesame@" +
               server_->address(0) +
               "' -- python3 -c 'import os, signal\nb = bytearray(36 << 20); n = len(b[::4096])\n"
               "b[::4096] = b\"x\" * n; assert b.count(b\"x\") == n\n" +
               last + "'");
  }

  std::unique_ptr<TestServers> server_;
};

// A program that ends leaves no booking behind for the next one, which needs as much.
TEST_F(FarPrograms, ThatEndLeaveTheirSpaceToTheNext) {
  for (int i = 0; i < 3; ++i) {
    const Outcome outcome = ended_by("");
    EXPECT_EQ(outcome.status, 0) << i << ": " << outcome.err;
  }
  const auto stores = list_stores("redis://:open%20sesame@" + server_->address(0));
  ASSERT_TRUE(stores.ok()) << stores.message();
  EXPECT_LE(stores->size(), 1u) << "who needs space removes what others have left";
  for (const StoreInfo& one : stores.value()) EXPECT_EQ(one.owner, "");
}

}  // namespace
}  // namespace outcore::cli
