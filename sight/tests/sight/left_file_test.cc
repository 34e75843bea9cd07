// Left files: which file it is, of a path that is longer than what is published of it.
#include "sight/commands/left_file.h"

#include <gtest/gtest.h>

#include <string>

namespace outcore::cli {
namespace {

TEST(LeftFiles, AShortPathIsComparedAsAWhole) {
  const LeftFile file{"/data/a", "why", 1};
  EXPECT_TRUE(is_at(file, "/data/a"));
  EXPECT_FALSE(is_at(file, "/data/ab"));
  EXPECT_FALSE(is_at(file, "/data"));
  // A name of the user's that ends so is no cut one.
  EXPECT_FALSE(is_at({"/data/…", "why", 1}, "/data/ab"));
  EXPECT_TRUE(is_at({"/data/…", "why", 1}, "/data/…"));
}

TEST(LeftFiles, OfALongPathThereIsTheBeginning) {
  const std::string path = "/" + std::string(300, 'x');
  const LeftFile file{path.substr(0, 252) + "…", "why", 1};
  EXPECT_TRUE(is_at(file, path));
  EXPECT_FALSE(is_at(file, "/y" + path));
  EXPECT_FALSE(is_at(file, path.substr(0, 250)));
  EXPECT_FALSE(is_at(file, path.substr(0, 255))) << "which is published as a whole";
}

}  // namespace
}  // namespace outcore::cli
