// far_touches: what touches of a store that is there already cost.
//
//   far_touches URI TOUCHES WRITES   (OUTCORE_BUDGET says how much of it may be in memory)
//
// Reads all of it once in order, touches TOUCHES 4 KiB pages at random, and changes a byte of each
// of WRITES other random ones. Prints one line of JSON.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "bench/clock.h"
#include "bench/random.h"
#include "outcore/runtime.h"

namespace outcore::bench {
namespace {

constexpr uint64_t kPageBytes = 4096;

[[noreturn]] void fail(const std::string& what) {
  std::fprintf(stderr, "far_touches: %s\n", what.c_str());
  std::exit(1);
}

struct Result {
  double scan_seconds = 0, write_seconds = 0;
  std::vector<uint64_t> touch_ns;
  unsigned sum = 0;
};

Result run(Region& region, uint64_t touches, uint64_t writes) {
  auto* const bytes = reinterpret_cast<unsigned char*>(region.data());
  const uint64_t pages = region.size_bytes() / kPageBytes;
  Result result;
  uint64_t start_ns = now_ns();
  for (uint64_t page = 0; page < pages; ++page) result.sum += bytes[page * kPageBytes];
  result.scan_seconds = seconds_since(start_ns);
  Random random(1);
  for (uint64_t i = 0; i < touches; ++i) {
    const uint64_t page = random.below(pages);
    start_ns = now_ns();
    result.sum += bytes[page * kPageBytes];
    result.touch_ns.push_back(now_ns() - start_ns);
  }
  std::sort(result.touch_ns.begin(), result.touch_ns.end());
  start_ns = now_ns();
  for (uint64_t i = 0; i < writes; ++i) ++bytes[random.below(pages) * kPageBytes];
  if (Status s = region.flush(); !s) fail(s.message());
  result.write_seconds = seconds_since(start_ns);
  return result;
}

}  // namespace
}  // namespace outcore::bench

int main(int argc, char** argv) {
  using namespace outcore::bench;
  if (argc != 4) fail("usage: far_touches URI TOUCHES WRITES");
  const uint64_t touches = std::strtoull(argv[2], nullptr, 10);
  const uint64_t writes = std::strtoull(argv[3], nullptr, 10);
  if (touches == 0) fail("TOUCHES must be above 0");
  auto runtime = outcore::Runtime::start();
  if (!runtime) fail(runtime.message());
  outcore::MapOptions options;
  options.access = writes > 0 ? outcore::Access::kReadWrite : outcore::Access::kReadOnly;
  auto region = runtime->map(argv[1], options);
  if (!region) fail(region.message());
  const Result result = run(*region, touches, writes);
  const auto mib = static_cast<double>(region->size_bytes()) / (1 << 20);
  const auto us_at = [&](size_t percent) {
    return static_cast<double>(result.touch_ns[(touches - 1) * percent / 100]) / 1000;
  };
  std::printf("{\"scan_mib_s\": %.1f, \"p50_us\": %.1f, \"p99_us\": %.1f, \"writes_s\": %.0f}\n",
              mib / result.scan_seconds, us_at(50), us_at(99),
              writes > 0 ? static_cast<double>(writes) / result.write_seconds : 0.0);
  return result.sum == UINT32_MAX ? 2 : 0;  // so that every byte is looked at
}
