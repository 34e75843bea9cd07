// Arrays that several processes write at once to a store of servers: to the chunks, and to the
// lines, that their boxes share.
#include "arrays/tests/container/together_redis.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstring>

#include "arrays/tests/container/processes.h"

namespace outcore::together {
namespace {

using redis_test::ServerOptions;
using scene::in_processes;
using testing::HasSubstr;

TEST_F(TogetherRedis, ProcessesAndThreadsStoreBoxesThatShareChunksAndLines) {
  for (const ArraysMode mode : {ArraysMode::kWrite, ArraysMode::kUpdate, ArraysMode::kWrite}) {
    if (mode == ArraysMode::kUpdate) {  // what is there goes, before several store it again
      auto out = Arrays::open(uri(), mode);
      ASSERT_TRUE(out.ok()) << out.message();
      for (const ArrayInfo& info : out->list()) ASSERT_EQ(out->remove(info.name).message(), "");
      ASSERT_EQ(out->close().message(), "");
    }
    const auto results = in_processes(4, [&](unsigned rank) {
      auto out = open(mode, 4);
      if (!out) return 1;
      if (const int failed = store_boxes(out.value(), rank, 2, 2); failed != 0) return failed;
      return out->close().ok() ? 0 : 2;
    });
    ASSERT_EQ(results, std::vector<int>(4, 0));
    expect_boxes(uri(), 4);
  }
}

TEST_F(TogetherRedis, AClusterTakesThemToo) {
  ServerOptions cluster;
  cluster.masters = 3;
  start(cluster);
  const auto results = in_processes(3, [&](unsigned rank) {
    auto out = Arrays::open(uri("replicas=1"), ArraysMode::kWrite, Communicator::processes(3));
    if (!out) return 1;
    if (const int failed = store_boxes(out.value(), rank, 1, 3); failed != 0) return failed;
    return out->close().ok() ? 0 : 2;
  });
  ASSERT_EQ(results, std::vector<int>(3, 0));
  expect_boxes(uri("replicas=1"), 3);
}

TEST_F(TogetherRedis, AMasterThatDiesMeanwhileIsAPause) {
  ServerOptions cluster;
  cluster.masters = 3;
  start(cluster);
  int has_begun[2];
  ASSERT_EQ(::pipe2(has_begun, O_CLOEXEC), 0);
  const auto store = [&](unsigned rank) {
    auto out = Arrays::open(uri("replicas=1"), ArraysMode::kWrite, Communicator::processes(3));
    if (!out) return 1;
    for (int round = 0; round < 6; ++round) {
      if (const int failed = store_boxes(out.value(), rank, 1, 3); failed != 0) return failed;
      if (rank == 0 && round == 0 && ::write(has_begun[1], "k", 1) != 1) return 3;
    }
    return out->close().ok() ? 0 : 2;
  };
  const auto results = in_processes(3, store, [&] {
    ::close(has_begun[1]);
    char byte = 0;
    EXPECT_EQ(::read(has_begun[0], &byte, 1), 1);
    const int master = servers_->some_master();
    servers_->kill(master);
    EXPECT_TRUE(redis_test::becomes([&] {  // its replica has its place
      return servers_->info(master + 3, "role") == "master";
    }));
    servers_->start(master);  // and has a replica to acknowledge what is written
  });
  ::close(has_begun[0]);
  ASSERT_EQ(results, std::vector<int>(3, 0));
  expect_boxes(uri("replicas=1"), 3);
}

TEST_F(TogetherRedis, WhereBoxesOverlapEachElementIsOneWriters) {
  struct Element {
    uint64_t a, b;
  };
  constexpr uint64_t kCount = 30'000;
  const auto results = in_processes(3, [&](unsigned rank) {
    auto out = open(ArraysMode::kWrite, 3);
    const ArrayType type{"V16", sizeof(Element)};
    if (!out || !out->alloc("e", type, {kCount})) return 1;
    for (uint64_t round = 0; round < 5; ++round) {
      const std::vector<Element> all(kCount, Element{rank + 1, rank + 1});
      const uint64_t first = round * 1'000 * rank;
      if (!out->store_box("e", type, all.data(), {first}, {kCount - first})) return 2;
    }
    return out->close().ok() ? 0 : 3;
  });
  ASSERT_EQ(results, std::vector<int>(3, 0));
  const auto in = Arrays::open(uri());
  ASSERT_TRUE(in.ok()) << in.message();
  std::vector<Element> all(kCount);
  ASSERT_TRUE(in->load_box("e", {"V16", sizeof(Element)}, all.data(), {0}, {kCount}).ok());
  for (const Element& element : all) {
    ASSERT_EQ(element.a, element.b);
    ASSERT_TRUE(element.a >= 1 && element.a <= 3) << element.a;
  }
}

TEST_F(TogetherRedis, FinishedArraysAreChangedInPlaceAndOthersAppended) {
  const Dims shape = {6, 50, 700};
  {
    auto out = Arrays::open(uri(), ArraysMode::kWrite);
    ASSERT_TRUE(out.ok()) << out.message();
    ASSERT_TRUE(out->store("kept", 7).ok());
    ASSERT_TRUE(out->alloc<double>("u", shape).ok());
    ASSERT_EQ(out->close().message(), "");
  }
  const auto results = in_processes(4, [&](unsigned rank) {
    auto out = open(ArraysMode::kUpdate, 4);
    const Box box = box_of(shape, rank, 2, 2);
    if (!out || !out->store("u", box.values.data(), box.at, box.dims)) return 1;
    if (!out->store("new " + std::to_string(rank), box.values)) return 2;
    return out->close().ok() ? 0 : 3;
  });
  ASSERT_EQ(results, std::vector<int>(4, 0));
  const auto in = Arrays::open(uri());
  ASSERT_TRUE(in.ok()) << in.message();
  expect_array(in.value(), "u", shape);
  EXPECT_EQ(in->load<int>("kept").value(), 7);
  for (unsigned rank = 0; rank < 4; ++rank)
    EXPECT_EQ(in->load<std::vector<double>>("new " + std::to_string(rank)).value(),
              box_of(shape, rank, 2, 2).values);
}

TEST_F(TogetherRedis, ThreadsOfOneProcessCanBeItsProcesses) {
  std::vector<std::thread> threads;
  std::atomic<int> failed{0};
  for (unsigned rank = 0; rank < 3; ++rank)
    threads.emplace_back([&, rank] {
      auto out = open(ArraysMode::kWrite, 3);
      if (!out || store_boxes(out.value(), rank, 3, 1) != 0 || !out->close()) ++failed;
    });
  for (std::thread& thread : threads) thread.join();
  ASSERT_EQ(failed, 0);
  expect_boxes(uri(), 3);
}

// Its lease has not ended yet: who comes next is told how long to wait.
TEST_F(TogetherRedis, ASessionIsOfItsSizeAndAlone) {
  std::thread other;
  {
    Result<Arrays> second = Error{ENOENT, ""};
    other = std::thread([&] { second = open(ArraysMode::kWrite, 2); });
    auto out = open(ArraysMode::kWrite, 2);
    other.join();
    ASSERT_TRUE(out.ok() && second.ok()) << out.message() << second.message();
    for (const unsigned size : {1u, 2u, 3u}) {
      const auto refused = open(ArraysMode::kUpdate, size);
      EXPECT_EQ(refused.code(), EBUSY) << size << refused.message();
    }
    ASSERT_TRUE(out->store("a", std::vector<double>(5'000, 1.5)).ok());
    EXPECT_EQ(second->load<std::vector<double>>("a").value(), std::vector<double>(5'000, 1.5));
    const auto view = out->view<double>("a");
    EXPECT_EQ(view.code(), ENOTSUP);
    EXPECT_THAT(view.message(), HasSubstr("load it"));
    other = std::thread([&] { EXPECT_EQ(second->close().message(), ""); });
    EXPECT_EQ(out->close().message(), "");
    other.join();
    EXPECT_TRUE(Arrays::open(uri(), ArraysMode::kUpdate).ok()) << "closed, they are gone";
  }
  const auto alone = Arrays::open(uri(), ArraysMode::kUpdate);
  ASSERT_TRUE(alone.ok()) << alone.message();
  EXPECT_EQ(open(ArraysMode::kUpdate, 2).code(), EBUSY);
}

// The journal is written anew, elsewhere, while others make room for arrays.
TEST_F(TogetherRedis, MoreArraysThanTheJournalHasRoomFor) {
  constexpr uint64_t kCount = 300;
  const auto name_at = [](unsigned rank, uint64_t i) {  // long, so that the journal is soon full
    return std::string(230, 'n') + std::to_string(rank) + " " + std::to_string(i);
  };
  const auto results = in_processes(3, [&](unsigned rank) {
    auto out = open(ArraysMode::kWrite, 3);
    if (!out) return 1;
    for (uint64_t i = 0; i < kCount; ++i)
      if (!out->store(name_at(rank, i), std::vector<uint64_t>(600, i * 3 + rank))) return 2;
    return out->close().ok() ? 0 : 3;
  });
  ASSERT_EQ(results, std::vector<int>(3, 0));
  const auto in = Arrays::open(uri());
  ASSERT_TRUE(in.ok()) << in.message();
  for (unsigned rank = 0; rank < 3; ++rank)
    for (uint64_t i = 0; i < kCount; ++i)
      ASSERT_EQ(in->load<std::vector<uint64_t>>(name_at(rank, i)).value(),
                std::vector<uint64_t>(600, i * 3 + rank));
  const auto store = open_store(uri(), {});
  ASSERT_TRUE(store.ok()) << store.message();
  redis_test::Bytes first(7);
  EXPECT_EQ(store.value()->read(0, first), 0);
  EXPECT_EQ(std::memcmp(first.data(), "OUTCARR", 7), 0) << "there is no header of a second journal";
}

TEST_F(TogetherRedis, OneProcessWritesACompressedStore) {
  const auto out =
      Arrays::open(uri("replicas=0&compress=lz4"), ArraysMode::kWrite, Communicator::processes(2));
  EXPECT_EQ(out.code(), ENOTSUP);
  EXPECT_THAT(out.message(), HasSubstr("compress"));
}

}  // namespace
}  // namespace outcore::together
