// Servers behind a network that is cut off or slow.
#include <atomic>
#include <thread>

#include "far/tests/redis/redis_case.h"
#include "far/tests/redis/test_network.h"

namespace outcore::redis_test {
namespace {

class RedisNetwork : public PackingTest {
 protected:
  static constexpr uint64_t kSize = 4 << 20;
  void SetUp() override {
    PackingTest::SetUp();
    if (IsSkipped()) return;
    if (!TestNetwork::is_possible()) GTEST_SKIP() << "needs root and ip(8), for a network";
    network_ = std::make_unique<TestNetwork>();
    ASSERT_TRUE(network_->is_up());
  }
  void TearDown() override {
    far_copy_.reset();
    servers_.reset();  // before its network
    network_.reset();
  }
  ServerOptions behind_the_cable() const {
    ServerOptions options;
    options.host = TestNetwork::host();
    options.network = TestNetwork::name();
    return options;
  }

  std::unique_ptr<TestNetwork> network_;
  std::unique_ptr<TestServers> far_copy_;
};

class RedisNetworkTimes : public RedisNetwork {};

TEST_P(RedisNetwork, IsWaitedForWhileItIsCutOff) {
  start(behind_the_cable());
  const auto store = make("a", kSize, "replicas=0");
  std::atomic<bool> is_over{false};
  std::atomic<int> wrong{0};
  std::vector<std::thread> users;
  for (uint64_t t = 0; t < 4; ++t)
    users.emplace_back(
        [&, t] { wrong += use(*store, t * kSize / 4, kSize / 4, [&] { return !is_over; }); });
  for (int turn = 0; turn < 2; ++turn) {  // the second time, all knew it
    const auto calls = [&] { return servers_->info(0, "total_commands_processed"); };
    const std::string before = calls();
    EXPECT_TRUE(becomes([&] { return calls() != before; }));
    ASSERT_TRUE(network_->cut());
    EXPECT_EQ(servers_->ask(0, {"PING"}).text, "");  // as long as it waits for that
    ASSERT_TRUE(network_->mend());
    EXPECT_TRUE(servers_->answers(0));
  }
  is_over = true;
  for (std::thread& user : users) user.join();
  EXPECT_EQ(wrong, 0) << store->remark();
}

TEST_P(RedisNetworkTimes, ThatStaysCutOffIsAnErrorInTime) {
  start(behind_the_cable());
  const auto store = make("a", kSize, "replicas=0&timeout=1s");
  const Bytes bytes = random_bytes(kSize, 1);
  EXPECT_EQ(store->write(0, bytes), 0);
  ASSERT_TRUE(network_->cut());
  Bytes now(4096);
  EXPECT_EQ(store->read(0, now), -ETIMEDOUT);
  // It may be carried out all the same, once the network is back: these are the bytes that are
  // there.
  EXPECT_EQ(store->write(0, std::span(bytes).first(4096)), -ETIMEDOUT);
  ASSERT_TRUE(network_->mend());
  EXPECT_TRUE(becomes([&] { return store->read(0, now) == 0; }));
  EXPECT_EQ(read_all(*store), bytes);
}

TEST_P(RedisNetworkTimes, IsOnlySlowWhereItIsSlow) {
  start(behind_the_cable());
  const auto store = make("a", kSize, "replicas=0");
  ASSERT_TRUE(network_->slow_down("50mbit"));
  const Bytes bytes = random_bytes(kSize, 2);
  EXPECT_EQ(store->write(0, bytes), 0) << store->remark();
  EXPECT_EQ(read_all(*store), bytes) << store->remark();
}

TEST_P(RedisNetworkTimes, ACopyTakesThePlaceOfAServerThatIsCutOffForGood) {
  start(behind_the_cable());
  ServerOptions copy;
  copy.host = TestNetwork::near_host();
  copy.more = servers_->as_master(0);
  copy.more.insert(copy.more.end(), {"--repl-timeout", "3"});
  far_copy_ = std::make_unique<TestServers>(copy);
  EXPECT_TRUE(becomes([&] { return servers_->info(0, "connected_slaves") == "1"; }));
  EXPECT_TRUE(becomes([&] { return far_copy_->info(0, "master_link_status") == "up"; }));
  auto store = open_store("far://:open%20sesame@" + servers_->address(0) + "+" +
                              far_copy_->address(0) + "?timeout=60s" + GetParam(),
                          writable(kSize));
  ASSERT_TRUE(store.ok()) << store.message();
  const int wrong = use_while(*store.value(), [&] {
    ASSERT_TRUE(network_->cut());
    EXPECT_TRUE(becomes([&] { return far_copy_->info(0, "role") == "master"; }));
    ASSERT_TRUE(network_->mend());  // what it has is old now
    EXPECT_TRUE(servers_->answers(0));
  });
  EXPECT_EQ(wrong, 0) << store.value()->remark();
}

// However chunks are stored, who is silent is waited for, and given up, in one way.
INSTANTIATE_TEST_SUITE_P(Plain, RedisNetworkTimes, testing::Values(""), packing_name);

INSTANTIATE_TEST_SUITE_P(Chunks, RedisNetwork, testing::Values("", "&compress=lz4"), packing_name);

}  // namespace
}  // namespace outcore::redis_test
