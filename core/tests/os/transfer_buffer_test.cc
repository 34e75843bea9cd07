// Buffers of transfers: zeroed, whole, freed; and contiguous in memory where the system has huge
// pages.
#include "core/os/transfer_buffer.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <span>

#include "core/base/units.h"
#include "core/os/descriptor_place.h"

namespace outcore::os {
namespace {

constexpr uint64_t kSizes[] = {1,         4096,          60 << 10, 64 << 10, 100'000,
                               256 << 10, (2 << 20) - 1, 2 << 20,  3 << 20};

// How memory lies: in how many parts; and whether any of it belongs to a huge page, also one of
// which not all is mapped. No parts: this process may not know.
struct Layout {
  uint64_t parts = 0;
  bool is_huge = false;
};

Layout layout_of(std::span<const std::byte> bytes) {
  constexpr uint64_t kHugeFlag = uint64_t{1} << 22;  // KPF_THP
  const Descriptor map(::open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC));
  const Descriptor flags(::open("/proc/kpageflags", O_RDONLY | O_CLOEXEC));
  Layout layout;
  const auto word_of = [](const Descriptor& file, uint64_t index) {
    uint64_t word = 0;
    const auto at = static_cast<off_t>(index * sizeof word);
    return ::pread(file.get(), &word, sizeof word, at) == sizeof word ? word : 0;
  };
  uint64_t before = 0;
  for (uint64_t at = 0; at < bytes.size(); at += base::kSystemPage) {
    const uint64_t page = reinterpret_cast<uintptr_t>(bytes.data() + at) / base::kSystemPage;
    const uint64_t frame = word_of(map, page) & ((uint64_t{1} << 55) - 1);
    if (frame == 0) return {};
    if (frame != before + 1) ++layout.parts;
    before = frame;
    layout.is_huge = layout.is_huge || (word_of(flags, frame) & kHugeFlag) != 0;
  }
  return layout;
}

// One part, and huge, if the system gives one.
Layout layout_of_huge_page() {
  void* const probe = ::mmap(nullptr, 2 * base::kHugePage, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  EXPECT_NE(probe, MAP_FAILED);
  auto* const huge = reinterpret_cast<std::byte*>(
      base::round_up(reinterpret_cast<uintptr_t>(probe), base::kHugePage));
  ::madvise(huge, base::kHugePage, MADV_HUGEPAGE);
  std::fill(huge, huge + base::kHugePage, std::byte{1});
  const Layout layout = layout_of({huge, base::kHugePage});
  ::munmap(probe, 2 * base::kHugePage);
  return layout;
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

// And the kernel has taken back what is not needed of it.
TEST(TransferBuffer, LiesInOnePartWhereThereAreHugePages) {
  const Layout probe = layout_of_huge_page();
  if (probe.parts == 0) GTEST_SKIP() << "only root sees where memory lies";
  if (!probe.is_huge) GTEST_SKIP() << "the system gives no huge pages";
  for (const uint64_t size : {64 << 10, 256 << 10, 1 << 20, 2 << 20}) {
    TransferBuffer buffer;
    ASSERT_TRUE(buffer.allocate(size).ok());
    std::fill(buffer.data(), buffer.data() + size, std::byte{1});
    const Layout layout = layout_of(buffer.bytes());
    if (layout.parts != 1 && !layout_of_huge_page().is_huge)
      GTEST_SKIP() << "the system has no huge page left";
    EXPECT_EQ(layout.parts, 1u) << size;
    EXPECT_EQ(layout.is_huge, size >= base::kHugePage) << size;
  }
}

// Memory that is locked at once cannot be split.
TEST(TransferBuffer, LockedMemoryGivesBackWhatIsNotNeeded) {
  constexpr uint64_t kSize = 256 << 10;
  if (::mlockall(MCL_FUTURE) != 0) GTEST_SKIP() << "this process may not lock memory";
  TransferBuffer buffer;
  const Status allocated = buffer.allocate(kSize);
  ::munlockall();
  if (!allocated.ok() && ::geteuid() != 0) GTEST_SKIP() << "this process may lock too little";
  ASSERT_TRUE(allocated.ok());
  std::fill(buffer.data(), buffer.data() + kSize, std::byte{1});
  if (layout_of(buffer.bytes()).parts == 0) GTEST_SKIP() << "only root sees where memory lies";
  EXPECT_FALSE(layout_of(buffer.bytes()).is_huge);
}

}  // namespace
}  // namespace outcore::os
