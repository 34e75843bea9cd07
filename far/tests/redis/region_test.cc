// Programs over far memory while its servers die: the answers are right, and nothing is lost.
#include <algorithm>
#include <atomic>
#include <numeric>
#include <queue>
#include <thread>

#include "far/tests/redis/redis_case.h"
#include "outcore/array.h"
#include "outcore/runtime.h"

namespace outcore::redis_test {
namespace {

using testing::HasSubstr;

struct Way {
  const char* name;
  Delivery delivery;
  const char* parameters;
};

class RedisRegion : public RedisTest, public testing::WithParamInterface<Way> {
 protected:
  void SetUp() override {
    RedisTest::SetUp();
    if (IsSkipped()) return;
    RuntimeOptions options;
    options.budget_bytes = 1 << 20;
    options.ignore_environment = true;
    options.delivery = GetParam().delivery;
    options.wait_ms_max = 5000;
    auto runtime = Runtime::start(options);
    if (!runtime.ok()) GTEST_SKIP() << runtime.message();
    runtime_ = std::make_unique<Runtime>(std::move(runtime).value());
  }
  void start_cluster() {
    ServerOptions options;
    options.masters = 3;
    start(options);
  }
  Array<uint64_t> map(const std::string& name, uint64_t count, const std::string& parameters) {
    MapOptions options;
    options.access = Access::kReadWrite;
    options.may_create = true;
    options.size_bytes = count * sizeof(uint64_t);
    auto region = runtime_->map(servers_->uri(name, parameters + GetParam().parameters), options);
    EXPECT_TRUE(region.ok()) << region.message();
    auto array = Array<uint64_t>::of(std::move(region).value());
    EXPECT_TRUE(array.ok()) << array.message();
    return std::move(array).value();
  }
  std::unique_ptr<Runtime> runtime_;
};

TEST_P(RedisRegion, SortsWhileAMasterDies) {
  start_cluster();
  Array<uint64_t> words = map("sort", 1 << 19, "replicas=1");  // 4 MiB
  std::mt19937_64 random(1);
  uint64_t sum = 0;
  for (uint64_t& word : words) sum += word = random();
  std::atomic<bool> is_over{false};
  std::thread sorter([&] {
    std::sort(words.begin(), words.end());
    is_over = true;
  });
  const uint64_t before = words.region().metrics().counters.fills;
  EXPECT_TRUE(becomes([&] { return words.region().metrics().counters.fills > before + 500; }));
  EXPECT_FALSE(is_over);
  servers_->kill(0);
  EXPECT_TRUE(becomes([&] { return servers_->info(3, "role") == "master"; }));
  servers_->start(0);  // as the replica of what was its own
  sorter.join();
  EXPECT_TRUE(std::is_sorted(words.begin(), words.end()));
  EXPECT_EQ(std::accumulate(words.begin(), words.end(), uint64_t{0}), sum);
  EXPECT_TRUE(words.region().sync().ok());
}

// A graph of which every node has 32 edges, traversed from node 0, with servers that stop.
TEST_P(RedisRegion, TraversesAGraphWhileAMasterStops) {
  constexpr uint64_t kNodes = 1 << 13, kEdges = 32;
  start_cluster();
  Array<uint64_t> edges = map("graph", kNodes * kEdges, "replicas=1");  // 2 MiB
  const auto edge = [](uint64_t i) { return (i * 2654435761u + i / 7) % kNodes; };
  for (uint64_t i = 0; i < edges.size(); ++i) edges[i] = edge(i);
  const auto levels = [&](const auto& target_of) {
    std::vector<uint32_t> level(kNodes, 0);
    std::queue<uint64_t> next({0});
    level[0] = 1;
    for (; !next.empty(); next.pop())
      for (uint64_t i = next.front() * kEdges; i < (next.front() + 1) * kEdges; ++i)
        if (const uint64_t to = target_of(i); level[to] == 0) {
          level[to] = level[next.front()] + 1;
          next.push(to);
        }
    return level;
  };
  std::vector<uint32_t> seen;
  std::atomic<bool> is_over{false};
  const uint64_t before = edges.region().metrics().counters.fills;
  std::thread walker([&] {
    seen = levels([&](uint64_t i) { return edges[i]; });
    is_over = true;
  });
  EXPECT_TRUE(becomes([&] { return edges.region().metrics().counters.fills > before + 50; }));
  servers_->send(1, SIGSTOP);
  EXPECT_FALSE(is_over);
  EXPECT_TRUE(becomes([&] { return servers_->info(4, "role") == "master"; }));
  servers_->send(1, SIGCONT);
  walker.join();
  EXPECT_EQ(seen, levels(edge));
}

TEST_P(RedisRegion, KeepsInMemoryWhatItsServerCannotTake) {
  start();
  Array<uint64_t> words = map("a", 1 << 16, "replicas=0&timeout=500ms");  // 512 KiB
  std::iota(words.begin(), words.end(), 7);
  servers_->send(0, SIGSTOP);
  const Status failed = words.region().flush();
  EXPECT_EQ(failed.code(), ETIMEDOUT);
  EXPECT_THAT(failed.message(), HasSubstr("the bytes stay in memory"));
  EXPECT_THAT(failed.message(), testing::Not(HasSubstr("sesame")));
  servers_->send(0, SIGCONT);
  const Status flushed = words.region().flush();
  EXPECT_TRUE(flushed.ok()) << flushed.message();
  words = map("b", 1, "replicas=0");  // unmaps it
  const auto store = open_store(servers_->uri("a"));
  ASSERT_TRUE(store.ok()) << store.message();
  std::vector<uint64_t> stored(1 << 16), expected(1 << 16);
  EXPECT_EQ(store.value()->read(0, std::as_writable_bytes(std::span(stored))), 0);
  std::iota(expected.begin(), expected.end(), 7);
  EXPECT_EQ(stored, expected);
}

INSTANTIATE_TEST_SUITE_P(By, RedisRegion,
                         testing::Values(Way{"InThread", Delivery::kInThread, ""},
                                         Way{"InThreadLz4", Delivery::kInThread, "&compress=lz4"},
                                         Way{"Messages", Delivery::kMessages, ""},
                                         Way{"MprotectZstd", Delivery::kMprotect,
                                             "&compress=zstd"}),
                         [](const auto& one) { return one.param.name; });

}  // namespace
}  // namespace outcore::redis_test
