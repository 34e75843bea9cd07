// What the servers of far:// have no space for rests in this process's own memory, out of its
// budget: the two add up.
#include <unistd.h>

#include <cstring>
#include <thread>
#include <tuple>

#include "core/store/room.h"
#include "far/tests/redis/redis_case.h"
#include "outcore/heap.h"
#include "outcore/runtime.h"

namespace outcore::redis_test {
namespace {

using testing::HasSubstr;

// So many bytes, and how many of them are taken.
class TestRoom final : public store::Room {
 public:
  explicit TestRoom(uint64_t bytes) : most_(bytes) {}
  int acquire(uint64_t bytes) override {
    if (bytes > free_bytes()) return -ENOSPC;
    taken_ += bytes;
    return 0;
  }
  void release(uint64_t bytes) override {
    EXPECT_LE(bytes, taken_);
    taken_ -= bytes;
  }
  uint64_t free_bytes() const override { return most_ - taken_; }
  uint64_t bytes_max() const override { return most_; }
  uint64_t taken() const { return taken_; }

 private:
  const uint64_t most_;
  std::atomic<uint64_t> taken_{0};
};

class FarRoom : public RedisTest {
 protected:
  void SetUp() override {
    RedisTest::SetUp();
    if (IsSkipped()) return;
    ServerOptions options;
    options.maxmemory = "16mb";
    start(options);
  }
  std::string far() const { return "far://:open%20sesame@" + servers_->address(0); }
  std::shared_ptr<Store> open(std::shared_ptr<store::Room> room) {
    auto store = open_store(far(), writable(1 << 20));
    EXPECT_TRUE(store.ok()) << store.message();
    if (!store.ok()) return nullptr;
    dynamic_cast<store::Lodger&>(*store.value()).use_room(std::move(room));
    return store.value();
  }
};

TEST_F(FarRoom, TakesWhatTheServersCannotHold) {
  const auto room = std::make_shared<TestRoom>(16 << 20);
  {
    const auto store = open(room);
    ASSERT_NE(store, nullptr);
    EXPECT_EQ(room->taken(), 0U);
    ASSERT_EQ(store->resize(20 << 20), 0);
    EXPECT_GT(room->taken(), 4U << 20);
    EXPECT_LT(room->taken(), 16U << 20) << "the servers first";
    EXPECT_THAT(store->remark(), HasSubstr("in local memory: the servers are full"));
    Bytes mirror = random_bytes(20 << 20, 1);
    EXPECT_EQ(store->write(0, mirror), 0);
    EXPECT_EQ(read_all(*store), mirror);
    EXPECT_EQ(store->discard((5 << 20) + 100, (12 << 20) + 5), 0);
    std::fill_n(mirror.begin() + (5 << 20) + 100, (12 << 20) + 5, std::byte{0});
    EXPECT_EQ(read_all(*store), mirror);
    EXPECT_EQ(use(*store, 0, mirror.size(), [] { return false; }), 0);

    EXPECT_EQ(store->resize(1 << 20), 0);
    EXPECT_EQ(room->taken(), 0U) << "what has no bytes needs no room";
    EXPECT_EQ(store->resize(20 << 20), 0);
    const Bytes zeros((19 << 20), std::byte{0});
    Bytes rest(zeros.size());
    EXPECT_EQ(store->read(1 << 20, rest), 0);
    EXPECT_EQ(rest, zeros) << "new bytes read zero where others were";
  }
  EXPECT_EQ(room->taken(), 0U) << "it ends with the store";
}

TEST_F(FarRoom, IsNotTakenForWhatCannotBeHeldAnyway) {
  const auto room = std::make_shared<TestRoom>(4 << 20);
  const auto store = open(room);
  ASSERT_NE(store, nullptr);
  EXPECT_EQ(store->resize(40 << 20), -ENOSPC);
  EXPECT_EQ(room->taken(), 0U);
  EXPECT_EQ(store->size_bytes(), 1U << 20);
}

TEST_F(FarRoom, IsSharedOutAmongThreads) {
  const auto room = std::make_shared<TestRoom>(16 << 20);
  auto opened = open_store(far() + "?reserve=no", writable(64 << 20));
  ASSERT_TRUE(opened.ok()) << opened.message();
  Store& store = *opened.value();
  dynamic_cast<store::Lodger&>(store).use_room(room);
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      const uint64_t first = t * (16 << 20), size = 5 << 20;
      const Bytes bytes = random_bytes(size, t);
      Bytes seen(size);
      for (int i = 0; i < 20; ++i) {
        const int error = store.reserve(first, size);
        if (error == -ENOSPC) continue;  // the others have it: 20 MiB are more than there are
        // Four writers' buffers may be more than so small a server has left for a moment.
        const bool is_written = becomes([&] { return store.write(first, bytes) != -ENOSPC; });
        const int read = store.read(first, seen);
        const bool is_same = seen == bytes;
        const int released = store.release(first, size);
        EXPECT_EQ(std::tuple(error, is_written, read, is_same, released),
                  std::tuple(0, true, 0, true, 0));
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(room->taken(), 0U);
  EXPECT_EQ(store.reserve(0, 20 << 20), 0) << "nothing has got lost";
}

// A heap of 22 MiB: the server holds some 12 MiB, and the budget 16.
TEST_F(FarRoom, OfABudgetAddsUpWithTheServers) {
  RuntimeOptions options;
  options.budget_bytes = 16 << 20;
  auto runtime = Runtime::start(options);
  ASSERT_TRUE(runtime.ok()) << runtime.message();
  HeapOptions how;
  how.store = far();
  auto heap = Heap::create(runtime.value(), how);
  ASSERT_TRUE(heap.ok()) << heap.message();
  constexpr size_t kPart = 1 << 20, kParts = 22;
  std::vector<std::byte*> parts;
  for (size_t i = 0; i < kParts; ++i) {
    auto part = heap.value().try_allocate(kPart);
    ASSERT_TRUE(part.ok()) << i << ": " << part.message();
    parts.push_back(static_cast<std::byte*>(part.value()));
    const Bytes bytes = random_bytes(kPart, i);
    std::memcpy(parts.back(), bytes.data(), kPart);
  }
  for (int round = 0; round < 3; ++round)
    for (size_t i = 0; i < kParts; ++i) {
      const Bytes bytes = random_bytes(kPart, i);
      ASSERT_EQ(std::memcmp(parts[i], bytes.data(), kPart), 0) << i;
      std::memcpy(parts[i], bytes.data(), kPart);
    }
  Metrics metrics = runtime.value().metrics();
  EXPECT_EQ(metrics.gauges.budget_bytes, 16U << 20);
  EXPECT_EQ(runtime.value().budget_bytes(), 16U << 20);
  EXPECT_LE(metrics.gauges.used_bytes_max, 16U << 20);
  const Status smaller = runtime.value().resize_budget(4 << 20);
  EXPECT_EQ(smaller.code(), EBUSY);
  EXPECT_THAT(smaller.message(), HasSubstr("hold what the servers have no space for"));
  EXPECT_FALSE(heap.value().try_allocate(uint64_t{64} << 20).ok()) << "neither has so much";

  for (std::byte* part : parts) heap.value().free(part);
  { const Heap ended = std::move(heap.value()); }
  EXPECT_TRUE(runtime.value().resize_budget(4 << 20)) << "all of it is for pages again";
}

}  // namespace
}  // namespace outcore::redis_test
