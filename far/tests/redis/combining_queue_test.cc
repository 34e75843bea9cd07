// Threads whose reads travel together: each gets its own bytes, whatever happens to the connection.
#include <algorithm>
#include <atomic>
#include <thread>
#include <utility>

#include "core/os/wait.h"
#include "far/redis/chunks.h"
#include "far/redis/combining_queue.h"
#include "far/tests/redis/redis_case.h"

namespace outcore::redis_test {
namespace {

TEST(CombiningQueue, IsLeftInTheOrderInWhichItWasJoined) {
  redis::CombiningQueue queue;
  redis::ChunkRequest requests[3];
  redis::QueuedBatch queued[3];
  for (size_t i = 0; i < 3; ++i) {
    queued[i].batch = std::span(requests).first(i + 1);
    queue.join(&queued[i]);
  }
  EXPECT_EQ(queue.dequeue(0), nullptr) << "the first does not fit";
  EXPECT_TRUE(queue.leave(&queued[1]));
  EXPECT_FALSE(queue.leave(&queued[1]));
  EXPECT_EQ(queue.dequeue(3), &queued[0]);
  EXPECT_EQ(queue.dequeue(3), &queued[2]);
  EXPECT_TRUE(queue.is_empty());
  EXPECT_EQ(queue.dequeue(3), nullptr);
  queue.join(&queued[1]);
  EXPECT_TRUE(queue.leave(&queued[1]));
  EXPECT_TRUE(queue.is_empty());
}

TEST(CombiningQueue, LosesNobodyAmongManyThreads) {
  redis::CombiningQueue queue;
  std::atomic<int> taken{0};
  std::atomic<int> left{0};
  constexpr int kTurns = 2000;
  std::vector<std::thread> threads;
  for (int t = 0; t < 6; ++t)
    threads.emplace_back([&, t] {
      redis::ChunkRequest request;
      for (int turn = 0; turn < kTurns; ++turn) {
        redis::QueuedBatch waiting;
        waiting.batch = {&request, 1};
        queue.join(&waiting);
        if ((turn + t) % 3 == 0 && queue.leave(&waiting)) {
          ++left;
          continue;
        }
        // Somebody takes it, maybe this thread itself.
        while (waiting.state.load() == redis::QueuedBatch::kWaiting) {
          redis::QueuedBatch* const one = queue.dequeue(1);
          if (one != nullptr) one->state.store(redis::QueuedBatch::kDone);
          if (one == nullptr) os::yield();
        }
        ++taken;
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(taken + left, 6 * kTurns);
  EXPECT_TRUE(queue.is_empty());
}

class RedisCrowd : public PackingTest {
 protected:
  static constexpr uint64_t kSize = 8 << 20;
  // Threads that read at random for so long; how many reads were wrong.
  int read_in_threads(Store& store, const Bytes& bytes, int count,
                      const std::function<bool()>& go_on) {
    std::vector<std::thread> threads;
    std::atomic<int> wrong{0};
    for (int t = 0; t < count; ++t)
      threads.emplace_back([&, t] {
        std::mt19937_64 random(static_cast<uint64_t>(t));
        Bytes now(150'000);
        int turn = 0;
        do {
          // Mostly pages; some that need several values, some that are many.
          const size_t size = turn % 16 == 0 ? now.size() : turn % 5 == 0 ? 9000 : 4096;
          const size_t at = random() % (kSize - size);
          wrong += store.read(at, std::span(now).first(size)) != 0;
          wrong += std::memcmp(now.data(), bytes.data() + at, size) != 0;
          ++reads_;
        } while (++turn < 200 || go_on());
      });
    for (std::thread& thread : threads) thread.join();
    return wrong;
  }

  std::atomic<uint64_t> reads_{0};
};

TEST_P(RedisCrowd, GivesEachThreadItsOwnBytes) {
  start();
  for (const char* const lines : {"1", "2", "4"}) {
    const auto store =
        make(std::string("of ") + lines, kSize, std::string("replicas=0&lines=") + lines);
    const Bytes bytes = random_bytes(kSize, 1);
    EXPECT_EQ(store->write(0, bytes), 0);
    for (const int threads : {1, 2, 3, 8, 24})
      EXPECT_EQ(read_in_threads(*store, bytes, threads, [] { return false; }), 0)
          << lines << " lines, " << threads << " threads: " << store->remark();
  }
}

TEST_P(RedisCrowd, AsksAgainWhenConnectionsAreCut) {
  start();
  const auto store = make("a", kSize, "replicas=0&lines=2");
  const Bytes bytes = random_bytes(kSize, 2);
  EXPECT_EQ(store->write(0, bytes), 0);
  std::atomic<bool> is_over{false};
  std::thread cutter([&] {
    for (int cut = 0; cut < 30; ++cut) {
      servers_->ask(0, {"CLIENT", "KILL", "TYPE", "normal"});
      const uint64_t before = reads_;
      EXPECT_TRUE(becomes([&] { return reads_ > before + 20; }));
    }
    is_over = true;
  });
  EXPECT_EQ(read_in_threads(*store, bytes, 8, [&] { return !is_over; }), 0) << store->remark();
  cutter.join();
}

TEST_P(RedisCrowd, OutlivesAServerThatStopsForAWhile) {
  start();
  const auto store = make("a", kSize, "replicas=0&lines=1");
  const Bytes bytes = random_bytes(kSize, 3);
  EXPECT_EQ(store->write(0, bytes), 0);
  std::atomic<bool> is_over{false};
  std::atomic<int> wrong{-1};
  std::thread reader([&] { wrong = read_in_threads(*store, bytes, 8, [&] { return !is_over; }); });
  EXPECT_TRUE(becomes([&] { return reads_ > 20; }));
  servers_->send(0, SIGSTOP);
  // Those that were on their way are over: all threads wait.
  uint64_t before = 0;
  EXPECT_TRUE(becomes([&] { return std::exchange(before, reads_) == reads_; }));
  Bytes now(4096);
  std::thread waiting([&] { EXPECT_EQ(store->read(0, now), 0); });
  servers_->send(0, SIGCONT);
  waiting.join();
  is_over = true;
  reader.join();
  EXPECT_EQ(wrong, 0) << store->remark();
}

INSTANTIATE_TEST_SUITE_P(Chunks, RedisCrowd, testing::Values("", "&compress=lz4"), packing_name);

}  // namespace
}  // namespace outcore::redis_test
