// Frames of writable regions: private at first; replaced by shared ones if pages are read before
// they are written.
#include <signal.h>
#include <unistd.h>

#include <thread>
#include <vector>

#include "core/tests/conformance/mechanism.h"

namespace outcore {
namespace {

using namespace scene;

class FramesOf : public testing::Test {
 protected:
  static constexpr uint64_t kPages = 8192, kThreads = 4;

  void SetUp() override {
    RuntimeOptions options = options_with(8 * kMiB);
    options.page_bytes = 4096;
    runtime_.emplace(Runtime::start(options).value());
    path_ = folder_ / "data";
    write_file(path_, Bytes(kPages * 4096));
    MapOptions map;
    map.access = Access::kReadWrite;
    region_ = runtime_->map(path_, map).value();
    if (region_.frames() != FrameKind::kPrivate || region_.delivery() != Delivery::kInThread)
      GTEST_SKIP() << "this kernel and user get other frames to begin with";
  }

  // Why this kernel has no shared frames; empty: it has them.
  std::string lacks_shared_frames() {
    MapOptions map;
    map.frames = FrameKind::kShared;
    write_file(folder_ / "other", Bytes(4096));
    const Result<Region> probe = runtime_->map(folder_ / "other", map);
    return probe.ok() ? "" : probe.message();
  }

  uint64_t* word_of(uint64_t page) {
    return reinterpret_cast<uint64_t*>(region_.data() + page * 4096 + 8 * (page % 512));
  }

  // Several threads read every page and increment a word of it.
  void count_all_up() {
    std::vector<std::thread> threads;
    for (uint64_t t = 0; t < kThreads; ++t)
      threads.emplace_back([&, t] {
        for (uint64_t page = t; page < kPages; page += kThreads) {
          uint64_t* word = word_of(page);
          const uint64_t before = *static_cast<volatile uint64_t*>(word);
          *static_cast<volatile uint64_t*>(word) = before + 1;
        }
      });
    for (std::thread& thread : threads) thread.join();
    ++passes_;
  }

  void expect_counts_in_file() {
    ASSERT_TRUE(region_.unmap().ok());
    const Bytes bytes = read_file(path_);
    for (uint64_t page = 0; page < kPages; ++page) {
      uint64_t count = 0;
      std::memcpy(&count, bytes.data() + page * 4096 + 8 * (page % 512), sizeof count);
      ASSERT_EQ(count, passes_) << "page " << page;
    }
  }

  Folder folder_;
  std::string path_;
  std::optional<Runtime> runtime_;
  Region region_;
  uint64_t passes_ = 0;
};

TEST_F(FramesOf, PagesThatAreReadThenWrittenBecomeShared) {
  if (const std::string why = lacks_shared_frames(); !why.empty()) GTEST_SKIP() << why;
  for (int i = 0; i < 50 && region_.frames() == FrameKind::kPrivate; ++i) count_all_up();
  EXPECT_EQ(region_.frames(), FrameKind::kShared);
  count_all_up();
  expect_counts_in_file();
}

TEST_F(FramesOf, PagesWhoseFirstTouchIsAWriteStayPrivate) {
  // Without readahead, which would fill pages before they are written.
  ASSERT_TRUE(region_.advise(0, kPages * 4096, Advice::kRandom).ok());
  for (int pass = 0; pass < 3; ++pass)
    for (uint64_t page = 0; page < kPages; ++page)
      *static_cast<volatile uint64_t*>(word_of(page)) = static_cast<uint64_t>(pass) + 1;
  passes_ = 3;
  EXPECT_EQ(region_.frames(), FrameKind::kPrivate);
  expect_counts_in_file();
}

TEST_F(FramesOf, APinnedPageKeepsThemAsTheyAre) {
  if (const std::string why = lacks_shared_frames(); !why.empty()) GTEST_SKIP() << why;
  ASSERT_TRUE(region_.pin(0, 4096).ok());
  for (int i = 0; i < 4; ++i) count_all_up();
  EXPECT_EQ(region_.frames(), FrameKind::kPrivate);
  ASSERT_TRUE(region_.unpin(0, 4096).ok());
  for (int i = 0; i < 50 && region_.frames() == FrameKind::kPrivate; ++i) count_all_up();
  EXPECT_EQ(region_.frames(), FrameKind::kShared);
  expect_counts_in_file();
}

TEST_F(FramesOf, ASegvHandlerOfTheProgramKeepsThemAsTheyAre) {
  struct sigaction own {
  }, before{};
  own.sa_handler = [](int) { ::_exit(3); };
  ASSERT_EQ(::sigaction(SIGSEGV, &own, &before), 0);
  for (int i = 0; i < 4; ++i) count_all_up();
  EXPECT_EQ(region_.frames(), FrameKind::kPrivate);
  ASSERT_EQ(::sigaction(SIGSEGV, &before, nullptr), 0);
  expect_counts_in_file();
}

TEST_F(FramesOf, WhatWasAskedForIsKept) {
  ASSERT_TRUE(region_.unmap().ok());
  MapOptions map;
  map.access = Access::kReadWrite;
  map.frames = FrameKind::kPrivate;
  region_ = runtime_->map(path_, map).value();
  for (int i = 0; i < 4; ++i) count_all_up();
  EXPECT_EQ(region_.frames(), FrameKind::kPrivate);
  expect_counts_in_file();
}

TEST_F(FramesOf, ThreadsMayUnmapAndMapOthersMeanwhile) {
  write_file(folder_ / "other", pattern(4 * kMiB));
  std::atomic<bool> is_done = false;
  std::thread mapper([&] {
    while (!is_done) {
      const Result<Region> other = runtime_->map(folder_ / "other");
      ASSERT_TRUE(other.ok()) << other.message();
      ASSERT_EQ(other->data()[kMiB], byte_at(kMiB));
    }
  });
  for (int i = 0; i < 8; ++i) count_all_up();
  is_done = true;
  mapper.join();
  expect_counts_in_file();
}

}  // namespace
}  // namespace outcore
