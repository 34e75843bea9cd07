// ChangeLog: nothing that was noted is forgotten, whoever takes how much of it.
#include "core/paging/change_log.h"

#include <gtest/gtest.h>

#include <atomic>
#include <random>
#include <thread>
#include <vector>

namespace outcore::paging {
namespace {

constexpr uint64_t kPart = ChangeLog::kPartBytes;

std::unique_ptr<ChangeLog> make(uint64_t size_bytes, bool is_fresh) {
  auto log = std::move(ChangeLog::make(size_bytes)).value();
  if (!is_fresh) log->drain(size_bytes, [](uint64_t, uint64_t to) { return to; });
  return log;
}

std::vector<std::pair<uint64_t, uint64_t>> taken(ChangeLog& log, uint64_t size_bytes) {
  std::vector<std::pair<uint64_t, uint64_t>> all;
  log.drain(size_bytes, [&](uint64_t from, uint64_t to) {
    all.emplace_back(from, to);
    return to;
  });
  return all;
}

using Runs = std::vector<std::pair<uint64_t, uint64_t>>;

TEST(ChangeLogOf, ANewOneSaysThatAllHasChanged) {
  const auto log = make(10 * kPart + 5, true);
  EXPECT_EQ(taken(*log, 10 * kPart + 5), (Runs{{0, 10 * kPart + 5}}));
  EXPECT_EQ(taken(*log, 10 * kPart + 5), Runs{});
}

TEST(ChangeLogOf, NeighboursAreOneStretchAndTheEndIsTheStores) {
  const auto log = make(200 * kPart, false);
  log->note(3 * kPart + 1, 1);
  log->note(4 * kPart, kPart + 1);
  log->note(63 * kPart, 2 * kPart);  // two words
  log->note(199 * kPart, kPart);
  EXPECT_EQ(
      taken(*log, 200 * kPart - 7),
      (Runs{{3 * kPart, 6 * kPart}, {63 * kPart, 65 * kPart}, {199 * kPart, 200 * kPart - 7}}));
  EXPECT_EQ(taken(*log, 200 * kPart), Runs{});
}

TEST(ChangeLogOf, WhatWasNotTakenToItsEndIsThereStill) {
  const auto log = make(200 * kPart, false);
  for (const uint64_t part : {1, 2, 3, 70, 130}) log->note(part * kPart, 1);
  const bool is_done =
      log->drain(200 * kPart, [&](uint64_t from, uint64_t) { return from + kPart; });
  EXPECT_FALSE(is_done);
  EXPECT_EQ(taken(*log, 200 * kPart),
            (Runs{{2 * kPart, 4 * kPart}, {70 * kPart, 71 * kPart}, {130 * kPart, 131 * kPart}}));
}

TEST(ChangeLogOf, BehindItsEndAllHasChanged) {
  const auto log = make(kPart, false);
  log->note(1000 * kPart, 1);
  EXPECT_EQ(taken(*log, 2000 * kPart), (Runs{{0, 2000 * kPart}}));
}

// Writers put a number into a slot and note it; the taker reads slots that it is told of. In the
// end it has seen all numbers that are there.
TEST(ChangeLogOf, NothingIsLostBetweenThreads) {
  constexpr uint64_t kSlots = 300;
  const auto log = make(kSlots * kPart, false);
  std::vector<std::atomic<uint64_t>> slots(kSlots);
  std::vector<uint64_t> seen(kSlots);
  std::atomic<int> writing{3};
  std::vector<std::thread> writers;
  for (unsigned t = 0; t < 3; ++t)
    writers.emplace_back([&, t] {
      std::mt19937_64 random(t);
      for (uint64_t i = 1; i <= 20'000; ++i) {
        const uint64_t at = random() % (kSlots / 3) * 3 + t;
        slots[at].store(i, std::memory_order_relaxed);
        log->note(at * kPart, kPart);
      }
      --writing;
    });
  std::mt19937_64 random(9);
  const auto look = [&](bool may_stop) {
    log->drain(kSlots * kPart, [&](uint64_t from, uint64_t to) {
      for (; from < to; from += kPart) {
        if (may_stop && random() % 8 == 0) return from;
        seen[from / kPart] = slots[from / kPart].load(std::memory_order_relaxed);
      }
      return to;
    });
  };
  while (writing > 0) look(true);
  for (std::thread& writer : writers) writer.join();
  look(false);
  for (uint64_t i = 0; i < kSlots; ++i) EXPECT_EQ(seen[i], slots[i].load()) << i;
}

}  // namespace
}  // namespace outcore::paging
