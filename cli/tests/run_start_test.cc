// What `outcore run` refuses before the program starts, because it cannot be had on this machine:
// the runtime in the program would find out, and leave all to the kernel.
#include <sys/stat.h>

#include <filesystem>

#include "cli/tests/command_line.h"

namespace outcore::cli {
namespace {

class RunStart : public CommandTest {
 protected:
  void expect_refusal(const std::string& options, int status, const std::string& said) const {
    const Outcome outcome =
        run_lines("sh", command_path() + " run " + options + " -- touch made; exit $?");
    EXPECT_EQ(outcome.status, status) << options << ": " << outcome.err;
    EXPECT_EQ(outcome.error_lines(), 1U) << outcome.err;
    EXPECT_EQ(outcome.err.rfind("outcore: ", 0), 0U) << outcome.err;
    EXPECT_NE(outcome.err.find(said), std::string::npos) << said << " in: " << outcome.err;
    EXPECT_EQ(outcome.err.find("OUTCORE_B"), std::string::npos) << "not typed: " << outcome.err;
    EXPECT_FALSE(std::filesystem::exists(path("made"))) << options;
  }
};

TEST_F(RunStart, ABudgetThatIsTooSmallIsRefused) {
  expect_refusal("--budget 64k", 2,
                 "--budget: a budget of 64 KiB is too small for 1 keeper: the least");
  expect_refusal("--budget 300k --keepers 16", 2, "too small for 16 keepers: the least");
  expect_refusal("--budget 16M --page 16M", 2, "too small for pages of 16 MiB: the least");
  expect_refusal("--budget 1M --buffer zz-of-a-test", 2, "too small; the least is 4 MiB");
}

TEST_F(RunStart, ABudgetThatDependsOnTheMachineIsNeverTooSmall) {
  for (const char* options : {"", "--page 16M", "--budget auto --page 16M", "--budget 1%"}) {
    const Outcome outcome = run(std::string("run -q ") + options + " -- echo started");
    EXPECT_EQ(outcome.status, 0) << options << outcome.err;
    EXPECT_EQ(outcome.out, "started\n") << options;
  }
}

TEST_F(RunStart, AFolderThatCannotBeHadIsRefused) {
  expect_refusal("--scratch-dir missing --alloc 1M", 1, "--scratch-dir: make a scratch file in ");
  expect_refusal("--learn missing/profile", 1, "make its folder first");
  ASSERT_EQ(::mkdir(path("open").c_str(), 0755), 0);
  ASSERT_EQ(::chmod(path("open").c_str(), 0777), 0);
  ::setenv("OUTCORE_BUFFER_DIR", path("open").c_str(), 1);
  const Outcome open = run("run --buffer zz -- echo started");
  EXPECT_EQ(open.status, 1) << open.out;
  EXPECT_EQ(open.error_lines(), 1U) << open.err;
  EXPECT_NE(open.err.find("is open to other users: make it yours alone"), std::string::npos);
  ::unsetenv("OUTCORE_BUFFER_DIR");
}

TEST_F(RunStart, APoolOfCheckpointsThatCannotBeHadIsRefused) {
  std::ofstream(path("file")) << "text";
  expect_refusal("--checkpoint 1s --checkpoint-pool versioned:missing/pool", 1,
                 "make the folders above it first");
  expect_refusal("--checkpoint 1s --checkpoint-pool versioned:/sys/pool", 1,
                 "name one where you may write");
  expect_refusal("--checkpoint 1s --checkpoint-pool versioned:file", 1, "it is a file");
  expect_refusal("--checkpoint 1s --checkpoint-pool file", 1, "it is a file");
  EXPECT_EQ(run("run -q --checkpoint 1s --checkpoint-pool " + path("pool") + " -- true").status, 0);
  EXPECT_EQ(run("checkpoint ls " + path("pool")).status, 0);
}

TEST_F(RunStart, ACheckpointOfACopyWithoutItsReadersSaysSo) {
  const std::string pool = path("pool");
  EXPECT_EQ(run("run -q --checkpoint 1s --checkpoint-pool " + pool + " -- true").status, 0);
  EXPECT_EQ(run("checkpoint make " + pool + " a").status, 0);
  ASSERT_TRUE(std::filesystem::remove(pool + "/readers"));
  const Outcome copied = run("checkpoint export " + pool + " a " + path("out"));
  EXPECT_EQ(copied.status, 1);
  EXPECT_EQ(copied.error_lines(), 1U) << copied.err;
  EXPECT_NE(copied.err.find("copy that file, too"), std::string::npos) << copied.err;
}

TEST_F(RunStart, AProgramThatCannotStartMakesNothing) {
  const std::string pool = path("pool");
  EXPECT_EQ(run("run --checkpoint 1s --checkpoint-pool " + pool + " -- no-such-program").status,
            127);
  EXPECT_FALSE(std::filesystem::exists(pool));
}

TEST_F(RunStart, APipeThatNobodyWritesIsNotWaitedForWithoutAnEnd) {
  ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
  for (const std::string& words :
       {"OUTCORE_CONFIG=" + path("pipe") + " timeout 60 " + command_path() + " info",
        "timeout 60 " + command_path() + " run --hosts " + path("pipe") + " -- true"}) {
    const Outcome outcome = run_lines("sh", words);
    EXPECT_EQ(outcome.status, 2) << words << outcome.err;
    EXPECT_EQ(outcome.error_lines(), 1U) << outcome.err;
    EXPECT_NE(outcome.err.find(path("pipe") + ": nobody writes to this pipe"), std::string::npos)
        << outcome.err;
  }
  // Of a command that takes its time, a pipe is as good as a file.
  const Outcome config = run_lines(
      "bash", "OUTCORE_CONFIG=<(sleep 0.2; echo 'budgt = 1') " + command_path() + " info");
  EXPECT_NE(config.err.find("budgt"), std::string::npos) << config.err;
  const Outcome hosts =
      run_lines("bash", command_path() + " run --hosts <(sleep 0.2; echo 'nonsense 1') -- true");
  EXPECT_NE(hosts.err.find("1 is less than a host can give"), std::string::npos) << hosts.err;
}

TEST_F(RunStart, APipeThatNobodyReadsIsNotWaitedFor) {
  ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
  const Outcome outcome = run_lines(
      "sh", "timeout 60 " + command_path() + " run --json " + path("pipe") + " -- sh -c 'exit 7'");
  EXPECT_EQ(outcome.status, 7);
  EXPECT_EQ(outcome.error_lines(), 1U) << outcome.err;
  EXPECT_NE(outcome.err.find("nobody reads from this pipe; name another place by --json"),
            std::string::npos)
      << outcome.err;
  const Outcome read =
      run_lines("bash", command_path() + " run --json >(cat >" + path("table") +
                            ") -- true; wait $!; grep -c processes " + path("table"));
  EXPECT_EQ(read.out, "1\n") << read.err;
}

TEST_F(RunStart, AReportOfAnotherKindIsToldWhatThereIs) {
  expect_refusal("--report r.txt", 2, "--report r.txt: name a file that ends in .json");
  expect_refusal("--report r.txt", 2, "in .html, for a page");
}

TEST_F(RunStart, AWrongNameIsToldOnce) {
  expect_refusal("--policy lru", 2, "--policy lru: there is no policy 'lru'");
  expect_refusal("--buffer a/b", 2, "--buffer a/b: a name has letters");
}

}  // namespace
}  // namespace outcore::cli
