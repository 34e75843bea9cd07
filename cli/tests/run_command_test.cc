// The next command that the table of the end names: the command of the run as it was typed, with
// one option changed. Real programs under the real library, where it is built.
#include <unistd.h>

#include "cli/tests/command_line.h"

namespace outcore::cli {
namespace {

// Words that a shell would read as something else.
const std::vector<std::string> kWords = {"plain",
                                         "two words",
                                         "",
                                         "it's",
                                         "$HOME",
                                         "`x`",
                                         "a\nb",
                                         "\t'!x",
                                         "\xff\xfe",
                                         "Größe",
                                         "\xc2\x9b"
                                         "m",
                                         "!x",
                                         "*",
                                         "~",
                                         "a=b",
                                         "--x=y",
                                         "{a,b}",
                                         "\\",
                                         "\\n'\n",
                                         "-- …",
                                         "#",
                                         "\"",
                                         "[a]?",
                                         "x;y&z|",
                                         "<(z)"};

std::string quoted(const std::string& word) {
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

class RunCommand : public CommandTest {
 protected:
  Outcome bash(const std::string& line) const { return run_lines("bash", line); }
  // What `outcore run OPTIONS` hands on to a program that is called with these words.
  std::string handed_on(const std::string& options, const std::vector<std::string>& words) const {
    std::ofstream(path("show")) << "#!/bin/sh\nprintf %s \"$OUTCORE_RUN_COMMAND\"\n";
    std::filesystem::permissions(path("show"), std::filesystem::perms::owner_all);
    std::string line = "OUTCORE_PRELOAD_LIBRARY=" + a_library() + " " + command_path() + " run " +
                       options + " ./show";
    for (const std::string& word : words) line += " " + quoted(word);
    const Outcome outcome = bash(line);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    return outcome.out;
  }
};

TEST_F(RunCommand, IsHandedOnInLinesOfWords) {
  EXPECT_EQ(handed_on("--map='*.k2d' --map x -q --budget 64M --json=j.json --", {"a b", "c"}),
            command_path() +
                " run\n--map '*.k2d'\n--map x\n-q\n--budget 64M\n--json j.json\n-- ./show 'a b' c");
  EXPECT_EQ(handed_on("", {}), command_path() + " run\n-- ./show");
}

TEST_F(RunCommand, IsReadByBashAsItWasTyped) {
  std::string command = handed_on("--not-map \"it's\" --", kWords);
  std::replace(command.begin(), command.end(), '\n', ' ');
  for (const char c : command) EXPECT_GE(static_cast<unsigned char>(c), 0x20) << command;
  const Outcome outcome = bash("printf '%s\\0' " + command);
  std::string expected;
  for (const char* word : {command_path().c_str(), "run", "--not-map", "it's", "--", "./show"})
    expected += word + std::string(1, '\0');
  for (const std::string& word : kWords) expected += word + std::string(1, '\0');
  EXPECT_EQ(outcome.out, expected) << command;
}

TEST_F(RunCommand, LeavesOutWhatIsTooLong) {
  const std::string long_word(5000, 'x');
  EXPECT_EQ(handed_on("--budget 64M", {"a", long_word}),
            command_path() + " run\n--budget 64M\n-- ./show …");
  EXPECT_EQ(handed_on("--map " + long_word, {"a"}), command_path() + " run\n…");
}

// -- The line itself --

class NextCommand : public RunCommand {
 protected:
  void SetUp() override {
    RunCommand::SetUp();
    const std::string folder = std::filesystem::path(command_path()).parent_path();
    if (!std::filesystem::exists(folder + "/liboutcore_preload.so"))
      GTEST_SKIP() << "the preload library is not built here";
    ::unsetenv("OUTCORE_PRELOAD_LIBRARY");
    // FILE TIMES WORD…: prints the words, and reads all of the file so often, in order.
    std::ofstream(path("scan.py")) << R"(import mmap, os, sys
print(sys.argv[3:])
memory = mmap.mmap(os.open(sys.argv[1], os.O_RDONLY), 0, prot=mmap.PROT_READ)
for _ in range(int(sys.argv[2])):
    for at in range(0, len(memory), 1 << 20):
        memory[at:at + (1 << 20)]
)";
    // BYTES: as much memory, of which each page is written once.
    std::ofstream(path("write.py")) << R"(import sys
memory = bytearray(int(sys.argv[1]))
for at in range(0, len(memory), 4096):
    memory[at] = 1
)";
  }
  void make_file(size_t mib) const {
    std::ofstream file(path("data.bin"));
    const std::string bytes(1 << 20, 'x');
    for (size_t i = 0; i < mib; ++i) file << bytes;
  }
  Outcome run_under(const std::string& words) const {
    return bash(command_path() + " run " + words);
  }
  // The command on the line behind "next, as …"; empty: there is none.
  static std::string next_of(const Outcome& outcome) {
    const size_t reason = outcome.err.find("\n  next, as ");
    if (reason == std::string::npos) return {};
    const size_t begin = outcome.err.find('\n', reason + 1) + 1;
    return outcome.err.substr(begin, outcome.err.find('\n', begin) - begin);
  }
};

TEST_F(NextCommand, IsTheWholeCommandWithTwiceTheBudget) {
  make_file(32);
  const std::string words =
      "'sh' -c 'python3 \"$@\"; true' sh scan.py data.bin 4 'it'\\''s' '$HOME'";
  const std::string options = "--min-size 4k --budget=8M --map '*.bin' --readahead 64k";
  const Outcome first = run_under(options + " " + words);
  EXPECT_EQ(first.out, "[\"it's\", '$HOME']\n") << first.err;
  const std::string next = next_of(first);
  EXPECT_EQ(next, "    " + command_path() +
                      " run --min-size 4k --budget 16M --map '*.bin' --readahead 64k -- sh -c "
                      "'python3 \"$@\"; true' sh scan.py data.bin 4 'it'\\''s' '$HOME'")
      << first.err;
  const Outcome second = bash(next);
  EXPECT_EQ(second.out, first.out) << second.err;
  EXPECT_NE(second.err.find("budget 16 MiB"), std::string::npos) << second.err;
  const Outcome third = bash(next_of(second));
  EXPECT_NE(third.err.find("budget 32 MiB"), std::string::npos) << third.err;
  EXPECT_EQ(next_of(third).find("--budget 64M"), std::string::npos) << third.err;
}

TEST_F(NextCommand, IsOfLargerPagesForWhatIsReadInOrderByMessages) {
  make_file(64);
  const std::string words =
      "--min-size 4k --budget 64M --delivery messages python3 scan.py data.bin 1";
  const Outcome outcome = run_under(words);
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  if (outcome.err.find("in use, messages\n") == std::string::npos)
    GTEST_SKIP() << "no messages here: " << outcome.err;
  EXPECT_NE(next_of(outcome).find(" --delivery messages --page 64k -- python3"), std::string::npos)
      << outcome.err;
  EXPECT_EQ(next_of(bash(next_of(outcome))), "");
}

TEST_F(NextCommand, IsNotOfLargerPagesWhereTheyWouldNotHelp) {
  make_file(64);
  for (const char* words : {
           "--min-size 4k --budget 64M --delivery in-thread python3 scan.py data.bin 1",
           "--min-size 4k --budget 63M python3 scan.py data.bin 1",
           "--alloc 1M --budget 128M python3 write.py 67108864",
       }) {
    const Outcome outcome = run_under(words);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_NE(outcome.err.find("): budget "), std::string::npos) << outcome.err;
    EXPECT_EQ(next_of(outcome).find("--page"), std::string::npos) << outcome.err;
  }
}

TEST_F(NextCommand, IsNoneOfAFewPagesNorOfMessagesThatWereAskedFor) {
  make_file(8);
  EXPECT_EQ(next_of(run_under("--min-size 4k --budget 1M python3 scan.py data.bin 1")), "");
  const Outcome asked =
      run_under("--alloc 1M --budget 128M --delivery messages python3 write.py 67108864");
  EXPECT_EQ(next_of(asked), "") << asked.err;
}

}  // namespace
}  // namespace outcore::cli
