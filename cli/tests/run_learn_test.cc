// `outcore run --learn`: the second start of a program has in memory what the first one needed.
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>

#include "cli/tests/command_line.h"

namespace outcore::cli {
namespace {

class RunLearn : public CommandTest {
 protected:
  static constexpr uint64_t kTouched = 40;  // pages of the program

  void SetUp() override {
    CommandTest::SetUp();
    std::ofstream(path("data")) << std::string(4 << 20, 'x');
    // Touches pages 7, 32, 57 …; with "wait", once all of them are in memory.
    std::ofstream(path("program.py")) << R"(
import ctypes, mmap, os, signal, sys
path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "data")
pages = range(7, 7 + 25 * 40, 25)
if "read" in sys.argv:
    file = open(path, "rb")
    memory = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
else:
    file = open(path, "r+b")
    memory = mmap.mmap(file.fileno(), 0)
def are_there():
    address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    size = ctypes.c_size_t(len(memory))
    states = (ctypes.c_ubyte * (len(memory) // 4096))()
    assert ctypes.CDLL(None).mincore(ctypes.c_void_p(address), size, states) == 0
    return all(states[page] & 1 for page in pages)
if "wait" in sys.argv and not any(are_there() for _ in range(300000)):
    sys.exit("they were never brought in")
os.chdir("/")
assert all(memory[4096 * page + 9] == 120 for page in pages)
if "end" in sys.argv: os._exit(3)
for name in ("SIGTERM", "SIGKILL"):
    if name in sys.argv: os.kill(os.getpid(), getattr(signal, name))
)";
  }
  std::string command(const std::string& options, const std::string& arguments) const {
    return "run --budget 16M --readahead 0 --min-size 4k --map data " + options + " -- python3 " +
           path("program.py") + " " + arguments;
  }
  Outcome learn(const std::string& arguments, const std::string& options = "-q") const {
    return run(command(options + " --learn " + path("profile"), arguments));
  }
  Json report() const {
    std::ifstream file(path("report.json"));
    const std::string text(std::istreambuf_iterator<char>(file), {});
    return Json::parse_or_null(text);
  }
  std::string text_of(const std::string& name) const {
    std::ifstream file(path(name), std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  // A run that waits for what the profile should say finds all of it, and by no fault.
  void expect_profile() const {
    const Outcome outcome = learn("wait", "-q --json " + path("report.json"));
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_EQ(outcome.err, "");
    const Json all = report();
    const Json& counters = all["files"][size_t{0}]["counters"];
    EXPECT_EQ(counters.value("learnt_fills", uint64_t{0}), kTouched) << all;
    EXPECT_EQ(counters.value("fills", uint64_t{99}), 0U) << all;
    const Json& learnt = all["processes"][size_t{0}]["learn"];
    EXPECT_EQ(learnt.value("profile", ""), path("profile")) << all;
    EXPECT_EQ(learnt.value("brought_bytes", uint64_t{0}), kTouched * 4096) << all;
    EXPECT_EQ(learnt.value("files", uint64_t{0}), 1U) << all;
    EXPECT_TRUE(learnt.value("is_kept", false)) << all;
  }
};

TEST_F(RunLearn, TheSecondStartFindsInMemoryWhatTheFirstNeeded) {
  const Outcome first = learn("");
  ASSERT_EQ(first.status, 0) << first.err;
  EXPECT_EQ(first.err, "");
  expect_profile();
}

TEST_F(RunLearn, TheTableSaysWhatWasBroughtInAndWhereItIsKept) {
  const Outcome first = learn("", "");
  ASSERT_EQ(first.status, 0) << first.err;
  EXPECT_NE(first.err.find("  learn: kept in " + path("profile") + "\n"), std::string::npos)
      << first.err;
  const Outcome second = learn("wait", "");
  ASSERT_EQ(second.status, 0) << second.err;
  EXPECT_NE(second.err.find("  learn: 160 KiB in 40 runs of 1 file brought in ahead; kept in " +
                            path("profile") + "\n"),
            std::string::npos)
      << second.err;
}

TEST_F(RunLearn, ANameWithoutAFolderIsOfTheFolderOfTheCommand) {
  const Outcome outcome = run_lines("sh", command_path() + " " + command("-q --learn profile", ""));
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  expect_profile();
}

TEST_F(RunLearn, AnEndPastExitKeepsIt) {
  ASSERT_EQ(learn("end").status, 3);
  expect_profile();
}

TEST_F(RunLearn, ASignalThatEndsTheProgramByDefaultKeepsIt) {
  const Outcome outcome = learn("read SIGTERM");
  EXPECT_NE(outcome.status, 0);
  expect_profile();
}

TEST_F(RunLearn, AKillLeavesTheProfileAsItWas) {
  static_cast<void>(learn("SIGKILL"));
  EXPECT_FALSE(std::filesystem::exists(path("profile")));
  ASSERT_EQ(learn("").status, 0);
  const std::string before = text_of("profile");
  static_cast<void>(learn("SIGKILL"));
  EXPECT_EQ(text_of("profile"), before);
}

TEST_F(RunLearn, AFileThatIsNoProfileIsToldInOneLineAndTheProgramRuns) {
  std::ofstream(path("profile")) << "my own notes";
  const Outcome outcome = learn("", "--json " + path("report.json"));
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(outcome.err.find("learn from " + path("profile")),
            outcome.err.rfind("learn from " + path("profile")))
      << outcome.err;
  EXPECT_NE(outcome.err.find("name another file"), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find("  learn: not kept in "), std::string::npos) << outcome.err;
  EXPECT_EQ(text_of("profile"), "my own notes");
}

TEST_F(RunLearn, AFolderThatGoesWhileTheProgramRunsIsToldInOneLine) {
  const std::string place = path("none") + "/profile";
  std::filesystem::create_directory(path("none"));
  const Outcome outcome =
      run("run --budget 16M --min-size 4k --map data --learn " + place + " -- sh -c 'rmdir " +
          path("none") + "; exec python3 " + path("program.py") + "'");
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  const std::string told = "outcore: keep what was learnt in " + place + ": ";
  EXPECT_NE(outcome.err.find(told), std::string::npos) << outcome.err;
  EXPECT_EQ(outcome.err.find(told), outcome.err.rfind(told)) << outcome.err;
  EXPECT_NE(outcome.err.find("make its folder first"), std::string::npos) << outcome.err;
}

// Each exec that fails keeps what is new, while other threads fork: both take the locks of files.
TEST_F(RunLearn, ForksBesideWhatIsKeptDoNotWaitForEachOther) {
  std::ofstream(path("forks.py")) << R"(
import mmap, os, sys, threading
file = open(sys.argv[1], "rb")
memory = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
def become_others():
    for page in range(0, 1000, 5):
        assert memory[4096 * page] == 120
        try: os.execv("/none/program", ["program"])
        except OSError: pass
thread = threading.Thread(target=become_others)
thread.start()
while thread.is_alive():
    child = os.fork()
    if child == 0: os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
)";
  const Outcome outcome =
      run("run -q --budget 16M --readahead 0 --min-size 4k --map data --learn " + path("profile") +
          " -- python3 -W ignore " + path("forks.py") + " " + path("data"));
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(outcome.err, "");
  EXPECT_TRUE(std::filesystem::exists(path("profile")));
}

TEST_F(RunLearn, AProfileThatOthersHaveLockedIsNotCalledALossOfWhatWasWritten) {
  const int profile = ::open(path("profile").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  ASSERT_GE(profile, 0);
  ASSERT_EQ(::flock(profile, LOCK_EX), 0);
  const Outcome outcome = run_lines("sh", "OUTCORE_RUN_PATIENCE=1 " + command_path() + " " +
                                              command("-q --learn " + path("profile"), ""));
  ::close(profile);
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_NE(outcome.err.find("what was learnt"), std::string::npos) << outcome.err;
  EXPECT_EQ(outcome.err.find("stored"), std::string::npos) << outcome.err;
}

}  // namespace
}  // namespace outcore::cli
