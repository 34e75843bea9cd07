// Arrays that several processes write at once, and what is there when one of them dies.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <random>
#include <thread>

#include "arrays/tests/container/cells.h"
#include "arrays/tests/container/processes.h"
#include "outcore/arrays.h"
#include "tests/folder.h"

namespace outcore {
namespace {

using scene::in_processes;
using scene::value_at;

// Its box of u, as `across` processes divide the second and the others the third dimension.
Status write_box(Arrays& out, unsigned rank, unsigned across, unsigned along) {
  const Dims shape = {20, 30, 77};
  if (Status s = out.alloc<double>("u", shape); !s) return s;
  const uint64_t y = rank / along, z = rank % along;
  const Dims at = {0, y * 30 / across, z * 77 / along},
             dims = {20, (y + 1) * 30 / across - at[1], (z + 1) * 77 / along - at[2]};
  std::vector<double> box;
  for (uint64_t i = 0; i < dims[0]; ++i)
    for (uint64_t j = 0; j < dims[1]; ++j)
      for (uint64_t k = 0; k < dims[2]; ++k) box.push_back(value_at(i, at[1] + j, at[2] + k));
  return out.store("u", box.data(), at, dims);
}

void expect_u(const Arrays& in) {
  const auto u = in.view<double>("u");
  ASSERT_TRUE(u.ok()) << u.message();
  for (uint64_t i = 0; i < 20; ++i)
    for (uint64_t j = 0; j < 30; ++j)
      for (uint64_t k = 0; k < 77; ++k)
        ASSERT_EQ(u.value()(i, j, k), value_at(i, j, k)) << i << " " << j << " " << k;
}

class Together : public testing::Test {
 protected:
  std::string path() const { return folder_.path() + "/a.oca"; }
  scene::Folder folder_;
};

// Past the page cache, through it and as memory, in the same 2 MiB: nobody's bytes are written
// over.
TEST_F(Together, LongAndShortRunsAreNeighbours) {
  constexpr uint64_t kRows = 6000, kRow = 1600, kLong = 5'000'001;
  for (int round = 0; round < 2; ++round) {
    const auto results = in_processes(2, [&](unsigned rank) {
      auto out = Arrays::open(path(), ArraysMode::kWrite, Communicator::processes(2));
      bool is_good = out.ok();
      for (int i = 0; is_good && i < 3; ++i) {  // small ones between the large ones, too
        const std::string n = std::to_string(i);
        is_good = out->alloc<char>("rows" + n, {kRows, 2 * kRow}).ok() &&
                  out->alloc<char>("long" + n, {2, kLong}).ok();
        const std::string rows(kRows * kRow, static_cast<char>('a' + rank)),
            run(kLong, static_cast<char>('A' + rank));
        const Dims at = {0, rank * kRow}, dims = {kRows, kRow};
        is_good = is_good &&
                  (rank == 0 || out->store("long" + n, run.data(), {1, 0}, {1, kLong}).ok()) &&
                  out->store("rows" + n, rows.data(), at, dims).ok() &&
                  (rank == 1 || out->store("long" + n, run.data(), {0, 0}, {1, kLong}).ok());
      }
      return is_good && out->close().ok() ? 0 : 1;
    });
    ASSERT_EQ(results, (std::vector<int>{0, 0}));
    const Arrays in = Arrays::open(path()).value();
    for (int i = 0; i < 3; ++i) {
      const auto rows = in.load<std::vector<char>>("rows" + std::to_string(i)).value();
      const auto runs = in.load<std::vector<char>>("long" + std::to_string(i)).value();
      ASSERT_EQ(rows.size(), kRows * 2 * kRow);
      for (uint64_t at = 0; at < rows.size(); at += kRow)
        ASSERT_EQ(std::string(&rows[at], kRow), std::string(kRow, at / kRow % 2 == 0 ? 'a' : 'b'));
      ASSERT_EQ(runs.size(), 2 * kLong);
      for (const uint64_t at : {uint64_t{0}, kLong})
        ASSERT_TRUE(std::string(&runs[at], kLong) == std::string(kLong, at == 0 ? 'A' : 'B')) << at;
    }
  }
}

TEST_F(Together, ProcessesStoreBoxesWhoseEdgesSharePages) {
  const auto results = in_processes(6, [&](unsigned rank) {
    auto out = Arrays::open(path(), ArraysMode::kWrite, Communicator::processes(6));
    if (!out) return 1;
    if (!write_box(out.value(), rank, 2, 3)) return 2;
    if (!out->store("count", 6)) return 3;
    return out->close().ok() ? 0 : 4;
  });
  EXPECT_EQ(results, std::vector<int>(6, 0));
  const auto in = Arrays::open(path());
  ASSERT_TRUE(in.ok()) << in.message();
  EXPECT_EQ(in->load<int>("count").value(), 6);
  expect_u(in.value());
}

TEST_F(Together, WhatOneHasNotFinishedIsAbsentAndTheOthersHear) {
  ASSERT_TRUE(Arrays::open(path(), ArraysMode::kWrite)->store("before", 1).ok());
  const auto results = in_processes(3, [&](unsigned rank) {
    auto out = Arrays::open(path(), ArraysMode::kUpdate, Communicator::processes(3));
    if (!out || !write_box(out.value(), rank, 1, 3)) return 1;
    if (rank == 1) ::raise(SIGKILL);
    return out->close().ok() ? 0 : 4;
  });
  EXPECT_EQ(results[1], 1000 + SIGKILL);
  // Who closes last tells, unless it was still alive when the others had closed.
  EXPECT_TRUE(results[0] == 4 || results[2] == 4 || (results[0] == 0 && results[2] == 0));
  const auto in = Arrays::open(path());
  ASSERT_TRUE(in.ok()) << in.message();
  EXPECT_FALSE(in->has("u"));
  EXPECT_TRUE(in->has("before"));
  Arrays again = Arrays::open(path(), ArraysMode::kUpdate).value();
  EXPECT_EQ(again.list().size(), 1u);
  ASSERT_TRUE(write_box(again, 0, 1, 1).ok());
  ASSERT_EQ(again.close().message(), "");
  expect_u(Arrays::open(path()).value());
}

TEST_F(Together, AllHaveToAskForTheSame) {
  const auto results = in_processes(2, [&](unsigned rank) {
    auto out = Arrays::open(path(), ArraysMode::kWrite, Communicator::processes(2));
    if (!out) return 1;
    const bool is_made = out->alloc<double>("u", {10 + rank}).ok();
    static_cast<void>(out->close());
    return is_made ? 0 : 2;
  });
  EXPECT_EQ(results[0] + results[1], 2) << "one of them is refused";
}

TEST_F(Together, ThreadsStoreAtOnce) {
  auto out = Arrays::open(path(), ArraysMode::kWrite);
  ASSERT_TRUE(out.ok());
  ASSERT_TRUE(out->alloc<double>("u", {20, 30, 77}).ok());
  std::vector<std::thread> threads;
  std::atomic<int> failures{0};
  for (unsigned rank = 0; rank < 6; ++rank)
    threads.emplace_back([&, rank] {
      if (!write_box(out.value(), rank, 2, 3)) ++failures;
      if (!out->store("t" + std::to_string(rank), rank)) ++failures;
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(failures, 0);
  ASSERT_EQ(out->close().message(), "");
  expect_u(Arrays::open(path()).value());
}

TEST_F(Together, ThreadsReplaceLoadAndRemoveTheSameArrays) {
  auto out = Arrays::open(path(), ArraysMode::kUpdate);
  ASSERT_TRUE(out.ok());
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (uint64_t t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      std::mt19937_64 random(t);
      for (int i = 0; i < 200; ++i) {
        const std::string name = "a" + std::to_string(random() % 3);
        switch (random() % 4) {
          case 0: {
            const std::vector<uint64_t> values(1 + random() % 40'000, random());
            if (!out->store(name, values)) ++wrong;
            break;
          }
          case 1:
            static_cast<void>(out->remove(name));
            break;
          case 2:
            if (!out->flush()) ++wrong;
            break;
          default:
            // Its shape may be another's by now: then it is refused.
            if (const auto values = out->load<std::vector<uint64_t>>(name); values)
              if (values.value() != std::vector<uint64_t>(values->size(), values->front())) ++wrong;
        }
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(out->close().message(), "");
}

// Writes arrays, each of one value in all its elements, for ever.
int write_until_killed(const std::string& path, uint64_t seed) {
  auto out = Arrays::open(path, ArraysMode::kUpdate);
  if (!out) return 1;
  std::mt19937_64 random(seed);
  for (uint64_t i = 0;; ++i) {
    const std::string name = "a" + std::to_string(random() % 8);
    const std::vector<uint64_t> values(1 + random() % 60'000, random());
    if (random() % 5 == 0)
      static_cast<void>(out->remove(name));
    else if (!out->store(name, values))
      return 2;
    if (random() % 3 == 0 && !out->flush()) return 3;
    if (random() % 7 == 0) {
      const std::string to = "b" + std::to_string(random() % 8);
      static_cast<void>(out->rename(name, to));
    }
  }
}

TEST_F(Together, AfterAKillEveryArrayIsWholeOrAbsent) {
  const char* const asked = std::getenv("OUTCORE_ARRAY_KILLS");
  const long kills = asked == nullptr ? 40 : std::strtol(asked, nullptr, 10);
  std::mt19937_64 random(5);
  size_t seen = 0;
  for (long kill = 0; kill < kills; ++kill) {
    const pid_t pid = ::fork();
    if (pid == 0) ::_exit(write_until_killed(path(), random()));
    const uint64_t us = 2'000 + random() % 60'000;
    ::usleep(static_cast<useconds_t>(us));  // banned-ok: the instant is what is random
    ::kill(pid, SIGKILL);
    int status = 0;
    ::waitpid(pid, &status, 0);
    ASSERT_TRUE(WIFSIGNALED(status)) << "the writer failed: " << WEXITSTATUS(status);
    const auto in = Arrays::open(path());
    if (in.code() == ENOENT) continue;  // killed before there was one
    ASSERT_TRUE(in.ok()) << in.message();
    for (const ArrayInfo& info : in->list()) {
      const auto values = in->load<std::vector<uint64_t>>(info.name);
      ASSERT_TRUE(values.ok()) << values.message();
      ASSERT_EQ(values.value(), std::vector<uint64_t>(values->size(), values->front()));
      ++seen;
    }
  }
  EXPECT_GT(seen, 0u);
}

}  // namespace
}  // namespace outcore
