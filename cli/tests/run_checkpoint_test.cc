// `outcore run --checkpoint`: the files that a program has mapped for writing, as they were at one
// moment, after it was killed.
#include "cli/tests/command_line.h"
#include "outcore/checkpoint_catalog.h"

namespace outcore::cli {
namespace {

class RunCheckpoint : public CommandTest {
 protected:
  uint64_t word_of(const std::string& name) const {
    std::ifstream file(path(name), std::ios::binary);
    uint64_t word = 0;
    file.read(reinterpret_cast<char*>(&word), sizeof word);
    EXPECT_TRUE(file.good()) << name;
    return word;
  }
};

TEST_F(RunCheckpoint, TwoFilesAreHeldTogetherAndComeBackAfterAKill) {
  std::ofstream(path("count.py")) << R"(
import mmap
files = [open(name, "r+b") for name in ("a", "b")]
a, b = [mmap.mmap(f.fileno(), 0) for f in files]
i = 0
while True:
    i += 1
    for m in (a, b):
        m[0:8] = i.to_bytes(8, "little")
        m[i % 4000 * 16 + 8] = i % 251
    if i == 1:
        open("both", "w").close()
)";
  const Outcome outcome = run_lines("bash", R"(
truncate -s 64k a b
)" + command_path() + R"( run --quiet --budget 8M --min-size 4k --map a --map b \
  --checkpoint 10ms --checkpoint-pool versioned:pool -- python3 count.py &
program=$!
before=  # the last checkpoint that may lack the second file
for tries in $(seq 6000); do
  has_both=$([[ -e both ]] && echo yes)  # looked at first
  made=$()" + command_path() + R"( checkpoint ls --json versioned:pool 2>/dev/null |
    grep -o '"number": *[0-9]*' | grep -o '[0-9]*$' | sort -n | tail -n 1)
  if [[ -n $has_both ]]; then before=${before:-${made:-0}}; fi
  if [[ -n $before ]] && ((${made:-0} >= before + 3)) || ! kill -0 $program; then break; fi
done
kill -9 $program; wait $program 2>/dev/null
rm a b
name=$()" + command_path() + R"( checkpoint ls --json versioned:pool |
  python3 -c 'import json,sys; print(json.load(sys.stdin)["checkpoints"][-1]["name"])')
for file in a b; do
  )" + command_path() + R"( checkpoint export versioned:pool "$name" $file \
    --object "$PWD/$file" || exit
done
)" + command_path() + R"( checkpoint verify versioned:pool
)");
  ASSERT_EQ(outcome.status, 0) << outcome.out << outcome.err;
  const uint64_t a = word_of("a"), b = word_of("b");
  EXPECT_TRUE(a == b || a == b + 1) << a << " and " << b;
  EXPECT_GT(b, 0u);
}

TEST_F(RunCheckpoint, WithoutAPoolItIsRefused) {
  const Outcome outcome = run("run --checkpoint 10min true");
  EXPECT_EQ(outcome.status, 2) << outcome.err;
  EXPECT_NE(outcome.err.find("--checkpoint-pool versioned:FOLDER"), std::string::npos)
      << outcome.err;
  EXPECT_EQ(outcome.error_lines(), 1u) << outcome.err;
  EXPECT_EQ(run("run --checkpoint 0 true").status, 0);
}

TEST_F(RunCheckpoint, AWrongPoolIsSaidBeforeTheProgramBegins) {
  const Outcome outcome = run("run --checkpoint 10min --checkpoint-pool file:x true");
  EXPECT_EQ(outcome.status, 2) << outcome.err;
  EXPECT_NE(outcome.err.find("--checkpoint-pool"), std::string::npos) << outcome.err;
}

}  // namespace
}  // namespace outcore::cli
