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

}  // namespace
}  // namespace outcore::cli
