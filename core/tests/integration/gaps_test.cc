// Readers that skip pages: few of them get what lies between read along, in larger transfers; many
// read no byte that nobody asked for.
#include <barrier>
#include <thread>
#include <vector>

#include "core/tests/conformance/mechanism.h"
#include "tests/folder.h"

namespace outcore {
namespace {

using namespace scene;

// Bytes read from the store, beyond the pages that were brought in.
int64_t read_between(unsigned readers, const std::string& path, const RuntimeOptions& options) {
  constexpr uint64_t kPage = 4096, kSteps = 400, kStride = 3;
  write_file(path, Bytes(readers * kSteps * kStride * kPage));
  Runtime runtime = Runtime::start(options).value();
  const Region region = runtime.map(path).value();
  // In step, so that each counts as a reader all the time.
  std::barrier step(readers);
  std::vector<std::thread> threads;
  for (unsigned r = 0; r < readers; ++r)
    threads.emplace_back([&, r] {
      const std::byte* const part = region.data() + r * kSteps * kStride * kPage;
      for (uint64_t i = 0; i < kSteps; ++i) {
        static_cast<void>(*static_cast<const volatile std::byte*>(part + i * kStride * kPage));
        step.arrive_and_wait();
      }
    });
  for (std::thread& thread : threads) thread.join();
  const Metrics seen = runtime.metrics();
  const uint64_t fills = seen.counters.fills + seen.counters.prefetch_fills;
  EXPECT_GE(fills, readers * kSteps);
  EXPECT_GT(seen.counters.prefetch_fills, 0u);
  return static_cast<int64_t>(seen.counters.read_bytes) - static_cast<int64_t>(fills * kPage);
}

TEST(Gaps, AreReadAlongForFewReadersOnly) {
  const Folder folder;
  RuntimeOptions options;
  options.budget_bytes = 256 << 20;
  EXPECT_GT(read_between(1, folder / "few", options), 0);
  EXPECT_EQ(read_between(16, folder / "many", options), 0);
}

}  // namespace
}  // namespace outcore
