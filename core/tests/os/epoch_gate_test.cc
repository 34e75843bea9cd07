// Whoever is inside an EpochGate is never inside together with the one who closed it.
#include "core/os/epoch_gate.h"

#include <atomic>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace outcore::os {
namespace {

TEST(EpochGate, LetsManyInAndNobodyWhileItIsClosed) {
  EpochGate gate;
  EXPECT_TRUE(gate.try_enter());
  EXPECT_TRUE(gate.try_enter());
  gate.leave();
  gate.leave();
  gate.close();
  EXPECT_TRUE(gate.is_closed());
  EXPECT_FALSE(gate.try_enter());
  gate.open();
  EXPECT_FALSE(gate.is_closed());
  EXPECT_TRUE(gate.try_enter());
  gate.leave();
}

TEST(EpochGate, IsClosedOnlyWhenTheLastOneHasLeft) {
  EpochGate gate;
  gate.enter();
  gate.enter();
  std::atomic<bool> is_inside{true};
  std::thread closer([&] {
    gate.close();
    EXPECT_FALSE(is_inside.load());
    gate.open();
  });
  while (gate.try_enter()) gate.leave();  // until the closer has begun
  gate.leave();
  is_inside.store(false);
  gate.leave();
  closer.join();
  EXPECT_FALSE(gate.is_closed());
}

TEST(EpochGate, KeepsWritersAndTheOneWhoLooksApart) {
  EpochGate gate;
  // Two words that a writer changes together: whoever closes the gate finds them equal.
  std::atomic<uint32_t> first{0}, second{0};
  std::atomic<bool> is_over{false};
  std::vector<std::thread> writers;
  for (int i = 0; i < 4; ++i)
    writers.emplace_back([&] {
      while (!is_over.load()) {
        const Passing passing(gate);
        first.fetch_add(1);
        second.fetch_add(1);
      }
    });
  for (int i = 0; i < 30; ++i) {
    gate.close();
    const uint32_t seen = first.load();
    EXPECT_EQ(seen, second.load());
    gate.open();
    while (first.load() == seen) std::this_thread::yield();  // somebody comes in again
  }
  is_over.store(true);
  for (std::thread& writer : writers) writer.join();
}

}  // namespace
}  // namespace outcore::os
