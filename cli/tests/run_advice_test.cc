// `outcore run`: MADV_RANDOM, which programs say of the kernel's readahead, does not keep a scan
// from being read together.
#include <fstream>
#include <iterator>
#include <string>

#include "cli/tests/command_line.h"

namespace outcore::cli {
namespace {

class RunAdvice : public CommandTest {
 protected:
  static constexpr uint64_t kPages = 4096;

  // How often the store is asked by a program that says MADV_RANDOM and reads all pages in order.
  uint64_t reads_of_a_scan(const std::string& options) const {
    std::ofstream(path("data")) << std::string(kPages * 4096, 'x');
    std::ofstream(path("scan.py")) << R"(
import mmap, sys
file = open(sys.argv[1], "rb")
memory = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
memory.madvise(mmap.MADV_RANDOM)
assert all(memory[at] == 120 for at in range(0, len(memory), 4096))
)";
    const Outcome outcome =
        run("run -q --budget 4M --min-size 1M --json " + path("report.json") + " " + options +
            " -- python3 " + path("scan.py") + " " + path("data"));
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    std::ifstream file(path("report.json"));
    const std::string text(std::istreambuf_iterator<char>(file), {});
    const Json all = Json::parse_or_null(text);
    const Json& counters = all["files"][size_t{0}]["counters"];
    EXPECT_GE(counters.value("read_bytes", uint64_t{0}), kPages * 4096) << text;
    return counters.value("read_requests", uint64_t{0});
  }
};

TEST_F(RunAdvice, OfRandomTouchesIsForTheKernelsReadahead) {
  const uint64_t reads = reads_of_a_scan("");
  EXPECT_GT(reads, 0U);
  EXPECT_LT(reads, kPages / 2);
}

TEST_F(RunAdvice, WhoWantsPagesAloneSaysSoToOutcore) {
  EXPECT_GE(reads_of_a_scan("--fetch page --readahead 0"), kPages);
}

}  // namespace
}  // namespace outcore::cli
