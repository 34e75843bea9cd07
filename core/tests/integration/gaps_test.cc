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

struct Read {
  uint64_t pages_ahead = 0;
  int64_t between_bytes = 0;  // read from the store, beyond the pages that were brought in
};

Read read_steps(unsigned readers, const std::string& path, const RuntimeOptions& options) {
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
  return {seen.counters.prefetch_fills,
          static_cast<int64_t>(seen.counters.read_bytes) - static_cast<int64_t>(fills * kPage)};
}

// Where the readers have all processors, nothing, or only single pages, may come ahead of them:
// they try again.
Read read_with_pages_ahead(unsigned readers, const std::string& path, const RuntimeOptions& options,
                           bool has_gaps) {
  constexpr int kTriesMax = 50;
  Read read;
  for (int i = 0; i < kTriesMax && (read.pages_ahead == 0 || (has_gaps && read.between_bytes == 0));
       ++i)
    read = read_steps(readers, path, options);
  EXPECT_GT(read.pages_ahead, 0u);
  return read;
}

TEST(Gaps, AreReadAlongForFewReadersOnly) {
  const Folder folder;
  RuntimeOptions options;
  options.budget_bytes = 256 << 20;
  options.fetch = Fetch::kPage;  // a page that is left out of a cluster is a gap, too
  EXPECT_GT(read_with_pages_ahead(1, folder / "few", options, true).between_bytes, 0);
  EXPECT_EQ(read_with_pages_ahead(16, folder / "many", options, false).between_bytes, 0);
}

}  // namespace
}  // namespace outcore
