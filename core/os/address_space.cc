#include "core/os/address_space.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>

#include "core/base/assert.h"
#include "core/base/error.h"
#include "core/base/units.h"

namespace outcore::os {
namespace {

constexpr int kReserved = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;

Error no_addresses(uint64_t size_bytes) {
  return base::system_error(errno, "reserve " + base::format_bytes(size_bytes) + " of addresses",
                            "map less, or raise the limit (ulimit -v, ulimit -d, vm.max_map_count, "
                            "vm.overcommit_memory)");
}

// Less gains little, and a huge page is cleared for it.
constexpr uint64_t kContiguousMin = 64 << 10;

// The beginning of a huge page stays, of which the rest is given back: when the kernel splits it,
// the pages that stay lie side by side in memory as before. Without huge pages this only touches
// the memory. False: it cannot be split (locked memory, say), and is given back as a whole.
bool keep_part(std::byte* huge_page, uint64_t size_bytes) {
  OC_CHECK(size_bytes != 0 && size_bytes < base::kHugePage);
  // Not zeros: a split gives back pages that have nothing else.
  for (uint64_t at = 0; at < size_bytes; at += base::kSystemPage) huge_page[at] = std::byte{1};
  if (::munmap(huge_page + size_bytes, base::kHugePage - size_bytes) != 0) {
    ::munmap(huge_page, base::kHugePage);
    return false;
  }
  // It splits what is left of a huge page. If not, only that is ours: others may have mapped
  // something where the rest was.
  if (::madvise(huge_page, size_bytes, MADV_COLD) != 0) {
    ::munmap(huge_page, size_bytes);
    return false;
  }
  ::madvise(huge_page, size_bytes, MADV_NOHUGEPAGE);
  for (uint64_t at = 0; at < size_bytes; at += base::kSystemPage) huge_page[at] = std::byte{0};
  return true;
}

}  // namespace

Result<std::byte*> reserve_addresses(uint64_t size_bytes, uint64_t alignment) {
  OC_CHECK(base::is_power_of_two(alignment));
  OC_CHECK(alignment >= base::kSystemPage);
  const uint64_t padded = size_bytes + alignment;
  if (padded < size_bytes || padded >> 47 != 0) {
    errno = ENOMEM;
    return no_addresses(size_bytes);
  }
  void* raw = ::mmap(nullptr, padded, PROT_NONE, kReserved, -1, 0);
  if (raw == MAP_FAILED) return no_addresses(size_bytes);
  const uint64_t start = reinterpret_cast<uint64_t>(raw);
  const uint64_t aligned = base::round_up(start, alignment);
  OC_CHECK(aligned - start <= alignment);
  if (aligned > start) ::munmap(raw, aligned - start);
  const uint64_t end = start + padded,
                 used_end = aligned + base::round_up(size_bytes, base::kSystemPage);
  OC_ASSERT(aligned % alignment == 0);
  if (end > used_end) ::munmap(reinterpret_cast<void*>(used_end), end - used_end);
  return reinterpret_cast<std::byte*>(aligned);
}

Result<std::byte*> reserve_addresses_at(void* address, uint64_t size_bytes) {
  void* got = ::mmap(address, base::round_up(size_bytes, base::kSystemPage), PROT_NONE,
                     kReserved | MAP_FIXED_NOREPLACE, -1, 0);
  if (got == address) return static_cast<std::byte*>(got);
  if (got != MAP_FAILED) {  // Linux before 4.17 treats the address as a hint
    ::munmap(got, size_bytes);
    errno = EEXIST;
  }
  if (errno != EEXIST) return no_addresses(size_bytes);
  char place[32];
  std::snprintf(place, sizeof place, "%p", address);
  return base::system_error(
      EEXIST, "reserve " + base::format_bytes(size_bytes) + " of addresses at " + place,
      "something is mapped there: name others");
}

void release_addresses(std::byte* address, uint64_t size_bytes) {
  OC_CHECK(reinterpret_cast<uintptr_t>(address) % base::kSystemPage == 0);
  ::munmap(address, base::round_up(size_bytes, base::kSystemPage));
}

int make_inaccessible(std::byte* address, uint64_t size_bytes) {
  OC_CHECK(reinterpret_cast<uintptr_t>(address) % base::kSystemPage == 0);
  OC_CHECK(size_bytes != 0);
  void* p = ::mmap(address, base::round_up(size_bytes, base::kSystemPage), PROT_NONE,
                   kReserved | MAP_FIXED, -1, 0);
  return p == MAP_FAILED ? -errno : 0;
}

Result<std::byte*> allocate_table(uint64_t size_bytes) {
  size_bytes = std::max<uint64_t>(base::round_up(size_bytes, base::kSystemPage), base::kSystemPage);
  void* p = ::mmap(nullptr, size_bytes, PROT_READ | PROT_WRITE, kReserved, -1, 0);
  if (p == MAP_FAILED) return no_addresses(size_bytes);
  ::madvise(p, size_bytes, MADV_NOHUGEPAGE);
  ::madvise(p, size_bytes, MADV_DONTDUMP);
  return static_cast<std::byte*>(p);
}

Result<std::byte*> allocate_buffers(uint64_t size_bytes) {
  size_bytes = base::round_up(size_bytes, base::kSystemPage);
  if (size_bytes < kContiguousMin) return allocate_table(size_bytes);
  const uint64_t reserved_bytes = std::max(size_bytes, base::kHugePage);
  Result<std::byte*> reserved = reserve_addresses(reserved_bytes, base::kHugePage);
  if (!reserved) return allocate_table(size_bytes);
  std::byte* const at = reserved.value();
  OC_CHECK(reinterpret_cast<uintptr_t>(at) % base::kHugePage == 0);
  if (::mprotect(at, reserved_bytes, PROT_READ | PROT_WRITE) != 0) {
    release_addresses(at, reserved_bytes);
    return allocate_table(size_bytes);
  }
  ::madvise(at, reserved_bytes, MADV_HUGEPAGE);
  if (size_bytes < base::kHugePage && !keep_part(at, size_bytes)) return allocate_table(size_bytes);
  ::madvise(at, size_bytes, MADV_DONTDUMP);
  return at;
}

void free_table(std::byte* table, uint64_t size_bytes) {
  OC_CHECK(table != nullptr);
  OC_CHECK(reinterpret_cast<uintptr_t>(table) % base::kSystemPage == 0);
  ::munmap(table,
           std::max<uint64_t>(base::round_up(size_bytes, base::kSystemPage), base::kSystemPage));
}

uint64_t touched_bytes(const std::byte* table, uint64_t size_bytes) {
  constexpr uint64_t kPagesAtOnce = 4096;
  unsigned char state[kPagesAtOnce];
  uint64_t touched = 0;
  const uint64_t pages = (size_bytes + base::kSystemPage - 1) / base::kSystemPage;
  for (uint64_t first = 0; first < pages; first += kPagesAtOnce) {
    const uint64_t n = std::min(kPagesAtOnce, pages - first);
    std::byte* at = const_cast<std::byte*>(table) + first * base::kSystemPage;
    if (::mincore(at, n * base::kSystemPage, state) != 0) continue;
    for (uint64_t i = 0; i < n; ++i) touched += (state[i] & 1) * base::kSystemPage;
  }
  return touched;
}

}  // namespace outcore::os
