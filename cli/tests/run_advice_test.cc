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

  void SetUp() override {
    CommandTest::SetUp();
    std::ofstream(path("data")) << std::string(kPages * 4096, 'x');
  }
  // A program in Python, whose first argument is the data.
  Outcome run_program(const std::string& text, const std::string& options,
                      const std::string& words = "") const {
    std::ofstream(path("program.py")) << text;
    return run("run -q --budget 4M --min-size 1M --map data --json " + path("report.json") + " " +
               options + " -- python3 " + path("program.py") + " " + path("data") + " " + words);
  }
  // How often the store is asked by a program that says MADV_RANDOM and reads all pages in order.
  void scan(const std::string& options, uint64_t* requests) const {
    const Outcome outcome = run_program(R"(
import mmap, sys
file = open(sys.argv[1], "rb")
memory = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
memory.madvise(mmap.MADV_RANDOM)
print(sum(memory[at] == 120 for at in range(0, len(memory), 4096)))
)",
                                        options);
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_EQ(outcome.out, std::to_string(kPages) + "\n");
    std::ifstream file(path("report.json"));
    const std::string text(std::istreambuf_iterator<char>(file), {});
    const Json all = Json::parse_or_null(text);
    const Json& counters = all["files"][size_t{0}]["counters"];
    EXPECT_GE(counters.value("read_bytes", uint64_t{0}), kPages * 4096) << text;
    *requests = counters.value("read_requests", uint64_t{0});
  }
};

TEST_F(RunAdvice, RandomDoesNotKeepAScanFromBeingReadTogether) {
  uint64_t requests = 0;
  ASSERT_NO_FATAL_FAILURE(scan("", &requests));
  EXPECT_GT(requests, 0U);
  EXPECT_LT(requests, kPages / 2);
}

TEST_F(RunAdvice, WhoWantsPagesAloneSaysSoToOutcore) {
  uint64_t requests = 0;
  ASSERT_NO_FATAL_FAILURE(scan("--readahead 0", &requests));
  EXPECT_GE(requests, kPages);
}

// What the program does, and what the kernel then knows of the mapping, which goes back to it.
struct Said {
  const char* name;
  const char* words;
  const char* flags;
};
class RunAdviceGoesBack : public RunAdvice, public testing::WithParamInterface<Said> {};

TEST_P(RunAdviceGoesBack, ToTheKernelWithItsMapping) {
  const Outcome outcome = run_program(R"(
import ctypes, os, sys
c = ctypes.CDLL(None)
for call in (c.mmap, c.mremap): call.restype = ctypes.c_void_p
c.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + [ctypes.c_int] * 3 + [ctypes.c_long]
c.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
c.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
c.mremap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t, ctypes.c_int]
path, size = sys.argv[1], 8 << 20
fd = os.open(path, os.O_RDONLY)
at = c.mmap(None, size, 1, 1, fd, 0)
def is_kernels(): return any(line.rstrip().endswith(path) for line in open("/proc/self/maps"))
parts = [(0, size)]
print(is_kernels())
for word in sys.argv[2:]:
    if word in ("normal", "random", "sequential"):
        assert c.madvise(at, size, ("normal", "random", "sequential").index(word)) == 0
    elif word == "cut":
        assert c.munmap(at + (2 << 20), 1 << 20) == 0
        parts = [(0, 2 << 20), (3 << 20, size - (3 << 20))]
    elif word == "move":
        parts = [(0, size + (2 << 20))]
        at = c.mremap(at, size, size + (2 << 20), 1)
        assert at != ctypes.c_void_p(-1).value
for begin, length in parts: assert c.madvise(at + begin, length, 10) == 0  # MADV_DONTFORK
flags, is_ours = set(), False
for line in open("/proc/self/smaps"):
    if "-" in line.split()[0]: is_ours = line.rstrip().endswith(path)
    elif is_ours and line.startswith("VmFlags"):
        flags.add(" ".join(f for f in ("rr", "sr") if f in line.split()) or "none")
print(*sorted(flags))
)",
                                      "", GetParam().words);
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(outcome.out, std::string("False\n") + GetParam().flags + "\n") << outcome.err;
}

INSTANTIATE_TEST_SUITE_P(Words, RunAdviceGoesBack,
                         testing::Values(Said{"Random", "random", "rr"},
                                         Said{"NormalAfterwards", "random normal", "none"},
                                         Said{"SequentialAfterwards", "random sequential", "sr"},
                                         Said{"OfBothPartsOfACut", "random cut", "rr"},
                                         Said{"OfAMovedOne", "random move", "rr"}),
                         [](const auto& one) { return std::string(one.param.name); });

}  // namespace
}  // namespace outcore::cli
