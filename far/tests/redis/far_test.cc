// Space in the memory of several single servers, in their order: far://.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>

#include "far/tests/redis/redis_case.h"

namespace outcore::redis_test {
namespace {

using testing::HasSubstr;

class FarSpace : public PackingTest {
 protected:
  static constexpr uint64_t kChunk = 64 << 10, kSize = 4 << 20;
  // Single servers with so much memory each.
  void start_single(const std::vector<std::string>& memory) {
    for (const std::string& bytes : memory) {
      ServerOptions options;
      options.maxmemory = bytes;
      singles_.push_back(std::make_unique<TestServers>(options));
    }
  }
  // One server and its copy.
  void start_pair(const std::vector<std::string>& of_copy = {}) {
    singles_.push_back(std::make_unique<TestServers>());
    ServerOptions copy;
    copy.more = singles_[0]->as_master(0);
    copy.more.insert(copy.more.end(), {"--repl-timeout", "3"});
    copy.more.insert(copy.more.end(), of_copy.begin(), of_copy.end());
    singles_.push_back(std::make_unique<TestServers>(copy));
    EXPECT_TRUE(becomes([&] { return singles_[1]->info(0, "master_link_status") == "up"; }));
    EXPECT_TRUE(becomes([&] { return singles_[0]->info(0, "connected_slaves") == "1"; }));
  }
  std::string uri(const std::string& between, const std::string& parameters = {}) const {
    std::string hosts;
    for (const auto& server : singles_)
      hosts += (hosts.empty() ? "" : between) + server->address(0);
    const std::string all =
        parameters.empty() && !GetParam().empty() ? GetParam().substr(1) : parameters + GetParam();
    return "far://:open%20sesame@" + hosts + (all.empty() ? "" : "?" + all);
  }
  std::shared_ptr<Store> open(const std::string& uri, uint64_t size_bytes) {
    auto store = open_store(uri, writable(size_bytes));
    EXPECT_TRUE(store.ok()) << store.message();
    return store.ok() ? store.value() : nullptr;
  }
  uint64_t keys(size_t server) {
    return static_cast<uint64_t>(singles_[server]->ask(0, {"DBSIZE"}).number);
  }
  // Bytes that are booked on one of them.
  uint64_t booked(size_t server) {
    const auto list = list_stores("redis://:open%20sesame@" + singles_[server]->address(0));
    EXPECT_TRUE(list.ok()) << list.message();
    uint64_t sum = 0;
    if (list.ok())
      for (const StoreInfo& info : list.value()) sum += info.booked_bytes;
    return sum;
  }

  std::vector<std::unique_ptr<TestServers>> singles_;
};

class FarCopies : public FarSpace {};

TEST_P(FarSpace, FillsItsServersInTheirOrder) {
  start_single({"16mb", "64mb"});
  const auto store = open(uri(","), 20 << 20);
  ASSERT_NE(store, nullptr);
  const Bytes bytes = random_bytes(20 << 20, 1);
  const uint64_t fences = keys(0);
  EXPECT_EQ(store->write(0, bytes), 0) << store->remark();
  EXPECT_EQ(read_all(*store), bytes);
  const uint64_t first = keys(0) - fences, all = bytes.size() / kChunk;
  EXPECT_GT(first, 100U);  // as many as 16 MiB hold
  EXPECT_LT(first, all);
  EXPECT_EQ(keys(1) - fences, all - first);
  EXPECT_TRUE(store->traits().is_volatile);
  EXPECT_TRUE(store->traits().is_fault_safe);
}

TEST_P(FarSpace, LeavesTheSecondServerAloneWhileTheFirstSuffices) {
  start_single({"64mb", "64mb"});
  const auto store = open(uri(","), 20 << 20);
  EXPECT_GE(booked(0), 20U << 20);
  EXPECT_EQ(booked(1), 0U);
}

TEST_P(FarSpace, RefusesWhatItsServersCannotHold) {
  start_single({"16mb", "16mb"});
  const auto refused = open_store(uri(","), writable(30 << 20));
  EXPECT_EQ(refused.code(), ENOSPC);
  EXPECT_THAT(refused.message(), HasSubstr("free"));
  EXPECT_THAT(refused.message(), HasSubstr("name more servers"));
  const auto store = open(uri(","), 4 << 20);
  EXPECT_EQ(store->resize(30 << 20), -ENOSPC);
  EXPECT_EQ(store->size_bytes(), 4U << 20);
  EXPECT_EQ(store->resize(20 << 20), 0) << "what was not promised is free again";
}

TEST_P(FarSpace, IsGoneWithItsProcess) {
  start_single({"64mb", "64mb"});
  {
    const auto store = open(uri(","), kSize);
    EXPECT_EQ(store->write(0, random_bytes(kSize, 2)), 0);
  }
  EXPECT_EQ(booked(0), 0U);
  EXPECT_LE(keys(0), 2U) << "the catalog alone";
}

TEST_P(FarSpace, OfAKilledProcessGoesToWhoNeedsIt) {
  start_single({"32mb"});
  const pid_t child = ::fork();
  if (child == 0) {
    const auto store = open_store(uri(","), writable(20 << 20));
    ::_exit(store.ok() ? 0 : 1);  // nothing is given back
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_EQ(status, 0);
  EXPECT_EQ(open_store(uri(","), writable(20 << 20)).code(), ENOSPC) << "its lease has not ended";
  for (const redis::Value& key : singles_[0]->ask(0, {"KEYS", "oc:{catalog}:*"}).items)
    singles_[0]->ask(0, {"HSET", key.text, "lease", "1", "deadline", "1"});
  const auto store = open(uri(","), 20 << 20);
  ASSERT_NE(store, nullptr);
  EXPECT_EQ(store->write(0, random_bytes(20 << 20, 9)), 0);
}

TEST_P(FarSpace, ReadsZeroAfterDiscardResizeAndReuse) {
  start_single({"16mb", "16mb"});
  const auto store = open(uri(","), 20 << 20);
  Bytes mirror = random_bytes(20 << 20, 3);
  EXPECT_EQ(store->write(0, mirror), 0);
  EXPECT_EQ(store->discard((4 << 20) + 100, (8 << 20) + 5), 0);
  std::fill_n(mirror.begin() + (4 << 20) + 100, (8 << 20) + 5, std::byte{0});
  EXPECT_EQ(read_all(*store), mirror);
  EXPECT_EQ(store->resize((3 << 20) + 77), 0);
  EXPECT_EQ(store->resize(18 << 20), 0);
  mirror.resize((3 << 20) + 77);
  mirror.resize(18 << 20);
  EXPECT_EQ(read_all(*store), mirror);
}

TEST_P(FarSpace, HasPlacesOnlyWhereSpaceWasPromised) {
  start_single({"16mb", "16mb"});
  const auto store = open(uri(",", "reserve=no"), uint64_t{1} << 40);
  const Bytes bytes = random_bytes(3 * kChunk, 4);
  const uint64_t far = uint64_t{900} << 30;
  EXPECT_EQ(store->write(far, bytes), -ENOSPC);
  EXPECT_EQ(store->reserve(far, bytes.size()), 0);
  EXPECT_EQ(store->write(far, bytes), 0);
  Bytes now(bytes.size() + kChunk);
  EXPECT_EQ(store->read(far, now), 0);
  EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), now.begin()));
  EXPECT_TRUE(store->is_hole(far + bytes.size(), kChunk));
  EXPECT_FALSE(store->is_hole(far, kChunk));
  EXPECT_EQ(store->release(far + kChunk, kChunk), 0);
  EXPECT_TRUE(store->is_hole(far + kChunk, kChunk));
  EXPECT_EQ(store->write(far + kChunk, std::span(bytes).first(1)), -ENOSPC);
  EXPECT_EQ(store->reserve(0, 64 << 20), -ENOSPC);
  EXPECT_TRUE(store->is_hole(0, 64 << 20));
}

TEST_P(FarSpace, GoesOnWithTheCopyOfAServerThatDied) {
  start_pair();
  const auto store = open(uri("+"), kSize);
  const int wrong = use_while(*store, [&] {
    EXPECT_TRUE(becomes([&] { return keys(1) > 280; }));
    singles_[0]->kill(0);
    EXPECT_TRUE(becomes([&] { return singles_[1]->info(0, "role") == "master"; }));
  });
  EXPECT_EQ(wrong, 0) << store->remark();
}

TEST_P(FarCopies, NeverGoesBackToAServerThatWasStopped) {
  start_pair();
  const auto store = open(uri("+"), kSize);
  const int wrong = use_while(*store, [&] {
    EXPECT_TRUE(becomes([&] { return keys(1) > 280; }));
    singles_[0]->send(0, SIGSTOP);
    EXPECT_TRUE(becomes([&] { return singles_[1]->info(0, "role") == "master"; }));
    singles_[0]->send(0, SIGCONT);
  });
  EXPECT_EQ(store->write(0, random_bytes(kSize, 5)), 0);
  EXPECT_EQ(read_all(*store), random_bytes(kSize, 5));
  EXPECT_EQ(wrong, 0) << store->remark();
}

TEST_P(FarCopies, GoesOnWithoutACopyThatDied) {
  start_pair();
  const auto store = open(uri("+"), kSize);
  singles_[1]->kill(0);
  EXPECT_EQ(store->write(0, random_bytes(kSize, 6)), 0) << store->remark();
  EXPECT_EQ(read_all(*store), random_bytes(kSize, 6));
}

// Without its master it answers nothing, and so cannot say what it has, before it is one itself.
TEST_P(FarCopies, GoesOnWithACopyThatIsSilentWithoutItsMaster) {
  start_pair({"--replica-serve-stale-data", "no"});
  const auto store = open(uri("+"), kSize);
  EXPECT_EQ(store->write(0, random_bytes(kSize, 12)), 0) << store->remark();
  singles_[0]->kill(0);
  EXPECT_EQ(read_all(*store), random_bytes(kSize, 12));
  EXPECT_EQ(store->write(0, random_bytes(kSize, 13)), 0) << store->remark();
  EXPECT_EQ(read_all(*store), random_bytes(kSize, 13));
}

// As if another program's server had got the address, or the copy had been started wrongly.
TEST_P(FarCopies, DoesNotGoOverToAStrangerInTheCopysPlace) {
  start_pair();
  const auto store = open(uri("+"), kSize);
  EXPECT_EQ(store->write(0, random_bytes(kSize, 9)), 0) << store->remark();
  singles_[1]->kill(0);
  singles_[1]->start_alone(0);
  EXPECT_EQ(read_all(*store), random_bytes(kSize, 9));
  EXPECT_EQ(store->write(0, random_bytes(kSize, 10)), 0) << store->remark();
  EXPECT_EQ(read_all(*store), random_bytes(kSize, 10));
  EXPECT_EQ(keys(1), 0U);
}

TEST_P(FarCopies, WaitsForTheFirstWhereAStrangerIsInTheCopysPlace) {
  start_pair();
  const auto store = open(uri("+"), kSize);
  EXPECT_EQ(store->write(0, random_bytes(kSize, 11)), 0) << store->remark();
  singles_[1]->kill(0);
  singles_[1]->start_alone(0);
  singles_[0]->send(0, SIGSTOP);
  std::thread goes_on([&] {
    EXPECT_TRUE(becomes([&] {
      return singles_[1]->ask(0, {"INFO", "commandstats"}).text.find("_role:") != std::string::npos;
    })) << "nobody asked it whether it serves";
    singles_[0]->send(0, SIGCONT);
  });
  EXPECT_EQ(read_all(*store), random_bytes(kSize, 11));
  goes_on.join();
}

TEST_P(FarSpace, IsToldOfAServerThatDiedWithoutACopy) {
  start_single({"16mb", "16mb"});
  const auto store = open(uri(",", "timeout=1s"), 20 << 20);
  const Bytes bytes = random_bytes(20 << 20, 7);
  EXPECT_EQ(store->write(0, bytes), 0);
  singles_[1]->kill(0);
  Bytes now(kChunk);
  EXPECT_EQ(store->read(0, now), 0) << "the first is there";
  EXPECT_EQ(store->read((20 << 20) - kChunk, now), -ETIMEDOUT);
  singles_[1]->start(0);
  EXPECT_EQ(store->read((20 << 20) - kChunk, now), -EIO) << "zeros would be wrong";
}

TEST_P(FarCopies, RefusesWrongInput) {
  start_single({"16mb", "16mb"});
  const auto message = [](const std::string& uri) { return open_store(uri, writable()).message(); };
  EXPECT_THAT(message("far://127.0.0.1:1/name"), HasSubstr("no name"));
  EXPECT_THAT(message("far://"), HasSubstr("no server"));
  EXPECT_THAT(message(uri(",", "reserve=maybe")), HasSubstr("write yes or no"));
  EXPECT_THAT(message(uri(",", "lifetime=2h")), HasSubstr("unknown"));
  EXPECT_THAT(message(uri(",", "replicas=1")), HasSubstr("has 0 replicas"));
  EXPECT_THAT(message("far://127.0.0.1:1?timeout=1s"), HasSubstr("none of its servers answers"));
  ServerOptions cluster;
  cluster.masters = 3;
  start(cluster);
  EXPECT_THAT(message("far://:open%20sesame@" + servers_->address(0) + "," + servers_->address(1)),
              HasSubstr("of a cluster"));
  const auto store = open("far://:open%20sesame@" + servers_->address(0), kSize);
  EXPECT_EQ(store->write(0, random_bytes(kSize, 8)), 0) << "a cluster alone will do";
}

// However chunks are stored, a copy is given up, and input refused, in one way.
INSTANTIATE_TEST_SUITE_P(Plain, FarCopies, testing::Values(""), packing_name);

INSTANTIATE_TEST_SUITE_P(Chunks, FarSpace, testing::Values("", "&compress=lz4&chunk=64k"),
                         packing_name);

}  // namespace
}  // namespace outcore::redis_test
