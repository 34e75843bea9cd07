// Stress: many threads do everything at once, with a budget that is far too small, compared with an
// oracle.
//
// The oracle: each page contains its number, and a cell that threads only add to, atomically; the
// sum for each cell is counted separately. OUTCORE_STRESS_SECONDS for each configuration (default
// 1), OUTCORE_STRESS_SEED to repeat one.
#include <signal.h>

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <thread>
#include <vector>

#include "core/tests/conformance/mechanism.h"

namespace outcore {
namespace {

using namespace scene;
using Clock = std::chrono::steady_clock;

struct Configuration {
  Mechanism mechanism;
  std::string policy;
  unsigned threads;
  unsigned keepers;
};

std::vector<Configuration> configurations() {
  std::vector<Configuration> all;
  const std::vector<std::string> policies = {"s3-fifo", "di-mmap", "fifo"};
  size_t i = 0;
  for (const Mechanism& m : all_mechanisms()) {
    if (m.page_bytes > 64 * kKiB) continue;
    const unsigned threads[] = {4, 16, 1, 64};
    all.push_back({m, policies[i % 3], threads[i % 4], i % 2 == 0 ? 1u : 2u});
    ++i;
  }
  for (const std::string& policy : policies)
    all.push_back({{Delivery::kInThread, FrameKind::kShared, 4096}, policy, 64, 1});
  // Frames that are replaced during the run.
  for (const unsigned threads : {4u, 64u})
    all.push_back({{Delivery::kInThread, FrameKind::kAuto, 4096}, "s3-fifo", threads, 1});
  return all;
}

std::string name_of(const Configuration& c) {
  std::string policy = c.policy;
  std::erase(policy, '-');
  return scene::name_of(c.mechanism) + "_" + policy + "_" + std::to_string(c.threads) + "threads_" +
         std::to_string(c.keepers) + "keepers";
}
// For messages of gtest.
void PrintTo(const Configuration& c, std::ostream* out) { *out << name_of(c); }

// The contents of a page of the file: its number, and the sum of what was added.
struct Cells {
  uint64_t number;
  uint64_t sum;
};

class Stress : public testing::TestWithParam<Configuration> {
 protected:
  static constexpr uint64_t kSystemPages = 4096;  // 16 MiB of data
  static constexpr uint64_t kBytes = kSystemPages * 4096;

  static uint64_t seconds() {
    const char* text = ::getenv("OUTCORE_STRESS_SECONDS");
    return text != nullptr ? std::strtoull(text, nullptr, 10) : 1;
  }
  static uint64_t seed() {
    const char* text = ::getenv("OUTCORE_STRESS_SEED");
    return text != nullptr ? std::strtoull(text, nullptr, 0)
                           : static_cast<uint64_t>(Clock::now().time_since_epoch().count());
  }

  // No touch may fail here: Outcore passes a failed one to the previous handler, which is the
  // default: it prints why, and the process ends.
  static void SetUpTestSuite() { ::signal(SIGBUS, SIG_DFL); }

  void SetUp() override {
    path_ = folder_ / "data";
    Bytes bytes(kBytes);
    for (uint64_t page = 0; page < kSystemPages; ++page)
      std::memcpy(&bytes[page * 4096 + cell_at(page)], &page, sizeof page);
    write_file(path_, bytes);
  }
  // The cell is not always at the same place of its page.
  static uint64_t cell_at(uint64_t page) { return page * 16 % 4080; }
  static Cells* cells(const Region& region, uint64_t page, uint64_t offset) {
    return reinterpret_cast<Cells*>(region.data() + page * 4096 - offset + cell_at(page));
  }

  void work(Runtime& runtime, Region& region, uint64_t random, bool is_wild);
  void use_view_of_its_own(Runtime& runtime, uint64_t random);
  void touch(const Region& region, uint64_t page, uint64_t offset, bool is_add) {
    Cells* c = cells(region, page, offset);
    if (is_add) {
      __atomic_fetch_add(&c->sum, 1, __ATOMIC_RELAXED);
      added_[page].fetch_add(1, std::memory_order_relaxed);
    }
    if (__atomic_load_n(&c->number, __ATOMIC_RELAXED) != page) ++wrong_;
  }
  void note(const Status& s, const char* what) {
    if (!s.ok() && failures_.fetch_add(1) == 0) ADD_FAILURE() << what << ": " << s.message();
  }

  Folder folder_;
  std::string path_;
  std::vector<std::atomic<uint64_t>> added_ = std::vector<std::atomic<uint64_t>>(kSystemPages);
  std::atomic<uint64_t> wrong_{0}, failures_{0};
  Clock::time_point end_;
  MapOptions map_options_;
};

uint64_t next(uint64_t& x) { return x ^= x << 13, x ^= x >> 7, x ^= x << 17; }

// Maps a part of the file for a moment, beside the permanent region.
void Stress::use_view_of_its_own(Runtime& runtime, uint64_t random) {
  MapOptions options = map_options_;
  options.frames.reset();
  const uint64_t first = random % (kSystemPages - 64);
  options.offset = first * 4096;
  options.size_bytes = (1 + random / 4096 % 64) * 4096;
  if (random % 3 == 0) options.access = Access::kReadOnly;
  Result<Region> view = runtime.map(path_, options);
  note(view.status(), "map");
  if (!view.ok()) return;
  for (uint64_t i = 0; i < options.size_bytes / 4096; i += 1 + random % 5)
    touch(*view, first + i, options.offset, options.access == Access::kReadWrite);
  note(view->unmap(), "unmap");
}

void Stress::work(Runtime& runtime, Region& region, uint64_t random, bool is_wild) {
  const bool can_share = region.frames() == FrameKind::kShared;
  for (uint64_t step = 1; step % 256 != 0 || Clock::now() < end_; ++step) {
    const uint64_t x = next(random), page = x / 1024 % kSystemPages;
    const uint64_t at = page * 4096, few = std::min<uint64_t>((1 + x % 7) * 4096, kBytes - at);
    const uint64_t dice = is_wild ? x % 1024 : 1023;
    if (dice < 8) {
      note(region.flush(at, few), "flush");
    } else if (dice < 12) {
      const Status s = region.pin(at, 4096);
      if (!s.ok() && s.code() != ENOMEM) note(s, "pin");
      if (!s.ok()) continue;
      touch(region, page, 0, true);
      note(region.unpin(at, 4096), "unpin");
    } else if (dice < 20) {
      note(region.advise(at, few, x % 2 == 0 ? Advice::kDontNeed : Advice::kCold), "advise");
    } else if (dice < 28) {
      note(x % 3 == 0 ? region.prepare(at, few) : region.prefetch(at, few), "prefetch");
    } else if (dice < 32) {
      uint64_t number = 0;
      note(region.read(at + cell_at(page), std::as_writable_bytes(std::span(&number, 1))), "read");
      if (number != page) ++wrong_;
    } else if (dice < 34 && can_share) {
      use_view_of_its_own(runtime, x / 1024);
    } else if (dice < 35) {
      static_cast<void>(runtime.resize_budget((2 + x / 1024 % 3) * kMiB));
    } else if (dice < 36) {
      static_cast<void>(runtime.metrics());
    } else {
      touch(region, page, 0, x % 2 == 0);
    }
  }
}

TEST_P(Stress, NoByteIsLostAndNoPageIsAnother) {
  const Configuration& c = GetParam();
  const uint64_t start = seed();
  RecordProperty("seed", std::to_string(start));
  std::printf("seed %llu\n", static_cast<unsigned long long>(start));
  RuntimeOptions options = options_with(3 * kMiB);
  options.policy = c.policy;
  options.keepers = c.keepers;
  Runtime runtime = Runtime::start(options).value();
  map_options_.access = Access::kReadWrite;
  map_options_.page_bytes = c.mechanism.page_bytes;
  map_options_.delivery = c.mechanism.delivery;
  map_options_.frames = c.mechanism.frames;
  Result<Region> region = runtime.map(path_, map_options_);
  if (!region.ok() && (region.code() == EPERM || region.code() == ENOTSUP))
    GTEST_SKIP() << region.message();
  ASSERT_TRUE(region.ok()) << region.message();
  end_ = Clock::now() + std::chrono::seconds(seconds());
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < c.threads; ++t)
    threads.emplace_back([&, t] {
      work(runtime, *region, (start + t + 1) * 0x9E3779B97F4A7C15ull | 1, t % 2 == 0);
    });
  for (std::thread& thread : threads) thread.join();
  const Metrics metrics = runtime.metrics();
  std::printf("%llu fills, %llu evictions, the longest fault below %.3f s\n",
              static_cast<unsigned long long>(metrics.counters.fills),
              static_cast<unsigned long long>(metrics.counters.evictions),
              static_cast<double>(metrics.fault_latency.percentile_ns(1)) * 1e-9);
  const Status unmapped = region->unmap();
  EXPECT_TRUE(unmapped.ok()) << unmapped.message();
  EXPECT_EQ(wrong_, 0u) << "seed " << start;
  EXPECT_GT(metrics.counters.evictions, 0u);
  const Bytes file = read_file(path_);
  uint64_t bad = 0;
  for (uint64_t page = 0; page < kSystemPages; ++page) {
    Cells seen;
    std::memcpy(&seen, &file[page * 4096 + cell_at(page)], sizeof seen);
    bad += seen.number != page || seen.sum != added_[page];
  }
  EXPECT_EQ(bad, 0u) << "pages with lost or foreign bytes; seed " << start;
  EXPECT_EQ(runtime.metrics().gauges.used_bytes, runtime.metrics().gauges.bounce_bytes);
}

INSTANTIATE_TEST_SUITE_P(Configurations, Stress, testing::ValuesIn(configurations()),
                         [](const testing::TestParamInfo<Configuration>& of) {
                           return name_of(of.param);
                         });

}  // namespace
}  // namespace outcore
