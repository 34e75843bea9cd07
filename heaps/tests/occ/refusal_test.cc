// What occ refuses, what a program with dlm data refuses before main, and in which words.
#include <filesystem>
#include <fstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "heaps/tests/occ/occ_test.h"

namespace outcore::occ {
namespace {

using testing::AnyOf;
using testing::HasSubstr;
using testing::StartsWith;

class OccRefusal : public OccCompilerTest {
 protected:
  // The compiler's status, and a line of occ that says what it means.
  void expect_refused(const std::string& source, const std::string& words,
                      const std::string& suffix = "c") {
    std::ofstream(path("wrong." + suffix)) << source << '\n';
    const Outcome outcome = compile("-O1 wrong." + suffix + " -o made");
    EXPECT_EQ(outcome.status, 1) << source;
    EXPECT_THAT(outcome.err, HasSubstr("\nocc: " + words)) << source;
    EXPECT_FALSE(std::filesystem::exists(path("made"))) << source;
  }
};
INSTANTIATE_TEST_SUITE_P(With, OccRefusal, testing::Values("gcc", "clang"),
                         [](const auto& it) { return std::string(it.param); });

TEST_P(OccRefusal, OfInitialValues) {
  const std::string words = "dlm data begins as zeros";
  expect_refused("dlm double a[4] = {1, 2, 3};\nint main(void) { return a[1] != 2; }", words);
  expect_refused("int main(void) {\n  static dlm int a = 5;\n  return a++;\n}", words);
  expect_refused("struct S { int k = 3; };\ndlm S all[5];\nint main() { return all[1].k; }", words,
                 "cc");
}

TEST_P(OccRefusal, OfWhatIsNotStatic) {
  const std::string words = "dlm is for variables outside of functions";
  expect_refused("int main(void) {\n  dlm double a[4];\n  a[1] = 2;\n  return a[1] != 2;\n}",
                 words);
  expect_refused("int f(dlm int a) { return a; }\nint main(void) { return f(0); }", words);
  expect_refused("dlm int f(void) { return 5; }\nint main(void) { return f(); }", "dlm ");
  expect_refused("dlm int f(void) { return 5; }\ndlm int a[4];\nint main(void) { return a[f()]; }",
                 "dlm data cannot be const, a function");
  expect_refused("struct s { dlm int a; };\nint main(void) { return 0; }", words);
}

TEST_P(OccRefusal, OfConstantData) {
  const std::string words = "dlm data cannot be const";
  expect_refused("dlm const int a[4];\nint main(void) { return a[1]; }", words);
  expect_refused("extern const int a[4];\ndlm const int a[4] = {0};\nint main() { return a[1]; }",
                 words, "cc");
}

TEST_P(OccRefusal, OfThreadLocalData) {
  std::ofstream(path("wrong.c")) << "_Thread_local dlm int a[9];\nint main(int c, char** v) {\n"
                                    "  a[c] = c;\n  return a[c] != c;\n}\n";
  const Outcome outcome = compile("wrong.c -o made");
  EXPECT_NE(outcome.status, 0);
  EXPECT_THAT(outcome.err, HasSubstr("thread_local"));
  EXPECT_FALSE(std::filesystem::exists(path("made")));
}

TEST_P(OccRefusal, OfMoreThanThereAreAddresses) {
  std::ofstream(path("wide.c")) << "dlm char a[1l << 45];\nint main(void) { return a[5]; }\n";
  const Outcome outcome = compile("wide.c -o made");
  EXPECT_EQ(outcome.status, 1);
  EXPECT_THAT(outcome.err, HasSubstr("occ: dlm arrays of 32768 GiB: at most 25600 GiB"));
  EXPECT_FALSE(std::filesystem::exists(path("made")));
}

TEST_F(OccTest, RefusesWhatItCannotDo) {
  std::ofstream(path("a.c")) << "dlm int a[9];\nint main(void) { return a[1]; }\n";
  for (const char* option : {"-shared", "-static-pie", "-m32", "-mcmodel=large", "-fuse-ld=gold",
                             "-std=c89", "-fsanitize=memory"}) {
    const Outcome outcome = occ(std::string(option) + " a.c -o made");
    EXPECT_EQ(outcome.status, 1) << option;
    EXPECT_THAT(outcome.err, StartsWith("occ: " + std::string(option) + ": "));
    EXPECT_EQ(outcome.error_lines(), 1u) << outcome.err;
  }
  std::ofstream(path("file")) << "a.c \"-shared\" -o made\n";
  EXPECT_EQ(occ("@file").status, 1);
  EXPECT_FALSE(std::filesystem::exists(path("made")));
}

TEST_F(OccTest, RefusesAnOutputThatItDoesNotSee) {
  std::ofstream(path("a.c")) << "dlm int a[9];\nint main(void) { return a[1]; }\n";
  for (const char* option : {"-Wl,-o,made", "-Wl,--gc-sections,--output=made", "-Xlinker -o"}) {
    const Outcome outcome = occ(std::string(option) + " a.c");
    EXPECT_EQ(outcome.status, 1) << option;
    EXPECT_THAT(outcome.err, HasSubstr("name the program with -o")) << option;
    EXPECT_EQ(outcome.error_lines(), 1u) << outcome.err;
  }
  for (const char* option : {"--output made", "--output=made", "-omade"}) {
    std::filesystem::remove(path("made"));
    EXPECT_EQ(occ(std::string(option) + " a.c").status, 0) << option;
    EXPECT_EQ(run_made("made", "OUTCORE_BUDGET=4M").status, 0) << option;
  }
}

TEST_P(OccRefusal, LeavesFilesOfOthersAlone) {
  std::ofstream(path("a.c")) << "dlm int a[9];\nint main(void) { return a[1]; }\n";
  std::ofstream(path("a.out")) << "precious";
  std::ofstream(path("kept")) << "precious";
  EXPECT_EQ(compile("-### a.c -o kept").status, 0);
  EXPECT_EQ(compile("--output made a.c").status, 0);
  EXPECT_EQ(compile("-print-search-dirs a.c").status, 0);
  EXPECT_NE(compile("-nosuchoption a.c -o kept").status, 0);
  for (const char* name : {"a.out", "kept"}) {
    std::ifstream file(path(name));
    EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}), "precious") << name;
  }
  for (const char* option : {"--preprocess", "--compile", "--assemble"}) {
    EXPECT_EQ(compile(std::string(option) + " a.c -o part").status, 0) << option;
    EXPECT_TRUE(std::filesystem::remove(path("part"))) << option;
  }
  if (std::string(GetParam()) == "clang") {
    EXPECT_EQ(compile("-emit-ast a.c -o part").status, 0);
    EXPECT_TRUE(std::filesystem::exists(path("part")));
  }
}

TEST_P(OccRefusal, OfFunctionsWithNamesOfSystemCalls) {
  std::ofstream(path("main.c")) << "double read(double x, double y);\ndlm double a[9];\n"
                                   "int main(void) { return read(a[1], 2) != 2; }\n";
  std::ofstream(path("part.c")) << "double read(double x, double y) { return x * 10 + y; }\n";
  ASSERT_EQ(compile("-c -O1 part.c").status, 0);
  for (const char* flags : {"", "-s", "-static", "-fvisibility=hidden", "-fsanitize=address"}) {
    const Outcome outcome = compile(std::string(flags) + " main.c part.o -o made");
    EXPECT_EQ(outcome.status, 1) << flags;
    EXPECT_THAT(outcome.err, StartsWith("occ: the program defines read (in part.o), ")) << flags;
    EXPECT_EQ(outcome.error_lines(), 1u) << outcome.err;
    EXPECT_FALSE(std::filesystem::exists(path("made")));
  }
  const Outcome outcome = compile("-fvisibility=hidden main.c part.c -o made");
  EXPECT_EQ(outcome.status, 1);
  EXPECT_THAT(outcome.err, HasSubstr(" of made), "));
  std::ofstream(path("static.c")) << "static double read(double x, double y) { return x + y; }\n"
                                     "dlm double a[9];\n"
                                     "int main(void) { return read(a[1], 2) != 2; }\n";
  for (const char* flags : {"-O0", "-O2", "-static", "-O2 -flto"}) {
    EXPECT_EQ(compile(std::string(flags) + " static.c -o made").status, 0) << flags;
    EXPECT_EQ(run_made("made", "OUTCORE_BUDGET=4M").status, 0) << flags;
  }
}

TEST_F(OccTest, DoesNotWaitForWhatTheCompilerLeavesRunning) {
  std::ofstream(path("cc.sh")) << "#!/bin/sh\nsleep 30 >/dev/null &\nexec cc \"$@\"\n";
  std::filesystem::permissions(path("cc.sh"), std::filesystem::perms::all);
  std::ofstream(path("a.c")) << "dlm int a[9];\nint main(void) { return a[1]; }\n";
  const std::string line = command() + " --cc=./cc.sh -c a.c";
  EXPECT_EQ(outcome_of("cd " + dir() + " && timeout 20 " + line).status, 0);
}

TEST_F(OccTest, EndsAsItsCompilerDoes) {
  EXPECT_EQ(occ("").status, 2);
  EXPECT_EQ(occ("no_such_file.c").status, 1);
  const Outcome missing = occ("--cc=/no/such/compiler a.c");
  EXPECT_EQ(missing.status, 127);
  EXPECT_THAT(missing.err, StartsWith("occ: start /no/such/compiler: No such file or directory"));
  EXPECT_EQ(missing.error_lines(), 1u);
}

// -- Programs that cannot have their data end before main, with one line --

class DlmStart : public OccTest {
 protected:
  void SetUp() override {
    OccTest::SetUp();
    ASSERT_EQ(occ("-O1 " + program("fill.c") + " -o made").status, 0);
  }
  void expect_line(const Outcome& outcome, const std::string& words) {
    EXPECT_EQ(outcome.status, 1);
    EXPECT_EQ(outcome.out, "");
    EXPECT_THAT(outcome.err, StartsWith("outcore: dlm arrays: "));
    EXPECT_THAT(outcome.err, HasSubstr(words));
    EXPECT_EQ(outcome.error_lines(), 1u) << outcome.err;
  }
};

TEST_F(DlmStart, SaysWhichSettingIsWrong) {
  expect_line(run_made("made", "OUTCORE_BUDGET=4X"), "OUTCORE_BUDGET");
  expect_line(run_made("made", "OUTCORE_BUDGET=4k"), "the least that would do");
  expect_line(run_made("made", "OUTCORE_STORE=scrach:"), "did you mean 'scratch'?");
  expect_line(run_made("made", "OUTCORE_STORE='scratch:?reserve=maybe'"), "write yes or no");
  expect_line(run_made("made", "OUTCORE_SCRATCH_DIR=/no/such/folder"), "/no/such/folder");
}

TEST_F(DlmStart, SaysWhereThereIsNoRoom) {
  std::ofstream(path("wide.c")) << "dlm char a[20l << 40];\nint main(void) { return a[5]; }\n";
  ASSERT_EQ(occ("wide.c -o made").status, 0);
  // Reserved, 20 TiB are refused; as they are written, a file cannot be that long everywhere.
  expect_line(run_made("made", "OUTCORE_STORE=scratch: OUTCORE_BUDGET=8M"), "scratch");
}

TEST_F(DlmStart, SaysWhatIsAtItsAddresses) {
  std::ofstream(path("taker.c"))
      << "#include <stddef.h>\n#include <sys/mman.h>\n"
         "__attribute__((constructor)) static void take(void) {\n"
         "  mmap((void*)0x110000100000, 4096, PROT_NONE,\n"
         "       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);\n}\n";
  ASSERT_EQ(
      outcome_of("cd " + dir() + " && cc -D_GNU_SOURCE -shared -fPIC taker.c -o taker.so").status,
      0);
  expect_line(run_made("made", "OUTCORE_BUDGET=8M LD_PRELOAD=" + path("taker.so")),
              "addresses at 0x110000000000: File exists");
}

TEST_F(DlmStart, DoesNotTakeAFileThatHoldsSomething) {
  std::ofstream(path("held")) << "precious";
  expect_line(run_made("made", "OUTCORE_BUDGET=8M OUTCORE_STORE=" + path("held")),
              "dlm data begins as zeros");
  EXPECT_EQ(std::filesystem::file_size(path("held")), 8u);
  const Outcome outcome = run_made("made 30", "OUTCORE_BUDGET=8M OUTCORE_STORE=" + path("new"));
  EXPECT_EQ(outcome.out, "right\n") << outcome.err;
  std::ifstream file(path("new"), std::ios::binary);
  file.seekg(29 << 20 | 4096 * 7);
  EXPECT_EQ(file.get(), ((29 << 8) + 7) & 255) << "what was written is in the file at the end";
}

// In a folder of 16 MiB.
TEST_F(DlmStart, AFullDiskEndsTheProgramWithItsReason) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, to mount a small filesystem";
  const std::string lines = "mount -t tmpfs -o size=16M tmpfs " + path("small") +
                            " && OUTCORE_SCRATCH_DIR=" + path("small") +
                            " OUTCORE_BUDGET=8M OUTCORE_WAIT_MAX=100ms " + path("made") + " 200";
  std::filesystem::create_directory(path("small"));
  std::ofstream(path("lines")) << lines << '\n';
  if (outcome_of("unshare --mount true").status != 0)
    GTEST_SKIP() << "needs a mount namespace of its own";
  const Outcome outcome = outcome_of("unshare --mount sh " + path("lines"));
  EXPECT_NE(outcome.status, 0);
  EXPECT_EQ(outcome.out, "");
  // Of the page that cannot leave, or of the one that therefore cannot come, whichever is first.
  EXPECT_THAT(outcome.err,
              AnyOf(HasSubstr("cannot be stored: No space left on device; make room"),
                    HasSubstr("pages cannot be written back: No space left on device\n")));
}

TEST_F(DlmStart, NeedsNoPrivilege) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, to become somebody else";
  if (!is_there("setpriv")) GTEST_SKIP() << "needs setpriv";
  ASSERT_EQ(occ("-O1 " + program("transfers.c") + " -o other").status, 0);
  std::filesystem::permissions(dir(), std::filesystem::perms::all);
  const Outcome outcome = outcome_of("cd " + dir() + " && TMPDIR=" + dir() +
                                     " OUTCORE_BUDGET=16M setpriv "
                                     "--reuid=65534 --regid=65534 --clear-groups ./other file");
  EXPECT_EQ(outcome.out, "right\n") << outcome.err;
}

// -- How it is used --

TEST_F(OccTest, ShowsCommandsAndHelpAndVersion) {
  std::ofstream(path("a b.c")) << "int main(void) { return 0; }\n";
  const Outcome shown = occ("--show -O2 'a b.c' -o made");
  EXPECT_EQ(shown.status, 0);
  EXPECT_THAT(shown.out, HasSubstr(" -O2 'a b.c' -o made "));
  EXPECT_THAT(shown.out, HasSubstr("-mcmodel=medium"));
  EXPECT_FALSE(std::filesystem::exists(path("made")));
  EXPECT_EQ(outcome_of("cd " + dir() + " && " + shown.out).status, 0) << "and it links";
  EXPECT_TRUE(std::filesystem::exists(path("made")));
  EXPECT_THAT(occ("--help").out, HasSubstr("OUTCORE_STORE"));
  const Outcome full = occ("--help >/dev/full");
  EXPECT_EQ(full.status, 1);
  EXPECT_THAT(full.err, StartsWith("occ: write standard output: No space left on device"));
  const Outcome version = occ("--cc=gcc --version");
  EXPECT_THAT(version.out, StartsWith("occ (Outcore) "));
  EXPECT_THAT(version.out, HasSubstr("gcc"));
}

TEST_F(OccTest, WorksInAMakefile) {
  std::ofstream(path("Makefile")) << "CC = " << command() << "\nCFLAGS = -O2 -Wall -Wextra -MMD\n"
                                  << "VPATH = " << program("") << "\n"
                                  << "units_main: units_main.o units_part.o\n"
                                  << "-include units_main.d\n";
  const Outcome made = outcome_of("make -C " + dir());
  ASSERT_EQ(made.status, 0) << made.err;
  EXPECT_EQ(made.err, "");
  EXPECT_EQ(run_made("units_main", "OUTCORE_BUDGET=4M").out, "right\n");
  EXPECT_THAT(outcome_of("make -C " + dir()).out, HasSubstr("up to date"));
}

TEST_F(OccTest, PassesOnWhatIsNoProgram) {
  EXPECT_EQ(occ("-E " + program("units_part.c") + " -o part.i").status, 0);
  EXPECT_EQ(occ("-c part.i -o part.o").status, 0);
  EXPECT_EQ(occ("-S " + program("units_main.c") + " -o main.s").status, 0);
  EXPECT_EQ(occ("main.s part.o -o made").status, 0);
  EXPECT_EQ(run_made("made", "OUTCORE_BUDGET=4M").out, "right\n");
  EXPECT_EQ(occ("-r part.o -o partial.o").status, 0);
  std::ofstream(path("words")) << "main.s 'partial.o'\n-o made2";
  EXPECT_EQ(occ("@words").status, 0);
  EXPECT_EQ(run_made("made2", "OUTCORE_BUDGET=4M").out, "right\n");
  EXPECT_EQ(occ("-print-file-name=libc.so.6").status, 0);
}

TEST_F(OccTest, IsAlsoACxxCompilerByName) {
  const Outcome outcome = outcome_of("cd " + dir() + " && " + command() + "++ -x c++ -DN=300 " +
                                     example() + " -o made");
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(run_made("made", "OUTCORE_BUDGET=4M").status, 0);
}

}  // namespace
}  // namespace outcore::occ
