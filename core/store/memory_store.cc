#include "core/store/memory_store.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "core/base/assert.h"
#include "core/base/error.h"
#include "core/base/units.h"
#include "core/store/range.h"

namespace outcore::store {
namespace {

constexpr uint64_t kReservedBytesMin = uint64_t{16} << 30;
constexpr uint64_t kSizeBytesMax = uint64_t{1} << 60;
constexpr uint64_t kMemoryUnitBytes = 64 << 10;

std::byte* map_nothing(uint64_t size_bytes) {
  void* memory =
      ::mmap(nullptr, size_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return memory == MAP_FAILED ? nullptr : static_cast<std::byte*>(memory);
}

}  // namespace

Result<std::shared_ptr<Store>> MemoryStore::open(const MemoryStoreOptions& options) {
  std::shared_ptr<MemoryStore> store(new MemoryStore);
  if (Status status = store->make_room(options.size_bytes); !status) return status.error();
  store->traits_.is_fault_safe = true;
  store->traits_.is_volatile = true;
  store->traits_.read_concurrency = options.read_concurrency;
  store->traits_.write_concurrency = options.write_concurrency;
  return std::shared_ptr<Store>(std::move(store));
}

Status MemoryStore::make_room(uint64_t size_bytes) {
  const auto refuse = [&](int error) {
    return base::system_error(error, "memory: store of " + base::format_bytes(size_bytes),
                              "ask for less, or use scratch:");
  };
  if (size_bytes > kSizeBytesMax) return refuse(ENOMEM);
  const uint64_t needed = base::round_up(std::max<uint64_t>(size_bytes, 1), base::kSystemPage);
  reserved_bytes_ = std::max(kReservedBytesMin, needed * 2);
  bytes_ = map_nothing(reserved_bytes_);
  if (bytes_ == nullptr) {  // addresses are short (ulimit -v): reserve no room to grow
    reserved_bytes_ = needed;
    bytes_ = map_nothing(needed);
  }
  if (bytes_ == nullptr) return refuse(ENOMEM);
  if (written_.cover(reserved_bytes_, kMemoryUnitBytes) != 0) return refuse(ENOMEM);
  if (const int error = resize(size_bytes); error != 0) return refuse(error);
  return {};
}

MemoryStore::~MemoryStore() {
  if (bytes_ != nullptr) ::munmap(bytes_, reserved_bytes_);
}

int MemoryStore::read(uint64_t offset, std::span<std::byte> into) {
  OC_CHECK(is_range_of(offset, into.size(), size_bytes()));
  OC_ASSERT(size_bytes() <= reserved_bytes_);
  if (!into.empty()) std::memcpy(into.data(), bytes_ + offset, into.size());
  return 0;
}

int MemoryStore::write(uint64_t offset, std::span<const std::byte> from) {
  OC_CHECK(is_range_of(offset, from.size(), size_bytes()));
  written_.mark(offset, from.size());
  if (!from.empty()) std::memcpy(bytes_ + offset, from.data(), from.size());
  return 0;
}

int MemoryStore::resize(uint64_t size_bytes) {
  if (size_bytes > reserved_bytes_) return -ENOMEM;
  const uint64_t before = this->size_bytes();
  if (size_bytes < before) {  // what is cut off must read zero if the store grows again
    if (const int error = discard(size_bytes, before - size_bytes); error != 0) return error;
  } else if (size_bytes > 0) {
    const uint64_t used = base::round_up(size_bytes, base::kSystemPage);
    if (::mprotect(bytes_, used, PROT_READ | PROT_WRITE) != 0) return -errno;
  }
  size_bytes_.store(size_bytes, std::memory_order_release);
  return 0;
}

int MemoryStore::discard(uint64_t offset, uint64_t size_bytes) {
  OC_CHECK(is_range_of(offset, size_bytes, this->size_bytes()));
  const uint64_t end = offset + size_bytes;
  const uint64_t first = std::min(base::round_up(offset, base::kSystemPage), end);
  const uint64_t last = std::max(base::round_down(end, base::kSystemPage), first);
  OC_CHECK(first <= last);
  OC_CHECK(last <= end);
  std::memset(bytes_ + offset, 0, first - offset);
  std::memset(bytes_ + last, 0, end - last);
  if (first < last && ::madvise(bytes_ + first, last - first, MADV_DONTNEED) != 0)
    std::memset(bytes_ + first, 0, last - first);  // locked memory (mlockall) cannot be given back
  written_.clear_inside(offset, size_bytes);
  return 0;
}

bool MemoryStore::is_hole(uint64_t offset, uint64_t size_bytes) const {
  return written_.is_untouched(offset, size_bytes);
}

}  // namespace outcore::store
