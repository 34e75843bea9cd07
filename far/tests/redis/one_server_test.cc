// A store on one server: who may have it, what is refused, and what happens when the server fails.
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "far/tests/redis/redis_case.h"

namespace outcore::redis_test {
namespace {

using testing::HasSubstr;
using testing::Not;

class RedisOneServer : public PackingTest {
 protected:
  static constexpr char kAlone[] = "replicas=0&timeout=1s";
  void SetUp() override {
    PackingTest::SetUp();
    if (!IsSkipped()) start();
  }
};

TEST_P(RedisOneServer, KeepsWhatIsStoredWhenItIsClosed) {
  const Bytes bytes = random_bytes(kSize, 1);
  EXPECT_EQ(make("a", kSize, kAlone)->write(0, bytes), 0);
  const auto again = open_store(servers_->uri("a"));
  ASSERT_TRUE(again.ok()) << again.message();
  EXPECT_EQ(again.value()->size_bytes(), kSize);
  EXPECT_EQ(read_all(*again.value()), bytes);
  EXPECT_EQ(again.value()->write(0, bytes), -EROFS);
}

TEST_P(RedisOneServer, KeepsOnlyWhatWasWritten) {
  const auto store = make("a", kSize, kAlone);
  EXPECT_TRUE(store->is_hole(0, kSize));
  EXPECT_EQ(store->write(70'000, random_bytes(10, 1)), 0);
  EXPECT_FALSE(store->is_hole(70'000, 1));
  EXPECT_TRUE(store->is_hole(0, 65'536));
  uint64_t chunks = 0;
  for (const redis::Value& key : servers_->ask(0, {"KEYS", "oc:*"}).items)
    chunks += key.text.back() != 'f' && key.text.find("catalog") == std::string::npos;
  EXPECT_EQ(chunks, 1u);
}

TEST_P(RedisOneServer, RefusesASecondWriterWithTheNameOfTheFirst) {
  const auto store = make("a", kSize, kAlone);
  std::string uri = servers_->uri("a", kAlone);
  uri.replace(uri.find("127.0.0.1"), 9, "localhost");  // as from elsewhere
  const auto second = open_store(uri, writable());
  EXPECT_EQ(second.code(), EBUSY);
  EXPECT_THAT(second.message(), HasSubstr("process " + std::to_string(::getpid())));
  EXPECT_THAT(second.message(), testing::Not(HasSubstr("sesame")));
  EXPECT_TRUE(open_store(uri).ok()) << "readers come in";
}

TEST_P(RedisOneServer, GivesOneStoreToAProcessThatOpensItTwice) {
  const auto first = make("a", kSize, kAlone), second = make("a", kSize, kAlone);
  EXPECT_EQ(first, second);
  EXPECT_EQ(make("a", 2 * kSize, kAlone)->size_bytes(), 2 * kSize);
}

// The lease ends while its owner is stopped; another takes over; the first wakes up and writes.
TEST_P(RedisOneServer, RefusesWhatAnOwnerWritesAfterItsLease) {
  int is_open[2], may_write[2];
  ASSERT_EQ(::pipe(is_open), 0);
  ASSERT_EQ(::pipe(may_write), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const auto store = open_store(servers_->uri("a", kAlone + more_parameters_), writable(kSize));
    char byte = store.ok() ? 'y' : 'n';
    if (::write(is_open[1], &byte, 1) != 1 || ::read(may_write[0], &byte, 1) != 1) ::_exit(1);
    if (!store.ok()) ::_exit(2);
    // Each travels in its own way.
    for (const size_t size : {10'000, 65'536})
      if (store.value()->write(0, random_bytes(size, 1)) != -ESTALE) ::_exit(3);
    ::_exit(-store.value()->write(0, random_bytes(100, 1)));
  }
  char byte = 0;
  ASSERT_EQ(::read(is_open[0], &byte, 1), 1);
  ASSERT_EQ(byte, 'y');
  ::kill(child, SIGSTOP);
  set_field(0, "a", "lease", "1");
  const auto store = make("a", 0, kAlone);
  const Bytes bytes = random_bytes(kSize, 2);
  EXPECT_EQ(store->write(0, bytes), 0);
  ::kill(child, SIGCONT);
  ASSERT_EQ(::write(may_write[1], &byte, 1), 1);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), ESTALE);
  EXPECT_TRUE(servers_->ask(0, {"KEYS", "oc:*:f:*"}).items.empty()) << "what it staged is gone";
  EXPECT_EQ(read_all(*store), bytes);
}

// Parts of one chunk by several threads, while its other parts are read.
TEST_P(RedisOneServer, KeepsAllPartsOfAChunkThatAreWrittenAtOnce) {
  const auto store = make("a", kSize, kAlone);
  constexpr size_t kPart = 16'384;
  std::atomic<int> wrong{0};
  std::vector<std::thread> writers;
  for (uint64_t at = 0; at < 65'536; at += kPart) {
    writers.emplace_back([&, at] {
      Bytes now(kPart);
      for (uint64_t i = 0; i < 300; ++i) {
        const Bytes bytes = random_bytes(kPart, at + i);
        wrong += store->write(at, bytes) != 0;
        wrong += store->read(at, now) != 0 || now != bytes;
      }
    });
  }
  for (std::thread& writer : writers) writer.join();
  EXPECT_EQ(wrong, 0);
  const redis::Value keys = servers_->ask(0, {"KEYS", "oc:*:f:*"});
  EXPECT_TRUE(keys.items.empty()) << "what was staged has been placed";
}

TEST_P(RedisOneServer, LosesNothingWithTheScriptsThatItKnows) {
  const auto store = make("a", kSize, kAlone);
  EXPECT_EQ(store->write(0, random_bytes(kSize, 1)), 0);
  Bytes bytes = random_bytes(kSize, 2);
  EXPECT_EQ(store->write(0, bytes), 0);
  for (uint64_t at = 0; at + 65'536 <= kSize; at += 65'536) {
    servers_->ask(0, {"SCRIPT", "FLUSH"});
    const Bytes part = random_bytes(20'000, at);
    EXPECT_EQ(store->write(at + 30'000, part), 0);
    std::copy(part.begin(), part.end(), bytes.begin() + static_cast<ptrdiff_t>(at + 30'000));
  }
  EXPECT_EQ(read_all(*store), bytes);
}

TEST_P(RedisOneServer, RefusesWhatDoesNotFit) {
  const auto store = open_store(servers_->uri("a", kAlone), writable(uint64_t{1} << 30));
  EXPECT_EQ(store.code(), ENOSPC);
  EXPECT_THAT(store.message(), HasSubstr("1.3 GiB asked for"));
  const auto first = make("b", 150 << 20, kAlone);
  EXPECT_EQ(open_store(servers_->uri("c", kAlone), writable(100 << 20)).code(), ENOSPC);
  EXPECT_EQ(first->resize(250 << 20), -ENOSPC);
  EXPECT_EQ(first->size_bytes(), 150u << 20);
  EXPECT_EQ(first->resize(160 << 20), 0);
}

TEST_P(RedisOneServer, ReclaimsAStoreAfterItsLifetime) {
  make("old", 150 << 20, "replicas=0&lifetime=1h")->write(0, random_bytes(1000, 1));
  EXPECT_EQ(open_store(servers_->uri("new", kAlone), writable(100 << 20)).code(), ENOSPC);
  set_field(0, "old", "deadline", "1");
  EXPECT_TRUE(open_store(servers_->uri("new", kAlone), writable(100 << 20)).ok());
  EXPECT_EQ(open_store(servers_->uri("old")).code(), ENOENT);
}

TEST_P(RedisOneServer, SaysWhatIsWrong) {
  const auto message = [&](const std::string& uri) {
    return open_store(uri, writable(kSize)).message();
  };
  EXPECT_THAT(open_store(servers_->uri("none")).message(), HasSubstr("there is no store"));
  EXPECT_THAT(message("redis://:wrong@" + servers_->address(0) + "/a"),
              HasSubstr("refuses the user or password"));
  EXPECT_THAT(message("redis://" + servers_->address(0) + "/a"), HasSubstr("refuses the user"));
  EXPECT_THAT(message("redis://127.0.0.1:1/a"), HasSubstr("Connection refused"));
  EXPECT_THAT(message("redis://127.0.0.1:x/a"), HasSubstr("write host:port"));
  EXPECT_THAT(message("redis://no.such.host.invalid/a"), HasSubstr("no.such.host.invalid"));
  EXPECT_THAT(message("redis:///a"), HasSubstr("no server"));
  EXPECT_THAT(message(servers_->uri("")), HasSubstr("no name"));
  EXPECT_THAT(message(servers_->uri("a", "chunk=5000")), HasSubstr("a power of two"));
  EXPECT_THAT(message(servers_->uri("a", "replcas=1")), HasSubstr("did you mean 'replicas'"));
  EXPECT_THAT(message(servers_->uri("a")), HasSubstr("write replicas=0"));
  servers_->ask(0, {"CONFIG", "SET", "maxmemory-policy", "allkeys-lru"});
  EXPECT_THAT(message(servers_->uri("a", kAlone)), HasSubstr("maxmemory-policy noeviction"));
}

class RedisAddress : public RedisTest {
 protected:
  static bool has_ipv6() {
    sockaddr_in6 here{};
    here.sin6_family = AF_INET6;
    here.sin6_addr = in6addr_loopback;
    const int fd = ::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const bool is_there =
        fd >= 0 && ::bind(fd, reinterpret_cast<const sockaddr*>(&here), sizeof here) == 0;
    if (fd >= 0) ::close(fd);
    return is_there;
  }
};

TEST_F(RedisAddress, MayBeOfIpv6) {
  if (!has_ipv6()) GTEST_SKIP() << "this machine has no IPv6: ::1 cannot be bound to";
  ServerOptions options;
  options.more = {"--bind", "127.0.0.1", "::1"};
  start(options);
  std::string uri = servers_->uri("a", "replicas=0&timeout=1s");
  uri.replace(uri.find("127.0.0.1"), 9, "[::1]");
  const auto store = open_store(uri, writable(kSize));
  ASSERT_TRUE(store.ok()) << store.message();
  const Bytes bytes = random_bytes(kSize, 1);
  EXPECT_EQ(store.value()->write(0, bytes), 0);
  EXPECT_EQ(read_all(*store.value()), bytes);
}

// As docs/guides/far-memory.md says.
TEST_P(RedisOneServer, IsContentWithAUserOfFewRights) {
  servers_->ask(
      0, {"ACL", "SETUSER", "pager", "on", ">a:b@c", "~oc:*", "+@read", "+@write", "+@scripting",
          "+cluster|slots", "+info", "+wait", "+time", "+asking", "+client|id", "+client|kill"});
  std::string uri = servers_->uri("a", kAlone);
  uri.replace(uri.find(":open%20sesame"), 14, "pager:a%3Ab%40c");
  const auto store = open_store(uri, writable(kSize));
  ASSERT_TRUE(store.ok()) << store.message();
  const Bytes bytes = random_bytes(kSize, 1);
  EXPECT_EQ(store.value()->write(0, bytes), 0);
  EXPECT_EQ(store.value()->discard(0, 10), 0);
  EXPECT_EQ(store.value()->resize(2 * kSize), 0);
  EXPECT_EQ(read_all(*store.value()).size(), 2 * kSize);
}

TEST_P(RedisOneServer, IsWaitedForWhileItIsStopped) {
  const auto store = make("a", kSize, "replicas=0&timeout=60s");
  const Bytes bytes = random_bytes(1000, 1);
  EXPECT_EQ(store->write(0, bytes), 0);
  servers_->send(0, SIGSTOP);
  std::thread waker([&] {
    EXPECT_TRUE(becomes([&] { return store->remark().find("last failure") != std::string::npos; }));
    servers_->send(0, SIGCONT);
  });
  Bytes now(1000);
  EXPECT_EQ(store->read(0, now), 0);
  EXPECT_EQ(now, bytes);
  waker.join();
}

TEST_P(RedisOneServer, IsWaitedForNoLongerThanTheTimeout) {
  const auto store = make("a", kSize, kAlone);
  EXPECT_EQ(store->write(0, random_bytes(1000, 1)), 0);
  servers_->send(0, SIGSTOP);
  Bytes now(1000);
  EXPECT_EQ(store->read(0, now), -ETIMEDOUT);
  EXPECT_EQ(store->write(0, now), -ETIMEDOUT);
  EXPECT_THAT(store->remark(), HasSubstr("last failure: 127.0.0.1"));
  servers_->send(0, SIGCONT);
  EXPECT_EQ(store->write(0, now), 0);
}

// Zeros would be wrong bytes.
TEST_P(RedisOneServer, IsFoundOutIfItComesBackEmpty) {
  const auto store = make("a", kSize, kAlone);
  EXPECT_EQ(store->write(0, random_bytes(1000, 1)), 0);
  servers_->kill(0);
  servers_->start(0);
  ASSERT_TRUE(servers_->answers(0));
  Bytes now(1000);
  EXPECT_EQ(store->read(0, now), -EIO);
  EXPECT_EQ(store->write(0, now), -EIO);
  EXPECT_THAT(store->remark(), HasSubstr("lost some of it"));
}

// The connection stays, only what it led to is gone.
TEST_P(RedisOneServer, IsFoundOutIfItIsEmptied) {
  const auto store = make("a", kSize, kAlone);
  EXPECT_EQ(store->write(0, random_bytes(1000, 1)), 0);
  const auto reader = open_store(servers_->uri("a"));
  ASSERT_TRUE(reader.ok()) << reader.message();
  Bytes now(1000);
  EXPECT_EQ(reader.value()->read(0, now), 0);
  servers_->ask(0, {"FLUSHALL"});
  EXPECT_EQ(reader.value()->read(0, now), -EIO);
  EXPECT_EQ(store->read(0, now), -EIO);
  EXPECT_EQ(store->sync(), -EIO);
}

TEST_P(RedisOneServer, ShowsReadersThatAStoreWasRemoved) {
  make("a", kSize, kAlone)->write(0, random_bytes(1000, 1));
  const auto reader = open_store(servers_->uri("a"));
  ASSERT_TRUE(reader.ok()) << reader.message();
  EXPECT_TRUE(remove_store(servers_->uri("a", kAlone)).ok());
  Bytes now(1000);
  EXPECT_EQ(reader.value()->read(0, now), -EIO);
  make("a", kSize, kAlone)->write(0, random_bytes(1000, 2));
  EXPECT_EQ(reader.value()->read(0, now), -EIO) << "the new one is another";
}

TEST_P(RedisOneServer, GoesOnWithARemovalThatWasInterrupted) {
  make("a", kSize, kAlone)->write(0, random_bytes(1000, 1));
  set_field(0, "a", "state", "removing");
  EXPECT_EQ(open_store(servers_->uri("a")).code(), EBUSY);
  EXPECT_EQ(open_store(servers_->uri("a", kAlone), writable(kSize)).code(), EBUSY);
  EXPECT_TRUE(remove_store(servers_->uri("a", kAlone)).ok());
  EXPECT_EQ(read_all(*make("a", kSize, kAlone)), Bytes(kSize));
}

TEST_P(RedisOneServer, RemovesWithoutReplicasThatAreNotThere) {
  make("a", kSize, kAlone);
  const Status removed = remove_store(servers_->uri("a"));
  EXPECT_TRUE(removed.ok()) << removed.message();
  EXPECT_EQ(list_stores(servers_->uri("")).value().size(), 0U);
}

TEST_P(RedisOneServer, RemovesAlsoWhereMemoryIsFull) {
  make("a", kSize, kAlone)->write(0, random_bytes(kSize, 1));
  servers_->ask(0, {"CONFIG", "SET", "maxmemory", "1mb"});
  const Status removed = remove_store(servers_->uri("a", kAlone));
  EXPECT_TRUE(removed.ok()) << removed.message();
}

TEST_P(RedisOneServer, RefusesWeakerPromisesThanAreAskedFor) {
  const auto store = make("a", kSize, kAlone);
  EXPECT_THAT(open_store(servers_->uri("a", "replicas=1"), writable()).message(),
              HasSubstr("other replicas"));
}

TEST_P(RedisOneServer, TellsThatItsMemoryIsFull) {
  servers_->ask(0, {"CONFIG", "SET", "maxmemory", "0"});  // nothing is booked then
  const auto store = make("a", 64 << 20, kAlone);
  servers_->ask(0, {"CONFIG", "SET", "maxmemory", "8mb"});
  const Bytes bytes = random_bytes(1 << 20, 1);
  int result = 0;
  for (uint64_t i = 0; i < 64 && result == 0; ++i) result = store->write(i << 20, bytes);
  EXPECT_EQ(result, -ENOSPC);
  servers_->ask(0, {"CONFIG", "SET", "maxmemory", "0"});
  EXPECT_EQ(store->write(63 << 20, bytes), 0);
}

// What it was sent before may not be carried out after what it is sent instead.
TEST_P(RedisOneServer, ClosesConnectionsThatWereGivenUpBeforeItWritesAgain) {
  const auto store = make("a", kSize, kAlone);
  const Bytes old_bytes = random_bytes(kSize, 1), bytes = random_bytes(kSize, 2);
  EXPECT_EQ(store->write(0, bytes), 0);
  const auto kills = [&] { return servers_->ask(0, {"INFO", "commandstats"}).text; };
  EXPECT_THAT(kills(), Not(HasSubstr("cmdstat_client|kill")));
  servers_->send(0, SIGSTOP);
  EXPECT_EQ(store->write(0, std::span(old_bytes).first(65'536)), -ETIMEDOUT);
  servers_->send(0, SIGCONT);
  EXPECT_TRUE(servers_->answers(0));
  EXPECT_EQ(store->write(0, std::span(bytes).first(65'536)), 0);
  EXPECT_THAT(kills(), HasSubstr("cmdstat_client|kill:calls=1"));
  EXPECT_EQ(read_all(*store), bytes);
}

TEST_P(RedisOneServer, ServesManyThreads) {
  const auto store = make("a", 8 * kSize, kAlone);
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (uint64_t t = 0; t < 8; ++t)
    threads.emplace_back([&, t] {
      std::mt19937_64 random(t);
      Bytes mirror(kSize), now(5000);
      for (int turn = 0; turn < 100; ++turn) {
        const size_t at = random() % (kSize - 5000), size = 1 + random() % 5000;
        const Bytes bytes = random_bytes(size, random());
        wrong += store->write(t * kSize + at, bytes) != 0;
        std::copy(bytes.begin(), bytes.end(), mirror.begin() + static_cast<ptrdiff_t>(at));
        const size_t look = random() % (kSize - 5000);
        wrong += store->read(t * kSize + look, now) != 0;
        wrong += !std::equal(now.begin(), now.end(), mirror.begin() + static_cast<ptrdiff_t>(look));
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

// The child has connections of its own; the parent's go on.
TEST_P(RedisOneServer, IsReadByAForkedChild) {
  const auto store = make("a", kSize, kAlone);
  const Bytes bytes = random_bytes(kSize, 1);
  EXPECT_EQ(store->write(0, bytes), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    Bytes now(kSize);
    const bool is_right = store->read(0, now) == 0 && now == bytes;
    ::_exit(is_right && store->write(0, bytes) == -ESTALE ? 0 : 1);
  }
  EXPECT_EQ(read_all(*store), bytes);
  int status = 1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(store->write(0, bytes), 0);
}

INSTANTIATE_TEST_SUITE_P(Chunks, RedisOneServer, testing::Values("", "&compress=zstd"),
                         packing_name);

}  // namespace
}  // namespace outcore::redis_test
