// `outcore bench random-io --overlap`: processes that touch all of the data.
#include "cli/tests/command_line.h"

namespace outcore::cli {
namespace {

class OverlappingProcesses : public CommandTest {
 protected:
  Outcome bench(const std::string& arguments) const {
    return run("bench " + arguments + " --dir " + dir());
  }
};

// All processes touch all of the data, and their increments must be in the file, none undone.
TEST_F(OverlappingProcesses, SeeEachOthersWrites) {
  for (const char* more : {"--write-percent 50", "--write-percent 100 --distribution zipf:0.9",
                           "--distribution once"}) {
    const Outcome outcome = bench(
        "random-io --size 8M --touches 9000 --processes 3 --threads 2 --overlap --budget 4M "
        "--memory mmap,outcore --json " +
        std::string(more));
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    for (const Json& line : outcome.lines()) EXPECT_EQ(line["checked"], true) << more;
    EXPECT_EQ(outcome.lines().back()["shared"], true) << more;
  }
}

// Where three slices would not have a page each, all of it is enough for three processes.
TEST_F(OverlappingProcesses, DoNotDivideTheData) {
  const std::string work =
      "random-io --size 8k --touches 90 --processes 3 --threads 1 "
      "--budget 4M --memory mmap,outcore";
  EXPECT_EQ(bench(work + " --overlap").status, 0);
  const Outcome outcome = bench(work);
  EXPECT_EQ(outcome.status, 2) << outcome.out;
  EXPECT_NE(outcome.err.find("less than a page a process"), std::string::npos) << outcome.err;
}

TEST_F(OverlappingProcesses, AreRefusedWhereTheirWritesWouldBeUndone) {
  for (const char* memory : {"direct", "dram", "swap", "outcore --share off"}) {
    const Outcome outcome = bench(
        "random-io --size 8M --processes 2 --overlap --write-percent 10 "
        "--budget 8M --memory " +
        std::string(memory));
    EXPECT_EQ(outcome.status, 2) << memory;
    EXPECT_EQ(outcome.error_lines(), 1U) << outcome.err;
    EXPECT_NE(outcome.err.find("leave it out"), std::string::npos) << outcome.err;
  }
}

}  // namespace
}  // namespace outcore::cli
