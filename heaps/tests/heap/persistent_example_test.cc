// The example of the documentation, run as it is told there.

#include <sys/mount.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cstdio>

#include "heaps/tests/heap/persistent_scene.h"
#include "tests/places.h"

namespace outcore {
namespace {

std::string run(const std::string& command, int status = 0) {
  std::string said;
  FILE* pipe = ::popen((command + " 2>&1").c_str(), "r");
  EXPECT_NE(pipe, nullptr);
  std::array<char, 4096> text;
  for (size_t n = 0; (n = std::fread(text.data(), 1, text.size(), pipe)) > 0;)
    said.append(text.data(), n);
  const int ended = ::pclose(pipe);
  EXPECT_TRUE(WIFEXITED(ended) && WEXITSTATUS(ended) == status) << said;
  return said;
}

TEST(PersistentExample, RemembersTheWordsOfEarlierRuns) {
  const std::string command =
      std::filesystem::path(scene::command_path()).parent_path() / "example_persistent_heap";
  if (::access(command.c_str(), X_OK) != 0) GTEST_SKIP() << "it is not built: " << command;
  const scene::Folder folder;
  const std::string call = command + " " + (folder / "words");
  EXPECT_EQ(run(call + " one two one").substr(0, 20), "3 words, 2 different");
  const std::string said = run(call + " two three");
  EXPECT_EQ(said.substr(0, 20), "5 words, 3 different");
  EXPECT_NE(said.find("  two: 2 times, last as number 3\n"), std::string::npos) << said;
}

TEST(PersistentExample, OnAFullDiskTheGraphEndsWithOneLine) {
  const std::string command =
      std::filesystem::path(scene::command_path()).parent_path() / "example_graph";
  if (::access(command.c_str(), X_OK) != 0) GTEST_SKIP() << "it is not built: " << command;
  const scene::Folder folder;
  const std::string disk = folder / "disk";
  std::filesystem::create_directory(disk);
  if (::mount("outcore", disk.c_str(), "tmpfs", 0, "size=4M") != 0)
    GTEST_SKIP() << "a small file system needs root";
  const std::string said =
      run("seq -f '%.0f 1' 1 9000000 | OUTCORE_BUDGET=8M " + command + " " + disk + "/heap", 1);
  EXPECT_EQ(::umount2(disk.c_str(), MNT_DETACH), 0);
  EXPECT_TRUE(said.starts_with("graph: ")) << said;
  EXPECT_NE(said.find("No space left on device"), std::string::npos) << said;
  EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1) << said;
}

}  // namespace
}  // namespace outcore
