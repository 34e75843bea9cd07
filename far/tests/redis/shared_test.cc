// A store of servers that several processes write at once: their lease, their locks, their bytes.
#include <sys/wait.h>

#include <csignal>
#include <map>

#include "far/redis/catalog_scripts.h"
#include "far/tests/redis/redis_case.h"
#include "far/tests/redis/shared_servers.h"
#include "outcore/shared_writers.h"

namespace outcore::redis_test {
namespace {

using outcore::SharedWriters;
using testing::HasSubstr;

constexpr const char* kCatalog = SharedWriters::kCatalogLock;

class RedisShared : public RedisTest {
 protected:
  static constexpr const char* kAlone = "replicas=0";
  void SetUp() override {
    RedisTest::SetUp();
    if (!IsSkipped()) start();
  }
  Result<std::shared_ptr<SharedWriters>> join(const std::string& name,
                                              const std::string& parameters = kAlone) {
    return outcore::open_shared_store(servers_->uri(name, parameters), writable(kSize));
  }
  // One that others count.
  std::shared_ptr<SharedWriters> write(const std::string& name) {
    auto joined = join(name);
    EXPECT_TRUE(joined.ok()) << joined.message();
    EXPECT_EQ(joined.value()->be_writer(true).message(), "");
    return joined.value();
  }
  std::string field(const std::string& name) {
    return servers_->ask(0, {"HGET", record_of("a"), name}).text;
  }
};

TEST_F(RedisShared, WritersShareATokenAndTheLastGivesTheLeaseBack) {
  auto first = write("a");
  const std::string token = field("token");
  auto second = write("a");
  EXPECT_EQ(field("token"), token);
  EXPECT_EQ(members_of(*servers_, 0, "a").size(), 2u);
  first.reset();
  EXPECT_EQ(second->store().write(5, random_bytes(100, 1)), 0);
  EXPECT_NE(field("owner_id"), "");
  second->leave();
  EXPECT_EQ(second->store().write(5, random_bytes(100, 1)), -ESTALE);
  EXPECT_EQ(field("owner_id"), "");
  EXPECT_EQ(field("shared"), "");
  EXPECT_EQ(make("a", 0, kAlone)->size_bytes(), kSize);
}

TEST_F(RedisShared, OneAloneAndSeveralKeepEachOtherOut) {
  {
    const auto several = write("a");
    const auto alone = open_store(servers_->uri("a", kAlone), writable());
    EXPECT_EQ(alone.code(), EBUSY);
    EXPECT_THAT(alone.message(), HasSubstr("(of several) writes it; its lease ends in"));
    EXPECT_EQ(remove_store(servers_->uri("a", kAlone)).code(), EBUSY);
  }
  const auto alone = make("a", 0, kAlone);
  const auto several = join("a");
  EXPECT_EQ(several.code(), EBUSY);
  EXPECT_THAT(several.message(), HasSubstr("writes it"));
  EXPECT_EQ(alone->write(0, random_bytes(100, 1)), 0);
}

TEST_F(RedisShared, ALeaseThatAllHaveLeftWithoutAWordIsNotJoined) {
  const auto before = write("a");
  set_field(0, "a", "lease", "1");
  const auto after = write("a");
  EXPECT_EQ(members_of(*servers_, 0, "a").size(), 1u);
  EXPECT_EQ(before->store().write(0, random_bytes(10, 1)), -ESTALE);
  EXPECT_EQ(before->lock(kCatalog, true).code(), ESTALE);
  EXPECT_EQ(after->store().write(0, random_bytes(10, 1)), 0);
}

// What a client of before leaves behind when it takes a shared lease over.
TEST_F(RedisShared, ALeaseOfAnOlderClientIsNotJoined) {
  const auto before = write("a");
  set_field(0, "a", "token", std::to_string(std::stoi(field("token")) + 1));
  EXPECT_EQ(join("a").code(), EBUSY);
}

TEST_F(RedisShared, OneProcessAloneWritesCompressedChunks) {
  EXPECT_EQ(join("new", "replicas=0&compress=lz4").code(), ENOTSUP);
  make("packed", kSize, "replicas=0&compress=lz4");
  const auto joined = join("packed");
  EXPECT_EQ(joined.code(), ENOTSUP);
  EXPECT_THAT(joined.message(), HasSubstr("make the store without compress="));
  EXPECT_EQ(outcore::open_shared_store("rbd://pool/image", writable(kSize)).code(), ENOTSUP);
  EXPECT_EQ(outcore::open_shared_store(servers_->uri("new", kAlone), {}).code(), EINVAL);
}

// Members whose parts of chunks are neighbours, in all ways that writes travel.
TEST_F(RedisShared, NobodysBytesOfAChunkAreUndone) {
  constexpr size_t kChunk = 65'536, kChunks = 4;
  constexpr size_t kParts[] = {16'384, 9'001, 700, 20'000, 3, kChunk - 16'384 - 9'001 - 20'703};
  std::vector<std::shared_ptr<SharedWriters>> members;
  for (size_t i = 0; i < std::size(kParts); ++i) members.push_back(write("a"));
  Bytes wanted(kChunk * kChunks);
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  size_t at = 0;
  for (size_t i = 0; i < std::size(kParts); at += kParts[i++])
    threads.emplace_back([&, i, at] {
      Store& store = members[i]->store();
      Bytes now(kParts[i]);
      for (uint64_t round = 0; round < 60; ++round)
        for (uint64_t chunk = 0; chunk < kChunks; ++chunk) {
          const uint64_t offset = chunk * kChunk + at;
          const Bytes bytes = random_bytes(kParts[i], round * 1000 + chunk * 10 + i);
          if (round % 7 == 3) wrong += store.discard(offset, kParts[i]) != 0;
          wrong += store.write(offset, bytes) != 0;
          wrong += store.read(offset, now) != 0 || now != bytes;
          std::copy(bytes.begin(), bytes.end(), wanted.begin() + static_cast<ptrdiff_t>(offset));
        }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  for (const auto& member : members) {
    Bytes bytes(wanted.size());
    EXPECT_EQ(member->store().read(0, bytes), 0);
    EXPECT_EQ(bytes, wanted);
  }
}

TEST_F(RedisShared, WholeChunksAtOnceAreEachMembersOwn) {
  const auto one = write("a"), two = write("a");
  std::thread other([&] {
    for (uint64_t i = 1; i < 16; i += 2)
      EXPECT_EQ(two->store().write(i * 65'536, random_bytes(65'536, i)), 0);
  });
  for (uint64_t i = 0; i < 16; i += 2)
    EXPECT_EQ(one->store().write(i * 65'536, random_bytes(65'536, i)), 0);
  other.join();
  for (uint64_t i = 0; i < 16; ++i) {
    Bytes bytes(65'536);
    EXPECT_EQ(one->store().read(i * 65'536, bytes), 0);
    EXPECT_EQ(bytes, random_bytes(65'536, i)) << i;
  }
}

TEST_F(RedisShared, WhoLocksKnowsHowLargeItIs) {
  const auto one = write("a"), two = write("a");
  ASSERT_EQ(one->lock(kCatalog, true).message(), "");
  EXPECT_EQ(one->store().resize(3 * kSize), 0);
  one->unlock(kCatalog);
  EXPECT_EQ(two->store().size_bytes(), kSize);
  ASSERT_EQ(two->lock(kCatalog, true).message(), "");
  EXPECT_EQ(two->store().size_bytes(), 3 * kSize);
  EXPECT_EQ(two->store().resize(2 * kSize), -ENOTSUP) << "another may have bytes there";
}

TEST_F(RedisShared, ALockHasOneOwner) {
  const auto one = write("a"), two = write("a");
  ASSERT_EQ(one->lock(kCatalog, true).message(), "");
  EXPECT_EQ(one->lock(kCatalog, true).message(), "") << "it has it already";
  const Status refused = two->lock(kCatalog, false);
  EXPECT_EQ(refused.code(), EAGAIN);
  EXPECT_THAT(refused.message(), HasSubstr("process " + std::to_string(::getpid())));
  EXPECT_EQ(two->lock("another", false).message(), "");
  one->unlock(kCatalog);
  EXPECT_EQ(two->lock(kCatalog, false).message(), "");
  EXPECT_EQ(one->lock(kCatalog, false).code(), EAGAIN);
  EXPECT_TRUE(two->are_other_writers().value());
  two->leave();
  EXPECT_EQ(one->lock(kCatalog, false).message(), "");
  EXPECT_EQ(one->lock("another", false).message(), "");
  EXPECT_FALSE(one->are_other_writers().value());
}

TEST_F(RedisShared, ManyThatWantALockAllGetIt) {
  std::atomic<int> inside{0}, wrong{0}, count{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      const auto member = write("a");
      for (int round = 0; round < 50; ++round) {
        if (!member->lock(kCatalog, true)) ++wrong;
        if (++inside != 1) ++wrong;
        ++count;
        --inside;
        member->unlock(kCatalog);
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(count, 200);
}

// The server reads what a connection sent that was given up.
TEST_F(RedisShared, ALockThatComesLateIsNotHad) {
  const auto one = write("a"), two = write("a");
  const std::string token = field("token");
  ASSERT_EQ(one->lock(kCatalog, true).message(), "");
  std::string holder = field("lock:catalog");
  holder = holder.substr(0, holder.find(' '));
  one->unlock(kCatalog);
  const std::string script = std::string(redis::kRecordPrelude) + redis::kMembersScript;
  const auto say = [&](const std::string& verb, const std::string& turn) {
    return servers_
        ->ask(0, {"EVAL", script, "2", "oc:{catalog}", record_of("a"), verb, "a", token, holder,
                  "15000", "1", "catalog", turn})
        .field("outcome");
  };
  EXPECT_EQ(say("lock", "1"), "late");
  EXPECT_EQ(two->lock(kCatalog, false).message(), "");
  two->unlock(kCatalog);
  ASSERT_EQ(one->lock(kCatalog, true).message(), "");
  EXPECT_EQ(say("unlock", "1"), "done");
  EXPECT_EQ(two->lock(kCatalog, false).code(), EAGAIN) << "it was another turn's";
}

// It holds the lock, is stopped for longer than its lease, and goes on.
TEST_F(RedisShared, WhoWasSilentWithALockWritesNothingMore) {
  int may_write[2];
  ASSERT_EQ(::pipe(may_write), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const auto joined = outcore::open_shared_store(servers_->uri("a", kAlone), writable(kSize));
    if (!joined || !joined.value()->be_writer(true).ok()) ::_exit(1);
    Store& store = joined.value()->store();
    if (store.write(0, random_bytes(70'000, 1)) != 0) ::_exit(2);
    if (!joined.value()->lock(kCatalog, true).ok()) ::_exit(3);
    ::raise(SIGSTOP);
    for (const size_t size : {100, 10'000, 65'536})
      if (store.write(0, random_bytes(size, 7)) != -ESTALE) ::_exit(4);
    if (store.discard(0, 65'536) != -ESTALE) ::_exit(5);
    if (store.resize(2 * kSize) == 0) ::_exit(6);
    ::_exit(joined.value()->lock(kCatalog, true).code() == ESTALE ? 0 : 7);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, WUNTRACED), child);
  ASSERT_TRUE(WIFSTOPPED(status)) << WEXITSTATUS(status);
  const auto other = write("a"), third = write("a");
  EXPECT_EQ(other->lock(kCatalog, false).code(), EAGAIN);
  ASSERT_EQ(end_lease_of(*servers_, 0, "a", child), 1);
  const Status found = other->lock(kCatalog, true);
  EXPECT_EQ(found.code(), EIO);
  EXPECT_THAT(found.message(), HasSubstr("process " + std::to_string(child)));
  EXPECT_EQ(other->store().write(0, random_bytes(10, 1)), -ESTALE);
  EXPECT_EQ(third->store().write(0, random_bytes(10, 1)), -ESTALE) << "nobody writes any more";
  EXPECT_EQ(third->store().write(0, random_bytes(65'536, 1)), -ESTALE);
  EXPECT_EQ(third->lock(kCatalog, true).code(), ESTALE);
  ::kill(child, SIGCONT);
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 0);
  const auto next = make("a", 0, kAlone);  // at once
  Bytes bytes(70'000);
  EXPECT_EQ(next->read(0, bytes), 0);
  EXPECT_EQ(bytes, random_bytes(70'000, 1));
}

TEST_F(RedisShared, WhoIsLeftAloneByTheDeadIsTold) {
  const auto one = write("a");
  const pid_t child = ::fork();
  if (child == 0) {
    const auto joined = outcore::open_shared_store(servers_->uri("a", kAlone), writable(kSize));
    if (joined.ok() && joined.value()->be_writer(true).ok()) ::raise(SIGKILL);
    ::_exit(1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status));
  ASSERT_EQ(one->lock(kCatalog, true).message(), "");
  EXPECT_TRUE(one->are_other_writers().value()) << "nobody knows yet";
  one->unlock(kCatalog);
  ASSERT_EQ(end_lease_of(*servers_, 0, "a", child), 1);
  const Status heard = one->hear_of_others();
  EXPECT_EQ(heard.code(), EIO);
  EXPECT_THAT(heard.message(), HasSubstr("process " + std::to_string(child)));
  ASSERT_EQ(one->lock(kCatalog, true).message(), "");
  EXPECT_EQ(one->are_other_writers().code(), EIO);
  EXPECT_EQ(one->store().write(0, random_bytes(10, 1)), -ESTALE);
  EXPECT_NE(make("a", 0, kAlone), nullptr);
}

TEST_F(RedisShared, ThoseWhoEndTogetherDoNotWaitForEachOther) {
  const auto one = write("a"), two = write("a");
  std::thread other([&] { EXPECT_EQ(two->hear_of_others().message(), ""); });
  EXPECT_EQ(one->hear_of_others().message(), "");
  other.join();
}

// The server was not there, as when another takes over: nobody has ended.
TEST_F(RedisShared, ASilentServerEndsNobodysLease) {
  const auto one = write("a"), two = write("a");
  ASSERT_EQ(one->lock(kCatalog, true).message(), "");
  const uint64_t heard = std::stoull(field("heard"));
  for (const std::string& member : members_of(*servers_, 0, "a")) {  // as if 40 s had gone by
    const std::string text = field(member);
    set_field(0, "a", member, std::to_string(heard - 25'000) + text.substr(text.find(' ')));
  }
  set_field(0, "a", "heard", std::to_string(heard - 40'000));
  EXPECT_EQ(two->lock(kCatalog, false).code(), EAGAIN);
  one->unlock(kCatalog);
  EXPECT_EQ(two->lock(kCatalog, false).message(), "");
  EXPECT_TRUE(two->are_other_writers().value());
}

// It does not know whether the server will still carry it out: nobody goes on from there.
TEST_F(RedisShared, AWriteThatNobodyAnsweredEndsTheSession) {
  const auto one = join("a", "replicas=0&timeout=300ms").value(), two = write("a");
  ASSERT_EQ(one->be_writer(true).message(), "");
  ASSERT_EQ(one->lock(kCatalog, true).message(), "");
  servers_->send(0, SIGSTOP);
  EXPECT_EQ(one->store().write(0, random_bytes(100, 1)), -ETIMEDOUT);
  servers_->send(0, SIGCONT);
  one->unlock(kCatalog);
  EXPECT_EQ(one->store().write(0, random_bytes(100, 1)), -ESTALE);
  EXPECT_EQ(one->lock(kCatalog, true).code(), ESTALE);
  EXPECT_EQ(two->lock(kCatalog, false).code(), EAGAIN) << "it never gives it back";
  for (const std::string& member : members_of(*servers_, 0, "a"))
    if (field("lock:catalog").starts_with(member.substr(7))) set_field(0, "a", member, "1 w it");
  EXPECT_EQ(two->lock(kCatalog, true).code(), EIO);
}

// A server that took over and knows less of one member, but as much of all.
TEST_F(RedisShared, WhatIsLostOfOneMemberIsNotHiddenByAnother) {
  const auto one = write("a"), two = write("a");
  EXPECT_EQ(one->store().write(0, random_bytes(100, 1)), 0);
  const auto fences = servers_->ask(0, {"KEYS", "oc:*:f"}).items;
  ASSERT_EQ(fences.size(), 256u);
  // What it made is undone; the other has made the sequence larger meanwhile.
  std::map<std::string, int> most;
  for (const redis::Value& fence : fences) {
    const redis::Value fields = servers_->ask(0, {"HGETALL", fence.text});
    for (size_t i = 0; i + 1 < fields.items.size(); i += 2)
      if (fields.items[i].text.starts_with("of:") && fields.items[i + 1].text == "2") {
        servers_->ask(0, {"HINCRBY", fence.text, fields.items[i].text, "-1"});
        ++most[fields.items[i].text];
      }
    servers_->ask(0, {"HINCRBY", fence.text, "seq", "1"});
  }
  ASSERT_EQ(most.size(), 1u);
  for (const redis::Value& key : servers_->ask(0, {"KEYS", "oc:*:0"}).items)
    servers_->ask(0, {"DEL", key.text});
  Bytes bytes(100);
  EXPECT_EQ(one->store().read(0, bytes), -EIO);
  EXPECT_THAT(one->explain(-EIO, "read").message, HasSubstr("lost some of it"));
}

}  // namespace
}  // namespace outcore::redis_test
