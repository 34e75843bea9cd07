// Persist: how bytes are copied so that persistent memory has them.
#include "arrays/container/persist.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <thread>
#include <vector>

#include "tests/random_bytes.h"

namespace outcore {
namespace {

using arrays::Flush;
using scene::random_bytes;

// Those that this processor has.
std::vector<Flush> flushes() {
  const Flush best = arrays::best_flush();
  if (best == Flush::kNone) return {};
  std::vector<Flush> all = {Flush::kLineFlush};
  if (best != Flush::kLineFlush) all.push_back(best);
  return all;
}

TEST(Persist, ACopyIsSplitWhereLinesBeginAndEnd) {
  for (uintptr_t to = 4096; to < 4096 + 2 * arrays::kCacheLine; ++to)
    for (uint64_t size = 0; size < 5 * arrays::kCacheLine; ++size) {
      const arrays::LineSplit split = arrays::split_at_lines(to, size);
      ASSERT_EQ(split.head + split.body + split.tail, size);
      const auto line = [](uintptr_t at) { return at / arrays::kCacheLine; };
      if (split.head > 0) {
        ASSERT_EQ(line(to), line(to + split.head - 1)) << "one flush is enough";
      }
      if (split.body > 0) {
        ASSERT_EQ((to + split.head) % arrays::kCacheLine, 0u);
        ASSERT_EQ(split.body % arrays::kCacheLine, 0u);
      }
      const uintptr_t tail = to + split.head + split.body;
      if (split.tail > 0) {
        ASSERT_EQ(line(tail), line(tail + split.tail - 1)) << "one flush is enough";
      }
    }
}

TEST(Persist, ACopyOfAnyAlignmentAndLengthIsTheSameAndNothingElseIsTouched) {
  if (flushes().empty()) GTEST_SKIP() << "this processor's flushes are not known";
  const auto from = random_bytes(1024);
  for (const Flush flush : flushes())
    for (uint64_t to = 0; to < 70; ++to)
      for (uint64_t at = 0; at < 18; at += 3)
        for (const uint64_t size : {0, 1, 7, 16, 63, 64, 65, 127, 128, 129, 200, 640, 701}) {
          alignas(64) std::byte into[1024] = {};
          arrays::copy_persistently(into + to, from.data() + at, size, flush);
          arrays::drain();
          ASSERT_EQ(std::memcmp(into + to, from.data() + at, size), 0) << to << " " << size;
          for (uint64_t i = 0; i < sizeof into; ++i)
            if (i < to || i >= to + size) {
              ASSERT_EQ(into[i], std::byte{0}) << name_of(flush) << " " << to << " " << size;
            }
        }
}

TEST(Persist, ThreadsCopyNextToEachOtherInOneLine) {
  if (flushes().empty()) GTEST_SKIP() << "this processor's flushes are not known";
  const auto from = random_bytes(1 << 20);
  std::vector<std::byte> into(from.size());
  constexpr uint64_t kPart = 37;  // neighbours share lines
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (uint64_t at = t * kPart; at < from.size(); at += 4 * kPart)
        arrays::copy_persistently(into.data() + at, from.data() + at,
                                  std::min(kPart, from.size() - at), arrays::best_flush());
      arrays::drain();
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(into, from);
}

}  // namespace
}  // namespace outcore
