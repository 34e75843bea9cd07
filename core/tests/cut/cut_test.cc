// Cuts on the real kernel, of regions that threads write to continuously.
#include <gtest/gtest.h>
#include <signal.h>

#include <atomic>
#include <cerrno>
#include <thread>
#include <vector>

#include "core/tests/cut/scene.h"

namespace outcore {
namespace {

using namespace scene;

struct Load {
  Mechanism mechanism;
  uint64_t threads = 1;
};

std::vector<Load> loads() {
  std::vector<Load> all;
  for (const uint64_t threads : {1, 2, 4, 8})
    all.push_back({{Delivery::kInThread, FrameKind::kShared, 4 * kKiB}, threads});
  for (const Mechanism& m : all_mechanisms()) all.push_back({m, 4});
  return all;
}

std::string name_of(const testing::TestParamInfo<Load>& of) {
  return std::to_string(of.index) + "_" + scene::name_of(of.param.mechanism) + "_" +
         std::to_string(of.param.threads) + "threads";
}
// For messages of gtest.
void PrintTo(const Load& load, std::ostream* out) { *out << scene::name_of(load.mechanism); }

class Cuts : public testing::TestWithParam<Load> {};

TEST_P(Cuts, HoldTheFirstWritesOfEachThreadAndNoOthers) {
  const Mechanism mechanism = GetParam().mechanism;
  const uint64_t threads = GetParam().threads;
  const uint64_t budget = mechanism.page_bytes < kMiB ? 4 * kMiB : 32 * kMiB;
  const uint64_t size_bytes = budget / 2;
  const Regions regions(mechanism, budget, 3, size_bytes);
  if (!regions.why_not().empty()) GTEST_SKIP() << regions.why_not();
  std::vector<std::unique_ptr<Writer>> writers;
  for (uint64_t i = 0; i < threads; ++i)
    writers.push_back(std::make_unique<Writer>(regions, i, size_bytes / 4096));
  std::atomic<bool> must_end{false};
  std::vector<std::thread> running;
  for (uint64_t i = 0; i < threads; ++i)
    running.emplace_back([&, i] { writers[i]->run(*writers[(i + 1) % threads], must_end); });
  uint64_t least[Writer::kWritersMax] = {};  // what the cut must contain at least
  uint64_t stopped = 0, frozen = 0, good = 0;
  paging::CutCalls calls;
  calls.candidate = [&] {
    for (uint64_t i = 0; i < threads; ++i) least[i] = writers[i]->progress();
  };
  calls.stored = [&]() -> Status {
    std::vector<uint64_t> last;
    for (auto& writer : writers) last.push_back(writer->check());
    for (uint64_t i = 0; i < threads; ++i) {
      EXPECT_GE(last[i], least[i]) << "writer " << i;
      EXPECT_LE(last[i], writers[i]->progress() + 1) << "writer " << i;
      EXPECT_LE(writers[i]->noted(), last[(i + 1) % threads]) << "writer " << i;
    }
    return {};
  };
  for (int i = 0; i < 12 && !HasFailure(); ++i) {
    const Result<paging::CutReport> cut = regions.cut(calls);
    // A loaded machine may not stop its threads in time: then the cut says so.
    EXPECT_TRUE(cut.ok() || cut.code() == EAGAIN) << cut.message();
    if (!cut.ok()) continue;
    ++good;
    stopped += cut.value().stopped_threads;
    frozen += cut.value().frozen_pages;
  }
  must_end = true;
  for (std::thread& thread : running) thread.join();
  EXPECT_GT(good, 0u);
  std::printf("%llu cuts, %llu pages frozen, %llu times a thread was stopped\n",
              static_cast<unsigned long long>(good), static_cast<unsigned long long>(frozen),
              static_cast<unsigned long long>(stopped));
}

INSTANTIATE_TEST_SUITE_P(Loads, Cuts, testing::ValuesIn(loads()), name_of);

constexpr Mechanism kUsual{Delivery::kInThread, FrameKind::kShared, 4 * kKiB};

void write_word(std::byte* to, uint64_t value) {
  __atomic_store_n(reinterpret_cast<uint64_t*>(to), value, __ATOMIC_RELEASE);
}

TEST(Cut, OfAProgramAtRestStopsNobody) {
  // What a prefetch thread has shown and not yet handed over may be written already: it would wait
  // for the cut's moment.
  const Regions regions(kUsual, 8 * kMiB, 2, 2 * kMiB, Regions::Prefetch::kOff);
  if (!regions.why_not().empty()) GTEST_SKIP() << regions.why_not();
  for (uint64_t at = 0; at < 2 * kMiB; at += 4096) write_word(regions.data(at / 4096 % 2) + at, at);
  const Result<paging::CutReport> cut = regions.cut();
  ASSERT_TRUE(cut.ok()) << cut.message();
  EXPECT_EQ(cut.value().stopped_threads, 0u);
  EXPECT_EQ(cut.value().frozen_pages, 0u);
  EXPECT_EQ(cut.value().pause_ns, 0u);
  EXPECT_EQ(cut.value().precopied_bytes, 2 * kMiB);
  for (uint64_t at = 0; at < 2 * kMiB; at += 4096)
    EXPECT_EQ(regions.store(at / 4096 % 2).word_at(at), at);
}

TEST(Cut, OfAPageThatIsPinnedForWritingIsRefused) {
  const Regions regions(kUsual, 4 * kMiB, 1, kMiB);
  if (!regions.why_not().empty()) GTEST_SKIP() << regions.why_not();
  const os::SignalBlock block;
  region::View& view = *regions.region(0).view;
  ASSERT_TRUE(regions.engine().pin(view, view.address + 8192, 4096).ok());
  const Result<paging::CutReport> cut = regions.cut();
  EXPECT_EQ(cut.code(), EBUSY) << cut.message();
  EXPECT_NE(cut.message().find("page 2"), std::string::npos) << cut.message();
  ASSERT_TRUE(regions.engine().unpin(view, view.address + 8192, 4096).ok());
  EXPECT_TRUE(regions.cut().ok());
}

TEST(Cut, ThatTheStoreRefusesLosesNothing) {
  const Regions regions(kUsual, 4 * kMiB, 1, kMiB);
  if (!regions.why_not().empty()) GTEST_SKIP() << regions.why_not();
  write_word(regions.data(0) + 4096, 1);
  bool is_stored = false;
  paging::CutCalls calls;
  // Fails in the last round, with what was written after the first rounds.
  calls.quiesce = [&]() -> Status {
    write_word(regions.data(0) + 12288, 4);
    regions.store(0).fail(true);
    return {};
  };
  calls.stored = [&]() -> Status { return is_stored = true, Status(); };
  const Result<paging::CutReport> refused = regions.cut(calls);
  EXPECT_EQ(refused.code(), EIO) << refused.message();
  EXPECT_FALSE(is_stored);
  regions.store(0).fail(false);
  calls.quiesce = {};
  EXPECT_TRUE(regions.cut(calls).ok());
  EXPECT_TRUE(is_stored);
  EXPECT_EQ(regions.store(0).word_at(4096), 1u);
  EXPECT_EQ(regions.store(0).word_at(12288), 4u);
}

TEST(Cut, WithAFunctionThatBringsTheProgramToRestStopsNoThread) {
  const Regions regions(kUsual, 4 * kMiB, 1, kMiB);
  if (!regions.why_not().empty()) GTEST_SKIP() << regions.why_not();
  std::atomic<bool> must_rest{false}, is_resting{false}, must_end{false};
  std::thread writer([&] {
    for (uint64_t i = 1; !must_end; ++i) {
      while (must_rest && !must_end) {
        is_resting = true;
        std::this_thread::yield();
      }
      is_resting = false;
      // Two words that are equal whenever the program rests.
      write_word(regions.data(0) + i % 200 * 4096, i);
      write_word(regions.data(0) + i % 200 * 4096 + 64, i);
    }
  });
  paging::CutCalls calls;
  calls.quiesce = [&]() -> Status {
    is_resting = false;
    must_rest = true;
    while (!is_resting) std::this_thread::yield();
    return {};
  };
  // It touches frozen pages.
  calls.resume = [&] {
    write_word(regions.data(0) + 250 * 4096, 1);
    must_rest = false;
  };
  calls.stored = [&]() -> Status {
    for (uint64_t page = 0; page < 200; ++page)
      EXPECT_EQ(regions.store(0).word_at(page * 4096), regions.store(0).word_at(page * 4096 + 64));
    return {};
  };
  for (int i = 0; i < 10; ++i) {
    const Result<paging::CutReport> cut = regions.cut(calls);
    ASSERT_TRUE(cut.ok()) << cut.message();
    EXPECT_EQ(cut.value().stopped_threads, 0u);
  }
  must_end = true;
  writer.join();
}

// A thread that blocks all signals continues: the cut finds a moment without stopping it, or
// reports that there is none.
TEST(Cut, BesideAThreadThatBlocksAllSignalsIsRightOrRefused) {
  const Regions regions(kUsual, 4 * kMiB, 1, 2 * kMiB);
  if (!regions.why_not().empty()) GTEST_SKIP() << regions.why_not();
  Writer writer(regions, 0, 512);
  std::atomic<bool> must_end{false};
  std::thread running([&] {
    const os::SignalBlock block;
    writer.run(writer, must_end);
  });
  paging::CutCalls calls;
  calls.stored = [&]() -> Status { return static_cast<void>(writer.check()), Status(); };
  for (int i = 0; i < 10; ++i) {
    const Result<paging::CutReport> cut = regions.cut(calls);
    EXPECT_TRUE(cut.ok() || cut.code() == EAGAIN) << cut.message();
  }
  must_end = true;
  running.join();
}

}  // namespace
}  // namespace outcore
