// Child processes: fork, vfork, posix_spawn and exec in programs with regions.
#include <spawn.h>
#include <sys/mman.h>

#include <thread>

#include "core/region/address_map.h"
#include "core/tests/conformance/mechanism.h"

extern char** environ;

namespace outcore {
namespace {

using namespace scene;

class Children : public OnMechanism {};
INSTANTIATE_TEST_SUITE_P(Mechanisms, Children,
                         testing::Values(Mechanism{Delivery::kInThread, FrameKind::kShared, 4096},
                                         Mechanism{Delivery::kInThread, FrameKind::kPrivate, 4096},
                                         Mechanism{Delivery::kMessages, FrameKind::kShared, 4096},
                                         Mechanism{Delivery::kMessages, FrameKind::kPrivate, 4096},
                                         Mechanism{Delivery::kMprotect, FrameKind::kShared, 4096}),
                         [](const testing::TestParamInfo<Mechanism>& of) {
                           return name_of(of.param);
                         });

int status_of(pid_t child) {
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

char program[] = "/bin/true";
char* const arguments[] = {program, nullptr};

int status_of_fork_and_exec() {
  const pid_t child = ::fork();
  if (child == 0) ::execv(program, arguments), ::_exit(99);
  return status_of(child);
}

int status_of_vfork_and_exec() {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
  const pid_t child = ::vfork();
#pragma GCC diagnostic pop
  if (child == 0) ::execv(program, arguments), ::_exit(99);
  return status_of(child);
}

int status_of_spawn() {
  pid_t child = 0;
  const int result = ::posix_spawn(&child, program, nullptr, nullptr, arguments, environ);
  return result != 0 ? result : status_of(child);
}

TEST_P(Children, ATouchEndsAForkedChildWithAMessage) {
  OUTCORE_NEEDS_FORK();
  const std::string path = file_of(data_bytes());
  const Region region = map(path, Access::kReadWrite).value();
  region.data()[0] = std::byte{1};
  for (const uint64_t at : {uint64_t{0}, data_bytes() - 1}) {  // resident, absent
    for (const bool is_write : {false, true}) {
      const Ending ending = in_child([&] {
        if (is_write) region.data()[at] = std::byte{2};
        return static_cast<int>(*static_cast<volatile std::byte*>(region.data() + at));
      });
      EXPECT_TRUE(ending.has_exited(128 + SIGSEGV)) << ending;
      EXPECT_NE(ending.text.find("forked child"), std::string::npos) << ending;
    }
  }
  EXPECT_EQ(region.data()[0], std::byte{1});
  EXPECT_EQ(first_difference(region.data() + 1, data_bytes() - 1, 1), data_bytes() - 1);
}

TEST_P(Children, TheApiSaysEPermInAForkedChild) {
  OUTCORE_NEEDS_FORK();
  const std::string path = file_of(4 * page_bytes());
  Region region = map(path, Access::kReadWrite).value();
  region.data()[0] = std::byte{1};
  const Ending ending = in_child([&] {
    std::byte byte{};
    require(region.flush().code() == EPERM, "flush");
    require(region.pin(0, 1).code() == EPERM, "pin");
    require(region.prefetch(0, 1).code() == EPERM, "prefetch");
    require(region.read(0, {&byte, 1}).code() == EPERM, "read");
    require(region.unmap().code() == EPERM, "unmap");
    require(runtime_->map(path).code() == EPERM, "map");
    require(runtime_->resize_budget(kMiB).code() == EPERM, "resize");
    require(!region.flush().message().empty(), "a message");
    return 0;
  });
  EXPECT_TRUE(ending.has_exited(0)) << ending;
  EXPECT_TRUE(region.unmap().ok());
  EXPECT_EQ(read_file(path)[0], std::byte{1});
}

TEST_P(Children, AForkInTheMiddleOfAMapLeavesNoLockBehind) {
  OUTCORE_NEEDS_FORK();
  const std::string path = file_of(4 * page_bytes());
  std::atomic<bool> is_done = false;
  std::thread mapper([&] {
    while (!is_done) {
      const Result<Region> region = map(path, Access::kReadWrite);
      EXPECT_TRUE(region.ok()) << region.message();
    }
  });
  for (int i = 0; i < 20; ++i) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::alarm(60);  // a lock left locked by the parent would make the child wait until then
      require(runtime_->metrics().regions.empty(), "the parent's regions are not the child's");
      std::byte* at = static_cast<std::byte*>(
          ::mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
      ::_exit(region::AddressMap::instance().overlaps(at, 4096) ? 1 : 0);
    }
    const int status = status_of(child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  }
  is_done = true;
  mapper.join();
}

TEST_P(Children, AForkedChildMayDestroyWhatItInherits) {
  OUTCORE_NEEDS_FORK();
  const std::string path = file_of(4 * page_bytes());
  std::optional<Region> region = map(path, Access::kReadWrite).value();
  region->data()[0] = std::byte{0x21};
  const Ending ending = in_child([&] {
    region.reset();
    runtime_.reset();
    return 0;
  });
  EXPECT_TRUE(ending.has_exited(0)) << ending;
  EXPECT_EQ(region->data()[0], std::byte{0x21});
  EXPECT_EQ(region->data()[page_bytes()], byte_at(page_bytes()));
  EXPECT_TRUE(region->unmap().ok());
  EXPECT_EQ(read_file(path)[0], std::byte{0x21});
}

TEST_P(Children, AForkedChildMayHaveARuntimeOfItsOwn) {
  OUTCORE_NEEDS_THREADS_IN_CHILD();
  const std::string path = file_of(4 * page_bytes());
  const std::string other = file_of(data_bytes(), "other");
  const Region region = map(path, Access::kReadWrite).value();
  ASSERT_EQ(region.data()[0], byte_at(0));
  const Ending ending = in_child([&] {
    Result<Runtime> own = Runtime::start(options());
    require(own.ok(), own.status().message());
    Result<Region> mine = own->map(other, map_options(Access::kReadWrite));
    require(mine.ok(), mine.status().message());
    require(first_difference(mine->data(), data_bytes()) == data_bytes(), "its own region reads");
    mine->data()[0] = std::byte{0x99};
    require(mine->unmap().ok(), "its own region unmaps");
    return 0;
  });
  EXPECT_TRUE(ending.has_exited(0)) << ending;
  EXPECT_EQ(read_file(other)[0], std::byte{0x99});
  EXPECT_EQ(first_difference(region.data(), 4 * page_bytes()), 4 * page_bytes());
}

TEST_P(Children, AGrandchildIsToldTheSame) {
  OUTCORE_NEEDS_FORK();
  const std::string path = file_of(4 * page_bytes());
  const Region region = map(path, Access::kReadWrite).value();
  const Ending ending = in_child([&] {
    const pid_t grandchild = ::fork();
    if (grandchild == 0) ::_exit(static_cast<int>(region.data()[0]));
    const int status = status_of(grandchild);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
  });
  EXPECT_TRUE(ending.has_exited(128 + SIGSEGV)) << ending;
}

TEST_P(Children, AWildTouchInAChildOfAChildDiesOfItsSignal) {
  OUTCORE_NEEDS_FORK();
  const std::string path = file_of(page_bytes());
  const Region region = map(path, Access::kReadWrite).value();
  void* wild = ::mmap(nullptr, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  const Ending ending = in_child([&] {
    const pid_t grandchild = ::fork();
    if (grandchild == 0) {
      *static_cast<volatile char*>(wild) = 1;
      ::_exit(0);
    }
    const int status = status_of(grandchild);
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  });
  EXPECT_TRUE(ending.has_exited(SIGSEGV)) << ending;
  ::munmap(wild, 4096);
}

TEST_P(Children, ExecVforkAndSpawnWorkBesideRegionsUnderLoad) {
  OUTCORE_NEEDS_FORK();
  const std::string path = file_of(data_bytes());
  const Region region = map(path, Access::kReadWrite).value();
  std::atomic<bool> is_done = false;
  std::atomic<uint64_t> wrong = 0;
  std::thread load([&] {
    for (uint64_t at = 0; !is_done; at = (at + 3 * 4096) % data_bytes())
      wrong += region.data()[at] != byte_at(at);
  });
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(status_of_fork_and_exec(), 0);
    EXPECT_EQ(status_of_vfork_and_exec(), 0);
    EXPECT_EQ(status_of_spawn(), 0);
  }
  is_done = true;
  load.join();
  EXPECT_EQ(wrong, 0u);
}

TEST_P(Children, TheParentIsUndisturbedByAChildThatLives) {
  OUTCORE_NEEDS_FORK();
  const std::string path = file_of(data_bytes());
  Region region = map(path, Access::kReadWrite).value();
  region.data()[0] = std::byte{1};
  int pipe_of[2];
  ASSERT_EQ(::pipe(pipe_of), 0);
  const pid_t child = ::fork();
  if (child == 0) {  // lives until the parent closes its end
    ::close(pipe_of[1]);
    char byte;
    while (::read(pipe_of[0], &byte, 1) < 0 && errno == EINTR) {
    }
    ::_exit(0);
  }
  ::close(pipe_of[0]);
  for (uint64_t at = 0; at < data_bytes(); at += 4096) region.data()[at] = std::byte{2};
  for (uint64_t at = 0; at < data_bytes(); at += 4096) ASSERT_EQ(region.data()[at], std::byte{2});
  EXPECT_TRUE(region.unmap().ok());
  ::close(pipe_of[1]);
  EXPECT_EQ(status_of(child), 0);
}

}  // namespace
}  // namespace outcore
