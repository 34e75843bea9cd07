// Reshape: regions on lent addresses are cut, enlarged and handed back, and their stores change
// under them, while threads touch the rest.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "core/tests/conformance/lent.h"

namespace outcore {
namespace {

using namespace scene;

class ReshapeOf : public OnLentAddresses {};
OUTCORE_ON_ALL_MECHANISMS(ReshapeOf);

TEST_P(ReshapeOf, WhatIsCutOutIsStoredAndTheRestGoesOn) {
  Region::Impl* last = &take(data_bytes());
  const uint64_t step = pages() / 6 * page_bytes();
  // Five gaps of two pages, from the front; the threads touched them only before.
  const auto is_in_gap = [&](uint64_t at) {
    return at >= step && at / step <= 5 && at % step < 2 * page_bytes();
  };
  for (uint64_t gap = step; gap <= 5 * step; gap += step)
    for (uint64_t at = gap; at < gap + 2 * page_bytes(); at += 4096) add(at);
  start_threads([=](uint64_t at) { return !is_in_gap(at); });
  for (uint64_t gap = step; gap <= 5 * step; gap += step) {
    let_them_touch();
    const uint64_t from = gap - last->view->offset;
    const Status s = cut(*last, from, from + 2 * page_bytes());
    ASSERT_TRUE(s.ok()) << s.message();
    last = regions_.back().get();
    EXPECT_EQ(last->view->offset, gap + 2 * page_bytes());
  }
  let_them_touch();
  stop_threads();
  EXPECT_EQ(regions_.size(), 6u);
  for (auto& region : regions_) ASSERT_TRUE(impl_->mapper->unmap(*region, false).ok());
  regions_.clear();
  expect_stored(0, data_bytes());
}

TEST_P(ReshapeOf, AViewDividedUnderItsThreadsLosesNoByte) {
  Region::Impl* last = &take(data_bytes());
  start_threads([](uint64_t) { return true; });
  for (uint64_t part = 1; part < 8; ++part) {
    let_them_touch();
    const uint64_t at = pages() / 8 * part * page_bytes() - last->view->offset;
    const Status s = cut(*last, at, at);
    ASSERT_TRUE(s.ok()) << s.message();
    last = regions_.back().get();
  }
  let_them_touch();
  stop_threads();
  EXPECT_EQ(regions_.size(), 8u);
  for (auto& region : regions_) ASSERT_TRUE(impl_->mapper->unmap(*region, false).ok());
  regions_.clear();
  expect_stored(0, data_bytes());
}

TEST_P(ReshapeOf, TheEndsOfAViewCanBeCutOff) {
  Region::Impl& region = take(data_bytes());
  const uint64_t first = 3 * page_bytes(), end = data_bytes() - 2 * page_bytes();
  for (uint64_t at = 0; at < data_bytes(); at += page_bytes()) add(at);
  start_threads([=](uint64_t at) { return at >= first && at < end; });
  let_them_touch();
  ASSERT_TRUE(cut(region, end, data_bytes()).ok());
  let_them_touch();
  ASSERT_TRUE(cut(region, 0, first).ok());
  let_them_touch();
  stop_threads();
  ASSERT_EQ(regions_.size(), 1u);
  EXPECT_EQ(region.view->address, addresses_ + first);
  EXPECT_EQ(region.view->offset, first);
  EXPECT_EQ(region.view->mapped_bytes(), end - first);
  ASSERT_TRUE(impl_->mapper->unmap(region, false).ok());
  regions_.clear();
  expect_stored(0, data_bytes());
}

TEST_P(ReshapeOf, APageThatIsCutIsShownInBothPartsOrTheCutIsRefused) {
  if (page_bytes() == 4096) GTEST_SKIP() << "pages of 4 KiB cannot be cut";
  Region::Impl& region = take(data_bytes());
  const uint64_t page = 5 * page_bytes(), from = page + 4096, to = page + 3 * 4096;
  for (uint64_t at = page; at < page + page_bytes(); at += 4096) add(at);
  const Status s = cut(region, from, to);
  if (GetParam().frames == FrameKind::kPrivate) {
    EXPECT_EQ(s.code(), EBUSY) << s.message();
    EXPECT_EQ(regions_.size(), 1u);
    for (uint64_t at = page; at < page + page_bytes(); at += 4096) add(at);
  } else {
    ASSERT_TRUE(s.ok()) << s.message();
    add(page);
    for (uint64_t at = to; at < page + page_bytes(); at += 4096) add(at);
  }
  EXPECT_EQ(wrong_, 0u);
  for (auto& r : regions_) ASSERT_TRUE(impl_->mapper->unmap(*r, false).ok());
  regions_.clear();
  expect_stored(0, data_bytes());
}

TEST_P(ReshapeOf, ACutLeavesTheOtherPagesInMemory) {
  Region::Impl& region = take(data_bytes());
  for (uint64_t page = 0; page < 6; ++page) add(page * page_bytes());
  const uint64_t before = store_->reads;
  ASSERT_TRUE(cut(region, 2 * page_bytes(), 3 * page_bytes()).ok());
  for (const uint64_t page : {0, 1, 3, 4, 5}) add(page * page_bytes());
  EXPECT_EQ(store_->reads, before);
  // The parts that show them now write them back.
  for (auto& r : regions_) ASSERT_TRUE(impl_->mapper->unmap(*r, false).ok());
  regions_.clear();
  EXPECT_EQ(wrong_, 0u);
  expect_stored(0, data_bytes());
}

TEST_P(ReshapeOf, APinnedPageIsNotCutOutAndNothingHasChanged) {
  Region::Impl& region = take(data_bytes());
  for (uint64_t page = 0; page < 4; ++page) add(page * page_bytes());
  region::View& view = *region.view;
  ASSERT_TRUE(impl_->engine->pin(view, addresses_ + 2 * page_bytes(), 1).ok());
  const Status s = cut(region, page_bytes(), 4 * page_bytes());
  EXPECT_EQ(s.code(), EBUSY) << s.message();
  EXPECT_EQ(region.view, &view);
  for (uint64_t page = 0; page < 4; ++page) add(page * page_bytes());
  ASSERT_TRUE(impl_->engine->unpin(view, addresses_ + 2 * page_bytes(), 1).ok());
  ASSERT_TRUE(cut(region, page_bytes(), 4 * page_bytes()).ok());
  EXPECT_EQ(wrong_, 0u);
}

TEST_P(ReshapeOf, WhatCannotBeStoredIsNotCutOut) {
  Region::Impl& region = take(data_bytes());
  for (uint64_t page = 0; page < 4; ++page) add(page * page_bytes());
  store_->write_error = EIO;
  EXPECT_FALSE(cut(region, page_bytes(), 3 * page_bytes()).ok());
  EXPECT_EQ(regions_.size(), 1u);
  for (uint64_t page = 0; page < 4; ++page) add(page * page_bytes());
  store_->write_error = 0;
  {
    const os::SignalBlock block;  // the next flush reports it
    EXPECT_EQ(impl_->engine->flush(*region.cache, 0, 4).code(), EIO);
  }
  add(page_bytes());
  ASSERT_TRUE(cut(region, page_bytes(), 3 * page_bytes()).ok());
  EXPECT_EQ(wrong_, 0u);
}

TEST_P(ReshapeOf, AViewGrowsUnderItsThreads) {
  // At first it ends within a page.
  uint64_t shown = 3 * page_bytes() + (page_bytes() > 4096 ? 4096 : 0);
  Region::Impl& region = take(shown);
  start_threads([=](uint64_t at) { return at < shown; });
  for (const uint64_t bytes : {4 * page_bytes() + 4096, 9 * page_bytes(), data_bytes()}) {
    let_them_touch();
    const Status s = impl_->changes->extend(region, bytes, data_bytes());
    ASSERT_TRUE(s.ok()) << s.message();
    for (uint64_t at = shown; at < bytes; at += 4096) add(at);
    shown = bytes;
  }
  stop_threads();
  ASSERT_TRUE(impl_->mapper->unmap(region, false).ok());
  regions_.clear();
  expect_stored(0, data_bytes());
}

TEST_P(ReshapeOf, BytesThatChangeInTheStoreAreSeenAtOnce) {
  const uint64_t first = 2, end = 6, at = 3 * page_bytes() + kWordAt;
  std::atomic<uint64_t> version{0};
  const auto put = [&](uint64_t v) {
    std::memcpy(store_->bytes().data() + at, &v, sizeof v);
    version = v;
  };
  put(1);
  Region::Impl& region = take(data_bytes());
  std::atomic<uint64_t> stale{0}, reads{0};
  std::vector<std::thread> readers;
  for (uint64_t t = 0; t < kThreads; ++t)
    readers.emplace_back([&, t] {
      while (!is_over_) {
        const uint64_t least = version;
        const auto* word = reinterpret_cast<const uint64_t*>(addresses_ + at);
        // `version` is increased after the bytes in the store: a read may be ahead of it.
        stale += __atomic_load_n(word, __ATOMIC_RELAXED) < least;
        ++reads;
        add((first + (reads + t) % (end - first)) * page_bytes() +
            (page_bytes() > 4096 ? 4096 : 0) + (page_bytes() == 4096 ? 4 * 4096 : 0));
      }
    });
  for (uint64_t v = 2; v < 40; ++v) {
    for (const uint64_t until = reads + 20; reads < until;) std::this_thread::yield();
    const Status s = impl_->changes->with_blocked_range(
        *region.cache, first * page_bytes(), (end - first) * page_bytes(), [&] { put(v); });
    ASSERT_TRUE(s.ok()) << s.message();
  }
  is_over_ = true;
  for (std::thread& reader : readers) reader.join();
  EXPECT_EQ(stale, 0u);
  EXPECT_EQ(wrong_, 0u);
}

TEST_P(ReshapeOf, AFileThatIsHandedBackIsTheKernelsUnderItsThreads) {
  const std::string path = file_of(data_bytes());
  const int fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_GE(fd, 0);
  auto file = open_store(path, {.is_writable = true});
  ASSERT_TRUE(file.ok()) << file.message();
  Region::Impl& region = take(data_bytes(), std::move(file).value());
  start_threads([](uint64_t) { return true; });
  let_them_touch();
  // `place` fails at first: then nothing has changed.
  EXPECT_EQ(impl_->changes->hand_back({&region},
                                      [] {
                                        return Status(Error{ENOMEM, "no room"});
                                      })
                .code(),
            ENOMEM);
  let_them_touch();
  const Status s = impl_->changes->hand_back({&region}, [&]() -> Status {
    // Not by mmap(): ThreadSanitizer would treat it as a write to memory that the threads touch.
    const auto placed = reinterpret_cast<std::byte*>(
        ::syscall(SYS_mmap, addresses_, data_bytes(), PROT_READ | PROT_WRITE,
                  MAP_SHARED | MAP_FIXED, fd, off_t{0}));  // a whole word: an int has half of one
    return placed == addresses_ ? Status() : Status(Error{errno, "mmap"});
  });
  ASSERT_TRUE(s.ok()) << s.message();
  regions_.clear();
  let_them_touch();
  stop_threads();
  const Bytes now = read_file(path);
  std::memcpy(store_->bytes().data(), now.data(), now.size());
  expect_stored(0, data_bytes());
  ::close(fd);
}

}  // namespace
}  // namespace outcore
