// heap_reuse DIR: blocks that are freed and allocated again, of many sizes and by many threads.
// What must read zero does, whatever an earlier block had there; what a block holds is its own.
#include <pthread.h>

#include <cstddef>
#include <initializer_list>

#include "program.h"

using namespace program;

namespace {

bool is_zero(const void* p, uint64_t bytes) {
  const auto* const words = static_cast<const uint64_t*>(p);
  for (uint64_t i = 0; i < bytes / 8; ++i)
    if (words[i] != 0) return false;
  return true;
}

uint64_t* block(uint64_t bytes, uint64_t seed) {
  auto* const words = static_cast<uint64_t*>(std::malloc(bytes));
  require(words != nullptr, "malloc");
  fill(words, bytes / 8, seed);
  return words;
}

uint64_t* mapping(uint64_t bytes) {
  void* const p =
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  require(p != MAP_FAILED, "mmap");
  return static_cast<uint64_t*>(p);
}

void zeros_after_each_kind(uint64_t bytes) {
  for (int round = 0; round < 4; ++round) {
    std::free(block(bytes, 1));
    void* const cleared = std::calloc(1, bytes);
    require(cleared != nullptr && is_zero(cleared, bytes), "calloc reads zero");
    std::memset(cleared, 0xAB, bytes);
    std::free(cleared);
    uint64_t* const mapped = mapping(bytes);
    require(is_zero(mapped, bytes), "a mapping reads zero");
    fill(mapped, bytes / 8, 2);
    std::free(block(bytes, 3));
    auto* const larger = static_cast<uint64_t*>(::mremap(mapped, bytes, 3 * bytes, MREMAP_MAYMOVE));
    require(larger != MAP_FAILED && is_filled(larger, bytes / 8, 2), "mremap keeps its bytes");
    require(is_zero(larger + bytes / 8, 2 * bytes), "what is new of it reads zero");
    require(::munmap(larger, 3 * bytes) == 0, "munmap");
  }
}

// Some beside others that live, so that parts of what is free are stale, and parts are not.
void cleared_over_many(uint64_t bytes) {
  constexpr int kBlocks = 200;
  uint64_t* all[kBlocks];
  for (int i = 0; i < kBlocks; ++i) all[i] = block(bytes, static_cast<uint64_t>(i));
  for (int i = 0; i < kBlocks; ++i)
    if (i % 3 != 0) std::free(all[i]);
  for (uint64_t n = 1; n <= 8; n *= 2) {
    void* const cleared = std::calloc(n, bytes);
    require(cleared != nullptr && is_zero(cleared, n * bytes), "calloc over several reads zero");
    std::memset(cleared, 0xCD, n * bytes);
    std::free(cleared);
  }
  for (int i = 0; i < kBlocks; i += 3) {
    require(is_filled(all[i], bytes / 8, static_cast<uint64_t>(i)), "those that live");
    auto* const larger = static_cast<uint64_t*>(std::realloc(all[i], 2 * bytes));
    require(larger != nullptr && is_filled(larger, bytes / 8, static_cast<uint64_t>(i)), "realloc");
    std::free(larger);
  }
}

// A mapping that begins where one of Outcore's pages does not, and a block freed behind it.
void grown_behind_a_cut(uint64_t bytes) {
  auto* const first = reinterpret_cast<std::byte*>(mapping(bytes));
  std::free(block(bytes, 5));
  require(::munmap(first, kPageBytes) == 0, "munmap of the first page");
  void* const rest = ::mremap(first + kPageBytes, bytes - kPageBytes, bytes + kPageBytes, 0);
  std::byte* const at = first + kPageBytes;
  const uint64_t end = rest == MAP_FAILED ? bytes - kPageBytes : bytes + kPageBytes;
  require(is_zero(at, end), "what is new of it reads zero");
  require(::munmap(at, end) == 0, "munmap of the rest");
  std::free(block(2 * bytes, 6));
}

void* churn(void* number) {
  constexpr uint64_t kLive = 8;
  const auto thread = reinterpret_cast<uint64_t>(number);
  uint64_t* live[kLive] = {};
  uint64_t bytes[kLive] = {}, random = thread + 1;
  for (uint64_t i = 0; i < 600; ++i) {
    random = random * 6364136223846793005u + 1442695040888963407u;
    const uint64_t at = random >> 61, size = (64 << 10) + (random >> 40) % (256 << 10) / 8 * 8;
    if (live[at] != nullptr) {
      require(live[at][0] == at + thread && live[at][bytes[at] / 8 - 1] == at, "its own bytes");
      std::free(live[at]);
    }
    const bool is_cleared = (random >> 33) % 2 != 0;
    live[at] = static_cast<uint64_t*>(is_cleared ? std::calloc(size, 1) : std::malloc(size));
    require(live[at] != nullptr, "memory");
    if (is_cleared) require(is_zero(live[at], size), "calloc in a thread");
    bytes[at] = size;
    fill(live[at], size / 8, random);
    live[at][0] = at + thread;
    live[at][size / 8 - 1] = at;
  }
  for (uint64_t* p : live) std::free(p);
  return nullptr;
}

}  // namespace

int main(int count, char** arguments) {
  begin(count, arguments);
  for (const uint64_t bytes : {64 << 10, 200 << 10, 1 << 20, 6 << 20}) zeros_after_each_kind(bytes);
  std::printf("zeros where zeros must be\n");
  for (const uint64_t bytes : {64 << 10, 96 << 10}) cleared_over_many(bytes);
  std::printf("and over many blocks\n");
  for (const uint64_t bytes : {128 << 10, 256 << 10}) grown_behind_a_cut(bytes);
  std::printf("and behind a cut\n");
  pthread_t threads[4];
  for (uint64_t i = 0; i < 4; ++i)
    require(::pthread_create(&threads[i], nullptr, churn, reinterpret_cast<void*>(i)) == 0,
            "a thread");
  for (const pthread_t thread : threads) require(::pthread_join(thread, nullptr) == 0, "join");
  std::printf("and by threads\n");
  return 0;
}
