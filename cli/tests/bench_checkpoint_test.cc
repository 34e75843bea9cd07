// `outcore bench checkpoint`: its figures, the kills, and wrong input.
#include <set>

#include "cli/tests/command_line.h"

namespace outcore::cli {
namespace {

class BenchCheckpoint : public CommandTest {
 protected:
  void SetUp() override {
    CommandTest::SetUp();
    std::filesystem::create_directory(path("data"));
  }
  Outcome bench(const std::string& words) const {
    return run("bench checkpoint --json --dir " + path("data") + " " + words);
  }
  void expect_empty() const { EXPECT_TRUE(std::filesystem::is_empty(path("data"))); }
};

TEST_F(BenchCheckpoint, TellsEveryFigureAndLeavesNothing) {
  const Outcome done = bench("--size 16M --changed 2 --between 0.1");
  ASSERT_EQ(done.status, 0) << done.err;
  std::set<std::string> names;
  for (const auto& line : done.lines()) {
    ASSERT_TRUE(line.is_object()) << done.out;
    names.insert(line.value("name", ""));
    EXPECT_GE(line["value"], 0.0) << line;
    const bool is_met =
        line["is_most"] == true ? line["value"] <= line["asked"] : line["value"] >= line["asked"];
    EXPECT_EQ(line["is_met"], is_met) << line;
  }
  for (const std::string what :
       {"first checkpoint", "pause", "speed", "random reads", "random writes"})
    EXPECT_TRUE(std::any_of(names.begin(), names.end(), [&](const std::string& name) {
      return name.starts_with(what);
    })) << what;
  expect_empty();
}

TEST_F(BenchCheckpoint, TellsWhatAPartInMemoryCostsAndBringsItBack) {
  const Outcome done = bench("--size 16M --memory-part 4M --changed 2 --between 0.1");
  ASSERT_EQ(done.status, 0) << done.err;
  const auto is_of_memory = [](const auto& line) {
    return line.value("name", "") == "bytes written of the memory part after 2 % changed";
  };
  const auto lines = done.lines();
  ASSERT_EQ(std::count_if(lines.begin(), lines.end(), is_of_memory), 1) << done.out;
  const auto& line = *std::find_if(lines.begin(), lines.end(), is_of_memory);
  EXPECT_NEAR(line["value"].as<double>().value(), 20 * 4096 / 1e6, 1e-6) << line;
  EXPECT_EQ(line["is_met"], true);
  EXPECT_NE(line.value("how", "").find("without it"), std::string::npos) << line;
  expect_empty();
}

TEST_F(BenchCheckpoint, FindsEveryByteOfAPartInMemoryAfterKills) {
  const Outcome done = bench("--kills 8 --kills-only --kill-size 2M --memory-part 100k --seed 3");
  ASSERT_EQ(done.status, 0) << done.err;
  ASSERT_EQ(done.lines().size(), 2u) << done.out;
  EXPECT_EQ(done.lines()[0]["value"], 8.0);
  expect_empty();
}

TEST_F(BenchCheckpoint, FindsEveryByteAfterTwentyKills) {
  const Outcome done = bench("--kills 20 --kills-only --kill-size 4M --seed 7");
  ASSERT_EQ(done.status, 0) << done.err;
  ASSERT_EQ(done.lines().size(), 2u) << done.out;
  EXPECT_EQ(done.lines()[0]["value"], 20.0);
  expect_empty();
}

// In the midst of a child's work, which takes some seconds; and of lives of 0.4 s at most.
TEST_F(BenchCheckpoint, AnInterruptedRunLeavesNothing) {
  for (const char* words : {"--size 64M --between 30", "--kills 1000 --kills-only"}) {
    const std::string command = "timeout --preserve-status -s INT 1 " + command_path() +
                                " bench checkpoint --dir " + path("data") + " " + words + " >" +
                                path("out") + " 2>" + path("err");
    const int status = std::system(command.c_str());
    ASSERT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 1) << words;
    expect_empty();
  }
}

TEST_F(BenchCheckpoint, RefusesWrongInput) {
  for (const char* words :
       {"--size 1M", "--changed 0", "--changed 101", "--threads 0", "--between 0", "--between nan",
        "--between 4000", "--memory-part 2G", "--memory-part -1", "--memory-part some",
        "--size 16M --memory-part", "--kills-only", "--kill-size 1k", "--kills -1", "--size much",
        "--store redis://localhost/x", "--store versioned:pool",
        "--store rbd://data/x --kills 1"}) {
    const Outcome refused = bench(words);
    EXPECT_EQ(refused.status, 2) << words;
    EXPECT_EQ(refused.error_lines(), 1u) << words << ": " << refused.err;
  }
  const Outcome nowhere = run("bench checkpoint --dir " + path("none"));
  EXPECT_EQ(nowhere.status, 1);
  EXPECT_EQ(nowhere.error_lines(), 1u) << nowhere.err;
  const Outcome unreachable = bench("--store 'rbd://data/x?conf=" + path("none.conf") + "'");
  EXPECT_EQ(unreachable.status, 1);
  EXPECT_EQ(unreachable.error_lines(), 1u) << unreachable.err;
  expect_empty();
}

}  // namespace
}  // namespace outcore::cli
