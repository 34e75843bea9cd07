// pmem: on a filesystem that has DAX, and provides no space ahead (ext2): it is written as a file.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include "arrays/container/file_memory.h"
#include "outcore/arrays.h"
#include "tests/folder.h"

namespace outcore {
namespace {

using arrays::FileMemory;
using arrays::MapSync;
using testing::HasSubstr;

void* map_any_file(MapSync, int fd, size_t size_bytes, int protection, off_t offset) {
  return ::mmap(nullptr, size_bytes, protection, MAP_SHARED, fd, offset);
}

class PmemWithoutSpace : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (arrays::best_flush() == arrays::Flush::kNone) GTEST_SKIP() << "no known flushes";
    FileMemory::kernel.map = &map_any_file;
    FileMemory::kernel.has_dax = [](int) { return true; };
    FileMemory::kernel.can_provide = [](int) { return false; };
  }
  void TearDown() override { FileMemory::kernel = FileMemory::kOwn; }
  std::string uri() const { return "pmem:" + (folder_ / "a.oca") + GetParam(); }
  scene::Folder folder_;
};

TEST_P(PmemWithoutSpace, IsWrittenAsAFileAndReadAsMemory) {
  auto out = Arrays::open(uri(), ArraysMode::kWrite);
  ASSERT_TRUE(out.ok()) << out.message();
  EXPECT_THAT(out->describe(), HasSubstr("through the page cache"));
  ASSERT_TRUE(out->store("u", 1).ok() && out->close().ok());
  auto in = Arrays::open(uri());
  ASSERT_TRUE(in.ok()) << in.message();
  EXPECT_THAT(in->describe(), HasSubstr("persistent memory"));
  EXPECT_EQ(in->load<int>("u").value(), 1);
}

INSTANTIATE_TEST_SUITE_P(, PmemWithoutSpace, testing::Values("", "?map_sync=off"),
                         [](const auto& of) { return *of.param == 0 ? "On" : "Off"; });

}  // namespace
}  // namespace outcore
