// `outcore bench arrays`: its figures, the kills, and wrong input.
#include <set>

#include "cli/tests/command_line.h"

namespace outcore::cli {
namespace {

class BenchArrays : public CommandTest {
 protected:
  void SetUp() override {
    CommandTest::SetUp();
    std::filesystem::create_directory(path("data"));
  }
  Outcome bench(const std::string& words) const {
    return run("bench arrays --json --dir " + path("data") + " " + words);
  }
  void expect_empty() const { EXPECT_TRUE(std::filesystem::is_empty(path("data"))); }
};

TEST_F(BenchArrays, TellsEveryFigureAndLeavesNothing) {
  const Outcome done = bench("--size 2M --rounds 1");
  ASSERT_EQ(done.status, 0) << done.err;
  std::set<std::string> names;
  for (const auto& line : done.lines()) {
    ASSERT_TRUE(line.is_object()) << done.out;
    names.insert(line.value("name", ""));
  }
  EXPECT_EQ(names.size(), 5u) << done.out;
  expect_empty();
}

TEST_F(BenchArrays, FindsEveryFinishedArrayWholeAfterThirtyKills) {
  const Outcome done = bench("--kills 30 --kills-only --kill-size 256k --seed 7");
  ASSERT_EQ(done.status, 0) << done.err;
  ASSERT_EQ(done.lines().size(), 2u) << done.out;
  EXPECT_EQ(done.lines()[0]["value"], 30.0);
  // Or nothing was shown.
  unsigned finished = 0, cut_off = 0;
  ASSERT_EQ(std::sscanf(done.lines()[0]["how"].as<std::string>().value().c_str(),
                        "%u sessions finished, %u cut off", &finished, &cut_off),
            2);
  EXPECT_GT(finished, 0u);
  EXPECT_GT(cut_off, 0u);
  expect_empty();
}

TEST_F(BenchArrays, OneProcessAloneIsKilledToo) {
  const Outcome done = bench("--kills 10 --kills-only --kill-size 64k --processes 1");
  ASSERT_EQ(done.status, 0) << done.err;
  EXPECT_EQ(done.lines()[0]["value"], 10.0);
}

TEST_F(BenchArrays, RefusesWrongInput) {
  for (const char* words : {"--size 1k", "--processes 3", "--variables 0", "--rounds 0",
                            "--kills-only", "--kill-size 1k", "--kills -1", "--size much"}) {
    const Outcome refused = bench(words);
    EXPECT_EQ(refused.status, 2) << words;
    EXPECT_EQ(refused.error_lines(), 1u) << words << ": " << refused.err;
  }
  const Outcome nowhere = run("bench arrays --kills 1 --kills-only --dir " + path("none"));
  EXPECT_EQ(nowhere.status, 1);
  EXPECT_EQ(nowhere.error_lines(), 1u) << nowhere.err;
}

}  // namespace
}  // namespace outcore::cli
