// Victims: what the keeping process leaves to the thread that alone brings pages in.
#include "core/buffer/victims.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

#include "core/buffer/page_ledger.h"
#include "core/buffer/shared_file.h"
#include "core/os/wait.h"
#include "core/tests/buffer/buffer_of.h"

namespace outcore::buffer {
namespace {

constexpr uint64_t kPlaces = MemberRecord::kVictims;

class VictimsOf : public BufferOf {
 protected:
  void SetUp() override {
    buffer_ = join();
    ASSERT_NE(buffer_, nullptr);
    file_ = SharedFile::open(buffer_, {1, 2, 4 * kLimit, 3}).value();
  }
  MemberRecord& record() { return buffer_->member().record(); }
  uint64_t in_memory() { return buffer_->member().occupancy().pages_in_memory(); }
  // As who brings in this page of the file.
  void bring_in(uint64_t page) {
    ASSERT_EQ(buffer_->room().acquire(1, 10'000'000'000), 0);
    put(*buffer_, file_->frame_page(page));
    buffer_->room().report(file_->frame_page(page), 1, false);
    buffer_->room().release(1);
  }

  // So many more, all of them even: neighbours would leave together.
  void bring_in_many(uint64_t count) {
    for (; count != 0 && !HasFailure(); --count, next_ = (next_ + 2 * 37) % file_->pages())
      bring_in(next_);
  }

  std::shared_ptr<Buffer> buffer_;
  std::unique_ptr<SharedFile> file_;
  uint64_t next_ = 0;
};

TEST_F(VictimsOf, AreTakenOnceAndInOrder) {
  MemberRecord& m = record();
  uint64_t lost = 0;
  EXPECT_EQ(Victims::take(m), Victims::kNone);
  for (uint64_t round = 0; round < 3; ++round) {  // around the ring
    for (uint64_t page = 0; page < kPlaces; ++page) {
      ASSERT_TRUE(Victims::give(m, page, &lost));
      ASSERT_EQ(lost, Victims::kNone);
    }
    EXPECT_FALSE(Victims::give(m, kPlaces, &lost));
    EXPECT_EQ(Victims::count(m), kPlaces);
    for (uint64_t page = 0; page < kPlaces; ++page) ASSERT_EQ(Victims::take(m), page);
    EXPECT_EQ(Victims::take(m), Victims::kNone);
    EXPECT_EQ(Victims::count(m), 0u);
  }
}

TEST_F(VictimsOf, OneThatSomebodyDiedOverIsTold) {
  MemberRecord& m = record();
  uint64_t lost = 0;
  ASSERT_TRUE(Victims::give(m, 77, &lost));
  m.victims_begin.fetch_add(1);  // as who takes it, and dies before it has it
  for (uint64_t page = 1; page < kPlaces; ++page) {
    ASSERT_TRUE(Victims::give(m, page, &lost));
    ASSERT_EQ(lost, Victims::kNone);
  }
  ASSERT_TRUE(Victims::give(m, 500, &lost));
  EXPECT_EQ(lost, 77u);
  // As who took that one, and comes to it now: the other is its own, and is found by nobody else.
  EXPECT_EQ(m.victims[m.victims_begin.load() % kPlaces].load(), 2u);
  m.victims[(m.victims_end.load() - 1) % kPlaces].store(0);
  for (uint64_t page = 1; page < kPlaces; ++page) ASSERT_EQ(Victims::take(m), page);
  EXPECT_EQ(Victims::take(m), Victims::kNone);
}

TEST_F(VictimsOf, SeveralThreadsTakeEachOnce) {
  constexpr uint64_t kGiven = 200'000;
  constexpr int kThreads = 3;
  MemberRecord& m = record();
  std::vector<uint64_t> taken[kThreads], all;
  std::atomic<bool> is_over{false};
  {
    std::vector<std::jthread> threads;
    for (auto& own : taken)
      threads.emplace_back([&m, &own, &is_over] {
        for (bool is_last = false; !is_last;) {
          is_last = is_over.load();
          for (uint64_t page; (page = Victims::take(m)) != Victims::kNone;) own.push_back(page);
        }
      });
    for (uint64_t page = 0; page < kGiven;) {
      uint64_t lost = 0;
      if (Victims::give(m, page, &lost)) ++page;
      // Who is stopped for a whole round of the ring finds another one in its place.
      if (lost != Victims::kNone) all.push_back(lost);
    }
    is_over = true;
  }
  for (const auto& own : taken) all.insert(all.end(), own.begin(), own.end());
  std::sort(all.begin(), all.end());
  ASSERT_EQ(all.size(), kGiven);
  for (uint64_t page = 0; page < kGiven; ++page) ASSERT_EQ(all[page], page);
}

TEST_F(VictimsOf, OfAThreadAloneAreLeftToIt) {
  bring_in_many(4 * kLimit / kPage);
  EXPECT_GT(record().victims_end.load(), kLimit / kPage);
  EXPECT_LE(in_memory(), kLimit / kPage);
}

TEST_F(VictimsOf, OfThreadsInTurnsAreNotLeftToEither) {
  bring_in_many(2 * kLimit / kPage);
  ASSERT_NE(record().victims_end.load(), 0u);
  std::atomic<int> turn{0};
  const auto fill_in_turns = [&](int own) {
    for (int i = 0; i < 1000 && !HasFailure(); ++i) {
      for (int seen = turn; seen != own; seen = turn) turn.wait(seen);
      bring_in_many(1);
      turn = 1 - own;
      turn.notify_one();
    }
  };
  for (const bool is_settled : {false, true}) {
    const uint64_t before = record().victims_end.load();
    std::jthread other([&] { fill_in_turns(1); });
    fill_in_turns(0);
    other.join();
    if (is_settled) {
      EXPECT_EQ(record().victims_end.load(), before);
    }
  }
  EXPECT_EQ(Victims::count(record()), 0u);
  EXPECT_LE(in_memory(), kLimit / kPage);
}

TEST_F(VictimsOf, ThatArePinnedStayAndAreNotForgotten) {
  for (uint64_t page = 0; page < 8; ++page) bring_in(page);
  ASSERT_TRUE(buffer_->pins().reserve(1));
  ASSERT_EQ(buffer_->pins().add(file_->frame_page(3)), 0);
  uint64_t lost = 0;
  for (uint64_t page = 0; page < 8; ++page)
    ASSERT_TRUE(Victims::give(record(), file_->frame_page(page), &lost));
  // Each wish for room takes out some.
  while (Victims::count(record()) != 0) {
    ASSERT_TRUE(buffer_->room().try_acquire(1));
    buffer_->room().release(1);
  }
  EXPECT_EQ(in_memory(), 1u);
  const auto is_there = [&] {
    const auto at = static_cast<off_t>(file_->frame_page(3) * kPage);
    return ::lseek(buffer_->member().frames_fd(), at, SEEK_DATA) == at;
  };
  EXPECT_TRUE(is_there());
  buffer_->pins().drop(file_->frame_page(3));
  buffer_->pins().unreserve(1);
  for (int i = 0; i < 100 && is_there() && !HasFailure(); ++i) bring_in_many(kLimit / kPage / 2);
  EXPECT_FALSE(is_there());
}

TEST_F(VictimsOf, OfAFileThatIsForgottenDoNoHarm) {
  bring_in_many(16);
  const uint64_t first = file_->frame_page(0);
  uint64_t lost = 0;
  for (uint64_t page = 0; page < 16; ++page)
    ASSERT_TRUE(Victims::give(record(), first + page, &lost));
  file_.reset();
  const FileRecord& file = buffer_->member().board().files[0];
  const uint64_t start_ns = os::now_ns();
  while (file.state.load() != FileState::kFree && os::now_ns() - start_ns < 30'000'000'000)
    os::yield();
  ASSERT_EQ(file.state.load(), FileState::kFree);
  while (Victims::count(record()) != 0) {
    ASSERT_TRUE(buffer_->room().try_acquire(1));
    buffer_->room().release(1);
  }
  EXPECT_EQ(in_memory(), 0u);
}

// The thread that they were left to does nothing any more, and nobody keeps the buffer: who needs
// room takes them.
TEST_F(VictimsOf, OfAMemberThatStandsStillAreTakenByWhoNeedsRoom) {
  OUTCORE_NEEDS_THREADS_IN_CHILD();
  Buffer quiet(Member::join("quiet", kLimit).value());
  const pid_t other = job_.begin([&] {
    const auto joined = Member::join("quiet", kLimit).value();
    uint64_t lost = 0;
    for (uint64_t page = 0; page < 100; ++page) Victims::give(joined->record(), page, &lost);
    return ::raise(SIGSTOP);
  });
  int status = 0;
  ASSERT_EQ(::waitpid(other, &status, WUNTRACED), other);
  ASSERT_TRUE(WIFSTOPPED(status));
  for (uint64_t page = 0; page < kLimit / kPage; ++page) put(quiet, page);
  EXPECT_FALSE(quiet.room().try_acquire(1));
  EXPECT_EQ(quiet.room().acquire(1, 10'000'000'000), 0);
  quiet.room().release(1);
  EXPECT_EQ(quiet.member().occupancy().pages_in_memory(), kLimit / kPage - Puncher::kVictimsAtOnce);
  ::kill(other, SIGKILL);
  EXPECT_EQ(job_.end(other), -SIGKILL);
}

TEST_F(VictimsOf, OfTheDeadAreForgotten) {
  OUTCORE_NEEDS_THREADS_IN_CHILD();
  const pid_t other = job_.begin([&] {
    const auto joined = Buffer::join("b", kLimit).value();
    uint64_t lost = 0;
    Victims::give(joined->member().record(), file_->frame_page(5), &lost);
    return ::raise(SIGKILL);
  });
  EXPECT_EQ(job_.end(other), -SIGKILL);
  Board& board = buffer_->member().board();
  const buffer::Member::FilesLock lock(buffer_->member());
  ASSERT_TRUE(lock.is_held());
  buffer_->member().clear_dead();
  for (uint32_t i = 0; i < board.members_end.load(); ++i)
    EXPECT_EQ(Victims::count(board.members[i]), 0u);
}

TEST_F(VictimsOf, ALedgerHasEachPageOnce) {
  PageLedger ledger;
  const Board& board = buffer_->member().board();
  ASSERT_TRUE(ledger.open(board).ok());
  const uint64_t first = file_->frame_page(0);
  ledger.admit(board, PageReport::of(first, 8, false));
  ledger.admit(board, PageReport::of(first + 4, 8, true));
  ledger.admit(board, PageReport::of(first + file_->pages(), 1, false));  // of no file
  FrameId victims[64];
  const size_t found = ledger.choose_victims(victims);
  ASSERT_EQ(found, 12u);
  ledger.sort_by_page({victims, found});
  for (size_t i = 0; i < found; ++i) EXPECT_EQ(ledger.page_of(victims[i]), first + i);
  ledger.put_back(victims[0]);
  for (size_t i = 1; i < found; ++i) ledger.freed(victims[i]);
  EXPECT_EQ(ledger.choose_victims(victims), 1u);
  ledger.put_back(victims[0]);
  ledger.admit(board, PageReport::of(first, 3, false));
  EXPECT_EQ(ledger.choose_victims(victims), 3u);
}

}  // namespace
}  // namespace outcore::buffer
