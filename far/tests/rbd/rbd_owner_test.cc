// One writer an image: a living owner is named, a dead one is followed, a paused one is fenced off.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <iostream>

#include "core/tests/store/store_case.h"
#include "far/tests/rbd/ceph.h"

namespace outcore::rbd_test {
namespace {

using store_test::Bytes;
using testing::AllOf;
using testing::HasSubstr;

constexpr const char* kUriVariable = "OUTCORE_TEST_RBD_URI";

Result<std::shared_ptr<Store>> open_for_writing(const std::string& uri) {
  OpenOptions options;
  options.is_writable = options.may_create = true;
  options.size_bytes = 1 << 20;
  return open_store(uri, options);
}

// The owner, in a process of its own that runs this program again: for each line that it is sent it
// writes a page, and answers with the result.
class IsOwnerIfAsked : public testing::Environment {
 public:
  void SetUp() override {
    const char* uri = ::getenv(kUriVariable);
    if (uri == nullptr) return;
    auto store = open_for_writing(uri);
    std::printf("\nanswer %d\n", store.ok() ? 0 : -store.code());
    std::fflush(stdout);
    for (std::string line; store.ok() && std::getline(std::cin, line);) {
      std::printf("\nanswer %d\n", store.value()->write(0, Bytes(4096, std::byte{7})));
      std::fflush(stdout);
    }
    ::_exit(0);
  }
};
[[maybe_unused]] testing::Environment* const is_owner_if_asked =
    testing::AddGlobalTestEnvironment(new IsOwnerIfAsked);

class OtherProcess {
 public:
  explicit OtherProcess(const std::string& uri) {
    int input[2], output[2];
    EXPECT_EQ(::pipe2(input, O_CLOEXEC) | ::pipe2(output, O_CLOEXEC), 0);
    process_ = ::fork();
    if (process_ == 0) {
      ::dup2(input[0], 0);
      ::dup2(output[1], 1);
      ::setenv(kUriVariable, uri.c_str(), 1);
      ::execl("/proc/self/exe", "owner", "--gtest_filter=RbdUri.*", nullptr);
      ::_exit(127);
    }
    ::close(input[0]);
    ::close(output[1]);
    to_ = input[1];
    from_ = ::fdopen(output[0], "r");
    EXPECT_EQ(answer(), 0) << "the other process could not open " << uri;
  }
  ~OtherProcess() {
    ::kill(process_, SIGKILL);
    ::waitpid(process_, nullptr, 0);
    ::close(to_);
    std::fclose(from_);
  }
  pid_t process() const { return process_; }
  int write() {
    EXPECT_EQ(::write(to_, "\n", 1), 1);
    return answer();
  }

 private:
  int answer() {
    char line[512];
    int number = -1;
    while (std::fgets(line, sizeof line, from_) != nullptr)
      if (std::sscanf(line, "answer %d", &number) == 1) return number;
    return -EPIPE;
  }
  pid_t process_ = -1;
  int to_ = -1;
  std::FILE* from_ = nullptr;
};

class RbdLock : public testing::Test {
 protected:
  void SetUp() override { OUTCORE_NEEDS_CEPH(); }
  std::string uri() const { return Ceph::instance().uri(name_, "&id=tenant"); }
  const std::string name_ = Ceph::new_name();
};

TEST_F(RbdLock, ASecondWriterIsRefusedWithTheNameOfTheFirstAndReadersAreNot) {
  OtherProcess owner(uri());
  const auto refused = open_for_writing(uri());
  EXPECT_EQ(refused.code(), EBUSY);
  EXPECT_THAT(refused.message(), AllOf(HasSubstr("process " + std::to_string(owner.process())),
                                       HasSubstr("127.0.0.1")));
  auto reader = open_store(uri());
  ASSERT_TRUE(reader.ok()) << reader.message();
  EXPECT_EQ(owner.write(), 0);
  Bytes bytes(4096);
  EXPECT_EQ(reader.value()->read(0, bytes), 0);
  EXPECT_TRUE(bytes == Bytes(4096, std::byte{7}));
}

TEST_F(RbdLock, TheNextWriterGetsInWhenTheOwnerWasKilled) {
  { OtherProcess killed(uri()); }
  const auto store = open_for_writing(uri());
  ASSERT_TRUE(store.ok()) << store.message();
  EXPECT_EQ(store.value()->write(0, Bytes(4096, std::byte{1})), 0);
}

TEST_F(RbdLock, AnOwnerThatWasPausedTooLongCannotWriteAnyMore) {
  OtherProcess paused(uri());
  EXPECT_EQ(paused.write(), 0);
  ::kill(paused.process(), SIGSTOP);
  const auto store = open_for_writing(uri());
  ::kill(paused.process(), SIGCONT);
  ASSERT_TRUE(store.ok()) << store.message();
  const Bytes ours(4096, std::byte{1});
  EXPECT_EQ(store.value()->write(0, ours), 0);
  EXPECT_EQ(paused.write(), -ESHUTDOWN);
  Bytes bytes(4096);
  EXPECT_EQ(store.value()->read(0, bytes), 0);
  EXPECT_TRUE(bytes == ours);
}

}  // namespace
}  // namespace outcore::rbd_test
