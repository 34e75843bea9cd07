// Boxes of short runs, from a file that is not in memory.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <thread>
#include <vector>

#include "arrays/tests/container/cells.h"
#include "arrays/tests/container/processes.h"
#include "outcore/arrays.h"
#include "tests/folder.h"

namespace outcore {
namespace {

using scene::value_at;

class ShortRuns : public testing::Test {
 protected:
  // 40 MiB; rows of half its width are short.
  static inline const Dims kShape = {40, 256, 512};
  void SetUp() override {
    auto out = Arrays::open(path(), ArraysMode::kWrite);
    ASSERT_TRUE(out.ok()) << out.message();
    std::vector<double> u;
    for (uint64_t x = 0; x < kShape[0]; ++x)
      for (uint64_t y = 0; y < kShape[1]; ++y)
        for (uint64_t z = 0; z < kShape[2]; ++z) u.push_back(value_at(x, y, z));
    ASSERT_TRUE(out->alloc<double>("u", kShape).ok());
    ASSERT_TRUE(out->store("u", u.data(), {0, 0, 0}, kShape).ok());
    ASSERT_TRUE(out->close().ok());
    forget();
  }
  void forget() const {
    const int fd = ::open(path().c_str(), O_RDONLY | O_CLOEXEC);
    ASSERT_GE(fd, 0);
    ::fsync(fd);
    ::posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    ::close(fd);
  }
  std::string path() const { return folder_.path() + "/a.oca"; }

  // 0, or what is wrong with it.
  int read(const Dims& at, const Dims& dims) const {
    auto in = Arrays::open(path());
    std::vector<double> box(dims[0] * dims[1] * dims[2]);
    if (!in || !in->load("u", box.data(), at, dims).ok()) return 1;
    const double* value = box.data();
    for (uint64_t x = 0; x < dims[0]; ++x)
      for (uint64_t y = 0; y < dims[1]; ++y)
        for (uint64_t z = 0; z < dims[2]; ++z)
          if (*value++ != value_at(at[0] + x, at[1] + y, at[2] + z)) return 2;
    return 0;
  }

  scene::Folder folder_;
};

TEST_F(ShortRuns, BoxesOfSeveralProcesses) {
  const auto results = scene::in_processes(4, [&](unsigned rank) {
    return read({0, rank / 2 * 128, rank % 2 * 256}, {40, 128, 256});
  });
  EXPECT_EQ(results, std::vector<int>(4, 0));
}

TEST_F(ShortRuns, BoxesOfSeveralThreads) {
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < 8; ++t)
    threads.emplace_back([&, t] { wrong += read({0, 0, t * 64}, {40, 256, 64}); });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST_F(ShortRuns, ToTheEndOfTheFile) { EXPECT_EQ(read({10, 1, 1}, {30, 255, 511}), 0); }

// Gaps that are read over, gaps that are not, and blocks that end within a row.
TEST_F(ShortRuns, OfAllWidths) {
  for (const uint64_t width : {1u, 3u, 100u, 511u})
    for (const uint64_t height : {1u, 2u, 255u})
      EXPECT_EQ(read({3, 1, 512 - width}, {30, height, width}), 0) << width << " " << height;
}

}  // namespace
}  // namespace outcore
