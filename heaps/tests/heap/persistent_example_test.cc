// The example of the documentation, run as it is told there.

#include <array>
#include <cstdio>

#include "heaps/tests/heap/persistent_scene.h"
#include "tests/places.h"

namespace outcore {
namespace {

std::string run(const std::string& command) {
  std::string said;
  FILE* pipe = ::popen((command + " 2>&1").c_str(), "r");
  EXPECT_NE(pipe, nullptr);
  std::array<char, 4096> text;
  for (size_t n = 0; (n = std::fread(text.data(), 1, text.size(), pipe)) > 0;)
    said.append(text.data(), n);
  EXPECT_EQ(::pclose(pipe), 0) << said;
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

}  // namespace
}  // namespace outcore
