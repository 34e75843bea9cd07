// What `outcore residency`, `warm` and `evict` ask running programs, and what they print. The
// program is this test: a thread answers at the address where the preload library would. Where it
// matters how a program can be in the way, it is one under `outcore run`.
#include <fcntl.h>
#include <fnmatch.h>
#include <sched.h>
#include <signal.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "cli/tests/answering_program.h"
#include "cli/tests/command_line.h"

namespace outcore::cli {
namespace {

class Residency : public CommandTest {
 protected:
  // Every program of a network namespace is asked: those of other tests are in others.
  void SetUp() override {
    CommandTest::SetUp();
    if (::unshare(CLONE_NEWNET) != 0 && ::unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0)
      GTEST_SKIP() << "needs a network namespace of its own: " << std::strerror(errno);
  }
  // A file of 1 MiB, none of it data.
  std::string make_file(const std::string& name = "file") const {
    std::ofstream(path(name)) << "x";
    std::filesystem::resize_file(path(name), 1 << 20);
    return std::filesystem::canonical(path(name));
  }
  static Json answer_of(const std::string& file, unsigned resident) {
    return {{"pid", ::getpid()},
            {"program", "kraken2"},
            {"file", file},
            {"page_bytes", 4096},
            {"pages", 256},
            {"resident", resident},
            {"dirty", 12},
            {"mapped_bytes", 1 << 20},
            {"columns", Json::array({0, 1, 49, 50, 99, 100})}};
  }
};

TEST_F(Residency, IsABarThenPagesBytesPercentAndTheProgram) {
  const std::string file = make_file();
  Program program([&](const std::string&) { return answer_of(file, 64).dump() + "\n"; });
  const Outcome outcome = run("residency " + path("file"));
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(outcome.out, file + "\n[ ..ooO] 64/256 pages  256 KiB of 1 MiB  25.0%  12 dirty  " +
                             "kraken2 (pid " + std::to_string(::getpid()) + ")\n");
  EXPECT_EQ(program.questions(), std::vector<std::string>{"residency 0 0 60 " + file});
}

TEST_F(Residency, IsOneJsonObjectOnRequest) {
  const std::string file = make_file();
  Program program([&](const std::string&) { return answer_of(file, 64).dump() + "\n"; });
  const Outcome outcome = run("residency --json " + path("file"));
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  const auto all = Json::parse_or_null(outcome.out);
  ASSERT_TRUE(all.is_object()) << outcome.out;
  EXPECT_EQ(all["file"], file);
  EXPECT_EQ(all["file_bytes"], 1 << 20);
  ASSERT_EQ(all["processes"].size(), 1U);
  EXPECT_EQ(all["processes"][0], answer_of(file, 64));
}

TEST_F(Residency, OfAFileThatNobodyHasIsWhatTheKernelHolds) {
  const std::string file = path("real");
  std::ofstream(file) << std::string(1 << 20, 'x');
  Program program([](const std::string&) { return "none\n"; });
  const Outcome outcome = run("residency " + file);
  EXPECT_EQ(outcome.status, 1);
  EXPECT_EQ(outcome.error_lines(), 1U) << outcome.err;
  EXPECT_NE(outcome.err.find("page cache holds"), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find("of 1 MiB"), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find("outcore run --map"), std::string::npos) << outcome.err;
  EXPECT_EQ(program.questions().size(), 1U);
  const auto all = Json::parse_or_null(run("residency --json " + file).out);
  ASSERT_TRUE(all.is_object());
  EXPECT_EQ(all["processes"], Json::array());
  EXPECT_TRUE(all.contains("page_cache_bytes"));
}

TEST_F(Residency, ProposesAPatternThatAShellHandsOnAndThatMatchesTheFileAlone) {
  const std::string file = path("a*b?[x]it's \\.bin");
  std::ofstream(file) << "some bytes";
  Program program([](const std::string&) { return "none\n"; });
  std::ofstream(path("name")) << file;
  const Outcome outcome = run_lines("bash", command_path() +
                                                " residency \"$(cat name)\" 2> said; sed -n 's/.*"
                                                "outcore run --map /printf %s /p' said | bash");
  ASSERT_NE(outcome.out, "") << outcome.err;
  EXPECT_EQ(::fnmatch(outcome.out.c_str(), file.c_str(), 0), 0) << outcome.out;
  EXPECT_NE(::fnmatch(outcome.out.c_str(), path("aab?[x]it's \\.bin").c_str(), 0), 0);
  EXPECT_NE(::fnmatch(outcome.out.c_str(), path("a*b?xit's \\.bin").c_str(), 0), 0);
}

TEST_F(Residency, OfWarmAndEvictIsToldBeforeAndAfter) {
  const std::string file = make_file();
  unsigned resident = 10;
  Program program([&](const std::string& question) {
    if (question.starts_with("warm")) resident = 256;
    if (question.starts_with("evict")) resident = 5;
    return answer_of(file, resident).dump() + "\n";
  });
  Outcome outcome = run("warm " + path("file"));
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("warmed: 246 pages more"), std::string::npos) << outcome.out;
  outcome = run("evict --offset 64k --size 128k " + path("file"));
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("evicted: 251 pages fewer"), std::string::npos) << outcome.out;
  outcome = run("warm --json --offset 64k " + path("file"));
  const auto all = Json::parse_or_null(outcome.out);
  ASSERT_TRUE(all.is_object()) << outcome.out;
  EXPECT_EQ(all["processes"][0]["resident_before"], 5);
  EXPECT_EQ(all["processes"][0]["resident"], 256);
  const std::string look = "residency 0 0 60 " + file;
  EXPECT_EQ(program.questions(), (std::vector<std::string>{look, "warm 0 0 0 " + file, look, look,
                                                           "evict 65536 131072 0 " + file, look,
                                                           look, "warm 65536 0 0 " + file, look}));
}

// Anybody may listen on such a name.
TEST_F(Residency, OfAnotherUsersProgramIsNeitherAskedNorBelieved) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, to be two other users";
  const std::string as_user =
      "setpriv --reuid 65533 --regid 65533 --clear-groups " + command_path() + " ";
  if (outcome_of(as_user + "--version").status != 0)
    GTEST_SKIP() << "other users cannot run " << command_path();
  const std::string file = command_path();  // which all can read
  Program program([&](const std::string&) { return answer_of(file, 64).dump() + "\n"; }, 65534);
  const Outcome outcome = outcome_of(as_user + "residency " + file);
  EXPECT_NE(outcome.err.find("another user's; ask as root"), std::string::npos) << outcome.err;
  for (const std::string& question : program.questions()) EXPECT_EQ(question, "");
  EXPECT_EQ(run("residency " + file).status, 0);  // root asks everybody
}

TEST_F(Residency, OfALargeFileIsWarmedByPieces) {
  const std::string file = make_file();
  std::filesystem::resize_file(file, 150 << 20);
  Program program([&](const std::string&) { return answer_of(file, 1).dump() + "\n"; });
  EXPECT_EQ(run("warm " + file).status, 0);
  const std::string look = "residency 0 0 60 " + file, piece = " 67108864 0 " + file;
  EXPECT_EQ(program.questions(),
            (std::vector<std::string>{look, "warm 0" + piece, "warm 67108864" + piece,
                                      "warm 134217728 0 0 " + file, look}));
}

struct BadAnswer {
  const char* answer;
  const char* said;
};

void PrintTo(const BadAnswer& bad, std::ostream* out) { *out << bad.said; }

class WrongAnswer : public Residency, public testing::WithParamInterface<BadAnswer> {};

TEST_P(WrongAnswer, IsOneLineAndAFailure) {
  const auto& [answer, said] = GetParam();
  make_file();
  Program program([text = std::string(answer)](const std::string&) { return text; });
  const Outcome outcome = run("residency " + path("file"));
  EXPECT_EQ(outcome.status, 1);
  EXPECT_EQ(outcome.error_lines(), 1U) << outcome.err;
  EXPECT_NE(outcome.err.find(said), std::string::npos) << outcome.err;
  EXPECT_EQ(outcome.out, "");
}

INSTANTIATE_TEST_SUITE_P(
    Answers, WrongAnswer,
    testing::Values(BadAnswer{"error the disk is full\n", "the disk is full"},
                    BadAnswer{"nonsense\n", "cannot be read"}, BadAnswer{"{}\n", "cannot be read"},
                    BadAnswer{"[1]\n", "cannot be read"}, BadAnswer{"silence", "no answer in time"},
                    BadAnswer{"{\"pid\": -1}", "cannot be read"}, BadAnswer{"", "it has ended"}));

// -- Programs that are in the way --

// python3 under `outcore run`, which has mapped the file and touched its beginning.
class RealProgram {
 public:
  enum class Kind : uint8_t { kReads, kWrites, kLeavesChild };

  explicit RealProgram(const std::string& file, Kind kind = Kind::kReads) {
    int in[2], out[2];
    EXPECT_EQ(::pipe2(in, O_CLOEXEC), 0);
    EXPECT_EQ(::pipe2(out, O_CLOEXEC), 0);
    const char* const script =
        "import mmap, os, sys\n"
        "file = os.open(sys.argv[1], os.O_RDWR if sys.argv[2] == '1' else os.O_RDONLY)\n"
        "memory = mmap.mmap(file, 0, access=2 if sys.argv[2] == '1' else 1)\n"
        "memory[0:65536]\n"
        "if sys.argv[2] == '2' and os.fork():\n"
        "    os._exit(0)\n"
        "os.write(1, b'x')\n"
        "os.read(0, 1)\n";
    pid_ = ::fork();
    if (pid_ == 0) {
      ::dup2(in[0], 0);
      ::dup2(out[1], 1);
      ::execl(command_path().c_str(), "outcore", "run", "-q", "--map", file.c_str(), "--min-size",
              "4k", "--budget", "8M", "--", "python3", "-c", script, file.c_str(),
              std::to_string(static_cast<int>(kind)).c_str(), nullptr);
      ::_exit(127);
    }
    ::close(in[0]);
    ::close(out[1]);
    end_ = in[1];
    char c = 0;
    is_ready_ = pid_ > 0 && ::read(out[0], &c, 1) == 1;
    ::close(out[0]);
  }
  ~RealProgram() {
    if (pid_ > 0) {
      ::kill(pid_, SIGKILL);
      ::waitpid(pid_, nullptr, 0);
    }
    ::close(end_);
  }
  RealProgram(const RealProgram&) = delete;
  RealProgram& operator=(const RealProgram&) = delete;

  bool is_ready() const { return is_ready_; }
  std::string pid() const { return std::to_string(pid_); }
  bool stop() const {
    int status = 0;
    return ::kill(pid_, SIGSTOP) == 0 && ::waitpid(pid_, &status, WUNTRACED) == pid_ &&
           WIFSTOPPED(status);
  }
  // It has left; its child goes on.
  bool wait() { return ::waitpid(std::exchange(pid_, -1), nullptr, 0) > 0; }

 private:
  pid_t pid_ = -1;
  int end_ = -1;
  bool is_ready_ = false;
};

class InTheWay : public Residency {
 protected:
  void SetUp() override {
    Residency::SetUp();
    const std::string folder = std::filesystem::path(command_path()).parent_path();
    if (!IsSkipped() && !std::filesystem::exists(folder + "/liboutcore_preload.so"))
      GTEST_SKIP() << "the preload library is not built here";
    ::unsetenv("OUTCORE_PRELOAD_LIBRARY");
  }
  // Ended if it does not answer at all; far more time than it may take.
  Outcome run_bounded(const std::string& arguments) const {
    return outcome_of("timeout 60 " + command_path() + " " + arguments);
  }
};

TEST_F(InTheWay, AStoppedProgramIsNamedAndTheOthersAnswer) {
  const std::string file = make_file();
  const RealProgram stopped(file), other(file);
  ASSERT_TRUE(stopped.is_ready() && other.is_ready());
  Outcome outcome = run_bounded("residency " + file);
  EXPECT_EQ(outcome.err, "");
  EXPECT_NE(outcome.out.find("(pid " + stopped.pid() + ")"), std::string::npos) << outcome.out;
  ASSERT_TRUE(stopped.stop());
  for (const char* verb : {"residency ", "warm "}) {
    outcome = run_bounded(verb + file);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_NE(outcome.out.find("(pid " + other.pid() + ")"), std::string::npos) << outcome.out;
    EXPECT_EQ(outcome.out.find("(pid " + stopped.pid() + ")"), std::string::npos) << outcome.out;
    EXPECT_EQ(outcome.error_lines(), 1U) << outcome.err;
    EXPECT_NE(outcome.err.find("(pid " + stopped.pid() + "): no answer in time"), std::string::npos)
        << outcome.err;
  }
  const auto all = Json::parse_or_null(run_bounded("evict --json " + file).out);
  ASSERT_TRUE(all.is_object());
  ASSERT_EQ(all["processes"].size(), 1U);
  EXPECT_EQ(std::to_string(all["processes"][0]["pid"].as<int>().value()), other.pid());
  ASSERT_EQ(all["skipped"].size(), 1U);
  EXPECT_EQ(std::to_string(all["skipped"][0]["pid"].as<int>().value()), stopped.pid());
}

// Whoever opens the file now waits for the program: the command must not.
TEST_F(InTheWay, AStoppedProgramThatWritesIsNotWaitedFor) {
  const std::string file = make_file();
  const RealProgram stopped(file, RealProgram::Kind::kWrites);
  ASSERT_TRUE(stopped.is_ready());
  ASSERT_EQ(run_bounded("residency " + file).status, 0);
  ASSERT_TRUE(stopped.stop());
  for (const char* verb : {"residency ", "evict --json "}) {
    const Outcome outcome = run_bounded(verb + file);
    EXPECT_EQ(outcome.status, 1) << outcome.err;
    EXPECT_EQ(outcome.error_lines(), 1U) << outcome.err;
    EXPECT_NE(outcome.err.find("no running program that answers has taken"), std::string::npos)
        << outcome.err;
    EXPECT_NE(outcome.err.find("(pid " + stopped.pid() + ")"), std::string::npos) << outcome.err;
  }
}

// Its child has the mapping as the kernel's, and must not have the parent's address either.
TEST_F(InTheWay, AParentThatHasEndedIsNotAskedThroughItsChild) {
  const std::string file = make_file();
  RealProgram parent(file, RealProgram::Kind::kLeavesChild);
  ASSERT_TRUE(parent.is_ready() && parent.wait());
  const Outcome outcome = run_bounded("residency " + file);
  EXPECT_EQ(outcome.status, 1);
  EXPECT_NE(outcome.err.find("no running program has taken"), std::string::npos) << outcome.err;
}

// Its questions wait where nobody takes them, until there is room for no more.
TEST_F(InTheWay, AStoppedProgramMayBeAskedForEver) {
  const std::string file = make_file();
  const RealProgram stopped(file);
  ASSERT_TRUE(stopped.is_ready() && stopped.stop());
  std::string all;
  for (int i = 0; i < 20; ++i) all += " & timeout 60 " + command_path() + " residency " + file;
  const std::string shown = path("shown");
  EXPECT_EQ(std::system(("{ " + all.substr(2) + " & wait; } 2>" + shown).c_str()), 0);
  std::ifstream lines(shown);
  int count = 0;
  for (std::string line; std::getline(lines, line); ++count)
    EXPECT_NE(line.find("no answer in time"), std::string::npos) << line;
  EXPECT_EQ(count, 20);
}

TEST_F(Residency, OfWhatIsNoFileIsAMistake) {
  make_file();
  for (const auto& [arguments, status] :
       {std::pair("residency missing", 1), std::pair("residency /", 2), std::pair("residency", 2),
        std::pair("residency --offset 1 file", 2), std::pair("warm --offset 2M FILE", 2),
        std::pair("evict --size 12q FILE", 2)}) {
    std::string words = arguments;
    if (const size_t at = words.find("FILE"); at != std::string::npos)
      words.replace(at, 4, path("file"));
    const Outcome outcome = run(words);
    EXPECT_EQ(outcome.status, status) << words << ": " << outcome.err;
    EXPECT_EQ(outcome.error_lines(), 1U) << outcome.err;
    EXPECT_EQ(outcome.out, "") << words;
  }
}

class ResidencyHelp : public CommandTest, public testing::WithParamInterface<const char*> {};

TEST_P(ResidencyHelp, ShowsAnExample) {
  const Outcome outcome = run(std::string(GetParam()) + " --help");
  EXPECT_EQ(outcome.status, 0);
  EXPECT_NE(outcome.out.find(std::string("outcore ") + GetParam()), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(Verbs, ResidencyHelp, testing::Values("residency", "warm", "evict"));

}  // namespace
}  // namespace outcore::cli
