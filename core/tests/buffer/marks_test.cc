// Marks of written pages, by themselves, and what is told of pages that are to leave.
#include "core/buffer/marks.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "core/buffer/leaving_pages.h"
#include "core/buffer/shared_file.h"
#include "core/os/wait.h"
#include "core/tests/buffer/buffer_of.h"

namespace outcore::buffer {
namespace {

using testing::ElementsAre;

constexpr uint64_t kPages = 600;  // more than a group

class MarksOf : public BufferOf {
 protected:
  void SetUp() override {
    fd_ = ::open(job_.path().c_str(), O_RDWR | O_CLOEXEC);
    ASSERT_GE(fd_, 0);
    here_ = join();
    file_ =
        SharedFile::open(here_, {1, 2, kPages * kPage, 3}, SharedFile::Use::kWrite, fd_).value();
  }
  void TearDown() override {
    if (file_) file_->end_writing(fd_, [] { return true; });
    file_.reset();
    ::close(fd_);
  }
  Board& board() { return here_->member().board(); }
  uint64_t written() { return board().written_pages.load(); }
  uint64_t marked() { return Marks::count_in(here_->member(), file_->first_frame_page(), kPages); }

  uint64_t marks_pages() {
    struct stat about {};
    EXPECT_EQ(::fstat(here_->member().marks_fd(), &about), 0);
    return static_cast<uint64_t>(about.st_blocks) * 512 / kPage;
  }

  int fd_ = -1;
  std::shared_ptr<Buffer> here_;
  std::unique_ptr<SharedFile> file_;
};

TEST_F(MarksOf, PagesAreCountedOnceWhoeverMarksThem) {
  Marks& one = *file_->marks();
  std::unique_ptr<Marks> two;
  {
    const Member::FilesLock lock(here_->member());
    two = Marks::open(here_->member(), board().files[0], fd_).value();
  }
  uint64_t newly = 0;
  ASSERT_EQ(one.set(500, 16, &newly), 0);  // on both sides of a group's end
  EXPECT_EQ(newly, 16u);
  ASSERT_EQ(two->set(508, 16, &newly), 0);
  EXPECT_EQ(newly, 16u);
  EXPECT_EQ(written(), 24u);
  EXPECT_EQ(marked(), 24u);
  ASSERT_EQ(one.set(500, 16, &newly), 0);
  EXPECT_EQ(newly, 0u);
  EXPECT_EQ(written(), 24u);

  EXPECT_TRUE(one.hand_over(510));
  EXPECT_EQ(written(), 24u) << "the other has still marked it";
  ASSERT_TRUE(two->begin_storing(510));
  EXPECT_TRUE(two->end_storing(510, two->own_bits()));
  EXPECT_EQ(written(), 23u);
  ASSERT_TRUE(two->begin_storing(511));
  EXPECT_TRUE(two->end_storing(511, two->own_bits()));
  EXPECT_EQ(written(), 23u) << "the first one has marked it, too";
  ASSERT_TRUE(one.begin_storing(500));
  EXPECT_FALSE(one.end_storing(500, 0)) << "it could not be stored";
  EXPECT_EQ(written(), 23u);

  one.drop_all();
  EXPECT_EQ(written(), marked());
  EXPECT_EQ(written(), 14u);
  two->drop_all();
  EXPECT_EQ(written(), 0u);
  EXPECT_EQ(marked(), 0u);
  two->close(false);
}

// A member is stopped while it takes pages out: who marks one of them gives up waiting, and its
// mark stays.
TEST_F(MarksOf, PagesThatCouldNotBeMarkedInTimeAreCountedAsMarked) {
  OUTCORE_NEEDS_THREADS_IN_CHILD();
  const pid_t other = job_.begin([&] {
    const auto joined = Buffer::join("b", kLimit).value();
    MemberRecord& record = joined->member().record();
    record.punched_first.store(file_->first_frame_page());
    record.punched_end.store(file_->first_frame_page() + kPages);
    record.punching.fetch_add(1);
    return ::raise(SIGSTOP);
  });
  int status = 0;
  ASSERT_EQ(::waitpid(other, &status, WUNTRACED), other);
  ASSERT_TRUE(WIFSTOPPED(status));
  uint64_t newly = 0;
  EXPECT_EQ(file_->marks()->set(10, 4, &newly), -ETIMEDOUT);
  EXPECT_EQ(written(), 4u);
  EXPECT_EQ(marked(), 4u);
  ::kill(other, SIGKILL);
  EXPECT_EQ(job_.end(other), -SIGKILL);
  ASSERT_EQ(file_->marks()->set(10, 4, &newly), 0);
  EXPECT_EQ(written(), 4u);
  file_->marks()->drop_all();
  EXPECT_EQ(written(), 0u);
}

TEST_F(MarksOf, MarksThatNobodyStoresAreNoLongerCountedWhenTheFileIsForgotten) {
  uint64_t newly = 0;
  ASSERT_EQ(file_->marks()->set(3, 5, &newly), 0);
  EXPECT_EQ(written(), 5u);
  file_->marks()->leave_to_others(true);  // as who cannot store, and is the last one
  file_->end_writing(fd_, [] { return false; });
  file_.reset();
  const auto start_ns = os::now_ns();
  while (written() != 0 && os::now_ns() - start_ns < 30'000'000'000) os::yield();
  EXPECT_EQ(written(), 0u);
}

TEST_F(MarksOf, WhatIsToLeaveIsHeardOnceAndInOrder) {
  LeavingPages early;
  EXPECT_TRUE(early.drain(board()).empty());
  for (const uint64_t page : {9u, 4u, 9u, 7u}) LeavingPages::announce(board(), page);
  EXPECT_THAT(early.drain(board()), ElementsAre(4, 7, 9));
  EXPECT_TRUE(early.drain(board()).empty());
  for (uint64_t page = 0; page < Board::kLeaving + 10; ++page)
    LeavingPages::announce(board(), 100 + page);
  const std::vector<uint64_t>& last = early.drain(board());
  ASSERT_EQ(last.size(), Board::kLeaving);
  EXPECT_EQ(last.front(), 110u) << "the oldest ones are overwritten";
}

TEST_F(MarksOf, TheirMemoryGoesWithTheLastWriter) {
  uint64_t newly = 0;
  Marks& marks = *file_->marks();
  EXPECT_FALSE(marks.has_memory(500, 516));
  ASSERT_EQ(marks.set(500, 16, &newly), 0);
  EXPECT_TRUE(marks.has_memory(500, 516));
  EXPECT_EQ(marks_pages(), 2u);
  marks.drop_all();
  file_->end_writing(fd_, [] { return true; });
  EXPECT_EQ(marks_pages(), 0u);
}

// A program may have locked all memory that it maps from now on.
TEST_F(MarksOf, MemoryThatIsLockedIsNotFilledWithThem) {
  if (::mlockall(MCL_FUTURE) != 0) GTEST_SKIP() << "memory cannot be locked here";
  std::unique_ptr<Marks> two;
  {
    const Member::FilesLock lock(here_->member());
    two = Marks::open(here_->member(), board().files[0], fd_).value();
  }
  ::munlockall();
  EXPECT_EQ(marks_pages(), 0u);
  two->close(false);
}

}  // namespace
}  // namespace outcore::buffer
