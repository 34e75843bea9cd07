// Heap: the public calls, over an allocator and the heap's memory. See outcore/heap.h.
#include "outcore/heap.h"

#include <algorithm>
#include <cerrno>

#include "core/base/assert.h"
#include "core/base/error.h"
#include "core/base/units.h"
#include "core/os/cancel_block.h"
#include "heaps/volatile/allocator.h"
#include "heaps/volatile/plain_memory.h"
#include "heaps/volatile/region_memory.h"

namespace outcore {

struct Heap::Impl {
  std::unique_ptr<heap::Allocator> allocator;
  heap::RegionMemory* region = nullptr;  // the allocator's; nullptr: the heap is in ordinary memory
  std::string name;

  void* allocate(size_t bytes, size_t alignment, bool is_zeroed) const {
    if (!base::is_power_of_two(alignment)) return errno = EINVAL, nullptr;
    void* block = nullptr;
    const int error = allocator->allocate(std::max<size_t>(bytes, 1), alignment, is_zeroed, &block);
    if (error != 0) [[unlikely]]
      return errno = -error, nullptr;
    return block;
  }
  uint64_t offset_of(const void* p) const {
    return static_cast<uint64_t>(static_cast<const std::byte*>(p) - allocator->memory().base());
  }
};

namespace {

constexpr uint64_t kKeptMost = uint64_t{1} << 30, kKeptLeast = uint64_t{4} << 20;
constexpr uint64_t kPlainAddresses = uint64_t{1} << 40, kPlainAddressesMin = uint64_t{64} << 20;

Error no_memory(const std::string& what) { return base::system_error(ENOMEM, "heap: " + what); }

}  // namespace

Heap::Heap(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Heap::Heap(Heap&&) noexcept = default;
Heap& Heap::operator=(Heap&& other) noexcept {
  const os::CancelBlock uncancelled;
  impl_ = std::move(other.impl_);
  return *this;
}
Heap::~Heap() {
  const os::CancelBlock uncancelled;
  impl_.reset();
}

Result<Heap> Heap::create(Runtime& runtime, const HeapOptions& options) {
  const os::CancelBlock uncancelled;
  Result<std::unique_ptr<heap::RegionMemory>> heap_memory =
      heap::RegionMemory::make(runtime, options);
  if (!heap_memory) return heap_memory.error();
  auto impl = std::make_unique<Impl>();
  impl->region = heap_memory.value().get();
  impl->name = options.name.empty() ? impl->region->region().uri() : options.name;
  const uint64_t kept = options.kept_bytes_max != 0
                            ? options.kept_bytes_max
                            : std::clamp(runtime.budget_bytes() / 8, kKeptLeast, kKeptMost);
  impl->allocator = heap::Allocator::make(std::move(heap_memory).value(), kept);
  if (impl->allocator == nullptr) return no_memory("map its addresses");
  return Heap(std::move(impl));
}

Result<Heap> Heap::in_memory(const HeapOptions& options) {
  const os::CancelBlock uncancelled;
  std::unique_ptr<heap::PlainMemory> heap_memory;
  uint64_t bytes = base::round_up(
      options.reserve_bytes != 0 ? options.reserve_bytes : kPlainAddresses, base::kSystemPage);
  for (;; bytes /= 2) {
    heap_memory = heap::PlainMemory::make(bytes);
    if (heap_memory != nullptr) break;
    if (options.reserve_bytes != 0 || bytes / 2 < kPlainAddressesMin)
      return no_memory("reserve " + base::format_bytes(bytes) + " of addresses");
  }
  auto impl = std::make_unique<Impl>();
  impl->name = options.name.empty() ? "ordinary memory" : options.name;
  impl->allocator = heap::Allocator::make(
      std::move(heap_memory), options.kept_bytes_max != 0 ? options.kept_bytes_max : kKeptMost / 8);
  if (impl->allocator == nullptr) return no_memory("map its addresses");
  return Heap(std::move(impl));
}

void* Heap::allocate(size_t bytes, size_t alignment) {
  return impl_->allocate(bytes, alignment, false);
}
void* Heap::allocate_zeroed(size_t bytes, size_t alignment) {
  return impl_->allocate(bytes, alignment, true);
}
void Heap::free(void* block) { impl_->allocator->free(block); }

void* Heap::reallocate(void* block, size_t bytes, size_t alignment) {
  if (block == nullptr) return allocate(bytes, alignment);
  if (!base::is_power_of_two(alignment)) return errno = EINVAL, nullptr;
  void* now = nullptr;
  const int error = impl_->allocator->resize(block, std::max<size_t>(bytes, 1), alignment, &now);
  if (error != 0) return errno = -error, nullptr;
  return now;
}

Result<void*> Heap::try_allocate(size_t bytes, size_t alignment) {
  if (void* const block = allocate(bytes, alignment); block != nullptr) return block;
  return error_of(errno, bytes);
}

Error Heap::error_of(int code, size_t bytes) const {
  const std::string attempted =
      "allocate " + base::format_bytes(bytes) + " in the heap on " + impl_->name;
  switch (code) {
    case ENOSPC:
      return base::system_error(code, attempted, "free memory of it, or use a larger store");
    case ENOMEM:
      return base::system_error(
          code, attempted,
          "it has " + base::format_bytes(impl_->allocator->memory().capacity_bytes()) +
              " of addresses (reserve_bytes)");
    case EINVAL:
      return base::system_error(code, attempted, "an alignment is a power of two");
    case EPERM:
      return base::system_error(code, attempted,
                                "it is the parent's of this forked child: make one of its own");
    default:
      return base::system_error(code, attempted);
  }
}

size_t Heap::usable_bytes(const void* block) const { return impl_->allocator->usable_bytes(block); }
bool Heap::owns(const void* p) const { return impl_->allocator->owns(p); }

Status Heap::trim() {
  const os::CancelBlock uncancelled;
  const int error = impl_->allocator->trim();
  return error == 0 ? Status() : base::system_error(error, "trim the heap on " + impl_->name);
}

Status Heap::pin(const void* p, size_t size_bytes) {
  const os::CancelBlock uncancelled;
  return impl_->region == nullptr ? Status()
                                  : impl_->region->region().pin(impl_->offset_of(p), size_bytes);
}
Status Heap::unpin(const void* p, size_t size_bytes) {
  const os::CancelBlock uncancelled;
  return impl_->region == nullptr ? Status()
                                  : impl_->region->region().unpin(impl_->offset_of(p), size_bytes);
}
Status Heap::prefetch(const void* p, size_t size_bytes) {
  const os::CancelBlock uncancelled;
  if (impl_->region == nullptr) return {};
  return impl_->region->region().prefetch(impl_->offset_of(p), size_bytes);
}

HeapMetrics Heap::metrics() const {
  const os::CancelBlock uncancelled;
  const heap::Allocator::Sizes sizes = impl_->allocator->sizes();
  HeapMetrics m;
  m.allocated_bytes = sizes.live_bytes;
  m.allocated_blocks = sizes.live_blocks;
  m.reserved_bytes = sizes.reserved_bytes;
  m.kept_bytes = sizes.kept_bytes;
  m.address_bytes = sizes.end_bytes;
  m.metadata_bytes = sizes.metadata_bytes;
  if (impl_->region != nullptr) m.resident_bytes = impl_->region->region().metrics().resident_bytes;
  return m;
}

const std::string& Heap::name() const { return impl_->name; }
std::optional<Delivery> Heap::delivery() const {
  if (impl_->region == nullptr) return std::nullopt;
  return impl_->region->region().delivery();
}
uint64_t Heap::page_bytes() const { return impl_->allocator->memory().page_bytes(); }

namespace heap_calls {

void* allocate(Heap::Impl* impl, size_t bytes, size_t alignment) {
  return impl->allocate(bytes, alignment, false);
}
void free(Heap::Impl* impl, void* block) { impl->allocator->free(block); }
void out_of_memory() {
  throw std::bad_alloc();  // banned-ok: containers of the standard library know no other way
}

}  // namespace heap_calls

void* HeapResource::do_allocate(size_t bytes, size_t alignment) {
  void* const p = heap_calls::allocate(impl_, bytes, alignment);
  if (p == nullptr) heap_calls::out_of_memory();
  return p;
}
void HeapResource::do_deallocate(void* p, size_t, size_t) { heap_calls::free(impl_, p); }
bool HeapResource::do_is_equal(const std::pmr::memory_resource& other) const noexcept {
  const auto* const same = dynamic_cast<const HeapResource*>(&other);
  return same != nullptr && same->impl_ == impl_;
}

}  // namespace outcore
