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
    answer = 0
    for round in range(int(sys.argv[2])):
        for at in range(0, len(data), 1 << 16):
            answer = zlib.crc32(data[at:at + (1 << 16)], answer)
    os.write(1, b'%d\n' % answer)
    if len(sys.argv) > 3:  # who ends before the others have begun takes the pages along
        open('scanned.%d' % os.getpid(), 'w').close()
        while sum(name.startswith('scanned.') for name in os.listdir()) < int(sys.argv[3]):
            os.sched_yield()
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
                               "for i in 1 2 3 4; do python3 scan.py data.bin 2 4 & done; wait'");
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

TEST_F(RunBuffer, TheTableSaysHowTheLimitOfOneWithANameIsChanged) {
  const Outcome outcome = bash(command_path() +
                               " run --min-size 4k --budget 6M --buffer samples --map data.bin -- "
                               "python3 scan.py data.bin 3");
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_NE(outcome.err.find("run --min-size 4k --budget 12M --buffer samples "), std::string::npos)
      << outcome.err;
  EXPECT_NE(outcome.err.find("  or, while the buffer samples lasts:\n"
                             "    outcore buffers resize samples 12M\n"),
            std::string::npos)
      << outcome.err;
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

// One after the other: the first fills, the next find what it left.
TEST_F(RunBuffer, PagesOfServedFilesStayWhenTheirReadersHaveEnded) {
  const std::string outcore = command_path();
  const std::string scan = outcore +
                           " run --min-size 4k --buffer samples --json r.json -q -- "
                           "python3 scan.py data.bin 1; "
                           "tr -d ' \n' < r.json | grep -o '\"read_bytes\":[0-9]*' | "
                           "cut -d: -f2 | awk '{ s += $1 } END { print s + 0 }'; ";
  // Until the server has taken the file, and is done with what the last one left.
  const std::string until_held = "until " + outcore +
                                 " buffers ls --json | tr -d ' \n' | grep -q "
                                 "'\"files\":1,.*\"resident_bytes\":0,'; do :; done; ";
  const Outcome outcome =
      bash(outcore + " serve samples --budget 40M data.bin 2> said & " + until_held + scan + scan +
           "printf x >> data.bin; touch written; " + until_held + scan + scan + outcore +
           " buffers ls; " + outcore + " buffers end samples; wait $!; echo ended $?; " + scan +
           outcore + " buffers ls; cat said");
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  std::istringstream lines(outcome.out);
  std::string sum, word;
  uint64_t first = 0, second = 0, third = 0, fourth = 0, alone = 0;
  lines >> sum >> first >> word >> second;
  EXPECT_EQ(sum, word);
  EXPECT_GE(first, kBytes);
  EXPECT_LE(second, kBytes / 100);
  lines >> sum >> third >> word >> fourth;
  EXPECT_EQ(sum, word);
  EXPECT_GE(third, kBytes);  // it was written: another file
  EXPECT_LE(fourth, kBytes / 100);
  const std::string rest{std::istreambuf_iterator<char>(lines), {}};
  EXPECT_NE(rest.find("+\nended 0\n" + word + "\n"), std::string::npos) << rest;
  std::istringstream(rest.substr(rest.find(word + "\n") + word.size())) >> alone;
  EXPECT_GE(alone, kBytes);
  EXPECT_NE(rest.find("no process shares a buffer"), std::string::npos) << rest;
  EXPECT_NE(rest.find("holding the buffer samples of 40 MiB, and pages of 1 file"),
            std::string::npos)
      << rest;
}

TEST_F(RunBuffer, AServedFileCanBeWrittenReplacedAndRemoved) {
  const std::string outcore = command_path();
  const Outcome outcome = bash(
      outcore + " serve samples --budget 40M data.bin & " + "until " + outcore +
      " buffers ls --json | grep -q '\"files\": 1'; do :; done; " +
      "timeout 10 dd if=/dev/zero of=data.bin bs=1M count=1 conv=notrunc 2> no && echo written; "
      "cp data.bin new && mv new data.bin && rm data.bin && echo removed; " +
      outcore + " buffers end samples; wait $!; echo ended $?");
  EXPECT_EQ(outcome.out, "written\nremoved\nended 0\n") << outcome.err;
}

TEST_F(RunBuffer, WrongWordsAreToldInOneLine) {
  const struct {
    const char *words, *why;
    int status;
  } kWrong[] = {{"run --buffer a/b true", "a name has letters", 2},
                {"run --buffer '' true", "--buffer: it is empty", 2},
                {"run --buffer -x true", "neither '.' nor '-' in front", 2},
                {"run --buffer=-x true", "neither '.' nor '-' in front", 2},
                {"buffers", "a command is missing", 2},
                {"buffers resize x", "size", 2},
                {"buffers resize x 1M", "the least is 4 MiB", 2},
                {"buffers resize x 64M", "nobody is in it", 1},
                {"buffers resize x 9999T", "of memory: name less", 2},
                {"buffers end x", "nobody is in it", 1},
                {"buffers end a/b", "a name has letters", 2},
                {"serve", "name is required", 2},
                {"serve x", "--budget", 2},
                {"serve a/b --budget 16M", "a name has letters", 2},
                {"serve none --budget 8M", "nothing is shared: choose another name", 2},
                {"serve --budget 8M -- -x", "neither '.' nor '-' in front", 2},
                {"serve x --budget 100T", "of memory: name less", 2},
                {"serve x --budget 1M", "the least is 4 MiB", 2},
                {"serve x --budget 16M missing", "hold missing", 1},
                {"serve x --budget 16M .", "not a regular file", 2},
                {"serve x --budget 16M /dev/null", "not a regular file", 2},
                {"serve x --budget 16M /proc/self/status", "empty", 2}};
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
