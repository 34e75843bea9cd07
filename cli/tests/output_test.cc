// What the command prints, draws and refuses: no output is lost in silence, no data is a command.
#include <cstdlib>

#include "cli/tests/command_line.h"

namespace outcore::cli {
namespace {

// Set for the command while it lives.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) { ::setenv(name, value, 1); }
  ~Variable() { ::unsetenv(name_); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
};

class Output : public CommandTest {
 protected:
  // A line of a benchmark that `compare` and `report` take; `changes` as in "rate": 5.
  static std::string line(const std::string& changes = "") {
    const std::string usual =
        R"({"workload": "scan", "memory": "mmap", "device": "disk", "unit": "MiB/s", )"
        R"("data_bytes": 1024, "budget_bytes": 512, "threads": 1, "processes": 1, )"
        R"("page_bytes": 4096, "seconds": 1.0, "rate": 100.0)";
    return usual + (changes.empty() ? "" : ", " + changes) + "}\n";
  }
  std::string file_of(const std::string& name, const std::string& text) const {
    std::ofstream(path(name)) << text;
    return path(name);
  }
  // A whole line of the shell; its standard error is in `err`, its standard output is the test's.
  Outcome shell(const std::string& text) const {
    const std::string errors = path("shell-errors");
    const int status = std::system(("{ " + text + "; } 2>" + errors).c_str());
    Outcome outcome;
    if (WIFEXITED(status)) outcome.status = WEXITSTATUS(status);
    std::ifstream file(errors);
    outcome.err.assign(std::istreambuf_iterator<char>(file), {});
    return outcome;
  }
  bool is_empty(const std::string& folder) const { return std::filesystem::is_empty(path(folder)); }
};

// -- What cannot be written --

class Unwritten : public Output, public testing::WithParamInterface<const char*> {};

TEST_P(Unwritten, ToAFullDeviceIsAFailure) {
  const Outcome outcome = run(std::string(GetParam()) + " >/dev/full");
  EXPECT_EQ(outcome.status, 1);
  EXPECT_EQ(outcome.error_lines(), 1U) << outcome.err;
  EXPECT_NE(outcome.err.find("standard output"), std::string::npos) << outcome.err;
}

TEST_P(Unwritten, ToAClosedOutputIsAFailure) {
  const Outcome outcome = run(std::string(GetParam()) + " >&-");
  EXPECT_EQ(outcome.status, 1);
  EXPECT_EQ(outcome.error_lines(), 1U) << outcome.err;
  EXPECT_NE(outcome.err.find("standard output"), std::string::npos) << outcome.err;
}

TEST_P(Unwritten, OnAFullDeviceSaysWhy) {
  const Outcome outcome = run(std::string(GetParam()) + " >/dev/full");
  EXPECT_EQ(outcome.status, 1);
  EXPECT_EQ(outcome.error_lines(), 1U) << outcome.err;
  EXPECT_NE(outcome.err.find("write standard output: No space left on device"), std::string::npos)
      << outcome.err;
}

INSTANTIATE_TEST_SUITE_P(Commands, Unwritten,
                         testing::Values("--version", "--help", "info", "info --json",
                                         "info --options", "bench --help"));

TEST_F(Output, OfABenchmarkThatIsLostIsAFailureAndLeavesNoData) {
  std::filesystem::create_directory(path("work"));
  const Outcome outcome =
      run("bench scan --size 1M --memory dram --json --dir " + path("work") + " >/dev/full");
  EXPECT_EQ(outcome.status, 1);
  EXPECT_NE(outcome.err.find("standard output"), std::string::npos) << outcome.err;
  EXPECT_TRUE(is_empty("work"));
}

TEST_F(Output, NeverGoesIntoTheDataOfABenchmark) {
  const Outcome outcome = run("bench generate words " + path("words") + " --size 8k >&-");
  EXPECT_EQ(outcome.status, 1);
  EXPECT_EQ(std::filesystem::file_size(path("words")), 8192U);
  std::ifstream file(path("words"), std::ios::binary);
  const std::string bytes(std::istreambuf_iterator<char>(file), {});
  EXPECT_EQ(bytes.find("words"), std::string::npos);
}

TEST_F(Output, AReaderThatHasGoneIsAFailureOfAtMostOneLine) {
  // The reader closes the pipe before the command starts.
  const Outcome outcome = shell("mkfifo " + path("gate") + "; { cat " + path("gate") +
                                " >/dev/null; " + command_path() + " info; echo $? >" +
                                path("status") + "; } | { exec <&-; echo >" + path("gate") + "; }");
  int status = -1;
  std::ifstream(path("status")) >> status;
  EXPECT_EQ(status, 1);
  EXPECT_LE(outcome.error_lines(), 1U) << outcome.err;
}

// -- bench report --

TEST_F(Output, OfAReportTakesNoCommandFromItsData) {
  const std::string touch = "touch " + path("made");
  const std::string evil = "disk `" + touch + R"(`\n!)" + touch + R"(\nsystem(\")" + touch +
                           R"(\")\n' \"`)" + touch + R"(`)";
  const std::string row = R"(\nEOD\n!)" + touch + R"(\n\"`)" + touch + R"(`\\)";
  const std::string runs =
      file_of("runs.json", line("\"device\": \"" + evil + "\", \"unit\": \"" + evil +
                                "\", \"memory\": \"" + evil + "\", \"variant\": \"" + row + "\""));
  const Outcome outcome = run("bench report " + runs + " --out " + path("figures"));
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_FALSE(std::filesystem::exists(path("made")));
  EXPECT_TRUE(std::filesystem::exists(path("figures/scan.png")));
}

TEST_F(Output, OfAReportThatCannotBeWrittenIsOneLineAndNoPicture) {
  const std::string runs = file_of("runs.json", line());
  for (const char* place : {"/sys", "/dev/full"}) {
    const Outcome outcome = run("bench report " + runs + " --out " + place);
    EXPECT_NE(outcome.status, 0) << place;
    EXPECT_EQ(outcome.error_lines(), 1U) << outcome.err;
    EXPECT_NE(outcome.err.find(place), std::string::npos) << outcome.err;
    EXPECT_TRUE(outcome.out.empty()) << place;
  }
}

TEST_F(Output, OfAReportOnAFullFileSystemIsAFailureAndNoFile) {
  if (std::system("unshare -rm true 2>/dev/null") != 0)
    GTEST_SKIP() << "needs user and mount namespaces";
  const std::string runs = file_of("runs.json", line());
  std::filesystem::create_directory(path("full"));
  file_of("script", "mount -t tmpfs -o size=4k none " + path("full") + " || exit 77\n" +
                        command_path() + " bench report " + runs + " --out " + path("full") +
                        " >/dev/null\nstatus=$?\nls -A " + path("full") + " >" + path("left") +
                        "\nexit $status\n");
  const Outcome outcome = shell("unshare -rm sh " + path("script"));
  if (outcome.status == 77) GTEST_SKIP() << "no tmpfs can be mounted: " << outcome.err;
  EXPECT_EQ(outcome.status, 1);
  EXPECT_EQ(outcome.error_lines(), 1U) << outcome.err;
  EXPECT_EQ(std::filesystem::file_size(path("left")), 0U);
}

TEST_F(Output, OfAReportThatIsCutShortIsAFailureAndNoFile) {
  const std::string runs = file_of("runs.json", line());
  std::filesystem::create_directory(path("figures"));
  const Outcome outcome = shell("ulimit -f 4; " + command_path() + " bench report " + runs +
                                " --out " + path("figures") + " >/dev/null");
  EXPECT_EQ(outcome.status, 1);
  EXPECT_EQ(outcome.error_lines(), 1U) << outcome.err;
  EXPECT_TRUE(is_empty("figures"));
}

TEST_F(Output, OfAReportOfStoppedRunsSaysWhyThereIsNoFigure) {
  const std::string runs = file_of("runs.json", line(R"("stopped": true, "rate": 0)"));
  const Outcome outcome = run("bench report " + runs + " --out " + path("figures"));
  EXPECT_EQ(outcome.status, 1);
  EXPECT_EQ(outcome.error_lines(), 1U) << outcome.err;
  EXPECT_NE(outcome.err.find("stopped"), std::string::npos) << outcome.err;
  EXPECT_TRUE(is_empty("figures"));
}

// -- Lines that are none --

struct WrongValue {
  const char* key;
  const char* value;
};

// Makes parameters readable in a failure.
void PrintTo(const WrongValue& wrong, std::ostream* out) {
  *out << wrong.key << ": " << wrong.value;
}

class WrongLine : public Output, public testing::WithParamInterface<WrongValue> {};

TEST_P(WrongLine, IsToldByFileLineAndKey) {
  const auto& [key, value] = GetParam();
  const std::string changes = std::string("\"") + key + "\": " + value;
  const std::string wrong = file_of("wrong.json", line() + line(changes));
  const std::string right = file_of("right.json", line());
  for (const std::string& command :
       {"report " + wrong + " --out " + path("figures"), "compare " + right + " " + wrong}) {
    const Outcome outcome = run("bench " + command);
    EXPECT_EQ(outcome.status, 2) << command;
    EXPECT_EQ(outcome.error_lines(), 1U) << outcome.err;
    for (const std::string& part : {wrong + ", line 2", "'" + std::string(key) + "'",
                                    std::string("must be"), std::string("--json")})
      EXPECT_NE(outcome.err.find(part), std::string::npos) << outcome.err;
    EXPECT_TRUE(outcome.out.empty()) << outcome.out;
  }
  EXPECT_FALSE(std::filesystem::exists(path("figures")));
}

INSTANTIATE_TEST_SUITE_P(Values, WrongLine,
                         testing::Values(WrongValue{"rate", "0"}, WrongValue{"rate", "-5"},
                                         WrongValue{"rate", "\"fast\""}, WrongValue{"rate", "null"},
                                         WrongValue{"rate", "1e300"}, WrongValue{"seconds", "0"},
                                         WrongValue{"seconds", "-1"}, WrongValue{"threads", "-1"},
                                         WrongValue{"threads", "0"}, WrongValue{"threads", "1.5"},
                                         WrongValue{"threads", "5000000000"},
                                         WrongValue{"processes", "[1]"},
                                         WrongValue{"data_bytes", "-1"},
                                         WrongValue{"workload", "7"}, WrongValue{"device", "{}"},
                                         WrongValue{"memory", "null"},
                                         WrongValue{"stopped", "\"no\""}));

TEST_F(Output, OfCompareRefusesANumberBeyondAll) {
  const std::string wrong = file_of("wrong.json", line("\"rate\": 1e999"));
  const Outcome outcome = run("bench compare " + wrong + " " + wrong);
  EXPECT_EQ(outcome.status, 2);
  EXPECT_EQ(outcome.error_lines(), 1U) << outcome.err;
  EXPECT_NE(outcome.err.find(wrong + ", line 1"), std::string::npos) << outcome.err;
}

// -- Words that nobody takes --

struct Stray {
  const char* arguments;
  const char* word;
};

void PrintTo(const Stray& stray, std::ostream* out) { *out << stray.arguments; }

class StrayWord : public Output, public testing::WithParamInterface<Stray> {};

TEST_P(StrayWord, IsNamed) {
  const auto& [arguments, word] = GetParam();
  const Outcome outcome = run(arguments);
  EXPECT_EQ(outcome.status, 2);
  EXPECT_EQ(outcome.error_lines(), 1U) << outcome.err;
  EXPECT_NE(outcome.err.find("'" + std::string(word) + "'"), std::string::npos) << outcome.err;
  EXPECT_TRUE(outcome.out.empty()) << outcome.out;
}

INSTANTIATE_TEST_SUITE_P(
    Words, StrayWord,
    testing::Values(Stray{"--nonsense", "--nonsense"}, Stray{"-v", "-v"},
                    Stray{"--nonsense info", "--nonsense"}, Stray{"bench --json", "--json"},
                    Stray{"bench --nonsense sort", "--nonsense"},
                    Stray{"info --nonsense=3", "--nonsense"},
                    Stray{"bench compare a --nonsense", "--nonsense"}, Stray{"info more", "more"},
                    Stray{"nonsense info", "nonsense"}, Stray{"--version x", "x"},
                    Stray{"--version info", "info"}));

TEST_F(Output, OfAnOptionGivenTwiceSaysSo) {
  const Outcome outcome = run("bench sort --budget 1G --budget 2G");
  EXPECT_EQ(outcome.status, 2);
  EXPECT_NE(outcome.err.find("--budget is given twice"), std::string::npos) << outcome.err;
}

// -- Sizes --

TEST_F(Output, OfASizeIsTakenAsItIsPrinted) {
  unsigned number = 0;
  for (const char* size : {"8192", "8k", "8K", "8kB", "8 KiB", "8192 B", "0.0078125M"}) {
    const std::string words = path("words" + std::to_string(number++));
    const Outcome outcome = run("bench generate words " + words + " --size '" + size + "'");
    ASSERT_EQ(outcome.status, 0) << size << ": " << outcome.err;
    EXPECT_EQ(std::filesystem::file_size(words), 8192U) << size;
  }
}

TEST_F(Output, OfWhatIsNoSizeIsARefusal) {
  for (const char* size : {"0x100000", "1e6", "8q", "8kk", "8kiBB", "8i", ".5M", "8.k", "8.5",
                           "+8k", " 8k", "8  k", "1,5M", "inf"}) {
    const Outcome outcome = run("bench generate words " + path("words") + " --size='" + size + "'");
    EXPECT_EQ(outcome.status, 2) << size;
    EXPECT_NE(outcome.err.find("is not a size"), std::string::npos) << size << ": " << outcome.err;
  }
  for (const char* size : {"99999999999999999999", "9000P", "9999999999.5P", "99999999999T"}) {
    const Outcome outcome = run("bench generate words " + path("words") + " --size='" + size + "'");
    EXPECT_EQ(outcome.status, 2) << size;
    EXPECT_NE(outcome.err.find("more bytes than there are addresses"), std::string::npos)
        << size << ": " << outcome.err;
  }
  EXPECT_FALSE(std::filesystem::exists(path("words")));
}

// As of a variable that is not set: what it would mean is not what was meant.
TEST_F(Output, OfAnEmptyValueIsARefusal) {
  for (const char* words :
       {"bench scan --budget ''", "bench random-io --store ''", "report run.json -o ''",
        "arrays export run.oca a --to z.npy --slice ''", "run --json '' true",
        "run --learn '' true", "export --metrics ''", "store ls ''"}) {
    const Outcome outcome = run(words);
    EXPECT_EQ(outcome.status, 2) << words;
    EXPECT_EQ(outcome.error_lines(), 1u) << words << ": " << outcome.err;
    EXPECT_NE(outcome.err.find("is empty"), std::string::npos) << words << ": " << outcome.err;
  }
}

// -- info --

TEST_F(Output, OfInfoWithAWrongEnvironmentIsOneLine) {
  const Variable budget("OUTCORE_BUDGET", "nonsense");
  for (const char* arguments : {"info --options", "info --options --json"}) {
    const Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.status, 2) << arguments;
    EXPECT_EQ(outcome.error_lines(), 1U) << outcome.err;
    EXPECT_TRUE(outcome.out.empty()) << outcome.out;
  }
}

TEST_F(Output, OfInfoWithAWrongKernelIsOneLine) {
  const Variable kernel("OUTCORE_KERNEL", "abc");
  const Outcome outcome = run("info");
  EXPECT_EQ(outcome.status, 2);
  EXPECT_EQ(outcome.error_lines(), 1U) << outcome.err;
  EXPECT_NE(outcome.err.find("abc"), std::string::npos) << outcome.err;
  EXPECT_TRUE(outcome.out.empty()) << outcome.out;
}

}  // namespace
}  // namespace outcore::cli
