// What programs leave behind on the servers that hold their memory.
#include <fcntl.h>

#include <cstdlib>

#include "cli/tests/command_line.h"
#include "far/tests/redis/test_servers.h"
#include "outcore/store_catalog.h"

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
               "b[::4096] = b\"x\" * n; assert b.count(b\"x\") == n\n"
               "print(\"all there\", flush=True)\n" +
               last + "'");
  }

  std::unique_ptr<TestServers> server_;
};

// By each way but SIGKILL, exec and quick_exit, whose space waits for the end of a lease.
class FarProgramsEnd : public FarPrograms, public testing::WithParamInterface<const char*> {};

// A program that ends leaves no booking behind for the next one, which needs as much.
TEST_P(FarProgramsEnd, AndLeavesItsSpaceToTheNext) {
  for (int i = 0; i < 3; ++i) {
    const Outcome outcome = ended_by(GetParam());
    EXPECT_EQ(outcome.err.find("Error"), std::string::npos) << i << ": " << outcome.err;
    EXPECT_EQ(outcome.out, "all there\n") << i;
  }
  const auto stores = list_stores("redis://:open%20sesame@" + server_->address(0));
  ASSERT_TRUE(stores.ok()) << stores.message();
  EXPECT_LE(stores->size(), 1u) << "who needs space removes what others have left";
  for (const StoreInfo& one : stores.value()) EXPECT_EQ(one.owner, "");
}

INSTANTIATE_TEST_SUITE_P(
    By, FarProgramsEnd,
    testing::Values("", "os._exit(0)",
                    "import subprocess\nsubprocess.Popen([\"kill\", str(os.getpid())])\n"
                    "while True: signal.pause()"),
    [](const auto& one) {
      return one.index == 0 ? "Return" : one.index == 1 ? "UnderscoreExit" : "ASignal";
    });

}  // namespace
}  // namespace outcore::cli
