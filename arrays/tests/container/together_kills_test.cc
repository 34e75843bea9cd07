// Arrays that several processes write at once to a store of servers, and what is there when one of
// them is killed, or silent: the others end, and every array is whole or absent.
#include <random>

#include "arrays/tests/container/processes.h"
#include "arrays/tests/container/together_redis.h"
#include "far/tests/redis/shared_servers.h"

namespace outcore::together {
namespace {

using redis_test::end_lease_of;
using scene::in_processes;
using testing::HasSubstr;

constexpr uint64_t kRows = 3, kRow = 4'000;

class TogetherKills : public TogetherRedis {
 protected:
  // Arrays of one value in all their elements: some of all processes, some of each alone.
  int write_arrays(unsigned rank, uint64_t round, int has_begun) const {
    auto out = open(ArraysMode::kUpdate, kRows);
    if (!out) return 1;
    if (::write(has_begun, "b", 1) != 1) return 2;
    for (uint64_t i = 0; i < 12; ++i) {
      const std::string name = "r" + std::to_string(round) + " " + std::to_string(i);
      const std::vector<uint64_t> row(kRow, round);
      if (!out->alloc<uint64_t>(name, {kRows, kRow}) ||
          !out->store(name, row.data(), {rank, 0}, {1, kRow}))
        return 3;
      if (i % 3 == rank && !out->store(name + " of " + std::to_string(rank), row)) return 4;
    }
    return out->close().ok() ? 0 : 5;
  }
};

TEST_F(TogetherKills, AfterAKillEveryArrayIsWholeOrAbsentAndTheOthersEnd) {
  const char* const asked = std::getenv("OUTCORE_ARRAY_KILLS");
  const long kills = asked == nullptr ? 8 : std::strtol(asked, nullptr, 10);
  std::mt19937_64 random(7);
  int finished = 0, absent = 0;
  for (long kill = 1; kill <= kills; ++kill) {
    const auto round = static_cast<uint64_t>(kill);
    int has_begun[2];
    ASSERT_EQ(::pipe(has_begun), 0);
    std::vector<pid_t> pids;
    for (unsigned rank = 0; rank < kRows; ++rank) {
      const pid_t pid = ::fork();
      if (pid == 0) ::_exit(write_arrays(rank, round, has_begun[1]));
      pids.push_back(pid);
    }
    ::close(has_begun[1]);
    char byte = 0;
    ASSERT_EQ(::read(has_begun[0], &byte, 1), 1) << "none could open it";
    const uint64_t us = random() % 100'000;
    ::usleep(static_cast<useconds_t>(us));  // banned-ok: the instant is what is random
    const auto victim = static_cast<unsigned>(random() % kRows);
    ::kill(pids[victim], SIGKILL);
    int status = 0;
    ::waitpid(pids[victim], &status, 0);
    bool are_all_well = WIFEXITED(status) && WEXITSTATUS(status) == 0;
    for (unsigned rank = 0; rank < kRows; ++rank) {
      if (rank == victim) continue;
      // Again: the server may hear the last that it said afterwards.
      ASSERT_TRUE(redis_test::becomes([&] {
        redis_test::end_lease_of(*servers_, 0, "run", pids[victim]);
        return ::waitpid(pids[rank], &status, WNOHANG) == pids[rank];
      }));
      ASSERT_TRUE(WIFEXITED(status));
      ASSERT_NE(WEXITSTATUS(status), 2);
      are_all_well = are_all_well && WEXITSTATUS(status) == 0;
    }
    ::close(has_begun[0]);
    // The server has heard the last that it said.
    ASSERT_TRUE(redis_test::becomes([&] { return servers_->info(0, "connected_clients") == "1"; }));
    redis_test::end_lease_of(*servers_, 0, "run", pids[victim]);
    if (redis_test::members_of(*servers_, 0, "run").size() == 1) set_field(0, "run", "lease", "1");
    const auto in = Arrays::open(uri());
    ASSERT_TRUE(in.ok()) << in.message();
    uint64_t of_round = 0;
    for (const ArrayInfo& info : in->list()) {
      const auto values = in->load<std::vector<uint64_t>>(info.name);
      ASSERT_TRUE(values.ok()) << values.message();
      const uint64_t wanted = std::stoull(info.name.substr(1));
      ASSERT_EQ(values.value(), std::vector<uint64_t>(values->size(), wanted)) << info.name;
      of_round += wanted == round;
    }
    ASSERT_TRUE(of_round == 0 || of_round == 24) << of_round;
    ASSERT_TRUE(of_round == 24 || !are_all_well);
    ++(of_round == 0 ? absent : finished);
  }
  EXPECT_GT(absent, 0);
  RecordProperty("finished", finished);
}

TEST_F(TogetherKills, AfterAKillTheOthersHearAndNothingOfItIsThere) {
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

TEST_F(TogetherKills, UntilTheLeasesOfTheDeadEndNobodyElseWrites) {
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

TEST_F(TogetherKills, WhoWasSilentIsRefusedAndChangesNothing) {
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
        // If the others left at one moment nobody has taken the fences yet: what is stored now lies
        // where nothing is, and close says so.
        if (stored.code() != ESTALE && !stored.ok()) return 3;
        return out->close().code() != 0 && !out->store("more", 1) ? 0 : 4;
      },
      [&](pid_t stopped) { EXPECT_EQ(end_lease_of(*servers_, 0, "run", stopped), 1); });
  EXPECT_EQ(results, (std::vector<int>(3, 0)));
  auto out = Arrays::open(uri(), ArraysMode::kUpdate);
  ASSERT_TRUE(out.ok()) << out.message();
  EXPECT_TRUE(out->list().empty());
}

TEST_F(TogetherKills, WhatOneAbortsIsAbsent) {
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

}  // namespace
}  // namespace outcore::together
