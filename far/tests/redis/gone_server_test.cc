// A server that is gone, and not only silent: nobody listens at its address.
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "far/tests/redis/redis_case.h"

namespace {

thread_local int connects = 0;  // of this thread

}  // namespace

extern "C" int connect(int fd, const sockaddr* address, socklen_t address_bytes) {
  ++connects;
  return static_cast<int>(::syscall(SYS_connect, fd, address, address_bytes));
}

namespace outcore::redis_test {
namespace {

class RedisGoneServer : public PackingTest {
 protected:
  void SetUp() override {
    PackingTest::SetUp();
    if (!IsSkipped()) start();
  }
};

// Pages that leave memory for servers that live would wait behind each of those that cannot.
TEST_P(RedisGoneServer, IsNotWaitedForByEachWrite) {
  const auto store = make("a", kSize, "replicas=0&timeout=1s");
  const Bytes bytes = random_bytes(kSize, 1);
  EXPECT_EQ(store->write(0, bytes), 0);
  servers_->kill(0);
  EXPECT_EQ(store->write(0, bytes), -ETIMEDOUT);
  connects = 0;
  EXPECT_EQ(store->write(0, {bytes.data(), 16 << 10}), -ETIMEDOUT) << "whole chunks";
  EXPECT_GE(connects, 1) << "it may be back";
  EXPECT_LE(connects, 4) << "to write, to ask who has the slot, and to write again";
  servers_->start(0);
  ASSERT_TRUE(servers_->answers(0));
  EXPECT_EQ(store->write(0, bytes), -EIO) << "it is back at once, and empty";
}

INSTANTIATE_TEST_SUITE_P(Chunks, RedisGoneServer, testing::Values("", "&compress=zstd"),
                         packing_name);

}  // namespace
}  // namespace outcore::redis_test
