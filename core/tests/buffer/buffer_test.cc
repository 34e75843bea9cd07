// The pieces of a buffer, by themselves: claims, pins, room, and files.
#include <sys/stat.h>

#include <thread>

#include "core/buffer/buffer_file.h"
#include "core/buffer/shared_file.h"
#include "core/tests/buffer/buffer_of.h"

namespace outcore::buffer {
namespace {

TEST_F(BufferOf, APageIsClaimedOnce) {
  const auto here = join();
  Claims& claims = here->claims();
  EXPECT_EQ(claims.acquire(7), Claims::Acquired::kYes);
  EXPECT_EQ(claims.acquire(7), Claims::Acquired::kOthers);
  claims.release(7);
  EXPECT_EQ(claims.acquire(7), Claims::Acquired::kYes);
  // Of as many pages as there are places some fall on one.
  uint64_t without_place = 0;
  for (uint64_t page = 8; page < 8 + Board::kClaims; ++page)
    if (claims.acquire(page) == Claims::Acquired::kNoPlace) ++without_place;
  EXPECT_GT(without_place, 0u);
  for (uint64_t page = 7; page < 8 + Board::kClaims; ++page) claims.release(page);
  for (const auto& claim : here->member().board().claims) EXPECT_EQ(claim.load(), 0u);
}

TEST_F(BufferOf, AClaimOfADeadMemberIsDropped) {
  OUTCORE_NEEDS_THREADS_IN_CHILD();
  const auto here = join();
  const pid_t other = job_.begin([&] {
    const auto joined = Buffer::join("b", kLimit);
    return joined.value()->claims().acquire(7) == Claims::Acquired::kYes ? ::raise(SIGKILL) : 1;
  });
  EXPECT_EQ(job_.end(other), -SIGKILL);
  Claims::Acquired took = Claims::Acquired::kOthers;
  while (took == Claims::Acquired::kOthers) {
    here->claims().wait(7, 1'000'000);
    took = here->claims().acquire(7);
  }
  EXPECT_EQ(took, Claims::Acquired::kYes);
}

TEST_F(BufferOf, PinnedPagesStayAndOthersLeave) {
  const auto here = join();
  Puncher puncher(here->member());
  for (uint64_t page = 0; page < 16; ++page) put(*here, page);
  EXPECT_EQ(here->member().occupancy().pages_in_memory(), 16u);
  ASSERT_TRUE(here->pins().reserve(4));
  for (const uint64_t page : {3u, 4u, 4u, 9u}) ASSERT_EQ(here->pins().add(page), 0);
  uint64_t pages[16];
  bool is_freed[16];
  for (uint64_t i = 0; i < 16; ++i) pages[i] = i;
  EXPECT_EQ(puncher.punch(pages, is_freed), 13u);
  EXPECT_FALSE(is_freed[3] || is_freed[4] || is_freed[9]);
  EXPECT_EQ(here->member().occupancy().pages_in_memory(), 3u);
  here->pins().drop(4);
  EXPECT_EQ(puncher.punch({pages + 4, 1}, is_freed), 0u);  // pinned twice
  here->pins().drop(4);
  EXPECT_FALSE(here->pins().has(4));
  EXPECT_EQ(puncher.punch({pages + 4, 1}, is_freed), 1u);
  EXPECT_EQ(here->member().occupancy().pages_in_memory(), 2u);
}

TEST_F(BufferOf, HalfOfTheLimitCanBePinnedByAllTogether) {
  OUTCORE_NEEDS_THREADS_IN_CHILD();
  const auto here = join();
  const uint64_t half = kLimit / kPage / 2;
  ASSERT_TRUE(here->pins().reserve(half));
  EXPECT_FALSE(here->pins().reserve(1));
  const pid_t other = job_.begin([&] {
    const auto joined = Buffer::join("b", kLimit);
    return joined.value()->pins().reserve(1) ? 1 : 0;
  });
  EXPECT_EQ(job_.end(other), 0);
  here->pins().unreserve(1);
  EXPECT_TRUE(here->pins().reserve(1));
}

TEST_F(BufferOf, WhatIsPinnedOfAFileGoesWithIt) {
  const auto here = join();
  for (int round = 0; round < 20; ++round) {
    auto file = SharedFile::open(here, {1, 2, 256 * kPage, 3}).value();
    ASSERT_TRUE(here->pins().reserve(256));
    for (uint64_t page = 0; page < 256; ++page)
      ASSERT_EQ(here->pins().add(file->frame_page(page)), 0) << round;
  }
  EXPECT_EQ(here->member().record().pin_count.load(), 0u);
}

// Whoever holds a pin finds the page there for as long as it holds it, whatever others punch.
TEST_F(BufferOf, NoPageLeavesUnderAPin) {
  const auto here = join();
  Puncher puncher(here->member());
  constexpr uint64_t kPages = 8;
  std::atomic<bool> is_over{false};
  std::thread puncher_thread([&] {
    uint64_t pages[kPages];
    bool is_freed[kPages];
    for (uint64_t i = 0; i < kPages; ++i) pages[i] = i;
    while (!is_over.load()) puncher.punch(pages, is_freed);
  });
  uint64_t gone = 0;
  const auto is_there = [&](uint64_t page) {
    const auto at = static_cast<off_t>(page * kPage);
    return ::lseek(here->member().frames_fd(), at, SEEK_DATA) == at;
  };
  for (uint64_t i = 0; i < 20'000; ++i) {
    const uint64_t page = mix(i) % kPages;
    ASSERT_TRUE(here->pins().reserve(1));
    ASSERT_EQ(here->pins().add(page), 0);
    put(*here, page);
    for (int look = 0; look < 3; ++look)
      if (!is_there(page)) ++gone;
    here->pins().drop(page);
  }
  is_over.store(true);
  puncher_thread.join();
  EXPECT_EQ(gone, 0u);
}

TEST_F(BufferOf, RoomIsGivenUpToTheLimit) {
  const auto here = join();
  Room& room = here->room();
  const uint64_t pages = kLimit / kPage;
  EXPECT_TRUE(room.try_acquire(pages));
  EXPECT_FALSE(room.try_acquire(1));
  EXPECT_EQ(room.acquire(1, 1'000'000), -ENOMEM);
  room.release(1);
  EXPECT_TRUE(room.try_acquire(1));
  room.release(pages);
  EXPECT_EQ(here->member().occupancy().used_bytes(), 0u);
}

// What the kernel says of the frames, by another way than the member's.
uint64_t bytes_in_memory(Buffer& buffer) {
  struct stat about {};
  EXPECT_EQ(::fstat(buffer.member().frames_fd(), &about), 0);
  return static_cast<uint64_t>(about.st_blocks) * 512;
}

TEST_F(BufferOf, WhatIsUsedIsNeverTakenForLess) {
  const auto here = join();
  Member& member = here->member();
  Puncher puncher(member);
  for (uint64_t i = 0; i < 5000; ++i) {
    const uint64_t page = mix(i) % 64;
    bool is_freed = false;
    if (mix(i + 7) % 4 == 0) {
      puncher.punch({&page, 1}, {&is_freed, 1});
    } else {
      ASSERT_TRUE(here->room().try_acquire(1));
      EXPECT_GE(member.occupancy().used_bytes_at_most(), bytes_in_memory(*here) + kPage);
      put(*here, page);
      EXPECT_GE(member.occupancy().used_bytes_at_most(), bytes_in_memory(*here));
      here->room().report(page, 1, false);
      here->room().release(1);
    }
    EXPECT_GE(member.occupancy().used_bytes_at_most(), bytes_in_memory(*here));
  }
  // Others may have freed pages: it is counted anew before long.
  uint64_t used = 0;
  for (int i = 0; i < 100; ++i) used = member.occupancy().used_bytes_at_most();
  EXPECT_EQ(used, bytes_in_memory(*here));
}

TEST_F(BufferOf, WhatADeadMemberBroughtInUntoldIsCounted) {
  OUTCORE_NEEDS_THREADS_IN_CHILD();
  const auto here = join();
  EXPECT_EQ(here->member().occupancy().used_bytes_at_most(), 0u);
  const pid_t other = job_.begin([&] {
    const auto joined = Buffer::join("b", kLimit).value();
    if (!joined->room().try_acquire(16)) return 1;
    for (uint64_t page = 0; page < 16; ++page) put(*joined, page);
    return ::raise(SIGKILL);
  });
  EXPECT_EQ(job_.end(other), -SIGKILL);
  // Also at the moment when another clears what it left.
  for (int i = 0; i < 60; ++i) {
    EXPECT_GE(here->member().occupancy().used_bytes_at_most(), 16 * kPage);
    if (i == 30) {
      const Member::FilesLock lock(here->member());
      here->member().clear_dead();
    }
  }
}

TEST_F(BufferOf, PrivateMemoryLeavesTheFramesAnEighth) {
  OUTCORE_NEEDS_THREADS_IN_CHILD();
  const auto here = join();
  EXPECT_FALSE(here->acquire_private(kLimit, 1'000'000));
  EXPECT_TRUE(here->acquire_private(kLimit / 2, 1'000'000));
  EXPECT_EQ(here->member().occupancy().used_bytes(), kLimit / 2);
  const pid_t other = job_.begin([&] {
    const auto joined = Buffer::join("b", kLimit);
    if (joined.value()->acquire_private(kLimit / 2, 1'000'000)) return 1;
    return joined.value()->acquire_private(kLimit / 4, 1'000'000) ? 0 : 2;
  });
  EXPECT_EQ(job_.end(other), 0);
  // What it had while it lived is no longer counted.
  EXPECT_TRUE(here->acquire_private(kLimit / 4, 1'000'000));
  EXPECT_EQ(resize_buffer("b", kLimit / 2).code(), EBUSY);
  here->release_private(kLimit / 4 * 3);
  EXPECT_EQ(here->member().occupancy().used_bytes(), 0u);
}

TEST_F(BufferOf, WhoComesSecondFindsTheFileWhereTheFirstPutIt) {
  OUTCORE_NEEDS_THREADS_IN_CHILD();
  const auto here = join();
  const store::FileVersion version{1, 2, 100 * kPage, 3};
  auto first = SharedFile::open(here, version).value();
  const uint64_t place = first->first_frame_page();
  const auto other = [&](const store::FileVersion& of) {
    return job_.end(job_.begin([&] {
      const auto joined = Buffer::join("b", kLimit);
      return SharedFile::open(joined.value(), of).value()->first_frame_page() == place ? 1 : 0;
    }));
  };
  EXPECT_EQ(other(version), 1);
  EXPECT_EQ(other({1, 2, 100 * kPage, 4}), 0);  // it was written since
  EXPECT_EQ(other({1, 3, 100 * kPage, 3}), 0);
  first->close_to_others();
  EXPECT_EQ(other(version), 0);
  // Nobody has the new ones any more; the place is never given out again.
  first.reset();
  auto again = SharedFile::open(here, version).value();
  EXPECT_NE(again->first_frame_page(), place);
}

TEST_F(BufferOf, WhoBlocksWaitsForThoseInside) {
  const auto here = join();
  const auto file = SharedFile::open(here, {1, 2, kPage, 3}).value();
  ASSERT_TRUE(file->enter());
  EXPECT_FALSE(file->block(1'000'000));
  ASSERT_TRUE(file->enter());
  file->leave();
  file->leave();
  EXPECT_TRUE(file->block(1'000'000));
  EXPECT_FALSE(file->enter());
  file->unblock();
  EXPECT_TRUE(file->enter());
  file->leave();
}

}  // namespace
}  // namespace outcore::buffer
