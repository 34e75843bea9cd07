// Arrays that are given up: what a session has written is absent, and the others of it hear.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <barrier>
#include <cerrno>
#include <stdexcept>
#include <thread>

#include "outcore/arrays.h"
#include "tests/folder.h"

namespace outcore {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const std::vector<double> kMany(100'000, 3.5);

class Abort : public testing::Test {
 protected:
  std::string path() const { return folder_.path() + "/a.oca"; }
  Arrays open(ArraysMode mode = ArraysMode::kRead) const {
    auto opened = Arrays::open(path(), mode);
    EXPECT_TRUE(opened.ok()) << opened.message();
    return std::move(opened).value();
  }
  std::vector<std::string> names() const {
    std::vector<std::string> all;
    for (const ArrayInfo& info : open().list()) all.push_back(info.name);
    return all;
  }
  scene::Folder folder_;
};

TEST_F(Abort, WhatWasWrittenIsAbsentAndWhatWasThereStays) {
  Arrays first = open(ArraysMode::kWrite);
  ASSERT_TRUE(first.store("before", kMany).ok());
  ASSERT_TRUE(first.close().ok());
  Arrays out = open(ArraysMode::kUpdate);
  ASSERT_TRUE(out.store("u", kMany).ok());
  ASSERT_TRUE(out.store("before", 1).ok());  // would have replaced it
  testing::internal::CaptureStderr();
  out.abort();
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  EXPECT_THAT(names(), ElementsAre("before"));
  EXPECT_EQ(open().load<std::vector<double>>("before").value(), kMany);
}

TEST_F(Abort, ItIsClosedAfterwards) {
  Arrays out = open(ArraysMode::kWrite);
  ASSERT_TRUE(out.store("u", 1).ok());
  out.abort();
  EXPECT_EQ(out.store("v", 1).code(), EBADF);
  EXPECT_TRUE(out.close().ok()) << "there is nothing left to close";
  out.abort();
  EXPECT_THAT(names(), ElementsAre());
  Arrays again = open(ArraysMode::kUpdate);  // nobody else writes it any more
  ASSERT_TRUE(again.store("u", 2).ok());
  ASSERT_TRUE(again.close().ok());
  Arrays in = open();
  in.abort();
  EXPECT_EQ(in.load<int>("u").code(), EBADF);
  EXPECT_EQ(open().load<int>("u").value(), 2);
}

TEST_F(Abort, WhatWasFlushedStays) {
  Arrays out = open(ArraysMode::kWrite);
  ASSERT_TRUE(out.store("early", kMany).ok());
  ASSERT_TRUE(out.flush().ok());
  ASSERT_TRUE(out.store("late", kMany).ok());
  out.abort();
  EXPECT_THAT(names(), ElementsAre("early"));
}

TEST_F(Abort, ItsSpaceIsGivenBack) {
  Arrays first = open(ArraysMode::kWrite);
  ASSERT_TRUE(first.close().ok());
  struct stat about {};
  ASSERT_EQ(::stat(path().c_str(), &about), 0);
  const auto before = about.st_blocks;
  Arrays out = open(ArraysMode::kUpdate);
  ASSERT_TRUE(out.store("u", std::vector<double>(1 << 20, 1.5)).ok());
  out.abort();
  ASSERT_EQ(::stat(path().c_str(), &about), 0);
  EXPECT_LT(about.st_blocks - before, (4 << 20) / 512);
}

TEST_F(Abort, AnExceptionGivesUpWhatItInterrupts) {
  Arrays first = open(ArraysMode::kWrite);
  ASSERT_TRUE(first.close().ok());
  testing::internal::CaptureStderr();
  try {
    Arrays out = open(ArraysMode::kUpdate);
    ASSERT_TRUE(out.alloc<double>("u", {10'000}).ok());
    throw std::runtime_error("a cell is negative");
  } catch (const std::runtime_error&) {
    EXPECT_THAT(names(), ElementsAre());
    Arrays out = open(ArraysMode::kUpdate);  // while one is handled, none is on its way
    ASSERT_TRUE(out.store("emergency", 1).ok());
  }
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  EXPECT_THAT(names(), ElementsAre("emergency"));
}

// Writes a container while an exception is on its way that has nothing to do with it.
struct Diary {
  std::string path;
  ~Diary() {
    auto out = Arrays::open(path, ArraysMode::kWrite);
    if (out) static_cast<void>(out->store("last words", "negative"));
  }
};

TEST_F(Abort, AnExceptionThatWasThereBeforeGivesNothingUp) {
  try {
    const Diary diary{path()};
    throw std::runtime_error("a cell is negative");
  } catch (const std::runtime_error&) {
    EXPECT_THAT(names(), ElementsAre("last words"));
  }
}

// In two processes, of which the second aborts before or after the first closes; what the first
// hears.
std::string heard_by_the_other(const std::string& path, bool is_abort_first) {
  int turn[2];
  EXPECT_EQ(::pipe(turn), 0);
  const auto wait = [&turn] {
    char byte = 0;
    return ::read(turn[0], &byte, 1) == 1;
  };
  const auto go = [&turn] { return ::write(turn[1], "x", 1) == 1; };
  const pid_t pid = ::fork();
  if (pid == 0) {
    auto out = Arrays::open(path, ArraysMode::kUpdate, Communicator::processes(2));
    if (!out || !out->alloc<double>("u", {1000})) ::_exit(1);
    if (!is_abort_first && !wait()) ::_exit(2);
    out->abort();
    if (is_abort_first && !go()) ::_exit(3);
    ::_exit(0);
  }
  auto out = Arrays::open(path, ArraysMode::kUpdate, Communicator::processes(2));
  EXPECT_TRUE(out.ok()) << out.message();
  EXPECT_TRUE(out->alloc<double>("u", {1000}).ok());
  EXPECT_TRUE(out->store("mine", 1).ok());
  if (is_abort_first) {
    EXPECT_TRUE(wait());
  }
  const Status closed = out->close();
  if (!is_abort_first) {
    EXPECT_TRUE(go());
  }
  int status = 0;
  ::waitpid(pid, &status, 0);
  EXPECT_EQ(status, 0);
  ::close(turn[0]);
  ::close(turn[1]);
  return closed.message();
}

TEST_F(Abort, TheOthersOfTheSessionHear) {
  ASSERT_TRUE(open(ArraysMode::kWrite).store("before", 1).ok());
  EXPECT_THAT(heard_by_the_other(path(), true), HasSubstr("what was being written is absent"));
  EXPECT_THAT(names(), ElementsAre("before"));
  EXPECT_EQ(heard_by_the_other(path(), false), "") << "it had closed already";
  EXPECT_THAT(names(), ElementsAre("before"));
}

TEST_F(Abort, OfThreeThatWriteTheFirstToCloseHearsAsTheLastDoes) {
  ASSERT_TRUE(open(ArraysMode::kWrite).store("before", 1).ok());
  const auto together = Communicator::processes(3);
  std::vector<pid_t> pids;
  int aborted[2], closed[2];
  ASSERT_EQ(::pipe(aborted), 0);
  ASSERT_EQ(::pipe(closed), 0);
  for (int i = 0; i < 2; ++i) {
    pids.push_back(::fork());
    if (pids.back() != 0) continue;
    auto out = Arrays::open(path(), ArraysMode::kUpdate, together);
    char byte = 0;
    if (!out) ::_exit(1);
    if (i == 0) {
      out->abort();
      ::_exit(::write(aborted[1], "x", 1) == 1 ? 0 : 2);
    }
    if (::read(closed[0], &byte, 1) != 1) ::_exit(3);
    ::_exit(out->close().code() == EIO ? 0 : 4);
  }
  auto out = Arrays::open(path(), ArraysMode::kUpdate, together);
  ASSERT_TRUE(out.ok()) << out.message();
  EXPECT_TRUE(out->store("u", kMany).ok());
  char byte = 0;
  EXPECT_EQ(::read(aborted[0], &byte, 1), 1);
  EXPECT_THAT(out->close().message(), HasSubstr("another process could not store"));
  EXPECT_EQ(::write(closed[1], "x", 1), 1);
  for (const pid_t pid : pids) {
    int status = 0;
    ::waitpid(pid, &status, 0);
    EXPECT_EQ(status, 0);
  }
  for (const int fd : {aborted[0], aborted[1], closed[0], closed[1]}) ::close(fd);
  EXPECT_THAT(names(), ElementsAre("before"));
}

// What MPI does, for the threads of a process: all come here, and hear whether one has failed.
class Two {
 public:
  Communicator rank(unsigned rank) {
    return {rank, 2, [this](bool has_failed) {
              if (has_failed) failures_ |= 1;
              barrier_.arrive_and_wait();
              const bool any = failures_ != 0;
              barrier_.arrive_and_wait();
              failures_ = 0;
              barrier_.arrive_and_wait();
              return any;
            }};
  }

 private:
  std::barrier<> barrier_{2};
  std::atomic<int> failures_{0};
};

TEST_F(Abort, WithACommunicatorTheOtherHearsWhicheverClosesFirst) {
  Two two;
  std::string heard;
  std::thread other([&] {
    auto out = Arrays::open(path(), ArraysMode::kWrite, two.rank(1));
    ASSERT_TRUE(out.ok()) << out.message();
    EXPECT_TRUE(out->alloc<double>("u", {1000}).ok());
    heard = out->close().message();
  });
  auto out = Arrays::open(path(), ArraysMode::kWrite, two.rank(0));
  ASSERT_TRUE(out.ok()) << out.message();
  EXPECT_TRUE(out->alloc<double>("u", {1000}).ok());
  out->abort();
  other.join();
  EXPECT_THAT(heard, HasSubstr("what was being written is absent"));
  EXPECT_THAT(names(), ElementsAre());
}

TEST_F(Abort, WithACommunicatorAllHearThatOneCannotOpen) {
  Two two;
  int heard = 0;
  std::thread other([&] {
    heard = Arrays::open(path() + "/nowhere/a.oca", ArraysMode::kWrite, two.rank(1)).code();
  });
  EXPECT_EQ(Arrays::open(path(), ArraysMode::kWrite, two.rank(0)).code(), EIO);
  other.join();
  EXPECT_TRUE(heard == ENOENT || heard == ENOTDIR) << heard;
  EXPECT_TRUE(Arrays::open(path(), ArraysMode::kWrite)->store("u", 1).ok());
}

}  // namespace
}  // namespace outcore
