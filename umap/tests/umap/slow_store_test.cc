// Stores of the program that take their time, or wait for what another thread of the program has:
// nobody else waits for them meanwhile.
#include <gmock/gmock.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <future>
#include <mutex>
#include <thread>

#include "umap/tests/umap/scene.h"

namespace outcore {
namespace {

using namespace scene;

constexpr uint64_t kSlowBytes = 16 * kPageBytes;
constexpr std::chrono::seconds kHangs{20};  // after which a call counts as one that never returns

// Zeros. Calls wait at its gates while these are shut.
class GatedStore : public Umap::Store {
 public:
  ssize_t read_from_store(char*, size_t nb, off_t) override {
    pass(reads_);
    return static_cast<ssize_t>(nb);
  }
  ssize_t write_to_store(char*, size_t nb, off_t) override {
    pass(writes_);
    return static_cast<ssize_t>(nb);
  }
  void shut_for_reads() { shut(reads_, true); }
  void shut_for_writes() { shut(writes_, true); }
  void open() { shut(reads_, false), shut(writes_, false); }
  void await_read() { await(reads_); }
  void await_write() { await(writes_); }

 private:
  struct Gate {
    bool is_shut = false;
    int waiting = 0;
  };
  void pass(Gate& gate) {
    std::unique_lock<std::mutex> guard(lock_);
    ++gate.waiting;
    changed_.notify_all();
    changed_.wait(guard, [&] { return !gate.is_shut; });
    --gate.waiting;
  }
  void shut(Gate& gate, bool is_shut) {
    const std::lock_guard<std::mutex> guard(lock_);
    gate.is_shut = is_shut;
    changed_.notify_all();
  }
  void await(const Gate& gate) {
    std::unique_lock<std::mutex> guard(lock_);
    changed_.wait(guard, [&] { return gate.waiting != 0; });
  }

  std::mutex lock_;
  std::condition_variable changed_;
  Gate reads_, writes_;
};

class UmapSlowStore : public UmapTest {
 protected:
  static std::byte* map_store(Umap::Store* store, int prot = kBoth) {
    void* const at = Umap::umap_ex(nullptr, kSlowBytes, prot, UMAP_PRIVATE, -1, 0, store);
    EXPECT_NE(at, UMAP_FAILED) << std::strerror(errno);
    return static_cast<std::byte*>(at);
  }
  // Whether the calls return although nobody opens the gates before they have.
  static bool returns_meanwhile(GatedStore& store, const std::function<void()>& calls) {
    std::future<void> done = std::async(std::launch::async, calls);
    const bool has_returned = done.wait_for(kHangs) == std::future_status::ready;
    store.open();
    done.wait();
    return has_returned;
  }
  // All that a program does with a region of a file.
  static void use(int fd) {
    std::byte* const at = map(fd, kSlowBytes);
    umap_prefetch_item item{at + kPageBytes};
    umap_prefetch(1, &item);
    umap_fetch_and_pin(reinterpret_cast<char*>(at), kPageBytes);
    at[5] = std::byte{0x55};
    EXPECT_EQ(uunmap(at, kSlowBytes), 0);
    EXPECT_EQ(byte_at_5(fd), 0x55);
  }

 private:
  static int byte_at_5(int fd) {
    unsigned char byte = 0;
    return ::pread(fd, &byte, 1, 5) == 1 ? byte : -1;
  }
};

TEST_F(UmapSlowStore, WhoUnmapsItKeepsNobodyWaiting) {
  const int fd = file("data", kSlowBytes);
  GatedStore store;
  std::byte* const at = map_store(&store);
  at[0] = std::byte{1};
  store.shut_for_writes();
  std::thread unmapper([&] { EXPECT_EQ(uunmap(at, kSlowBytes), 0); });
  store.await_write();
  EXPECT_TRUE(returns_meanwhile(store, [&] { use(fd); }));
  unmapper.join();
}

TEST_F(UmapSlowStore, WhoUnmapsWhileItIsReadKeepsNobodyWaiting) {
  const int fd = file("data", kSlowBytes);
  GatedStore store;
  std::byte* const at = map_store(&store, PROT_READ);
  store.shut_for_reads();
  umap_prefetch_item item{at};
  umap_prefetch(1, &item);
  store.await_read();
  std::thread unmapper([&] { EXPECT_EQ(uunmap(at, kSlowBytes), 0); });
  EXPECT_TRUE(returns_meanwhile(store, [&] {
    // Until the region is not to be found: then the other thread is where it waits for the read.
    while (errno = 0, umap_prefetch(1, &item), errno != EINVAL) std::this_thread::yield();
    use(fd);
  }));
  unmapper.join();
}

TEST_F(UmapSlowStore, WhoFlushesItKeepsNobodyWaiting) {
  const int fd = file("data", kSlowBytes);
  GatedStore store;
  std::byte* const at = map_store(&store);
  at[0] = std::byte{1};
  store.shut_for_writes();
  std::thread flusher([] { EXPECT_EQ(umap_flush(), 0); });
  store.await_write();
  EXPECT_TRUE(returns_meanwhile(store, [&] { use(fd); }));
  flusher.join();
  EXPECT_EQ(uunmap(at, kSlowBytes), 0);
}

// All threads that prefetch are in slow stores, and what was asked for of the file waits for them.
TEST_F(UmapSlowStore, PrefetchesThatHaveNotBegunKeepNoUnmapWaiting) {
  const int fd = file("data", kSlowBytes);
  std::byte* const of_file = map(fd, kSlowBytes);
  constexpr int kPrefetchThreads = 2;
  GatedStore store[kPrefetchThreads];
  std::byte* at[kPrefetchThreads];
  for (int i = 0; i < kPrefetchThreads; ++i) {
    at[i] = map_store(&store[i], PROT_READ);
    store[i].shut_for_reads();
    umap_prefetch_item item{at[i]};
    umap_prefetch(1, &item);
    store[i].await_read();
  }
  umap_prefetch_item waits{of_file + kPageBytes};
  umap_prefetch(1, &waits);
  EXPECT_TRUE(returns_meanwhile(store[0], [&] { EXPECT_EQ(uunmap(of_file, kSlowBytes), 0); }));
  for (int i = 0; i < kPrefetchThreads; ++i) {
    store[i].open();
    EXPECT_EQ(uunmap(at[i], kSlowBytes), 0);
  }
}

TEST_F(UmapSlowStore, OfTwoThatUnmapItOneDoes) {
  GatedStore store;
  std::byte* const at = map_store(&store);
  at[0] = std::byte{1};
  store.shut_for_writes();
  std::atomic<int> unmapped{0}, refused{0};
  const auto unmap = [&] {
    if (uunmap(at, kSlowBytes) == 0)
      ++unmapped;
    else if (errno == EINVAL)
      ++refused;
  };
  testing::internal::CaptureStderr();
  std::thread one(unmap), other(unmap);
  store.await_write();
  store.open();
  one.join(), other.join();
  EXPECT_EQ(unmapped, 1);
  EXPECT_EQ(refused, 1);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), testing::HasSubstr("no region"));
}

}  // namespace
}  // namespace outcore
