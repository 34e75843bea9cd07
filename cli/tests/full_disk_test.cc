// What a run writes at its end, on a disk that is full: there is nothing, or what was there before,
// and one line says so.
#include <fcntl.h>
#include <sys/mount.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "cli/tests/command_line.h"
#include "outcore/arrays.h"

namespace outcore::cli {
namespace {

class FullDisk : public CommandTest {
 protected:
  void SetUp() override {
    CommandTest::SetUp();
    std::filesystem::create_directory(path("full"));
    if (::mount("none", path("full").c_str(), "tmpfs", 0, "size=64k") != 0)
      GTEST_SKIP() << "mounting a tmpfs needs root: " << std::strerror(errno);
    is_mounted_ = true;
    std::ofstream(path("data")) << std::string(4 << 20, 'x');
    std::ofstream(path("program.py"))
        << "import mmap\nf = open('" << path("data")
        << "', 'rb')\nm = mmap.mmap(f.fileno(), 0, prot=mmap.PROT_READ)\n"
           "assert all(m[i] == 120 for i in range(0, 4 << 20, 8192))\n";
  }
  ~FullDisk() override {
    if (is_mounted_) ::umount2(path("full").c_str(), MNT_DETACH);
  }
  // Nothing more has room there.
  void fill() const {
    const int file = ::open(path("full/rest").c_str(), O_WRONLY | O_CREAT, 0600);
    ASSERT_GE(file, 0);
    const std::string page(4096, 'r');
    while (::write(file, page.data(), page.size()) > 0) continue;
    ASSERT_EQ(errno, ENOSPC);
    ::close(file);
  }
  std::vector<std::string> names() const {
    std::vector<std::string> all;
    for (const auto& entry : std::filesystem::directory_iterator(path("full")))
      if (entry.path().filename() != "rest") all.push_back(entry.path().filename());
    return all;
  }
  std::string text_of(const std::string& name) const {
    std::ifstream file(path(name), std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(file), {});
  }
  Outcome run_with(const std::string& options) const {
    return run("run -q --buffer none --min-size 4k --map '" + path("data") + "' " + options +
               " -- python3 " + path("program.py"));
  }
  void expect_told(const Outcome& outcome, const std::string& file) const {
    EXPECT_EQ(outcome.status, 0);
    EXPECT_EQ(outcome.error_lines(), 1U) << outcome.err;
    for (const std::string& words :
         {path(file), std::string("No space left on device"), std::string("free some space")})
      EXPECT_NE(outcome.err.find(words), std::string::npos) << outcome.err;
  }

 private:
  bool is_mounted_ = false;
};

TEST_F(FullDisk, GetsNoFileThatIsEmptyOrCutShort) {
  fill();
  for (const char* option : {"json", "metrics-at-exit", "learn"}) {
    const std::string file = std::string("full/") + option;
    expect_told(run_with(std::string("--") + option + " " + path(file)), file);
    EXPECT_EQ(names(), std::vector<std::string>()) << option;
  }
}

TEST_F(FullDisk, KeepsWhatIsThereWhereThereIsRoomForAPart) {
  const std::string old = "{\"old\": 1}\n";  // its block has room for more, but not for all
  std::ofstream(path("full/json")) << old;
  fill();
  const std::string program = "python3 " + path("program.py");
  const Outcome outcome = run("run -q --buffer none --min-size 4k --map '" + path("data") +
                              "' --json " + path("full/json") + " -- sh -c '" + program + " & " +
                              program + " & " + program + " & wait'");
  expect_told(outcome, "full/json");
  EXPECT_NE(outcome.err.find("what is in the file is an earlier run's"), std::string::npos)
      << outcome.err;
  EXPECT_EQ(text_of("full/json"), old);
}

// A line of which a letter has room. What the variable names is not emptied first.
TEST_F(FullDisk, TakesBackWhatHadRoomInPart) {
  const std::string old = std::string(4094, ' ') + '\n';
  std::ofstream(path("full/lines")) << old;
  fill();
  const Outcome outcome =
      outcome_of("OUTCORE_METRICS_AT_EXIT=" + path("full/lines") + " " + command_path() +
                 " run -q --buffer none --min-size 4k -- python3 " + path("program.py"));
  expect_told(outcome, "full/lines");
  EXPECT_EQ(text_of("full/lines"), old);
}

TEST_F(FullDisk, GetsAWholeFileOfSmallerSizeInPlaceOfALargerOne) {
  std::ofstream(path("full/json")) << std::string(40'000, 'o');
  fill();
  const Outcome outcome = run_with("--json " + path("full/json"));
  EXPECT_EQ(outcome.status, 0);
  EXPECT_EQ(outcome.err, "");
  EXPECT_TRUE(Json::parse_or_null(text_of("full/json")).is_object()) << text_of("full/json");
}

// A disk that is mounted read-only once there is something on it.
TEST_F(FullDisk, ThatIsReadOnlyIsToldWithTheRemedy) {
  const std::string pool = "'versioned:" + path("full/pool") + "?object=";
  std::ofstream(path("small")) << "x";
  ASSERT_EQ(run("store put " + path("small") + " " + pool + "a'").status, 0);
  std::ofstream(path("full/f")) << "x";
  ASSERT_EQ(::mount("none", path("full").c_str(), "tmpfs", MS_REMOUNT | MS_RDONLY, "size=64k"), 0);
  for (const std::string& target :
       {pool + "b'", "'versioned:" + path("full/other") + "'", "'sparse:" + path("full/s") + "'",
        path("full/g"), "--replace " + path("full/f")}) {
    const Outcome outcome = run("store put " + path("small") + " " + target);
    EXPECT_EQ(outcome.status, 1) << outcome.err;
    EXPECT_EQ(outcome.error_lines(), 1U) << outcome.err;
    EXPECT_NE(outcome.err.find("Read-only file system; name "), std::string::npos) << outcome.err;
  }
  const auto arrays = Arrays::open(path("full/a.oca"), ArraysMode::kWrite);
  ASSERT_FALSE(arrays.ok());
  EXPECT_NE(arrays.message().find("Read-only file system; name another place"), std::string::npos)
      << arrays.message();
}

}  // namespace
}  // namespace outcore::cli
