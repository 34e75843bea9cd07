// Buffers of transfers: zeroed, whole, freed; and contiguous in memory where the system has huge
// pages.
#include "core/os/transfer_buffer.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <span>
#include <vector>

#include "core/base/units.h"
#include "core/os/descriptor_place.h"

namespace outcore::os {
namespace {

constexpr uint64_t kSizes[] = {1,         4096,          60 << 10, 64 << 10, 100'000,
                               256 << 10, (2 << 20) - 1, 2 << 20,  3 << 20};

// In how many parts the memory lies; 0: this process may not know.
uint64_t parts_of(std::span<const std::byte> bytes) {
  const Descriptor map(::open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC));
  uint64_t parts = 0, before = 0;
  for (uint64_t at = 0; at < bytes.size(); at += base::kSystemPage) {
    uint64_t entry = 0;
    const uint64_t page = reinterpret_cast<uintptr_t>(bytes.data() + at) / base::kSystemPage;
    if (::pread(map.get(), &entry, sizeof entry, static_cast<off_t>(page * sizeof entry)) !=
        sizeof entry)
      return 0;
    const uint64_t frame = entry & ((uint64_t{1} << 55) - 1);
    if (frame == 0) return 0;
    if (frame != before + 1) ++parts;
    before = frame;
  }
  return parts;
}

TEST(TransferBuffer, IsZeroedWritableAndGoneAtTheEnd) {
  for (const uint64_t size : kSizes) {
    std::byte* at = nullptr;
    {
      TransferBuffer buffer;
      ASSERT_TRUE(buffer.allocate(size).ok()) << size;
      at = buffer.data();
      ASSERT_EQ(buffer.bytes().size(), size);
      EXPECT_EQ(reinterpret_cast<uintptr_t>(at) % base::kSystemPage, 0u);
      EXPECT_TRUE(std::all_of(at, at + size, [](std::byte b) { return b == std::byte{0}; }));
      std::fill(at, at + size, std::byte{7});
      EXPECT_TRUE(std::all_of(at, at + size, [](std::byte b) { return b == std::byte{7}; }));
      EXPECT_EQ(buffer.first(size / 2).size(), size / 2);
    }
    for (uint64_t page = 0; page < size; page += base::kSystemPage) {
      unsigned char state = 0;
      EXPECT_EQ(::mincore(at + page, 1, &state), -1) << size << ' ' << page;
      EXPECT_EQ(errno, ENOMEM);
    }
  }
}

// What is given back of a huge page is neither mapped nor in memory.
TEST(TransferBuffer, PartsOfHugePagesTakeNoMoreThanTheyHave) {
  const auto resident = [] {
    uint64_t pages = 0, ignored = 0;
    std::FILE* const file = std::fopen("/proc/self/statm", "re");
    EXPECT_EQ(std::fscanf(file, "%lu %lu", &ignored, &pages), 2);
    std::fclose(file);
    return pages * base::kSystemPage;
  };
  constexpr uint64_t kSize = 64 << 10, kCount = 64;
  std::array<TransferBuffer, kCount> buffers;
  const uint64_t before = resident();
  for (TransferBuffer& buffer : buffers) ASSERT_TRUE(buffer.allocate(kSize).ok());
  EXPECT_LE(resident() - std::min(before, resident()), 2 * kCount * kSize);
}

TEST(TransferBuffer, LiesInOnePartWhereThereAreHugePages) {
  void* const probe = ::mmap(nullptr, 2 * base::kHugePage, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(probe, MAP_FAILED);
  auto* const huge = reinterpret_cast<std::byte*>(
      base::round_up(reinterpret_cast<uintptr_t>(probe), base::kHugePage));
  ::madvise(huge, base::kHugePage, MADV_HUGEPAGE);
  std::fill(huge, huge + base::kHugePage, std::byte{1});
  const uint64_t parts = parts_of({huge, base::kHugePage});
  ::munmap(probe, 2 * base::kHugePage);
  if (parts == 0) GTEST_SKIP() << "only root sees where memory lies";
  if (parts != 1) GTEST_SKIP() << "the system gives no huge pages";
  for (const uint64_t size : {64 << 10, 256 << 10, 1 << 20, 2 << 20}) {
    TransferBuffer buffer;
    ASSERT_TRUE(buffer.allocate(size).ok());
    std::fill(buffer.data(), buffer.data() + size, std::byte{1});
    EXPECT_EQ(parts_of(buffer.bytes()), 1u) << size;
  }
}

}  // namespace
}  // namespace outcore::os
