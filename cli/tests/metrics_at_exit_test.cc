// metrics_at_exit of the programs of `outcore run`: each process has a line of its own.
#include <fstream>

#include "cli/tests/command_line.h"

namespace outcore::cli {
namespace {

class MetricsAtExit : public CommandTest {};

TEST_F(MetricsAtExit, OfSeveralProcessesStandInOneFileWhichEachRunBeginsAnew) {
  const std::string data = path("data"), metrics = path("metrics.json"),
                    program = path("program.py");
  std::ofstream(data) << std::string(1 << 20, 'x');
  std::ofstream(program) << "import mmap\nf = open('" + data +
                                "', 'rb')\nm = mmap.mmap(f.fileno(), 0, prot=mmap.PROT_READ)\n"
                                "assert m[5000] == 120\n";
  for (int i = 0; i < 2; ++i) {
    const Outcome outcome =
        run("run -q --buffer none --min-size 4k --map '" + data + "' --metrics-at-exit " + metrics +
            " -- sh -c 'for i in 1 2 3; do python3 " + program + " & done; wait'");
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_EQ(outcome.err, "");
    std::ifstream in(metrics);
    int lines = 0;
    for (std::string line; std::getline(in, line); ++lines) {
      const auto json = Json::parse_or_null(line);
      ASSERT_TRUE(json.is_object()) << line;
      EXPECT_GT(json["counters"]["fills"].as<uint64_t>().value(), 0U) << line;
    }
    EXPECT_EQ(lines, 3) << "of run " << i;
  }
}

// Beside the record, which a mistyped program would have cost before.
TEST_F(MetricsAtExit, OfAnEarlierRunStayUntilThereAreOthers) {
  for (const char* name : {"report", "metrics-at-exit"}) {
    const std::string file = path(std::string(name) + ".json");
    const std::string earlier = "{\"format\":\"outcore-run\",\"earlier\":1}\n";
    std::ofstream(file) << earlier;
    const auto content = [&] {
      std::ifstream in(file);
      return std::string(std::istreambuf_iterator<char>(in), {});
    };
    const std::string options = "run --" + std::string(name) + " " + file + " --min-size 4k ";
    EXPECT_EQ(run(options + "-- no-such-program").status, 127);
    EXPECT_EQ(content(), earlier);
    const Outcome none = run(options + "-- true");
    EXPECT_EQ(none.status, 0);
    EXPECT_EQ(none.error_lines(), 1U) << none.err;
    EXPECT_NE(none.err.find("write to " + file + ": nothing was written"), std::string::npos)
        << none.err;
    EXPECT_NE(none.err.find("an earlier run's"), std::string::npos) << none.err;
    EXPECT_EQ(content(), earlier);
    std::ofstream(path("data")) << std::string(1 << 20, 'x');
    const auto look = [&](const std::string& more) {
      return run(options + "-q --map '" + path("data") +
                 "' -- python3 -c \"import mmap, os; f = open('" + path("data") +
                 "', 'rb'); m = mmap.mmap(f.fileno(), 0, prot=mmap.PROT_READ); m[5000]" + more +
                 "\"");
    };
    EXPECT_EQ(look("; os.kill(os.getpid(), 9)").status, 128 + 9);
    EXPECT_EQ(content(), "") << "of a run that was killed nobody knows more";
    std::ofstream(file) << earlier;
    const Outcome some = look("");
    EXPECT_EQ(some.status, 0) << some.err;
    EXPECT_EQ(some.err, "");
    EXPECT_EQ(content().find("earlier\":1"), std::string::npos);
    EXPECT_TRUE(Json::parse_or_null(content()).is_object()) << content();
  }
}

}  // namespace
}  // namespace outcore::cli
