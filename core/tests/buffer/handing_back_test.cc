// Processes that write a file together hand it back at one moment, or not at all.
#include "core/buffer/handing_back.h"

#include <fcntl.h>
#include <signal.h>

#include <atomic>

#include "core/buffer/opener.h"
#include "core/buffer/shared_file.h"
#include "core/tests/buffer/buffer_of.h"

namespace outcore::buffer {
namespace {

constexpr uint64_t kPagesHeld = 64, kHandingNs = 20'000'000'000;
constexpr int kNotJoined = 60, kWasReleased = 61, kNotReleased = 62, kTooEarly = 63;

class HandedBack : public BufferOf {
 protected:
  void SetUp() override { OUTCORE_NEEDS_THREADS_IN_CHILD(); }

  using Use = SharedFile::Use;
  static Result<std::unique_ptr<SharedFile>> open(const std::shared_ptr<Buffer>& buffer, Use use,
                                                  int fd) {
    return SharedFile::open(buffer, {1, 2, kPagesHeld * kPage, 3}, use, fd);
  }
  // A member that has marked `page` does `work(file)`.
  template <typename Work>
  pid_t begin(uint64_t page, const Work& work) {
    return job_.begin([this, page, work] {
      const int fd = ::open(job_.path().c_str(), O_RDWR | O_CLOEXEC);
      auto joined = Buffer::join("b", kLimit);
      if (!joined) return kNotJoined;
      auto file = open(joined.value(), Use::kTogether, fd);
      uint64_t newly = 0;
      if (!file || file.value()->marks()->set(page, 1, &newly) != 0) return kNotJoined;
      job_.shared().arrived.fetch_add(1);
      const int code = work(*file.value());
      file.value()->end_writing(fd, {});
      return code;
    });
  }
  // As if the pages were stored.
  static int store_all(SharedFile& file) {
    Marks& marks = *file.marks();
    for (uint64_t page = 0; page < kPagesHeld; ++page)
      if (marks.is_mine(page) && marks.begin_storing(page))
        marks.end_storing(page, marks.own_bits());
    return marks.has_any_mine() ? -EBUSY : 0;
  }
  void wait_for_arrived(uint32_t count) {
    while (job_.shared().arrived.load() < count) ::sched_yield();
  }
  void wait_for_gate() {
    while (job_.shared().gate.load() == 0) ::sched_yield();
  }
};

TEST_F(HandedBack, NobodyGoesOnBeforeAllHaveStored) {
  std::vector<pid_t> members;
  for (uint64_t i = 0; i < 3; ++i)
    members.push_back(begin(i * 7, [this, i](SharedFile& file) {
      wait_for_arrived(3);
      const Status s = file.hand_back(
          [&] {
            if (i == 0) wait_for_gate();  // the last one
            job_.shared().touches.fetch_add(1);
            return store_all(file);
          },
          kHandingNs);
      if (!s.ok()) return kNotReleased;
      return job_.shared().touches.load() == 3 && !file.marks()->is_any_left() ? 0 : kTooEarly;
    }));
  while (job_.shared().touches.load() != 2) ::sched_yield();
  job_.shared().gate.store(1);
  for (const pid_t member : members) EXPECT_EQ(job_.end(member), 0);
}

TEST_F(HandedBack, WhatAKilledOneHasMarkedIsStoredFirst) {
  const pid_t killed = begin(3, [](SharedFile&) {
    for (;;) ::sched_yield();
    return 0;
  });
  wait_for_arrived(1);
  const pid_t other = begin(5, [this](SharedFile& file) {
    wait_for_arrived(2);
    const Status s = file.hand_back(
        [&] {
          job_.shared().gate.store(1);
          return store_all(file);
        },
        kHandingNs);
    return s.ok() && !file.marks()->is_any_left() ? 0 : kNotReleased;
  });
  wait_for_gate();
  job_.kill(killed);
  EXPECT_EQ(job_.end(other), 0);
}

TEST_F(HandedBack, IfOneCannotStoreAllGoOnAsBefore) {
  std::vector<pid_t> members;
  for (uint64_t i = 0; i < 2; ++i)
    members.push_back(begin(i * 7, [this, i](SharedFile& file) {
      wait_for_arrived(2);
      while (i == 1 && !file.is_wanted_back()) ::sched_yield();  // else it would begin another one
      const auto store = [&] {
        if (i == 1) return job_.shared().gate.store(1), store_all(file);
        wait_for_gate();
        return -ENOSPC;
      };
      if (file.hand_back(store, kHandingNs).ok()) return kWasReleased;
      uint64_t newly = 0;
      return file.is_wanted_back() || file.marks()->set(9, 1, &newly) != 0 ? kTooEarly : 0;
    }));
  for (const pid_t member : members) EXPECT_EQ(job_.end(member), 0);
}

TEST_F(HandedBack, AStrangerWaitsUntilItIs) {
  const auto here = join();
  const pid_t member = begin(3, [this](SharedFile& file) {
    while (!file.is_wanted_back()) ::sched_yield();
    if (!file.hand_back([&] { return store_all(file); }, kHandingNs).ok()) return kNotReleased;
    for (int i = 0; i < 1000; ++i) ::sched_yield();  // its mapping is still being replaced
    job_.shared().gate.store(1);
    return 0;
  });
  wait_for_arrived(1);
  EXPECT_TRUE(SharedFile::is_together(*here, 1, 2));
  EXPECT_TRUE(SharedFile::ask_back(*here, 1, 2, kHandingNs).ok());
  EXPECT_EQ(job_.shared().gate.load(), 1u);
  EXPECT_FALSE(SharedFile::is_together(*here, 1, 2));
  EXPECT_EQ(job_.end(member), 0);
}

TEST_F(HandedBack, ProgramsThatHandNothingBackDoNotJoin) {
  const auto here = join();
  const int fd = ::open(job_.path().c_str(), O_RDWR | O_CLOEXEC);
  EXPECT_EQ(open(here, Use::kJoined, fd).code(), ENOENT);
  const pid_t member = begin(3, [this](SharedFile& file) {
    wait_for_gate();
    return store_all(file);
  });
  wait_for_arrived(1);
  EXPECT_EQ(open(here, Use::kWrite, fd).code(), EBUSY);
  EXPECT_EQ(open(here, Use::kRead, fd).code(), EBUSY);
  {
    auto joined = open(here, Use::kJoined, fd);
    ASSERT_TRUE(joined.ok()) << joined.message();
    EXPECT_TRUE(joined.value()->leaves_others());
    joined.value()->end_writing(fd, {});
  }
  job_.shared().gate.store(1);
  EXPECT_EQ(job_.end(member), 0);
  ::close(fd);
}

TEST_F(HandedBack, AMemberThatOpensIsKnownByItsProcess) {
  const auto here = join();
  const Board& board = here->member().board();
  EXPECT_FALSE(Opener::is_one(board, ::getpid()));
  Opener::introduce(here->member());
  EXPECT_TRUE(Opener::is_one(board, ::getpid()));
  EXPECT_FALSE(Opener::is_one(board, ::getppid()));
  EXPECT_FALSE(Opener::is_opening(board, ::getpid()));
  const Opening opening(&here->member());
  EXPECT_TRUE(Opener::is_opening(board, ::getpid()));
  here->member().record().process_start.store(1);  // another had the number
  EXPECT_FALSE(Opener::is_opening(board, ::getpid()));
}

}  // namespace
}  // namespace outcore::buffer
