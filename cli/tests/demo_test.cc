// The demo: a folder's own files are sorted, and the page of it needs nothing but itself.
#include "cli/tests/command_line.h"

namespace outcore::cli {
namespace {

std::string text_of(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

class Demo : public CommandTest {
 protected:
  static constexpr size_t kFileBytes = size_t{6} << 20;
  Demo() {
    std::filesystem::create_directories(path("files/deep"));
    std::filesystem::create_directory(path("data"));
    for (const char* name : {"files/first", "files/deep/<second>"}) {
      std::ofstream file(path(name));
      for (size_t i = 0; i < kFileBytes / sizeof i; ++i)
        file.write(reinterpret_cast<const char*>(&i), sizeof i);
    }
  }
  Outcome demo(const std::string& arguments) const {
    return run("demo --dir " + path("data") + " --files " + path("files") + " " + arguments);
  }
};

TEST_F(Demo, TheDataIsGoneAndTheFilesAreAsTheyWere) {
  const std::string before = text_of(path("files/first"));
  ASSERT_EQ(demo("--size 11M --threads 2").status, 0);
  EXPECT_EQ(text_of(path("files/first")), before);
  EXPECT_TRUE(std::filesystem::is_empty(path("data")));
}

// The files of a folder are sorted, the answers are verified, and a page is written.
TEST_F(Demo, ThePageLoadsNothingAndNamesThreeCommandsToTry) {
  const Outcome outcome = demo("--size 11M --threads 2 --page " + path("page.html"));
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("1. Sort 11"), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find("  verified"), std::string::npos) << outcome.out;
  EXPECT_EQ(outcome.out.find("NOT VERIFIED"), std::string::npos) << outcome.out;
  const std::string page = text_of(path("page.html"));
  EXPECT_LT(page.size(), size_t{200'000});
  for (const char* outside : {"http:", "https:", "src=", "@import", "url(", "<script", "<link"})
    EXPECT_EQ(page.find(outside), std::string::npos) << outside;
  for (const char* part : {"<!DOCTYPE html>", "prefers-color-scheme: dark",
                           "Outcore:", "mmap, MADV_RANDOM", "outcore run --budget 1G", "</html>"})
    EXPECT_NE(page.find(part), std::string::npos) << part;
}

TEST_F(Demo, APageThatCannotBeWrittenIsAFailure) {
  const Outcome outcome = demo("--size 11M --threads 2 --limit 1 --page " + path("none/page.html"));
  EXPECT_EQ(outcome.status, 1);
  EXPECT_NE(outcome.err.find("--page"), std::string::npos) << outcome.err;
}

TEST_F(Demo, AFolderWithTooLittleIsAFailureThatNamesTheOption) {
  std::filesystem::create_directory(path("empty"));
  const Outcome outcome = run("demo --dir " + dir() + " --files " + path("empty"));
  EXPECT_EQ(outcome.status, 1);
  EXPECT_NE(outcome.err.find("--files"), std::string::npos) << outcome.err;
}

}  // namespace
}  // namespace outcore::cli
