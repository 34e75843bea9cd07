// TogetherRedis: what tests of arrays share that several processes write to a store of servers.
#pragma once

#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <thread>

#include "arrays/tests/container/cells.h"
#include "far/tests/redis/redis_case.h"
#include "outcore/arrays.h"

namespace outcore::together {

inline constexpr const char* kAlone = "replicas=0";

using scene::value_at;

// Of an array of the shape, the box of one of across * along processes.
struct Box {
  Dims at, dims;
  std::vector<double> values;
};

inline Box box_of(const Dims& shape, unsigned rank, unsigned across, unsigned along) {
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

inline void expect_array(const Arrays& in, const std::string& name, const Dims& shape) {
  const auto all = in.load<std::vector<double>>(name);
  ASSERT_TRUE(all.ok()) << all.message();
  size_t at = 0;
  for (uint64_t i = 0; i < shape[0]; ++i)
    for (uint64_t j = 0; j < shape[1]; ++j)
      for (uint64_t k = 0; k < shape[2]; ++k, ++at)
        ASSERT_EQ(all.value()[at], value_at(i, j, k)) << name << " " << i << " " << j << " " << k;
}

// Rows of 0.4, 4 and 12 KB of each process; in tiles; and in compressed ones.
inline const Dims kShapes[] = {
    {20, 30, 101}, {9, 31, 1'003}, {3, 16, 3'001}, {7, 40, 90}, {7, 40, 90}};

inline ArrayOptions options_of(size_t array) {
  ArrayOptions options;
  if (array >= 3) options.tiles = {3, 16, 32};
  if (array == 4) options.compress = "lz4";
  return options;
}

inline std::string name_of(size_t array) { return "u" + std::to_string(array); }

// A process's part of them all, by so many threads. The first thing that failed, or 0.
inline int store_boxes(Arrays& out, unsigned rank, unsigned across, unsigned along) {
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

}  // namespace outcore::together
