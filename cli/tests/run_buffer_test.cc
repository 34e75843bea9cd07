// Processes of one run, and of several, that share what they read: `outcore run --buffer`, what is
// shared by default, and `outcore buffers`.
#include <unistd.h>

#include "cli/json.h"
#include "cli/tests/command_line.h"

namespace outcore::cli {
namespace {

class RunBuffer : public CommandTest {
 protected:
  void SetUp() override {
    CommandTest::SetUp();
    if (::access(a_library().c_str(), R_OK) != 0) GTEST_SKIP() << "the library is not built here";
    std::ofstream(path("scan.py")) << R"(import mmap, os, sys, zlib
with open(sys.argv[1], 'rb') as file:
    data = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
    sum = 0
    for round in range(int(sys.argv[2])):
        for at in range(0, len(data), 1 << 16):
            sum = zlib.crc32(data[at:at + (1 << 16)], sum)
    os.write(1, b'%d\n' % sum)
)";
    std::ofstream file(path("data.bin"));
    for (uint64_t i = 0; i < kBytes / 8; ++i) {
      const uint64_t word = i * 0x9E3779B97F4A7C15ull;
      file.write(reinterpret_cast<const char*>(&word), 8);
    }
    file.close();
    // What has changed just now is not shared.
    ASSERT_EQ(run_lines("bash",
                        "until [ -n \"$(find data.bin -newermt '-0.05 seconds' -prune -o "
                        "-print)\" ]; do :; done")
                  .status,
              0);
  }
  Outcome bash(const std::string& line) const {
    return run_lines("bash", "export OUTCORE_BUFFER_DIR=$PWD/buffers; " + line);
  }
  // What all processes of the report read of the file; how many took it.
  static uint64_t read_bytes(const std::string& path, uint64_t* processes) {
    std::ifstream file(path);
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    const auto report = Json::parse(text);
    EXPECT_TRUE(report.ok()) << text;
    uint64_t bytes = 0;
    if (!report) return 0;
    for (const Json& process : report.value()["processes"])
      for (const Json& one : process["files"]) {
        ++*processes;
        bytes += one["counters"].value("read_bytes", uint64_t{0});
      }
    return bytes;
  }
  static constexpr uint64_t kBytes = 24 << 20;
};

TEST_F(RunBuffer, SharesByDefaultAmongThoseThatTheFirstOneStarts) {
  const Outcome outcome = bash(command_path() +
                               " run --min-size 4k --budget 40M -q --json r.json -- sh -c '"
                               "for i in 1 2 3 4; do python3 scan.py data.bin 2 & done; wait'");
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const std::string line = outcome.out.substr(0, outcome.out.find('\n') + 1);
  EXPECT_EQ(outcome.out, line + line + line + line);
  uint64_t processes = 0;
  const uint64_t bytes = read_bytes(path("r.json"), &processes);
  EXPECT_EQ(processes, 4u);
  EXPECT_GE(bytes, kBytes);
  EXPECT_LE(bytes, kBytes * 105 / 100);
  EXPECT_EQ(bash(command_path() + " buffers ls").status, 0);  // removes what the last ones left
  EXPECT_TRUE(std::filesystem::is_empty(path("buffers")));
}

TEST_F(RunBuffer, IsForForkedWorkersToo) {
  std::ofstream(path("forks.py")) << R"(import mmap, os, zlib
with open('data.bin', 'rb') as file:
    data = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
right = zlib.crc32(data[:1 << 20])
workers = []
for number in range(4):
    worker = os.fork()
    if worker == 0:
        sums = [zlib.crc32(data[at:at + (1 << 20)]) for at in range(0, len(data), 1 << 20)]
        os._exit(0 if sums[0] == right else 1)
    workers.append(worker)
print([os.waitpid(worker, 0)[1] for worker in workers])
)";
  const Outcome outcome = bash(command_path() +
                               " run --min-size 4k --budget 40M --buffer forks -q --json r.json "
                               "-- python3 forks.py");
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(outcome.out, "[0, 0, 0, 0]\n") << outcome.err;
  uint64_t processes = 0;
  const uint64_t bytes = read_bytes(path("r.json"), &processes);
  EXPECT_EQ(processes, 5u);
  EXPECT_GE(bytes, kBytes);
  EXPECT_LE(bytes, kBytes * 105 / 100);
}

TEST_F(RunBuffer, NoneIsNoBuffer) {
  const Outcome outcome =
      bash(command_path() +
           " run --min-size 4k --budget 40M --buffer none -q --json r.json -- sh -c '"
           "for i in 1 2; do python3 scan.py data.bin 1 & done; wait'");
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  uint64_t processes = 0;
  EXPECT_GE(read_bytes(path("r.json"), &processes), 2 * kBytes);
  EXPECT_FALSE(std::filesystem::exists(path("buffers")));
}

TEST_F(RunBuffer, IsListedAndResizedWhileItsProcessesRun) {
  const std::string outcore = command_path();
  const Outcome outcome = bash(
      outcore + " buffers ls; " + outcore +
      " run --min-size 4k --budget 16M --buffer samples -q -- python3 scan.py data.bin 100000 & "
      "until " +
      outcore + " buffers ls --json | grep -q '\"files\": 1'; do :; done; " + outcore +
      " buffers ls; " + outcore + " buffers resize samples 12M; " + outcore +
      " buffers ls --json; kill -9 $!; wait 2> no; " + outcore + " buffers ls");
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(outcome.out.find("no process shares a buffer"), 0u) << outcome.out;
  EXPECT_NE(outcome.out.find("samples                      16 MiB"), std::string::npos)
      << outcome.out;
  EXPECT_NE(outcome.out.find("\"limit_bytes\": 12582912"), std::string::npos) << outcome.out;
  EXPECT_GT(outcome.out.rfind("no process shares a buffer"), 100u) << outcome.out;
}

TEST_F(RunBuffer, WrongWordsAreToldInOneLine) {
  const struct {
    const char *words, *why;
    int status;
  } kWrong[] = {{"run --buffer a/b true", "a name has letters", 2},
                {"run --buffer '' true", "--buffer is empty", 2},
                {"buffers", "a command is missing", 2},
                {"buffers resize x", "size", 2},
                {"buffers resize x 1M", "the least is 4 MiB", 2},
                {"buffers resize x 64M", "nobody is in it", 1}};
  for (const auto& [words, why, status] : kWrong) {
    const Outcome outcome = bash(command_path() + " " + words);
    EXPECT_EQ(outcome.status, status) << words << ": " << outcome.err;
    EXPECT_NE(outcome.err.find(why), std::string::npos) << words << ": " << outcome.err;
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
  }
  const Outcome open = bash("chmod 755 buffers; " + command_path() + " buffers ls");
  EXPECT_EQ(open.status, 1);
  EXPECT_NE(open.err.find("chmod 700"), std::string::npos) << open.err;
}

}  // namespace
}  // namespace outcore::cli
