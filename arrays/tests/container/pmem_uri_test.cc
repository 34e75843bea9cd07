// pmem: as a name: what it takes, what it refuses, and what it is for a region.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <fstream>
#include <string>
#include <utility>

#include "outcore/arrays.h"
#include "outcore/runtime.h"
#include "tests/folder.h"

namespace outcore {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

TEST(PmemUri, TheDefaultCanBeWritten) {
  const scene::Folder folder;
  const std::string uri = "pmem:" + (folder / "a.oca");
  auto out = Arrays::open(uri + "?map_sync=on", ArraysMode::kWrite);
  ASSERT_TRUE(out.ok()) << out.message();
  const std::string description = out->describe();
  ASSERT_TRUE(out->store("u", 1).ok() && out->close().ok());
  EXPECT_EQ(Arrays::open(uri, ArraysMode::kUpdate)->describe(), description);
  EXPECT_EQ(Arrays::open(uri + "?map_sync=off")->load<int>("u").value(), 1);
}

TEST(PmemUri, WhatCannotBeIsRefused) {
  const scene::Folder folder;
  for (const auto& [uri, why] : {std::pair{"pmem:", "write pmem:PATH"},
                                 {"pmem:/nowhere?direct=off", "no parameter but map_sync"},
                                 {"pmem:/nowhere?map_sync=off&direct=off", "but map_sync"},
                                 {"pmem:?map_sync=off", "write pmem:PATH"},
                                 {"pmem:/nowhere?map_sync=of", "did you mean 'off'?): write on or"},
                                 {"pmem:/nowhere?map_sync=", "map_sync= is unknown: write on or"},
                                 {"pmem:/nowhere?map_sink=off", "did you mean 'map_sync'"},
                                 {"file:/nowhere?map_sync=off", "'map_sync' is unknown"},
                                 {"pmem:/nowhere?dirct=off", "did you mean 'direct'"},
                                 {"pmem://host/nowhere", "a host has no meaning here"},
                                 {"pmen:/nowhere", "did you mean 'pmem'"}}) {
    const auto opened = Arrays::open(uri, ArraysMode::kWrite);
    EXPECT_EQ(opened.code(), EINVAL) << uri;
    EXPECT_THAT(opened.message(), AllOf(HasSubstr(why), Not(HasSubstr("\n"))));
  }
  EXPECT_EQ(Arrays::open("pmem:" + folder.path()).code(), EINVAL) << "a folder";
  EXPECT_EQ(Arrays::open("pmem:" + (folder / "none")).code(), ENOENT);
}

TEST(PmemUri, ForARegionItIsAFile) {
  const scene::Folder folder;
  auto runtime = Runtime::start();
  ASSERT_TRUE(runtime.ok()) << runtime.message();
  MapOptions options;
  options.access = Access::kReadWrite;
  options.may_create = true;
  options.size_bytes = 1 << 20;
  {
    EXPECT_EQ(runtime->map("pmem:" + (folder / "a") + "?map_sync=no", options).code(), EINVAL);
    auto region = runtime->map("pmem:" + (folder / "a") + "?map_sync=off", options);
    ASSERT_TRUE(region.ok()) << region.message();
    region->data()[5] = std::byte{7};
    ASSERT_TRUE(region->sync().ok());
  }
  std::ifstream file(folder / "a", std::ios::binary);
  file.seekg(5);
  EXPECT_EQ(file.get(), 7);
}

}  // namespace
}  // namespace outcore
