// What programs leave behind on the servers that hold their memory.

#include <cstdlib>
#include <fstream>

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
    options.maxmemory = "32mb";
    server_ = std::make_unique<TestServers>(options);
  }
  // A program in Python with 18 MiB in the servers' memory, more than half of it, which ends by
  // `last`.
  Outcome ended_by(const std::string& last) const {
    return run("run -q --budget 4M --alloc 1M --store 'far://:open%20sesame@" +
               server_->address(0) +
               "' -- python3 -c 'import os, signal\nb = bytearray(18 << 20); n = len(b[::4096])\n"
               "b[::4096] = b\"x\" * n; assert b.count(b\"x\") == n\n"
               "print(\"all there\", flush=True)\n" +
               last + "'");
  }

  std::unique_ptr<TestServers> server_;
};

// Those that give back; docs/guides/far-memory.md names them, and the others.
struct End {
  const char* name;
  const char* program;
};
constexpr End kEnds[] = {
    {"Return", ""},
    {"UnderscoreExit", "os._exit(0)"},
    {"ASignal",
     "import subprocess\nsubprocess.Popen([\"kill\", str(os.getpid())])\n"
     "while True: signal.pause()"},
    {"QuickExit", "import ctypes\nctypes.CDLL(None).quick_exit(0)"},
    {"Abort", "os.abort()"},
    {"Raise", "signal.raise_signal(signal.SIGTERM)"},
    {"KillOfItself", "os.kill(os.getpid(), signal.SIGTERM)"},
    {"KillOfItsGroup", "os.setpgid(0, 0)\nos.kill(0, signal.SIGTERM)"},
    {"PthreadKill", "import threading\nsignal.pthread_kill(threading.get_ident(), signal.SIGTERM)"},
};

class FarProgramsEnd : public FarPrograms, public testing::WithParamInterface<End> {};

// A program that ends leaves no booking behind for the next one, which needs as much: there is no
// room for both.
TEST_P(FarProgramsEnd, AndLeavesItsSpaceToTheNext) {
  for (int i = 0; i < 2; ++i) {
    const Outcome outcome = ended_by(GetParam().program);
    EXPECT_EQ(outcome.err.find("Error"), std::string::npos) << i << ": " << outcome.err;
    EXPECT_EQ(outcome.out, "all there\n") << i;
  }
  const auto stores = list_stores("redis://:open%20sesame@" + server_->address(0));
  ASSERT_TRUE(stores.ok()) << stores.message();
  EXPECT_LE(stores->size(), 1u) << "who needs space removes what others have left";
  for (const StoreInfo& one : stores.value()) EXPECT_EQ(one.owner, "");
}

// Its functions still have all of its memory, and what they see is there.
TEST_F(FarPrograms, ThatEndByQuickExitHaveTheirMemoryToTheLastFunction) {
  const Outcome outcome = ended_by(
      "import ctypes\n@ctypes.CFUNCTYPE(None)\ndef last():\n"
      "    print(\"still there\", b.count(b\"x\") == n, flush=True)\n"
      "c = ctypes.CDLL(None); f = ctypes.CFUNCTYPE(None, ctypes.c_int)\n"
      "g = ctypes.CDLL(\"libc.so.6\")\n"
      "assert g.__cxa_at_quick_exit(last, None) == 0\nc.quick_exit(3)");
  EXPECT_EQ(outcome.status, 3) << outcome.err;
  EXPECT_EQ(outcome.out, "all there\nstill there True\n") << outcome.err;
}

// So does a program with static arrays, which occ has compiled.
TEST_F(FarPrograms, WithStaticArraysLeaveTheirSpaceToTheNext) {
  std::ofstream(path("arrays.c"))
      << "#include <stdio.h>\nstatic dlm char a[18 << 20];\n"
         "int main(void) {\n  long sum = 0;\n"
         "  for (long i = 0; i < (long)sizeof a; i += 4096) a[i] = 1;\n"
         "  for (long i = 0; i < (long)sizeof a; i += 4096) sum += a[i];\n"
         "  return printf(\"%ld\\n\", sum) < 0;\n}\n";
  const Outcome compiled =
      outcome_of("cd " + dir() + " && " + occ_path() + " arrays.c -o arrays -Wl,-S");
  ASSERT_EQ(compiled.status, 0) << compiled.err;
  for (int i = 0; i < 3; ++i) {
    const Outcome outcome =
        outcome_of("OUTCORE_CONFIG= OUTCORE_BUDGET=4M OUTCORE_STORE='far://:open%20sesame@" +
                   server_->address(0) + "' " + dir() + "/arrays");
    EXPECT_EQ(outcome.status, 0) << i;
    EXPECT_EQ(outcome.err, "") << i;
    EXPECT_EQ(outcome.out, "4608\n") << i;
  }
}

INSTANTIATE_TEST_SUITE_P(By, FarProgramsEnd, testing::ValuesIn(kEnds),
                         [](const auto& one) { return std::string(one.param.name); });

}  // namespace
}  // namespace outcore::cli
