// Programs as UMap's users write them: compiled as they are, linked with Outcore, and run.
#include <gmock/gmock.h>

#include "cli/tests/command_line.h"
#include "umap/tests/umap/scene.h"

namespace outcore {
namespace {

using cli::Outcome;
using testing::HasSubstr;

class UmapProgram : public cli::CommandTest {
 protected:
  void SetUp() override {
    CommandTest::SetUp();
    if (OUTCORE_TEST_IS_SANITIZED) GTEST_SKIP() << "the library needs its sanitizer linked, too";
    library_ =
        std::filesystem::path(scene::command_path()).parent_path().parent_path() / "liboutcore.a";
    if (!std::filesystem::exists(library_)) GTEST_SKIP() << "this build has no " << library_;
  }
  // What the library has for debuggers is not needed, and takes long to link.
  Outcome compile(const std::string& compiler, const std::string& source) const {
    const std::string all = compiler + " -Wall -Wextra -Werror -I" + scene::source_folder() +
                            "/include " + scene::source_folder() + "/umap/tests/umap/programs/" +
                            source + " -o " + path("made") + " " + library_ +
                            " -luring -lstdc++ -lm -ldl -pthread -Wl,-S";
    return outcome_of(all);
  }
  Outcome run_made(const std::string& settings, const std::string& words) const {
    return outcome_of("env OUTCORE_CONFIG= " + settings + " " + path("made") + " " + words);
  }

  std::string library_;
};

// 4 MB of numbers.
constexpr const char* kWords = "/numbers 500000";

TEST_F(UmapProgram, InCSortsAFileInABufferOfAQuarter) {
  const Outcome compiled = compile("cc -std=gnu99 -O1", "sort.c");
  ASSERT_EQ(compiled.status, 0) << compiled.err;
  Outcome outcome = run_made("UMAP_PAGESIZE=8192 UMAP_BUFSIZE=128", dir() + kWords);
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(outcome.out, "sorted 8192 128\n");
  EXPECT_EQ(outcome.err, "");

  outcome = run_made("UMAP_PAGESIZE=some UMAP_BUFSIZE=256 UMAP_PAGE_FILLERS=3", dir() + kWords);
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(outcome.out, "sorted 4096 256\n");
  EXPECT_THAT(outcome.err, HasSubstr("outcore: UMAP_PAGESIZE=some: it is a power of two"));
  EXPECT_EQ(outcome.error_lines(), 1U) << outcome.err;

  outcome = run_made("UMAP_BUFSIZE=2", dir() + kWords);
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("UMAP_BUFSIZE: a buffer of 8 KiB is too small; it has "));
  EXPECT_EQ(outcome.error_lines(), 1U) << outcome.err;

  outcome = run_made("UMAP_BUFSIZE=1000000000000", dir() + kWords);
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("is more than there is; it has "));
  EXPECT_EQ(outcome.error_lines(), 1U) << outcome.err;

  outcome = run_made("OUTCORE_KEEPERS=none", dir() + kWords);
  EXPECT_EQ(outcome.status, 4);
  EXPECT_THAT(outcome.err, HasSubstr("OUTCORE_KEEPERS"));
}

TEST_F(UmapProgram, InCxxReadsAPileOfPicturesByAStoreOfItsOwn) {
  for (const char* compiler : {"c++ -std=c++11", "c++ -std=c++20"}) {
    const Outcome compiled = compile(compiler, "median.cc");
    ASSERT_EQ(compiled.status, 0) << compiled.err;
    const Outcome outcome = run_made("UMAP_BUFSIZE=500 UMAP_PAGESIZE=16384", "'" + dir() + "' 101");
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_EQ(outcome.out, "50\n50\n");
    EXPECT_EQ(outcome.err, "");
  }
}

TEST_F(UmapProgram, ThatLeavesWithoutUnmappingHasItsBytesInTheFile) {
  const Outcome compiled = compile("cc", "leave.c");
  ASSERT_EQ(compiled.status, 0) << compiled.err;
  scene::write_file(path("data"), scene::pattern(8192));
  const Outcome outcome = run_made("", path("data"));
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(outcome.err, "");
  EXPECT_EQ(scene::read_file(path("data"))[5000], std::byte{'w'});
}

// Its file has its bytes, whatever other threads are doing, and what is not stored is told.
TEST_F(UmapProgram, ThatLeavesWhileItUnmapsHasItsBytesInTheFile) {
  const Outcome compiled = compile("c++ -std=c++20", "leave_busy.cc");
  ASSERT_EQ(compiled.status, 0) << compiled.err;
  scene::write_file(path("data"), scene::pattern(8192));
  const Outcome outcome = run_made("", path("data"));
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(scene::read_file(path("data"))[5000], std::byte{'w'});
  EXPECT_THAT(outcome.err, HasSubstr("outcore: exit: 1 region of the program's own stores"));
  EXPECT_EQ(outcome.error_lines(), 1U) << outcome.err;
}

}  // namespace
}  // namespace outcore
