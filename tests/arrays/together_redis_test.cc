// Arrays that several processes write at once to a store of servers: to the chunks, and to the
// lines, that their boxes share; and what is there when one of them ends.
#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <thread>

#include "outcore/arrays.h"
#include "tests/arrays/processes.h"
#include "tests/redis/redis_case.h"
#include "tests/redis/shared_servers.h"

namespace outcore {
namespace {

using redis_test::end_lease_of;
using redis_test::ServerOptions;
using scene::in_processes;
using testing::HasSubstr;

constexpr const char* kAlone = "replicas=0";

double value_at(uint64_t x, uint64_t y, uint64_t z) {
  return static_cast<double>(x * 10'000'000 + y * 10'000 + z);
}

// Of an array of the shape, the box of one of across * along processes.
struct Box {
  Dims at, dims;
  std::vector<double> values;
};

Box box_of(const Dims& shape, unsigned rank, unsigned across, unsigned along) {
  const uint64_t y = rank / along, z = rank % along;
  Box box{{0, y * shape[1] / across, z * shape[2] / along}, {}, {}};
  box.dims = {shape[0], (y + 1) * shape[1] / across - box.at[1],
              (z + 1) * shape[2] / along - box.at[2]};
  for (uint64_t i = 0; i < box.dims[0]; ++i)
    for (uint64_t j = 0; j < box.dims[1]; ++j)
      for (uint64_t k = 0; k < box.dims[2]; ++k)
        box.values.push_back(value_at(i, box.at[1] + j, box.at[2] + k));
  return box;
}

void expect_array(const Arrays& in, const std::string& name, const Dims& shape) {
  const auto all = in.load<std::vector<double>>(name);
  ASSERT_TRUE(all.ok()) << all.message();
  size_t at = 0;
  for (uint64_t i = 0; i < shape[0]; ++i)
    for (uint64_t j = 0; j < shape[1]; ++j)
      for (uint64_t k = 0; k < shape[2]; ++k, ++at)
        ASSERT_EQ(all.value()[at], value_at(i, j, k)) << name << " " << i << " " << j << " " << k;
}

// Rows of 0.4, 4 and 12 KB of each process; in tiles; and in compressed ones.
const Dims kShapes[] = {{20, 30, 101}, {9, 31, 1'003}, {3, 16, 3'001}, {7, 40, 90}, {7, 40, 90}};

ArrayOptions options_of(size_t array) {
  ArrayOptions options;
  if (array >= 3) options.tiles = {3, 16, 32};
  if (array == 4) options.compress = "lz4";
  return options;
}

std::string name_of(size_t array) { return "u" + std::to_string(array); }

// A process's part of them all, by so many threads. The first thing that failed, or 0.
int store_boxes(Arrays& out, unsigned rank, unsigned across, unsigned along) {
  std::atomic<int> failed{0};
  for (size_t array = 0; array < std::size(kShapes); ++array)
    if (!out.alloc<double>(name_of(array), kShapes[array], options_of(array))) return 10;
  std::vector<std::thread> threads;
  for (size_t thread = 0; thread < 2; ++thread)
    threads.emplace_back([&, thread] {
      for (size_t array = thread; array < std::size(kShapes); array += 2) {
        const Box box = box_of(kShapes[array], rank, across, along);
        if (Status s = out.store(name_of(array), box.values.data(), box.at, box.dims); !s) {
          std::fprintf(stderr, "rank %u: %s\n", rank, s.message().c_str());
          failed = 11;
        }
        std::vector<double> back(box.values.size());
        if (!out.load(name_of(array), back.data(), box.at, box.dims) || back != box.values)
          failed = 12;
      }
      if (Status s = out.store("of " + std::to_string(rank) + std::to_string(thread), rank); !s) {
        std::fprintf(stderr, "rank %u: %s\n", rank, s.message().c_str());
        failed = 13;
      }
    });
  for (std::thread& thread : threads) thread.join();
  return failed;
}

class TogetherRedis : public redis_test::RedisTest {
 protected:
  void SetUp() override {
    RedisTest::SetUp();
    if (!IsSkipped()) start();
  }
  std::string uri(const std::string& parameters = kAlone) const {
    return servers_->uri("run", parameters);
  }
  Result<Arrays> open(ArraysMode mode, unsigned processes) const {
    return Arrays::open(uri(), mode, Communicator::processes(processes));
  }
  void expect_boxes(const std::string& where, unsigned processes) {
    const auto in = Arrays::open(where);
    ASSERT_TRUE(in.ok()) << in.message();
    for (size_t array = 0; array < std::size(kShapes); ++array)
      expect_array(in.value(), name_of(array), kShapes[array]);
    for (unsigned rank = 0; rank < processes; ++rank)
      EXPECT_EQ(in->load<unsigned>("of " + std::to_string(rank) + "0").value(), rank);
    EXPECT_EQ(in->list().size(), std::size(kShapes) + 2 * processes);
  }
  // Forks that many, runs it in each, and calls `then` when rank 1 has stopped or ended; await_it()
  // of the others returns after that.
  std::vector<int> run_and(unsigned count, const std::function<int(unsigned)>& run,
                           const std::function<void(pid_t)>& then) {
    EXPECT_EQ(::pipe(has_happened_), 0);
    std::vector<pid_t> pids;
    for (unsigned rank = 0; rank < count; ++rank) {
      const pid_t pid = ::fork();
      if (pid == 0) {
        ::close(has_happened_[1]);
        ::_exit(run(rank));
      }
      pids.push_back(pid);
    }
    std::vector<int> results(count);
    int status = 0;
    ::waitpid(pids[1], &status, WUNTRACED);
    then(pids[1]);
    ::close(has_happened_[1]);
    const auto result = [](int ended) {
      return WIFEXITED(ended) ? WEXITSTATUS(ended) : 1000 + WTERMSIG(ended);
    };
    for (unsigned rank = 0; rank < count; ++rank) {
      if (rank == 1) continue;
      int ended = 0;
      ::waitpid(pids[rank], &ended, 0);
      results[rank] = result(ended);
    }
    if (WIFSTOPPED(status)) {  // after all others
      ::kill(pids[1], SIGCONT);
      ::waitpid(pids[1], &status, 0);
    }
    results[1] = result(status);
    ::close(has_happened_[0]);
    return results;
  }
  void await_it() const {
    char byte = 0;
    static_cast<void>(!::read(has_happened_[0], &byte, 1));  // its end
  }

  int has_happened_[2] = {};
};

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
  ASSERT_EQ(::pipe(has_begun), 0);
  std::thread killer([&] {
    char byte = 0;
    EXPECT_EQ(::read(has_begun[0], &byte, 1), 1);
    const int master = servers_->some_master();
    servers_->kill(master);
    EXPECT_TRUE(redis_test::becomes([&] {  // its replica has its place
      return servers_->info(master + 3, "role") == "master";
    }));
    servers_->start(master);  // and has a replica to acknowledge what is written
  });
  const auto results = in_processes(3, [&](unsigned rank) {
    auto out = Arrays::open(uri("replicas=1"), ArraysMode::kWrite, Communicator::processes(3));
    if (!out) return 1;
    for (int round = 0; round < 6; ++round) {
      if (const int failed = store_boxes(out.value(), rank, 1, 3); failed != 0) return failed;
      if (rank == 0 && round == 0 && ::write(has_begun[1], "k", 1) != 1) return 3;
    }
    return out->close().ok() ? 0 : 2;
  });
  killer.join();
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

TEST_F(TogetherRedis, AfterAKillTheOthersHearAndNothingOfItIsThere) {
  {
    auto before = Arrays::open(uri(), ArraysMode::kWrite);
    ASSERT_TRUE(before.ok() && before->store("before", 1).ok());
  }
  const auto results = run_and(
      3,
      [&](unsigned rank) {
        auto out = open(ArraysMode::kUpdate, 3);
        if (!out || store_boxes(out.value(), rank, 1, 3) != 0) return 1;
        if (rank == 1) ::raise(SIGKILL);
        await_it();
        const Status closed = out->close();
        const bool is_told = closed.message().find("absent") != std::string::npos;
        return closed.code() == EIO && is_told ? 0 : 2;
      },
      [&](pid_t killed) { EXPECT_EQ(end_lease_of(*servers_, 0, "run", killed), 1); });
  EXPECT_EQ(results, (std::vector<int>{0, 1000 + SIGKILL, 0}));
  {
    const auto in = Arrays::open(uri());
    ASSERT_TRUE(in.ok()) << in.message();
    EXPECT_EQ(in->list().size(), 1u);
    EXPECT_TRUE(in->has("before"));
  }
  const auto again = in_processes(2, [&](unsigned rank) {
    auto out = open(ArraysMode::kUpdate, 2);
    if (!out || store_boxes(out.value(), rank, 2, 1) != 0) return 1;
    return out->close().ok() ? 0 : 2;
  });
  EXPECT_EQ(again, std::vector<int>(2, 0));
  EXPECT_EQ(Arrays::open(uri())->load<int>("before").value(), 1);
}

// Its lease has not ended yet: who comes next is told how long to wait.
TEST_F(TogetherRedis, UntilTheLeasesOfTheDeadEndNobodyElseWrites) {
  const auto results = in_processes(2, [&](unsigned rank) {
    auto out = open(ArraysMode::kWrite, 2);
    if (!out || store_boxes(out.value(), rank, 2, 1) != 0) return 1;
    return ::raise(SIGKILL);
  });
  ASSERT_EQ(results, std::vector<int>(2, 1000 + SIGKILL));
  const auto alone = Arrays::open(uri(), ArraysMode::kUpdate);
  EXPECT_EQ(alone.code(), EBUSY);
  EXPECT_THAT(alone.message(), HasSubstr("its lease ends in"));
  const auto several = open(ArraysMode::kUpdate, 2);
  EXPECT_EQ(several.code(), EBUSY);
  EXPECT_THAT(several.message(), HasSubstr("15 s"));
  set_field(0, "run", "lease", "1");
  auto out = Arrays::open(uri(), ArraysMode::kUpdate);
  ASSERT_TRUE(out.ok()) << out.message();
  EXPECT_TRUE(out->list().empty());
}

TEST_F(TogetherRedis, WhoWasSilentIsRefusedAndChangesNothing) {
  const auto results = run_and(
      3,
      [&](unsigned rank) {
        auto out = open(ArraysMode::kWrite, 3);
        if (!out || store_boxes(out.value(), rank, 1, 3) != 0) return 1;
        if (rank != 1) {
          await_it();
          return out->close().code() == EIO ? 0 : 2;
        }
        ::raise(SIGSTOP);
        const Box box = box_of(kShapes[0], rank, 1, 3);
        const Status stored = out->store(name_of(0), box.values.data(), box.at, box.dims);
        if (stored.code() != ESTALE) return 3;
        return out->close().code() != 0 && !out->store("more", 1) ? 0 : 4;
      },
      [&](pid_t stopped) { EXPECT_EQ(end_lease_of(*servers_, 0, "run", stopped), 1); });
  EXPECT_EQ(results, (std::vector<int>(3, 0)));
  auto out = Arrays::open(uri(), ArraysMode::kUpdate);
  ASSERT_TRUE(out.ok()) << out.message();
  EXPECT_TRUE(out->list().empty());
}

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

TEST_F(TogetherRedis, WhatOneAbortsIsAbsent) {
  const auto results = in_processes(2, [&](unsigned rank) {
    auto out = open(ArraysMode::kWrite, 2);
    if (!out || store_boxes(out.value(), rank, 2, 1) != 0) return 1;
    if (rank == 1) {
      out->abort();
      return 0;
    }
    return out->close().ok() ? 5 : 0;  // unless it was first, when the other had not said so
  });
  EXPECT_EQ(results[1], 0);
  EXPECT_TRUE(results[0] == 0 || results[0] == 5);
  EXPECT_TRUE(Arrays::open(uri())->list().empty());
}

TEST_F(TogetherRedis, OneProcessWritesACompressedStore) {
  const auto out =
      Arrays::open(uri("replicas=0&compress=lz4"), ArraysMode::kWrite, Communicator::processes(2));
  EXPECT_EQ(out.code(), ENOTSUP);
  EXPECT_THAT(out.message(), HasSubstr("compress"));
}

}  // namespace
}  // namespace outcore
