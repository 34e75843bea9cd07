// outcore stat, and outcore top as text, of programs that run.
#include "sight/tests/sight/scene.h"

namespace outcore::cli {
namespace {

class Stat : public SightScene {
 protected:
  void SetUp() override {
    SightScene::SetUp();
    if (::access(a_library().c_str(), R_OK) != 0) GTEST_SKIP() << "the library is not built here";
  }
};

TEST_F(Stat, TotalsAreOneLineBelowTheirNames) {
  const Outcome outcome = beside("$O stat $P; $O stat $P --json > j; $O stat $P --files");
  EXPECT_EQ(outcome.err, "");
  std::istringstream text(outcome.out);
  std::string header, line, files_header, file;
  std::getline(text, header);
  std::getline(text, line);
  std::getline(text, files_header);
  std::getline(text, file);
  EXPECT_TRUE(header.starts_with(" stall_s     faults      fills refault%")) << header;
  EXPECT_EQ(header.size(), line.size()) << outcome.out;
  std::istringstream figures(line);
  double stalled = -1, faults = 0, fills = 0;
  figures >> stalled >> faults >> fills;
  EXPECT_GE(stalled, 0);
  EXPECT_GE(fills, kBytes / 4096) << line;
  EXPECT_TRUE(file.ends_with("/data.bin")) << file;
  const Json json = Json::parse_or_null(text_of("j"));
  EXPECT_EQ(json["counters"].value("fills", 0.0) + json["counters"].value("prefetch_fills", 0.0),
            fills);
  const std::string program = json.value("program", "");  // the file: python3 is a link to it
  EXPECT_TRUE(program.starts_with("python3.")) << program;
  EXPECT_TRUE(json["interval"].is_null());
  EXPECT_EQ(json["runtimes"][size_t{0}]["stores"][size_t{0}].value("size_bytes", uint64_t{0}),
            kBytes);
}

TEST_F(Stat, AProgramIsFoundByItsFileAndByTheNameThatItWasStartedBy) {
  const std::string file = "file" + own_number(), name = "name" + own_number();
  name_program(file, name);
  const Outcome outcome =
      beside("$O stat " + file + " && $O stat " + name + " && echo both; $O stat no-such-name");
  EXPECT_TRUE(outcome.out.ends_with("\nboth\n")) << outcome.out << outcome.err;
  EXPECT_TRUE(outcome.err.starts_with("outcore: find process 'no-such-name': ")) << outcome.err;
  EXPECT_EQ(outcome.error_lines(), 1u);
}

TEST_F(Stat, LinesComeEachIntervalAsOftenAsAsked) {
  const Outcome outcome = beside(
      "$O stat $P 50ms 3; $O stat $P 50ms 2 --json > j; $O stat $P 50ms 2 --files --json > f", "4M",
      "data.bin again");
  EXPECT_EQ(outcome.err, "");
  EXPECT_EQ(std::count(outcome.out.begin(), outcome.out.end(), '\n'), 4) << outcome.out;
  for (const char* name : {"j", "f"}) {
    Outcome printed;
    printed.out = text_of(name);
    const std::vector<Json> lines = printed.lines();
    ASSERT_EQ(lines.size(), 2u) << printed.out;
    EXPECT_GT(lines[1].value("time", 0.0), lines[0].value("time", 0.0));
    EXPECT_GT(lines[1]["interval"].value("seconds", 0.0), 0) << printed.out;
    EXPECT_GT(lines[1].value("amplification", 0.0), 1.0);
  }
}

// On a busy machine there may be some in which the program does nothing.
TEST_F(Stat, AnIntervalHasWhatIsBroughtInAgainAndAgain) {
  const Outcome outcome = beside(
      "for more in '' --files; do\n"
      ": > j$more; $O stat $P 50ms --json $more > j$more & S=$!\n"
      "until grep -q '\"filled_a_second\":[1-9].*\"refault_share\":[01]' j$more; do :; done\n"
      "kill -INT $S; wait $S; done",
      "4M", "data.bin again");
  EXPECT_EQ(outcome.err, "");
  for (const char* name : {"j", "j--files"}) {
    Outcome printed;
    printed.out = text_of(name);
    const std::vector<Json> lines = printed.lines();
    const auto is_busy = [](const Json& line) {
      return line["interval"].value("filled_a_second", 0.0) >= 1;
    };
    const auto busy = std::find_if(lines.begin(), lines.end(), is_busy);
    ASSERT_NE(busy, lines.end()) << printed.out;
    EXPECT_GT((*busy)["interval"].value("refault_share", 0.0), 0.5) << printed.out;
  }
}

TEST_F(Stat, AProcessThatEndsIsToldAndNoFailure) {
  const Outcome outcome = beside(
      "$O stat $P 50ms > out 2> err & S=$!\n"
      "until grep -q '^ *[0-9]' out; do :; done; kill -9 $P; wait $S; echo $?");
  EXPECT_EQ(outcome.out, "0\n");
  const std::string told = text_of("err");
  EXPECT_TRUE(told.ends_with(" has ended\n")) << told;
  EXPECT_EQ(std::count(told.begin(), told.end(), '\n'), 1) << told;
}

TEST_F(Stat, AnInterruptEndsItCleanlyAndAReaderThatGoesQuietly) {
  const Outcome outcome = beside(
      "$O stat $P 50ms > out 2> err & S=$!\n"
      "until grep -q '^ *[0-9]' out; do :; done; kill -INT $S; wait $S; echo $?\n"
      "$O stat $P 50ms 2>> err | head -n 2 | wc -l; $O stat $P 1h 2>> err | head -n 1 | wc -l");
  EXPECT_EQ(outcome.out, "0\n2\n1\n");
  EXPECT_EQ(text_of("err"), "");
}

TEST_F(Stat, ANameThatNobodyHasIsToldWithThoseThatThereAre) {
  const Outcome outcome =
      beside("cp $(readlink -f $(command -v sleep)) own; $O stat no-such-program; echo $?");
  EXPECT_EQ(outcome.out, "1\n");
  EXPECT_TRUE(has(outcome.err, "no process of that name has a runtime")) << outcome.err;
  EXPECT_TRUE(has(outcome.err, "(python3.")) << outcome.err;
  EXPECT_EQ(outcome.error_lines(), 1u);
}

TEST_F(Stat, TopOnceIsATableAndJsonAnObject) {
  const Outcome outcome = beside(
      "export LC_ALL=C; $O top --once --interval 50ms --pid $P; echo; "
      "$O top --once --interval 50ms --sort pid | grep -w $P; "
      "until $O top --json --interval 50ms --pid $P > j && grep -q '\"stalled\":[.0]*[1-9]' j; "
      "do :; done",  // on a busy machine there may be intervals in which the program does nothing
      "4M", "data.bin again");
  EXPECT_EQ(outcome.err, "");
  EXPECT_TRUE(has(outcome.out, "FILE ")) << outcome.out;
  EXPECT_TRUE(has(outcome.out, "data.bin")) << outcome.out;
  EXPECT_TRUE(has(outcome.out, "python3 hold.py data.bin again")) << outcome.out;
  for (const char c : outcome.out) ASSERT_GT(c, 0) << "not ASCII: " << outcome.out;
  const Json json = Json::parse_or_null(text_of("j"));
  ASSERT_EQ(json["processes"].size(), 1u);
  const Json& interval = json["processes"][size_t{0}]["interval"];
  EXPECT_GT(interval.value("stalled", 0.0), 0);
  EXPECT_GT(interval["fault_latency"].value("p99_ns", uint64_t{0}), 0u);
}

TEST_F(Stat, WrongWordsAreToldInOneLine) {
  const std::string self = own_number();
  const struct {
    std::string words;
    const char* why;
    int status;
  } kWrong[] = {{"stat", "process is required", 2},
                {"stat ''", "it is empty: give it a value", 2},
                {"stat 99999999999", "not the number of a process", 2},
                {"stat 0", "not the number of a process", 2},
                {"stat 2147483647", "no such process", 1},
                {"stat " + self, "no runtime of Outcore", 1},
                {"stat " + self + " 0", "not an interval", 2},
                {"stat " + self + " -1", "-1", 2},
                {"stat " + self + " 1x", "not an interval", 2},
                {"stat " + self + " nan", "not an interval", 2},
                {"stat " + self + " 1e3", "not an interval", 2},
                {"stat " + self + " 1 0", "not a number of lines", 2},
                {"stat " + self + " 1 x", "not a number of lines", 2},
                {"stat " + self + " 1 1 1", "one word too many", 2},
                {"top --once --interval 1ms", "not an interval", 2},
                {"top --sort colour", "colour", 2},
                {"top --once --pid 2147483647", "no such process", 1},
                {"top < /dev/null", "use `outcore top --once`", 1},
                {"top --pid nobody-of-that-name", "no process of that name", 1}};
  for (const auto& [words, why, status] : kWrong) {
    const Outcome outcome = run(words);
    EXPECT_EQ(outcome.status, status) << words << ": " << outcome.err;
    EXPECT_TRUE(has(outcome.err, why)) << words << ": " << outcome.err;
    EXPECT_EQ(outcome.error_lines(), 1u) << words << ": " << outcome.err;
    EXPECT_EQ(outcome.out, "") << words;
  }
}

// A program with the library: this one.
TEST_F(Stat, ALibrarysProgramIsSeenToo) {
  auto runtime = Runtime::start({.budget_bytes = 4 << 20});
  ASSERT_TRUE(runtime) << runtime.message();
  auto region = runtime->map(path("data.bin"), {});
  ASSERT_TRUE(region) << region.message();
  uint64_t sum = 0;
  for (uint64_t at = 0; at < region->size_bytes(); at += 4096)
    sum += static_cast<uint64_t>(region->data()[at]);
  EXPECT_NE(sum, 0u);
  const Outcome outcome = run("stat " + own_number() + " --json --files");
  ASSERT_EQ(outcome.lines().size(), 1u) << outcome.err;
  const Json file = outcome.lines()[0];
  EXPECT_TRUE(file.value("uri", "").ends_with("data.bin"));
  EXPECT_GE(file["counters"].value("fills", uint64_t{0}) +
                file["counters"].value("prefetch_fills", uint64_t{0}),
            kBytes / 4096);
  const Outcome text = run("top --once --interval 50ms --pid " + own_number());
  EXPECT_EQ(text.status, 0) << text.err;
  EXPECT_TRUE(has(text.out, "of 4.0M")) << text.out;
}

}  // namespace
}  // namespace outcore::cli
