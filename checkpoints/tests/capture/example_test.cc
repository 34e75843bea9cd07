// The example is killed again and again, and the product is the same, bit by bit.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <string>

#include "tests/folder.h"
#include "tests/places.h"

namespace outcore {
namespace {

struct Life {
  std::string product, first_line;
  int checkpoints = 0;
  bool was_killed = false;
};

// Kills it when it has told of so many checkpoints; 0: never. It runs ahead of who reads that, so
// it has many more to make.
Life run(const std::string& folder, int checkpoints_max) {
  Life found;
  int lines[2];
  EXPECT_EQ(::pipe(lines), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::dup2(lines[1], 1);
    ::close(lines[0]);
    const std::string command = scene::command_path();  // beside which the examples lie
    const std::string program = command.substr(0, command.rfind('/')) + "/example_checkpoints";
    ::setenv("OUTCORE_BUDGET", "8M", 1);
    ::execl(program.c_str(), program.c_str(), folder.c_str(), "400", "10", nullptr);
    ::_exit(127);
  }
  ::close(lines[1]);
  std::FILE* const in = ::fdopen(lines[0], "r");
  char line[256];
  while (std::fgets(line, sizeof line, in) != nullptr) {
    const std::string text = line;
    if (found.first_line.empty()) found.first_line = text;
    if (text.starts_with("product ")) found.product = text;
    if (text.starts_with("row ") && ++found.checkpoints == checkpoints_max) ::kill(child, SIGKILL);
  }
  std::fclose(in);
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  found.was_killed = WIFSIGNALED(status);
  EXPECT_TRUE(found.was_killed || status == 0) << status;
  return found;
}

TEST(CheckpointExample, MultipliesMatricesThoughItIsKilled) {
  const scene::Folder folder;
  const Life whole = run(folder.path() + "/whole", 0);
  ASSERT_FALSE(whole.product.empty());
  EXPECT_EQ(whole.checkpoints, 40);
  const std::string pool = folder.path() + "/killed";
  for (int life = 0; life < 3; ++life) {
    const Life killed = run(pool, 4);
    ASSERT_TRUE(killed.was_killed);
    if (life > 0) {
      EXPECT_TRUE(killed.first_line.starts_with("goes on at row ")) << killed.first_line;
    }
  }
  const Life last = run(pool, 0);
  EXPECT_EQ(last.product, whole.product);
  EXPECT_LE(last.checkpoints, 40 - 3 * 4);
}

}  // namespace
}  // namespace outcore
