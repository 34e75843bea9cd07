// Programs with dlm data: what they compute, whatever the compiler, the delivery and the budget.
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>

#include "core/base/json.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "heaps/tests/occ/occ_test.h"

namespace outcore::occ {
namespace {

using testing::HasSubstr;
using testing::Not;

class OccProgram : public OccCompilerTest {};
INSTANTIATE_TEST_SUITE_P(With, OccProgram, testing::Values("gcc", "clang"),
                         [](const auto& it) { return std::string(it.param); });

// 128 MiB of arrays.
TEST_P(OccProgram, MultipliesAMatrixOfFourTimesTheBudget) {
  ASSERT_EQ(compile("-O2 -DN=4096 " + example() + " -o made").status, 0);
  const Outcome outcome =
      run_made("made", "OUTCORE_BUDGET=32M OUTCORE_METRICS_AT_EXIT=" + path("metrics"));
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(outcome.out, "4096 rows of 32768 bytes each: right\n");
  std::ifstream file(path("metrics"));
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const auto metrics = base::Json::parse_or_null(text);
  ASSERT_TRUE(metrics.is_object());
  EXPECT_LE(metrics["gauges"]["used_bytes_max"].as<uint64_t>().value(), 32u << 20);
  EXPECT_GT(metrics["counters"]["written_bytes"].as<uint64_t>().value(), 64u << 20)
      << "it did not leave the budget";
}

TEST_P(OccProgram, OfEightyGigabytesStarts) {
  ASSERT_EQ(compile("-O2 " + example() + " -o made").status, 0);
  const Outcome outcome = run_made("made 60", "OUTCORE_BUDGET=16M");
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(outcome.out, "60 rows of 800000 bytes each: right\n");
}

TEST_P(OccProgram, OfSeveralFilesSharesItsArrays) {
  for (const char* flags : {"-O0", "-O2", "-O2 -fPIC", "-O2 -fpie", "-O2 -flto"})
    expect_right(std::string(flags) + " " + program("units_main.c") + " " + program("units_part.c"),
                 "OUTCORE_BUDGET=4M");
}

TEST_P(OccProgram, MayDeclareALargeArrayWithoutTheWord) {
  ASSERT_EQ(compile("-O2 " + program("plain_extern.c") + " " + program("plain_extern_part.c") +
                    " -o made")
                .status,
            0);
  EXPECT_EQ(run_made("made", "OUTCORE_BUDGET=4M").out, "4498500\n");
}

TEST_P(OccProgram, OfCxxUsesArraysBeforeAndAfterMain) {
  ASSERT_EQ(compile("-O2 " + program("constructors.cc") + " -o made").status, 0);
  const Outcome outcome = run_made("made", "OUTCORE_BUDGET=4M");
  EXPECT_EQ(outcome.out, "right\nend\n") << outcome.err;
  EXPECT_EQ(outcome.status, 0);
}

TEST_P(OccProgram, AllocatesInSeveralThreads) {
  expect_right("-O2 " + program("allocations.cc"), "OUTCORE_BUDGET=4M");
}

TEST_P(OccProgram, TransfersByEveryDelivery) {
  const Outcome compiled = compile("-O2 " + program("transfers.c") + " -o made");
  ASSERT_EQ(compiled.status, 0) << compiled.err;
  for (const char* delivery : {"in-thread", "mprotect", "auto"}) {
    const Outcome outcome =
        run_made("made file", std::string("OUTCORE_BUDGET=16M OUTCORE_DELIVERY=") + delivery);
    EXPECT_EQ(outcome.out, "right\n") << delivery << ": " << outcome.err;
  }
}

TEST_P(OccProgram, TransfersWholeMessagesAndWithLittleRoom) {
  for (const char* flags : {"-O0", "-O2 -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2"}) {
    const Outcome compiled = compile(std::string(flags) + " " + program("messages.c") + " -o made");
    ASSERT_EQ(compiled.status, 0) << compiled.err;
    for (const char* delivery : {"in-thread", "mprotect", "auto"}) {
      const Outcome outcome =
          run_made("made file", std::string("OUTCORE_BUDGET=16M OUTCORE_DELIVERY=") + delivery);
      EXPECT_EQ(outcome.out, "right\n") << flags << " " << delivery << ": " << outcome.err;
    }
  }
}

TEST_P(OccProgram, KeepsItsArraysWhereStandardOutputIsClosed) {
  ASSERT_EQ(compile("-O2 " + program("closed.c") + " -o made").status, 0);
  for (const char* delivery : {"in-thread", "mprotect", "auto"})
    for (const char* closed : {"0<&-", ">&-", "2>&-", "0<&- >&- 2>&-"}) {
      const Outcome outcome =
          outcome_of("cd " + dir() +
                     " && (env OUTCORE_CONFIG= OUTCORE_BUDGET=4M OUTCORE_DELIVERY=" + delivery +
                     " ./made told >out 2>err " + closed + ") && cat told");
      EXPECT_EQ(outcome.out, "0 wrong\n") << delivery << closed << outcome.err;
    }
}

TEST_P(OccProgram, ForksAndItsChildHasNoArrays) {
  ASSERT_EQ(compile("-O2 " + program("children.c") + " -o made").status, 0);
  const Outcome outcome = run_made("made", "OUTCORE_BUDGET=4M");
  EXPECT_EQ(outcome.out, "right\n");
  EXPECT_EQ(outcome.status, 0);
  EXPECT_THAT(outcome.err, HasSubstr("a forked child touched"));
}

TEST_P(OccProgram, RunsUnderSanitizers) {
  for (const char* kind : {"address,undefined", "thread"})
    expect_right("-O1 -fsanitize=" + std::string(kind) + " " + program("units_main.c") + " " +
                     program("units_part.c"),
                 "OUTCORE_BUDGET=8M");
}

TEST_P(OccProgram, SanitizersStillFindItsErrors) {
  std::ofstream(path("wrong.c")) << "#include <stdlib.h>\n"
                                    "dlm int all[1000];\n"
                                    "int main(int argc, char** argv) {\n"
                                    "  char* local = malloc(10);\n"
                                    "  all[5] = argc;\n"
                                    "  local[argc + 9] = (char)all[5];\n"
                                    "  return local[argc + 9];\n}\n";
  ASSERT_EQ(compile("-g -O0 -fsanitize=address wrong.c -o made").status, 0);
  const Outcome outcome = run_made("made", "OUTCORE_BUDGET=8M");
  EXPECT_NE(outcome.status, 0);
  EXPECT_THAT(outcome.err, HasSubstr("heap-buffer-overflow"));
}

// What our threads do to its memory was taken for a race at each page that left, and looked up.
TEST_P(OccProgram, ThreadSanitizerFindsItsRacesAndHardlyOurs) {
  std::ofstream(path("race.c")) << "#include <pthread.h>\n"
                                   "#include <stddef.h>\n"
                                   "dlm long all[4 << 20];\n"
                                   "static void* add(void* at) { *(long*)at += 1; return at; }\n"
                                   "int main(int argc, char** argv) {\n"
                                   "  for (int turn = 0; turn < 2; ++turn)\n"
                                   "    for (size_t i = 0; i < 4 << 20; i += 512) all[i] += i;\n"
                                   "  pthread_t other;\n"
                                   "  if (argc > 1) {\n"
                                   "    pthread_create(&other, NULL, add, &all[7]);\n"
                                   "    add(&all[7]);\n"
                                   "    pthread_join(other, NULL);\n"
                                   "  }\n"
                                   "  return all[512] == 1024 ? 0 : 3;\n}\n";
  ASSERT_EQ(compile("-g -O1 -fsanitize=thread race.c -o made -lpthread").status, 0);
  const Outcome racing = run_made("made 1", "OUTCORE_BUDGET=8M");
  EXPECT_EQ(racing.status, 66) << racing.err;
  EXPECT_THAT(racing.err, HasSubstr("data race"));
  const Outcome other = run_made("made", "OUTCORE_BUDGET=8M TSAN_OPTIONS=print_suppressions=1");
  EXPECT_EQ(other.status, 0) << other.err;
  uint64_t matched = 0;
  const size_t at = other.err.find("Matched ");
  if (at != std::string::npos) {
    ASSERT_EQ(std::sscanf(other.err.c_str() + at, "Matched %" SCNu64, &matched), 1);
  }
  EXPECT_LE(matched, 1024u) << "of 16384 pages that came and went";
}

TEST_P(OccProgram, MayBeStaticAndStripped) {
  ASSERT_EQ(compile("-O2 -static " + program("fill.c") + " -o made").status, 0);
  EXPECT_EQ(run_made("made 20", "OUTCORE_BUDGET=4M").out, "right\n");
  ASSERT_EQ(compile("-O2 -g " + program("fill.c") + " -o made").status, 0);
  ASSERT_EQ(outcome_of("strip " + path("made")).status, 0);
  EXPECT_EQ(run_made("made 20", "OUTCORE_BUDGET=4M").out, "right\n");
}

TEST_P(OccProgram, KeepsOtherLargeDataInOrdinaryMemory) {
  std::ofstream(path("plain.c")) << "dlm int few[10];\n"
                                    "static int plain[1 << 20];\n"
                                    "int tentative[1 << 20];\n"
                                    "int main(int argc, char** argv) {\n"
                                    "  plain[argc] = tentative[argc] = few[argc] = argc;\n"
                                    "  return (char*)plain > (char*)0x100000000 ||\n"
                                    "         (char*)tentative > (char*)0x100000000;\n}\n";
  for (const char* flags : {"-O0", "-O2", "-O2 -fcommon"}) {
    ASSERT_EQ(compile(std::string(flags) + " plain.c -o made").status, 0);
    EXPECT_EQ(run_made("made", "OUTCORE_BUDGET=4M").status, 0) << flags;
  }
}

TEST_P(OccProgram, CanBeDebugged) {
  if (!is_there("gdb")) GTEST_SKIP() << "gdb is not installed";
  ASSERT_EQ(compile("-g -O0 -DN=3000 " + example() + " -o made").status, 0);
  // Row 5 has left a budget of 8 MiB when 72 MiB were read; row 2999 is there.
  const std::string gdb =
      "gdb -q -nx -batch -ex 'set confirm off' "
      "-ex 'handle SIGBUS SIGSEGV nostop noprint pass' -ex 'break dlm_free' -ex run "
      "-ex up -ex 'print a[2999][2999]' -ex 'print sizeof(a)' "
      "-ex 'print a[5][5]' -ex 'print oc_dlm_prefault(a[5], 8)' "
      "-ex 'print a[5][5]' -ex 'ptype a' -ex continue ./made";
  const Outcome outcome =
      outcome_of("cd " + dir() + " && OUTCORE_BUDGET=8M timeout -s KILL 100 " + gdb);
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("= 2999\n"));
  EXPECT_THAT(outcome.out, HasSubstr("= 72000000\n"));
  EXPECT_THAT(outcome.out, HasSubstr("= 5\n")) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("type = double [3000][3000]"));
  // The program's own last word: gdb may miss the end of a process whose threads end together ("No
  // unwaited-for children left").
  EXPECT_THAT(outcome.out, HasSubstr(": right\n"));
  EXPECT_THAT(outcome.out, Not(HasSubstr("received signal")));
}

// Without occ.
class DlmHeader : public OccCompilerTest {
 protected:
  std::string plain(const std::string& arguments, bool is_cxx = false) const {
    const std::string c = GetParam();
    const std::string cxx = c == "gcc" ? "g++" : "clang++";
    return "cd " + dir() + " && " + (is_cxx ? cxx : c) + " -Wall -Wextra -Werror -O1 -I" +
           scene::source_folder() + "/include " + arguments;
  }
};
INSTANTIATE_TEST_SUITE_P(With, DlmHeader, testing::Values("gcc", "clang"),
                         [](const auto& it) { return std::string(it.param); });

TEST_P(DlmHeader, GivesArraysUnderOcc) {
  expect_right(program("header_main.c") + " " + program("header_part.c"), "OUTCORE_BUDGET=4M");
  expect_right(program("header.cc"), "OUTCORE_BUDGET=4M");
}

TEST_P(DlmHeader, MeansOrdinaryMemoryWhereAsked) {
  const Outcome c = outcome_of(plain("-DDLM_LOCAL " + program("header_main.c") + " " +
                                     program("header_part.c") + " -o made"));
  ASSERT_EQ(c.status, 0) << c.err;
  EXPECT_EQ(run_made("made", "OUTCORE_BUDGET=nonsense").out, "right\n");
  const Outcome example_made =
      outcome_of(plain("-DDLM_LOCAL -DN=500 -include outcore/dlm.h " + example() + " -o made"));
  ASSERT_EQ(example_made.status, 0) << example_made.err;
  EXPECT_EQ(run_made("made", "A=1").out, "500 rows of 4000 bytes each: right\n");
}

TEST_P(DlmHeader, LeavesTheSystemsHeadersToTheProgram) {
  std::ofstream(path("local.c")) << "#define _GNU_SOURCE\n#include <sched.h>\n#include <stdio.h>\n"
                                    "dlm int a[9];\nint main(void) {\n"
                                    "  cpu_set_t set;\n  char* text;\n  CPU_ZERO(&set);\n"
                                    "  void (*give)(void*) = &dlm_free;\n"
                                    "  dlm_pin(a, sizeof a);\n"
                                    "  give(dlm_alloc(5));\n"
                                    "  return asprintf(&text, \"%d\", a[1]) != 1;\n}\n";
  const Outcome made = outcome_of(plain("-DDLM_LOCAL -include outcore/dlm.h local.c -o made"));
  EXPECT_EQ(made.status, 0) << made.err;
  EXPECT_EQ(run_made("made", "A=1").status, 0);
}

TEST_P(DlmHeader, SaysWhatToDoWhereTheWordIsUsedWithoutOcc) {
  std::ofstream(path("word.c")) << "#include <outcore/dlm.h>\ndlm double a[10];\n";
  const Outcome outcome = outcome_of(plain("-c word.c"));
  EXPECT_NE(outcome.status, 0);
  EXPECT_THAT(outcome.err, HasSubstr("dlm: compile with occ"));
  EXPECT_NE(outcome_of(plain("-x c++ -c word.c", true)).status, 0);
}

}  // namespace
}  // namespace outcore::occ
