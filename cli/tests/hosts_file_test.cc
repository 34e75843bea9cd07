// What `outcore run` says of a hosts file, and of what is given beside it, before anything starts.
#include "cli/tests/hosts_case.h"

namespace outcore::cli {
namespace {

class HostsFileCase : public HostsCase {
 protected:
  void SetUp() override { CommandTest::SetUp(); }  // no server is started

  void expect_refusal(const Outcome& outcome, int status, const std::string& said) const {
    EXPECT_EQ(outcome.status, status) << outcome.err;
    EXPECT_EQ(outcome.error_lines(), 1U) << outcome.err;
    EXPECT_EQ(outcome.err.rfind("outcore: ", 0), 0U) << outcome.err;
    EXPECT_NE(outcome.err.find(said), std::string::npos) << said << " in: " << outcome.err;
    EXPECT_FALSE(std::filesystem::exists(path("made")));
    EXPECT_TRUE(keepers().empty());
  }
};

struct WrongLines {
  std::string lines, said;
};

void PrintTo(const WrongLines& wrong, std::ostream* out) { *out << wrong.lines; }

class WrongHostsFile : public HostsFileCase, public testing::WithParamInterface<WrongLines> {};

TEST_P(WrongHostsFile, IsToldInOneLineAndNothingStarts) {
  expect_refusal(start_with(GetParam().lines, "-- touch made"), 2, GetParam().said);
}

std::string many_hosts() {
  std::string lines = "localhost 64M\n";
  for (int i = 0; i < 129; ++i) lines += "localhost 32M\n";
  return lines;
}

INSTANTIATE_TEST_SUITE_P(
    Mistakes, WrongHostsFile,
    testing::Values(
        WrongLines{"", "hosts names no host"}, WrongLines{"# nothing\n\n", "names no host"},
        WrongLines{"localhost 64M\n", "hosts:1: only the machine that calculates"},
        WrongLines{"198.51.100.1 64M\nlocalhost 32M\n",
                   "hosts:1: '198.51.100.1' is not this machine"},
        WrongLines{"0.0.0.0 64M\nlocalhost 32M\n", "hosts:1: '0.0.0.0' is not this machine"},
        WrongLines{"root@localhost 64M\nlocalhost 32M\n", "leave out 'root@'"},
        WrongLines{"localhost\nlocalhost 32M\n", "hosts:1: 'localhost' has no size"},
        WrongLines{"localhost 10k\nlocalhost 32M\n", "hosts:1: 10k is less"},
        WrongLines{"localhost 64M\nlocalhost 32Q\n", "hosts:2: '32Q' is not a size"},
        WrongLines{"localhost 64M\n\n# a\n  localhost 1M # b\n", "hosts:4: 1M is less"},
        WrongLines{"localhost 64M\nlocalhost 2000P\n", "hosts:2: 2000P is more"},
        WrongLines{"localhost 64M\nlocalhost 32M twice\n", "hosts:2: 'localhost' has more words"},
        WrongLines{"localhost 64M\n-oProxyCommand=x 32M\n",
                   "hosts:2: '-oProxyCommand=x' is not a name"},
        WrongLines{"localhost 64M\na;b 32M\n", "hosts:2: 'a;b' is not a name"},
        WrongLines{"localhost 64M\n-l@b 32M\n", "hosts:2: '-l' is not a user's name"},
        WrongLines{"localhost 64M\n@b 32M\n", "hosts:2: '' is not a user's name"},
        WrongLines{"localhost 64M\na@ 32M\n", "hosts:2: '' is not a name"},
        WrongLines{many_hosts(), "hosts:130: more than 128 hosts"}));

TEST_F(HostsFileCase, AFileThatIsNotThereIsTold) {
  expect_refusal(start("--hosts missing -- touch made"), 1, "read the hosts in missing");
  expect_refusal(start("--hosts . -- touch made"), 1, "directory");
  expect_refusal(start("touch made", "OUTCORE_HOSTS=missing"), 1, "missing");
  expect_refusal(start("--hosts '' -- touch made"), 2, "--hosts");
}

TEST_F(HostsFileCase, AnotherStoreBesideHostsIsRefused) {
  const std::string lines = "localhost 64M\nlocalhost 32M\n";
  expect_refusal(start_with(lines, "--store scratch:. -- touch made"), 2, "--store scratch:.");
  expect_refusal(start_with(lines, "-- touch made", "OUTCORE_STORE=scratch:"), 2,
                 "OUTCORE_STORE=scratch:");
  expect_refusal(start("--store scratch:. touch made", "OUTCORE_HOSTS=" + path("hosts")), 2,
                 "OUTCORE_HOSTS=");
}

TEST_F(HostsFileCase, CopiesNeedHostsAndTwoOfThem) {
  expect_refusal(start("--replicas 1 touch made"), 2, "--hosts");
  const std::string one = "localhost 64M\nlocalhost 32M\n";
  expect_refusal(start_with(one, "--replicas 1 -- touch made"), 2, "hosts:2: the copy");
  expect_refusal(start_with(one, "-- touch made", "OUTCORE_RUN_REPLICAS=1"), 2,
                 "OUTCORE_RUN_REPLICAS=1");
  expect_refusal(start_with(one, "--replicas 2 -- touch made"), 2, "--replicas 2");
}

TEST_F(HostsFileCase, FarMemoryThatIsNamedAsTheStoreMustBeThere) {
  const std::string store = "-q --store 'far://:secret@127.0.0.1:1?replicas=0&timeout=1s'";
  const Outcome outcome = start(store + " -- touch made");
  EXPECT_EQ(outcome.status, 1);
  EXPECT_EQ(outcome.error_lines(), 1U) << outcome.err;
  EXPECT_FALSE(std::filesystem::exists(path("made")));
}

}  // namespace
}  // namespace outcore::cli
