// Who is a member of a buffer, how it is found, what is refused, and what is left behind.
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "core/buffer/buffer_file.h"
#include "core/buffer/place.h"
#include "core/buffer/shared_file.h"
#include "core/os/file_lock.h"
#include "core/tests/buffer/buffer_of.h"

namespace outcore::buffer {
namespace {

// As if its process had been killed: its lock is gone. The descriptor names the file still.
void die(const Member& member) {
  const std::string path = file_of(folder().value(), member.name());
  const int another = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_EQ(::dup3(another, member.file_fd(), O_CLOEXEC), member.file_fd());
  ::close(another);
}

void clear_dead(Buffer& buffer) {
  const Member::FilesLock lock(buffer.member());
  static_cast<void>(buffer.member().clear_dead());
}

TEST_F(BufferOf, AProcessIsOneWithItsName) {
  const auto first = join();
  EXPECT_EQ(join(), first);
  EXPECT_NE(join("other"), first);
  EXPECT_EQ(first->room().limit_bytes(), kLimit);
}

TEST_F(BufferOf, TheFirstSetsTheLimit) {
  OUTCORE_NEEDS_THREADS_IN_CHILD();
  const auto here = join();
  const pid_t other = job_.begin([&] {
    const auto joined = Buffer::join("b", 4 * kLimit);
    return joined.ok() && joined.value()->room().limit_bytes() == kLimit ? 0 : 1;
  });
  EXPECT_EQ(job_.end(other), 0);
}

TEST_F(BufferOf, AForkedChildIsAMemberOfItsOwn) {
  OUTCORE_NEEDS_THREADS_IN_CHILD();
  const auto here = join();
  const uint32_t mine = here->member().index();
  const pid_t child = job_.begin([&] {
    const auto joined = Buffer::join("b", kLimit);
    if (!joined.ok() || joined.value()->member().index() == mine) return 1;
    return joined.value()->member().is_alive(mine) ? 0 : 2;
  });
  EXPECT_EQ(job_.end(child), 0);
  EXPECT_FALSE(here->member().is_alive(mine + 1));
}

TEST_F(BufferOf, ANameIsCheckedAndAFolderOfOthersRefused) {
  std::string why;
  for (const char* const name : {"", ".b", "-b", "a/b", "a b", "..", "\n", "none"})
    EXPECT_EQ(code_of_join(name, &why), EINVAL) << name;
  EXPECT_EQ(code_of_join(std::string(101, 'a'), &why), EINVAL);
  EXPECT_THAT(why, testing::HasSubstr("100 at most"));
  join();
  ASSERT_EQ(::chmod((job_.folder() / "buffers").c_str(), 0755), 0);
  EXPECT_EQ(code_of_join("c", &why), EPERM);
  EXPECT_THAT(why, testing::HasSubstr("chmod 700"));
  ASSERT_EQ(::chmod((job_.folder() / "buffers").c_str(), 0700), 0);
  EXPECT_EQ(code_of_join("c", &why), 0) << why;
}

// Nothing of the user's is taken for a buffer's, removed or written.
TEST_F(BufferOf, FilesOfOthersStayAsTheyAre) {
  ASSERT_TRUE(folder().ok());
  const std::string place = job_.folder() / "buffers";
  for (const char* const name : {"thesis.tex", "b", "c.outcore-buffer"})
    std::ofstream(place + "/" + name) << "something else";
  ASSERT_NE(join("b"), nullptr);
  std::string why;
  EXPECT_EQ(code_of_join("c", &why), EEXIST);
  EXPECT_TRUE(Job::facts().members.empty());
  for (const char* const name : {"thesis.tex", "b", "c.outcore-buffer"}) {
    std::string text;
    std::getline(std::ifstream(place + "/" + name), text);
    EXPECT_EQ(text, "something else") << name;
  }
}

TEST_F(BufferOf, AnotherVersionIsLeftAloneWhileItLives) {
  OUTCORE_NEEDS_THREADS_IN_CHILD();
  const auto here = join();
  const Header header{Board::kMagic, kLayout + 1, 1, 1};
  ASSERT_EQ(write_to(here->member().file_fd(), 0, header), 0);
  const pid_t other = job_.begin([&] {
    std::string why;
    return code_of_join("b", &why);
  });
  EXPECT_EQ(job_.end(other), EPROTO);
}

// Who clears up after a dead member may die, too: then the next one finds what is left.
TEST_F(BufferOf, WhatADeadMemberHadIsClearedThoughSomebodyHasBegunTo) {
  const auto here = join();
  auto dead = Member::join("b", kLimit).value();
  const uint32_t index = dead->index();
  MemberRecord& record = dead->record();
  record.private_bytes.store(kPage);
  record.reserved_pages.store(3);
  record.pins[7].store(1 << 16 | 1);
  die(*dead);
  record.is_holding.store(0);  // so far somebody came
  EXPECT_FALSE(here->member().is_alive(index));
  clear_dead(*here);  // or the keeping thread was faster
  EXPECT_EQ(here->member().board().members[index].private_bytes.load(), 0u);
  EXPECT_EQ(here->member().board().members[index].reserved_pages.load(), 0u);
  EXPECT_EQ(here->member().board().members[index].pins[7].load(), 0u);
  EXPECT_EQ(here->member().board().members[index].is_joined.load(), 0u);
}

// A program that closes all descriptors loses its lock, and goes on: others clear what it has, and
// it does more. Who comes into its place has nothing of that; and what that one has stays when the
// other ends.
TEST_F(BufferOf, AMemberWithoutItsLockAndTheNextOneInItsPlaceAreApart) {
  const auto here = join();
  auto lost = Member::join("b", kLimit).value();
  const Writer writer = lost->as_writer();
  EXPECT_TRUE(here->member().is_alive(writer));
  die(*lost);
  clear_dead(*here);  // or the keeping thread was faster
  Pins pins(*lost);
  ASSERT_TRUE(pins.reserve(1));
  ASSERT_EQ(pins.add(5), 0);
  const auto next = Member::join("b", kLimit).value();
  ASSERT_EQ(next->index(), lost->index());
  EXPECT_EQ(next->record().pin_count.load(), 0u);
  EXPECT_FALSE(Pins::has(next->record(), 5));
  EXPECT_FALSE(here->member().is_alive(writer));
  EXPECT_TRUE(here->member().is_alive(next->as_writer()));
  EXPECT_NE(lost->as_writer(), next->as_writer());
  next->record().private_bytes.store(kPage);
  lost.reset();
  EXPECT_EQ(next->record().private_bytes.load(), kPage);
  EXPECT_TRUE(here->member().is_alive(next->index()));
}

// A program may close a descriptor of ours and have another file there: nobody is hurt by what that
// one has for locks.
TEST_F(BufferOf, ADescriptorThatNamesAnotherFileSaysNothingOfMembers) {
  OUTCORE_NEEDS_THREADS_IN_CHILD();
  const auto here = join();
  const uint32_t mine = here->member().index();
  ASSERT_TRUE(here->acquire_private(kPage, 1'000'000));
  const pid_t other = job_.begin([&] {
    const auto joined = Buffer::join("b", kLimit).value();
    const int log = ::open((job_.folder() / "log").c_str(), O_RDWR | O_CREAT, 0600);
    if (::dup2(log, joined->member().file_fd()) < 0) return 1;
    for (const auto patience :
         {Member::FilesLock::Patience::kNone, Member::FilesLock::Patience::kSome})
      if (Member::FilesLock(joined->member(), patience).is_held()) return 2;
    if (!joined->member().is_alive(mine)) return 3;
    joined->member().remove_file_if_last();
    return 0;
  });
  EXPECT_EQ(job_.end(other), 0);
  EXPECT_EQ(here->member().record().private_bytes.load(), kPage);
  EXPECT_EQ(Job::facts().members.size(), 1u);
  here->release_private(kPage);
}

TEST_F(BufferOf, WhoWaitsForAFileThatGoesRemovesNoOtherOne) {
  const std::string path = file_of(folder().value(), "b");
  const int waiting = os::open_to_lock(AT_FDCWD, path.c_str(), O_RDWR | O_CREAT, 0600);
  ASSERT_GE(waiting, 0);
  ASSERT_EQ(::unlink(path.c_str()), 0);
  const auto here = join();
  remove_if_empty(waiting, path);
  EXPECT_EQ(Job::facts().members.size(), 1u);
  os::close_locked(waiting);
}

TEST_F(BufferOf, ATooSmallLimitIsRefused) {
  const auto joined = Buffer::join("b", 1 << 20);
  ASSERT_FALSE(joined.ok());
  EXPECT_EQ(joined.code(), EINVAL);
  EXPECT_EQ(resize_buffer("b", 1 << 20).code(), EINVAL);
  EXPECT_EQ(resize_buffer("b", 1 << 30).code(), ENOENT);
  EXPECT_EQ(resize_buffer("a/b", 1 << 30).code(), EINVAL);
}

TEST_F(BufferOf, AMemberStaysOneWhateverElseOpensItsFile) {
  OUTCORE_NEEDS_THREADS_IN_CHILD();
  const auto here = join();
  std::ifstream(file_of(folder().value(), "b")).get();
  EXPECT_EQ(Job::facts().members, std::vector<pid_t>{::getpid()});
  const pid_t other = job_.begin([&] {
    const auto joined = Buffer::join("b", 2 * kLimit);
    return joined.ok() && joined.value()->room().limit_bytes() == kLimit ? 0 : 1;
  });
  EXPECT_EQ(job_.end(other), 0);
}

TEST_F(BufferOf, EndsWhileOthersBegin) {
  join();
  std::atomic<bool> is_over{false};
  std::thread lister([&] {
    while (!is_over.load()) EXPECT_LE(Job::facts().members.size(), 3u);
  });
  std::vector<std::thread> threads;
  for (int i = 0; i < 2; ++i)
    threads.emplace_back([&] {
      for (int round = 0; round < 200; ++round) {
        const auto mine = join();
        ASSERT_NE(mine, nullptr);
        EXPECT_TRUE(mine->acquire_private(kPage, 1'000'000'000));
        mine->release_private(kPage);
      }
    });
  for (std::thread& thread : threads) thread.join();
  is_over.store(true);
  lister.join();
  EXPECT_TRUE(std::filesystem::is_empty(job_.folder() / "buffers"));
}

TEST_F(BufferOf, ALimitOnFilesIsAnErrorAndNoSignal) {
  const pid_t other = job_.begin([&] {
    const struct rlimit most { 1 << 20, 1 << 20 };
    if (::setrlimit(RLIMIT_FSIZE, &most) != 0) return 1;
    std::string why;
    return code_of_join("b", &why) == EFBIG ? 0 : 2;
  });
  EXPECT_EQ(job_.end(other), 0);
}

TEST_F(BufferOf, TooLargeFilesAreRefused) {
  const auto here = join();
  const uint64_t huge = uint64_t{1} << 59;
  std::unique_ptr<SharedFile> first = SharedFile::open(here, {1, 2, huge, 3}).value();
  EXPECT_EQ(SharedFile::open(here, {1, 3, huge, 3}).code(), ENFILE);
  EXPECT_TRUE(SharedFile::open(here, {1, 4, kPage, 3}).ok());
}

TEST_F(BufferOf, WhatIsLeftOfTheDeadIsRemoved) {
  OUTCORE_NEEDS_THREADS_IN_CHILD();
  const pid_t other = job_.begin([&] {
    const auto joined = Buffer::join("b", kLimit);
    job_.shared().arrived.store(1);
    for (;;) ::pause();
    return 0;
  });
  while (job_.shared().arrived.load() == 0) ::sched_yield();
  EXPECT_EQ(Job::facts().members.size(), 1u);
  job_.kill(other);
  EXPECT_TRUE(Job::facts().members.empty());
  EXPECT_TRUE(std::filesystem::is_empty(job_.folder() / "buffers"));
}

}  // namespace
}  // namespace outcore::buffer
