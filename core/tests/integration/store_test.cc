// Custom stores: some must not be called in a signal handler, some accept few transfers at a time.
#include <algorithm>
#include <thread>

#include "core/tests/conformance/faulty_store.h"
#include "core/tests/conformance/mechanism.h"

namespace outcore {
namespace {

using namespace scene;

class OwnStore : public OnMechanism {
 protected:
  std::shared_ptr<FaultyStore> unsafe_store(uint64_t size_bytes) {
    return std::make_shared<FaultyStore>(pattern(size_bytes), FaultyStore::unsafe());
  }
};
// Where touches are to fail in the end, they fail soon. Others may wait as long as a busy machine
// makes them.
class FailingStore : public OwnStore {
 protected:
  RuntimeOptions options() const override {
    RuntimeOptions options = OwnStore::options();
    options.wait_ms_max = 300;
    return options;
  }
};

const auto kMechanisms = testing::Values(Mechanism{Delivery::kInThread, FrameKind::kShared, 4096},
                                         Mechanism{Delivery::kInThread, FrameKind::kPrivate, 4096},
                                         Mechanism{Delivery::kMessages, FrameKind::kShared, 65536},
                                         Mechanism{Delivery::kMprotect, FrameKind::kShared, 4096});
std::string name_of_param(const testing::TestParamInfo<Mechanism>& of) { return name_of(of.param); }
INSTANTIATE_TEST_SUITE_P(Mechanisms, OwnStore, kMechanisms, name_of_param);
INSTANTIATE_TEST_SUITE_P(Mechanisms, FailingStore, kMechanisms, name_of_param);

TEST_P(OwnStore, ThatAllocatesServesFaultsOfManyThreads) {
  const auto store = unsafe_store(data_bytes());
  Region region = map(store, Access::kReadWrite).value();
  std::atomic<uint64_t> wrong = 0;
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (uint64_t at = t * 4096; at < data_bytes(); at += 4 * 4096) {
        wrong += region.data()[at] != byte_at(at);
        region.data()[at + 1] = std::byte{0x3C};
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0u);
  ASSERT_TRUE(region.unmap().ok());
  Bytes expected = pattern(data_bytes());
  for (uint64_t at = 0; at < data_bytes(); at += 4096) expected[at + 1] = std::byte{0x3C};
  EXPECT_TRUE(store->bytes() == expected);
}

TEST_P(FailingStore, ThatAllocatesAndFailsRaisesBusError) {
  const auto store = unsafe_store(data_bytes());
  MapOptions options = map_options(Access::kReadOnly);
  options.advice = Advice::kRandom;
  Region region = runtime_->map(store, options).value();
  store->read_error = EIO;
  EXPECT_EQ(read_of(region.data() + page_bytes()).signal, SIGBUS);
  store->read_error = 0;
  ASSERT_TRUE(region.retry_failed().ok());
  EXPECT_EQ(read_of(region.data() + page_bytes()).signal, 0);
}

TEST_P(FailingStore, ThatAllocatesAndCannotBeWrittenDoesNotHang) {
  const auto store = unsafe_store(data_bytes());
  Region region = map(store, Access::kReadWrite).value();
  store->write_error = EIO;
  uint64_t at = 0;
  while (at < data_bytes() && write_of(region.data() + at, std::byte{1}).signal == 0) at += 4096;
  EXPECT_LT(at, data_bytes()) << "the budget is full of pages that cannot leave";
  store->write_error = 0;
  static_cast<void>(region.flush());
  EXPECT_TRUE(region.flush().ok());
  EXPECT_EQ(write_of(region.data() + at, std::byte{1}).signal, 0);
}

TEST_P(FailingStore, ThatFindsNoMemoryHasFailedAndNothingElse) {
  const auto store = unsafe_store(data_bytes());
  MapOptions options = map_options(Access::kReadWrite);
  options.advice = Advice::kRandom;
  Region region = runtime_->map(store, options).value();
  store->throws = true;
  store->read_error = ENOMEM;
  EXPECT_EQ(read_of(region.data() + page_bytes()).signal, SIGBUS);
  store->read_error = 0;
  ASSERT_TRUE(region.retry_failed().ok());
  EXPECT_EQ(read_of(region.data() + page_bytes()).signal, 0);
  store->write_error = ENOMEM;
  region.data()[page_bytes()] = std::byte{7};
  EXPECT_EQ(region.flush().code(), ENOMEM);
  uint64_t at = 0;  // those that take pages out find none, either
  while (at < data_bytes() && write_of(region.data() + at, std::byte{1}).signal == 0) at += 4096;
  EXPECT_LT(at, data_bytes());
  EXPECT_EQ(region.unmap().code(), ENOMEM);
  store->write_error = 0;
  static_cast<void>(region.flush());
  EXPECT_TRUE(region.flush().ok());
  EXPECT_TRUE(region.unmap().ok());
  EXPECT_EQ(store->bytes()[0], std::byte{1});
}

TEST_P(OwnStore, ThatAllocatesServesTouchesThatMayNotWaitForMemory) {
  RuntimeOptions impatient = options();
  impatient.wait_ms_max = 0;
  Runtime runtime = Runtime::start(impatient).value();
  const auto store = unsafe_store(data_bytes());
  Region region = runtime.map(store, map_options(Access::kReadWrite)).value();
  for (uint64_t at = 0; at < data_bytes(); at += page_bytes()) {
    // A prefetch thread that gets no core for a moment is late for such a touch.
    int tries = 0;
    std::byte seen{};
    const auto look = [&] { seen = *static_cast<volatile std::byte*>(region.data() + at); };
    while (touch_of(look).signal != 0 && ++tries < 1000) std::this_thread::yield();
    ASSERT_LT(tries, 1000) << "at " << at;
    ASSERT_EQ(seen, byte_at(at));
  }
}

TEST_P(FailingStore, AsksForNoPageThatNobodyWaitsForAnyMore) {
  const auto store = unsafe_store(data_bytes());
  Region region = map(store, Access::kReadWrite).value();
  ASSERT_TRUE(
      region.advise(0, data_bytes(), Advice::kRandom).ok());  // hints wait for frames as well
  store->write_error = EIO;
  uint64_t at = 0;
  uint64_t waits_before = 0;
  do {
    waits_before = runtime_->metrics().counters.waits_for_frame;
    at += 4096;
  } while (at < data_bytes() && write_of(region.data() + at, std::byte{1}).signal == 0);
  ASSERT_LT(at, data_bytes());
  EXPECT_FALSE(region.unmap().ok());  // after everything that prefetch threads had to do
  // A demand is repeated while the touch waits, and is carried out for at most as long as the
  // touch. (Carrying out every request would be over sixty.)
  EXPECT_LE(runtime_->metrics().counters.waits_for_frame - waits_before, 24u);
}

TEST_P(OwnStore, GetsNoMoreTransfersAtATimeThanItSays) {
  StoreTraits traits = FaultyStore::safe();
  traits.read_concurrency = 2;
  traits.write_concurrency = 2;
  const auto store = std::make_shared<FaultyStore>(pattern(data_bytes()), traits);
  Region region = map(store, Access::kReadWrite).value();
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < 6; ++t)
    threads.emplace_back([&, t] {
      for (uint64_t at = t * 4096; at < data_bytes(); at += 6 * 4096)
        region.data()[at + t] = byte_at(at + t);
      EXPECT_TRUE(region.flush().ok());
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(region.unmap().ok());
  EXPECT_LE(store->readers_max, 2);
  EXPECT_LE(store->writers_max, 2);
  EXPECT_TRUE(store->bytes() == pattern(data_bytes()));
}

TEST_P(OwnStore, ManyFlushesShareAStoreThatTakesFewWrites) {
  // Each flush makes many transfers: none may keep some places while it waits for more.
  StoreTraits traits = FaultyStore::safe();
  traits.write_concurrency = 4;
  const auto store = std::make_shared<FaultyStore>(pattern(data_bytes()), traits);
  Region region = map(store, Access::kReadWrite).value();
  const uint64_t part = budget_bytes() / 2 / 4;
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int round = 0; round < 20; ++round) {
        for (uint64_t at = t * part; at < (t + 1) * part; at += 2 * 4096)  // no neighbours
          region.data()[at] = byte_at(at);
        EXPECT_TRUE(region.flush(t * part, part).ok());
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_LE(store->writers_max, 4);
}

// A store on a device that it shares with others: counts the most writes that the device had at a
// time.
class OnDevice final : public FaultyStore {
 public:
  struct Device {
    std::atomic<int> writes{0}, most{0};
  };
  OnDevice(std::vector<std::byte> bytes, const StoreTraits& traits, Device& device)
      : FaultyStore(std::move(bytes), traits), device_(device) {}
  int write(uint64_t offset, std::span<const std::byte> from) override {
    const int now = ++device_.writes;
    for (int most = device_.most; now > most && !device_.most.compare_exchange_weak(most, now);) {
    }
    const int result = FaultyStore::write(offset, from);
    --device_.writes;
    return result;
  }

 private:
  Device& device_;
};

TEST_P(OwnStore, GetsNoMoreWritesAtATimeThanItsDeviceMayHaveOfAll) {
  StoreTraits traits = FaultyStore::safe();
  traits.write_concurrency = 2;
  traits.device = 4711;
  OnDevice::Device device;
  std::vector<Region> regions;
  for (int i = 0; i < 3; ++i)
    regions.push_back(
        map(std::make_shared<OnDevice>(pattern(data_bytes()), traits, device), Access::kReadWrite)
            .value());
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < 6; ++t)
    threads.emplace_back([&, t] {
      Region& region = regions[t % 3];
      for (uint64_t at = t / 3 * 4096; at < data_bytes(); at += 2 * 4096)
        region.data()[at + t] = byte_at(at + t);
      EXPECT_TRUE(region.flush().ok());
    });
  for (std::thread& thread : threads) thread.join();
  for (Region& region : regions) EXPECT_TRUE(region.unmap().ok());
  EXPECT_GT(device.most, 0);
  EXPECT_LE(device.most, 2);
}

TEST_P(OwnStore, ThatIsBusyWritingDoesNotStopReadersOfResidentPages) {
  const auto store = std::make_shared<FaultyStore>(pattern(data_bytes()));
  Region region = map(store, Access::kReadWrite).value();
  region.data()[0] = std::byte{1};
  ASSERT_EQ(region.data()[page_bytes()], byte_at(page_bytes()));
  store->holds_writes = true;
  std::thread flusher([&] { EXPECT_TRUE(region.flush().ok()); });
  while (store->writers == 0) std::this_thread::yield();
  EXPECT_EQ(region.data()[0], std::byte{1});
  region.data()[0] = std::byte{2};  // the page that is being written
  EXPECT_EQ(region.data()[page_bytes()], byte_at(page_bytes()));
  EXPECT_EQ(region.data()[data_bytes() - 1], byte_at(data_bytes() - 1));  // and others come in
  store->holds_writes = false;
  store->holds_writes.notify_all();
  flusher.join();
  EXPECT_TRUE(region.flush().ok());
  EXPECT_EQ(store->bytes()[0], std::byte{2}) << "written again after the flush that it missed";
}

// Whose first transfers wait until it is opened; counts the largest batch.
class GatheringStore final : public FaultyStore {
 public:
  using FaultyStore::FaultyStore;
  std::atomic<bool> is_shut{true};
  std::atomic<size_t> largest{0};
  std::atomic<uint64_t> requests{0};
  void open() {
    is_shut = false;
    is_shut.notify_all();
  }
  void transfer(std::span<StoreRequest> batch) override {
    is_shut.wait(true);
    requests += batch.size();
    for (size_t most = largest; batch.size() > most;)
      if (largest.compare_exchange_weak(most, batch.size())) break;
    FaultyStore::transfer(batch);
  }
};

TEST_P(OwnStore, GetsTheScatteredPagesOfAListTogether) {
  constexpr uint64_t kPages = 128;
  Runtime runtime = Runtime::start(options_with(256 << 20)).value();  // with room for all of them
  StoreTraits traits = FaultyStore::safe();
  traits.has_many_in_flight = true;
  const auto store = std::make_shared<GatheringStore>(pattern(kPages * page_bytes()), traits);
  Region region = runtime.map(store, map_options(Access::kReadOnly)).value();
  std::vector<uint64_t> pages;  // every other one, backwards: none has a neighbour in the list
  for (uint64_t page = kPages; page > 0; page -= 2) pages.push_back(page - 2);
  ASSERT_TRUE(region.prefetch(pages).ok());
  store->open();
  while (region.metrics().resident_bytes != pages.size() * page_bytes()) std::this_thread::yield();
  EXPECT_EQ(store->requests, pages.size());
  EXPECT_GT(store->largest, 1u);  // a thread may have begun with the first alone
  for (const uint64_t page : pages)
    for (uint64_t at = page * page_bytes(); at < (page + 1) * page_bytes(); at += 512)
      ASSERT_EQ(region.data()[at], byte_at(at));
  EXPECT_EQ(runtime.metrics().counters.fills, 0u);
}

}  // namespace
}  // namespace outcore
