// far_byte_writes: writes single bytes at random places of a store, and tells what had to travel.
//
//   far_byte_writes URI BYTES WRITES   (OUTCORE_BUDGET says how much of it may be in memory)
//
// Prints one line of JSON. Every byte is read again, in a region of its own; a wrong one is
// counted.
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "bench/clock.h"
#include "bench/random.h"
#include "outcore/runtime.h"

namespace outcore::bench {
namespace {

constexpr unsigned kThreads = 4;
constexpr uint64_t kPageBytes = 4096;

struct Work {
  std::string uri;
  uint64_t size_bytes = 0, writes = 0;
};

[[noreturn]] void fail(const std::string& what) {
  std::fprintf(stderr, "far_byte_writes: %s\n", what.c_str());
  std::exit(1);
}

// The same places in the same order, again and again; equal places get equal bytes.
template <typename See>
void on_places(const Work& work, See see) {
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      Random random(t + 1);
      const uint64_t count = work.writes * (t + 1) / kThreads - work.writes * t / kThreads;
      for (uint64_t i = 0; i < count; ++i) {
        const uint64_t at = random.below(work.size_bytes);
        see(at, static_cast<unsigned char>(mix(at) | 1));
      }
    });
  for (std::thread& thread : threads) thread.join();
}

Region map(Runtime& runtime, const Work& work, Access access) {
  MapOptions options;
  options.access = access;
  options.size_bytes = work.size_bytes;
  options.may_create = access == Access::kReadWrite;
  auto region = runtime.map(work.uri, options);
  if (!region) fail(region.message());
  return std::move(region).value();
}

unsigned char* at_of(const Region& region, uint64_t at) {
  return reinterpret_cast<unsigned char*>(region.data()) + at;
}

void run(const Work& work) {
  auto runtime = Runtime::start();
  if (!runtime) fail(runtime.message());
  std::vector<std::atomic<bool>> is_dirty(work.size_bytes / kPageBytes + 1);
  const uint64_t start_ns = now_ns();
  Region written = map(*runtime, work, Access::kReadWrite);
  on_places(work, [&](uint64_t at, unsigned char byte) {
    std::atomic_ref(*at_of(written, at)).store(byte, std::memory_order_relaxed);
    is_dirty[at / kPageBytes] = true;
  });
  if (Status s = written.sync(); !s) fail(s.message());
  const double seconds = seconds_since(start_ns);
  const uint64_t written_bytes = runtime->metrics().counters.written_bytes;
  if (Status s = written.unmap(true); !s) fail(s.message());

  const Region read = map(*runtime, work, Access::kReadOnly);
  std::atomic<uint64_t> wrong{0};
  on_places(work, [&](uint64_t at, unsigned char byte) { wrong += *at_of(read, at) != byte; });
  uint64_t pages = 0;
  for (const std::atomic<bool>& page : is_dirty) pages += page;
  std::printf(
      "{\"dirty_pages\": %llu, \"written_bytes\": %llu, \"seconds\": %.3f, \"wrong\": %llu}\n",
      static_cast<unsigned long long>(pages), static_cast<unsigned long long>(written_bytes),
      seconds, static_cast<unsigned long long>(wrong.load()));
}

}  // namespace
}  // namespace outcore::bench

int main(int argc, char** argv) {
  using namespace outcore::bench;
  if (argc != 4) fail("usage: far_byte_writes URI BYTES WRITES");
  const Work work{argv[1], std::strtoull(argv[2], nullptr, 10),
                  std::strtoull(argv[3], nullptr, 10)};
  if (work.size_bytes == 0) fail("BYTES must be above 0");
  run(work);
  return 0;
}
