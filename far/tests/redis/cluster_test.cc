// A store on a cluster: servers die, stop, come back, and lose what they had.
#include <atomic>
#include <set>
#include <thread>

#include "far/tests/redis/redis_case.h"

namespace outcore::redis_test {
namespace {

using testing::HasSubstr;

constexpr uint64_t kClusterSize = 4 << 20;

class RedisCluster : public PackingTest {
 protected:
  void SetUp() override {
    PackingTest::SetUp();
    if (IsSkipped()) return;
    ServerOptions options;
    options.masters = 3;
    start(options);
  }
  int masters() {
    int count = 0;
    for (int i = 0; i < servers_->count(); ++i) count += servers_->info(i, "role") == "master";
    return count;
  }
};

class RedisClusterCopies : public RedisCluster {};

TEST_P(RedisCluster, SpreadsAStoreOverAllItsServers) {
  const auto store = make("a", kClusterSize, "replicas=1");
  const Bytes bytes = random_bytes(kClusterSize, 1);
  EXPECT_EQ(store->write(0, bytes), 0);
  EXPECT_EQ(read_all(*store), bytes);
  // 64 chunks and 256 fences; the catalog is on one of them.
  for (int i = 0; i < 3; ++i)
    EXPECT_NEAR(static_cast<double>(servers_->ask(i, {"DBSIZE"}).number), 320.0 / 3, 8) << i;
  EXPECT_THAT(store->remark(), HasSubstr("1 acknowledging replica"));
}

TEST_P(RedisCluster, LosesNothingWithAMasterWhileItIsUsed) {
  const auto store = make("a", kClusterSize, "replicas=1");
  std::atomic<bool> is_over{false};
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      wrong += use(*store, t * kClusterSize / 4, kClusterSize / 4, [&] { return !is_over; });
    });
  servers_->kill(0);
  // Its replica has become a master: three of the five that are left.
  EXPECT_TRUE(becomes([&] { return masters() == 3; }));
  is_over = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0) << store->remark();
}

// The smallest cluster: nobody is left to be the replica of the one that took over.
TEST_P(RedisClusterCopies, GoesOnWithoutACopyThatNobodyCanHaveUntilOneCan) {
  const auto store = make("a", kClusterSize, "replicas=1");
  EXPECT_FALSE(store->is_unreplicated());
  testing::internal::CaptureStderr();
  const int wrong = use_while(*store, [&] {
    servers_->kill(0);
    EXPECT_TRUE(becomes([&] { return store->is_unreplicated(); }));
    EXPECT_THAT(store->remark(), HasSubstr("fewer copies"));
    servers_->start(0);
    EXPECT_TRUE(becomes([&] { return !store->is_unreplicated(); }));
  });
  EXPECT_EQ(wrong, 0) << store->remark();
  const std::string said = testing::internal::GetCapturedStderr();
  const auto times = [&](const std::string& text) {
    int count = 0;
    for (size_t at = 0; (at = said.find(text, at)) != std::string::npos; ++at) ++count;
    return count;
  };
  EXPECT_EQ(times("has too few replicas"), 1) << said;
  EXPECT_EQ(times("has a replica again"), 1) << said;
  // It has what was written without it.
  const Bytes bytes = read_all(*store);
  EXPECT_TRUE(becomes([&] { return servers_->info(0, "role") == "slave"; }));
  servers_->kill(3);
  EXPECT_TRUE(becomes([&] { return servers_->info(0, "role") == "master"; }));
  EXPECT_EQ(read_all(*store), bytes) << store->remark();
}

// Replicas that are only stopped could still take over with what they have: they are waited for.
TEST_P(RedisClusterCopies, WaitsForAReplicaThatTheClusterHasNotGivenUp) {
  for (int i = 0; i < 6; ++i) servers_->ask(i, {"CONFIG", "SET", "cluster-node-timeout", "60000"});
  const auto store = make("a", kClusterSize, "replicas=1&timeout=1s");
  for (int i = 3; i < 6; ++i) servers_->send(i, SIGSTOP);
  EXPECT_EQ(store->write(0, random_bytes(1000, 1)), -ETIMEDOUT);
  EXPECT_FALSE(store->is_unreplicated());
  for (int i = 3; i < 6; ++i) servers_->send(i, SIGCONT);
  EXPECT_TRUE(becomes([&] { return store->write(0, random_bytes(1000, 1)) == 0; }));
}

TEST_P(RedisCluster, LosesNothingWithAMasterThatIsStopped) {
  const auto store = make("a", kClusterSize, "replicas=1");
  const int wrong = use_while(*store, [&] {
    servers_->send(1, SIGSTOP);
    EXPECT_TRUE(becomes([&] {
      const std::string role = servers_->info(4, "role");
      return role == "master";
    }));
    servers_->send(1, SIGCONT);  // it thinks it is the master, until it hears
    EXPECT_TRUE(becomes([&] { return servers_->info(1, "role") == "slave"; }));
  });
  EXPECT_EQ(wrong, 0) << store->remark();
}

TEST_P(RedisClusterCopies, AcknowledgesNothingWithoutAReplicaThatMustBeThere) {
  const auto store = make("a", kClusterSize, "replicas=1!&timeout=1s");
  for (int i = 3; i < 6; ++i) servers_->kill(i);
  const Bytes bytes = random_bytes(1000, 1);
  EXPECT_TRUE(becomes([&] {
    EXPECT_EQ(store->write(0, bytes), -ETIMEDOUT);
    return store->remark().find("too few of its replicas") != std::string::npos;
  }));
  // Then nothing is written anywhere: whoever has to write does not go on by halves.
  for (uint64_t at = 0; at < kClusterSize; at += 65'536)
    EXPECT_EQ(store->write(at, bytes), -ETIMEDOUT) << at;
  EXPECT_FALSE(store->is_unreplicated());
  for (int i = 3; i < 6; ++i) servers_->start(i);
  EXPECT_TRUE(becomes([&] { return store->write(0, bytes) == 0; }));
}

// Two failures at once are more than one replica bears. Zeros in their place would be wrong bytes.
TEST_P(RedisCluster, IsFoundOutIfAMasterAndItsReplicaComeBackEmpty) {
  const auto store = make("a", kClusterSize, "replicas=1&timeout=20s");
  const Bytes bytes = random_bytes(kClusterSize, 1);
  EXPECT_EQ(store->write(0, bytes), 0);
  for (const int i : {0, 3}) servers_->kill(i);
  for (const int i : {0, 3}) servers_->start(i);
  Bytes now(65'536);
  int lost = 0, right = 0;
  for (uint64_t chunk = 0; chunk < kClusterSize / 65'536; ++chunk) {
    const int result = store->read(chunk * 65'536, now);
    if (result == 0)
      right += std::equal(now.begin(), now.end(),
                          bytes.begin() + static_cast<ptrdiff_t>(chunk * 65'536));
    lost += result == -EIO;
  }
  EXPECT_GT(lost, 10);
  EXPECT_EQ(lost + right, 64) << "every chunk is right, or told to be lost";
  EXPECT_EQ(open_store(servers_->uri("a")).code(), EIO);
}

// One slot goes from the first server to the second, key by key, while it is used.
TEST_P(RedisCluster, FollowsASlotThatMoves) {
  const auto store = make("a", kClusterSize, "replicas=1");
  const Bytes bytes = random_bytes(kClusterSize, 9);
  EXPECT_EQ(store->write(0, bytes), 0);
  const auto id = [&](int server) { return servers_->ask(server, {"CLUSTER", "MYID"}).text; };
  std::string slot;
  for (const redis::Value& key : servers_->ask(0, {"KEYS", "oc:*"}).items)
    if (!key.text.ends_with(":f") && key.text.find("catalog") == std::string::npos)
      slot = std::to_string(servers_->ask(0, {"CLUSTER", "KEYSLOT", key.text}).number);
  ASSERT_NE(slot, "");
  EXPECT_EQ(servers_->ask(1, {"CLUSTER", "SETSLOT", slot, "IMPORTING", id(0)}).text, "OK");
  EXPECT_EQ(servers_->ask(0, {"CLUSTER", "SETSLOT", slot, "MIGRATING", id(1)}).text, "OK");
  const auto keys = servers_->ask(0, {"CLUSTER", "GETKEYSINSLOT", slot, "100"}).items;
  ASSERT_GE(keys.size(), 2U);  // a fence, and a value at least
  const std::string port = servers_->address(1).substr(servers_->address(1).find(':') + 1);
  const auto move = [&](const std::string& key) {
    EXPECT_EQ(
        servers_->ask(0, {"MIGRATE", "127.0.0.1", port, key, "0", "5000", "AUTH", kPassword}).text,
        "OK");
  };
  const int wrong = use_while(*store, [&] {
    // Values first: they are asked for where they are not yet; then the fence, and no script finds
    // both on one server until all is there.
    for (const redis::Value& key : keys)
      if (!key.text.ends_with(":f")) move(key.text);
    for (const redis::Value& key : keys)
      if (key.text.ends_with(":f")) move(key.text);
    for (const int server : {1, 0, 2})
      EXPECT_EQ(servers_->ask(server, {"CLUSTER", "SETSLOT", slot, "NODE", id(1)}).text, "OK");
  });
  EXPECT_EQ(wrong, 0) << store->remark();
  EXPECT_EQ(store->write(0, bytes), 0);
  EXPECT_EQ(read_all(*store), bytes);
}

// As an administrator's reshard leaves it that was interrupted.
TEST_P(RedisCluster, WritesToASlotThatHasOnlyBegunToMove) {
  const auto store = make("a", kClusterSize, "replicas=1");
  EXPECT_EQ(store->write(0, random_bytes(kClusterSize, 9)), 0);
  const auto id = [&](int server) { return servers_->ask(server, {"CLUSTER", "MYID"}).text; };
  std::set<std::string> slots;
  for (const redis::Value& key : servers_->ask(0, {"KEYS", "oc:*:f"}).items)
    slots.insert(std::to_string(servers_->ask(0, {"CLUSTER", "KEYSLOT", key.text}).number));
  for (const std::string& slot : slots) {
    EXPECT_EQ(servers_->ask(1, {"CLUSTER", "SETSLOT", slot, "IMPORTING", id(0)}).text, "OK");
    EXPECT_EQ(servers_->ask(0, {"CLUSTER", "SETSLOT", slot, "MIGRATING", id(1)}).text, "OK");
  }
  const Bytes bytes = random_bytes(kClusterSize, 10);
  EXPECT_EQ(store->write(0, bytes), 0) << store->remark();
  for (uint64_t at = 0; at + 20'000 < kClusterSize; at += 65'536)
    EXPECT_EQ(store->write(at + 10'000, std::span(bytes).subspan(at + 10'000, 9'000)), 0);
  EXPECT_EQ(read_all(*store), bytes);
}

// Values that have moved already, in a slot that has not: each read is sent on.
TEST_P(RedisCluster, ReadsASlotThatIsHalfMoved) {
  const auto store = make("a", kClusterSize, "replicas=1");
  const Bytes bytes = random_bytes(kClusterSize, 10);
  EXPECT_EQ(store->write(0, bytes), 0);
  const auto id = [&](int server) { return servers_->ask(server, {"CLUSTER", "MYID"}).text; };
  const std::string port = servers_->address(1).substr(servers_->address(1).find(':') + 1);
  for (const redis::Value& key : servers_->ask(0, {"KEYS", "oc:*"}).items) {
    if (key.text.ends_with(":f") || key.text.find("catalog") != std::string::npos) continue;
    const std::string slot =
        std::to_string(servers_->ask(0, {"CLUSTER", "KEYSLOT", key.text}).number);
    servers_->ask(1, {"CLUSTER", "SETSLOT", slot, "IMPORTING", id(0)});
    servers_->ask(0, {"CLUSTER", "SETSLOT", slot, "MIGRATING", id(1)});
    servers_->ask(0, {"MIGRATE", "127.0.0.1", port, key.text, "0", "5000", "AUTH", kPassword});
  }
  EXPECT_LT(servers_->ask(0, {"DBSIZE"}).number, 90) << "fences alone are left";
  EXPECT_EQ(read_all(*store), bytes) << store->remark();
  const auto reader = open_store(servers_->uri("a", "replicas=1"), {});
  ASSERT_TRUE(reader.ok()) << reader.message();
  EXPECT_EQ(read_all(*reader.value()), bytes);
}

// However chunks are stored, copies are made in one way.
INSTANTIATE_TEST_SUITE_P(Plain, RedisClusterCopies, testing::Values(""), packing_name);

INSTANTIATE_TEST_SUITE_P(Chunks, RedisCluster, testing::Values("", "&compress=zstd&chunk=64k"),
                         packing_name);

class FreshRedisCluster : public RedisTest {};

TEST_F(FreshRedisCluster, TakesReplicasThatHaveGotNothingYet) {
  ServerOptions options;
  options.masters = 3;
  options.is_fresh = true;
  start(options);
  const auto store = make("a", kClusterSize, "replicas=1");
  ASSERT_NE(store, nullptr);
  const Bytes bytes = random_bytes(kClusterSize, 1);
  EXPECT_EQ(store->write(0, bytes), 0);
  EXPECT_EQ(read_all(*store), bytes);
}

}  // namespace
}  // namespace outcore::redis_test
