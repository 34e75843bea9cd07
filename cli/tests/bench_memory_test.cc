// What a benchmark tells a memory beforehand: what is to stay, and what will be touched.
#include <atomic>
#include <fstream>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "bench/memory.h"
#include "cli/tests/command_line.h"

namespace outcore::cli {
namespace {

class BenchMemory : public CommandTest {};

TEST_F(BenchMemory, KeepsWhatIsPinnedAndBringsInWhatIsOnAList) {
  static constexpr uint64_t kBytes = uint64_t{4} << 20, kTopBytes = uint64_t{128} << 10;
  std::ofstream(path("data")) << std::string(kBytes, 'x');
  bench::Options options;
  options.budget_bytes = uint64_t{1} << 20;
  options.advice = "random";
  options.policy = "fifo";
  auto memory = bench::make_memory("outcore", options);
  ASSERT_TRUE(memory.ok()) << memory.message();
  auto mapped = (*memory)->map({path("data"), 0, kBytes, false});
  ASSERT_TRUE(mapped.ok()) << mapped.message();
  const std::span<std::byte> bytes = mapped.value();
  const auto touch = [&](uint64_t first, uint64_t end) {
    const uint64_t before = (*memory)->usage().fills;
    for (uint64_t at = first; at < end; at += 4096)
      EXPECT_EQ(std::atomic_ref(bytes[at]).load(), std::byte{'x'});
    return (*memory)->usage().fills - before;
  };
  const Status pinned = (*memory)->pin(bytes.first(kTopBytes));
  ASSERT_TRUE(pinned.ok()) << pinned.message();
  EXPECT_GE(touch(kTopBytes, kBytes), (kBytes - kTopBytes) / 4096 - 1);
  EXPECT_EQ(touch(0, kTopBytes), 0U);
  const std::vector<uint64_t> pages = {300, 41, 77};  // which have left
  const uint64_t before = (*memory)->usage().fills;
  // A hint is dropped while there is no free frame.
  while ((*memory)->usage().fills - before < pages.size()) {
    ASSERT_TRUE((*memory)->prefetch(bytes, pages).ok());
    std::this_thread::yield();
  }
  const std::vector<uint64_t> beyond = {kBytes / 4096};
  EXPECT_FALSE((*memory)->prefetch(bytes, beyond).ok());
  EXPECT_TRUE((*memory)->close().ok());
}

TEST_F(BenchMemory, OfTheKernelLocksAndAdvises) {
  static constexpr uint64_t kBytes = uint64_t{1} << 20, kTopBytes = 16384;
  std::ofstream(path("data")) << std::string(kBytes, 'x');
  const auto locked_kib = [] {
    std::ifstream file("/proc/self/status");
    std::string word;
    uint64_t kib = 0;
    while (file >> word)
      if (word == "VmLck:") file >> kib;
    return kib;
  };
  for (const char* name : {"mmap", "mmap-random", "dram"}) {
    const auto memory = bench::make_plain_memory(name);
    auto mapped = memory->map({path("data"), 0, kBytes, false});
    ASSERT_TRUE(mapped.ok()) << mapped.message();
    const uint64_t before = locked_kib();
    const Status pinned = memory->pin(mapped->first(kTopBytes));
    ASSERT_TRUE(pinned.ok()) << pinned.message();
    EXPECT_EQ(locked_kib() - before, std::string(name) == "dram" ? 0 : kTopBytes / 1024) << name;
    const std::vector<uint64_t> pages = {200, 7, 255};
    EXPECT_TRUE(memory->prefetch(mapped.value(), pages).ok());
    EXPECT_TRUE(memory->close().ok());
    EXPECT_EQ(locked_kib(), before);
  }
}

}  // namespace
}  // namespace outcore::cli
