#include "heaps/volatile/region_memory.h"

#include <sys/resource.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "core/base/assert.h"
#include "core/base/error.h"
#include "core/base/units.h"

namespace outcore::heap {
namespace {

using base::kSystemPage;

constexpr uint64_t kAddressesUsual = uint64_t{1} << 40;
constexpr uint64_t kAddressesMin = uint64_t{64} << 20;

// The value of an option in the runtime's description: "name = value (where from)".
std::string option_of(const Runtime& runtime, const std::string& name) {
  const std::string lines = "\n" + runtime.describe_options();
  const std::string head = "\n" + name + " = ";
  const size_t at = lines.find(head);
  if (at == std::string::npos) return {};
  const size_t from = at + head.size(), end = lines.find('\n', from);
  const std::string line = lines.substr(from, end - from);
  return line.substr(0, line.rfind(" ("));
}

Result<std::shared_ptr<Store>> store_for(const Runtime& runtime, const HeapOptions& options) {
  if (options.store_object != nullptr) return options.store_object;
  OpenOptions open;
  open.is_writable = open.may_create = true;
  open.scratch_dir = option_of(runtime, "scratch_dir");
  if (open.scratch_dir.starts_with('(')) open.scratch_dir.clear();
  Result<std::shared_ptr<Store>> store =
      open_store(options.store.empty() ? "scratch:" : options.store, open);
  if (!store) return store;
  if (store.value()->size_bytes() != 0 && !options.may_overwrite)
    return Error{EEXIST, "heap on " + store.value()->uri() + ": it holds " +
                             base::format_bytes(store.value()->size_bytes()) +
                             ", which would be lost: name another store, or say may_overwrite"};
  return store;
}

uint64_t addresses_wanted(const HeapOptions& options, uint64_t page_bytes) {
  uint64_t bytes = options.reserve_bytes != 0 ? options.reserve_bytes : kAddressesUsual;
  // Under a limit of addresses, what the program needs must be left. An explicit size is tried as
  // it is.
  if (rlimit limit; options.reserve_bytes == 0 && ::getrlimit(RLIMIT_AS, &limit) == 0 &&
                    limit.rlim_cur != RLIM_INFINITY)
    bytes = std::min<uint64_t>(bytes, std::max<uint64_t>(limit.rlim_cur / 4, kAddressesMin));
  return base::round_up(bytes, std::max(page_bytes, kSystemPage));
}

}  // namespace

Result<std::unique_ptr<RegionMemory>> RegionMemory::make(Runtime& runtime,
                                                         const HeapOptions& options) {
  Result<std::shared_ptr<Store>> store = store_for(runtime, options);
  if (!store) return store.error();
  std::unique_ptr<RegionMemory> heap_memory(new RegionMemory);
  const bool was_empty = store.value()->size_bytes() == 0;
  const Status mapped = heap_memory->map(runtime, options, store.value());
  if (mapped) {
    if (options.store_object == nullptr) heap_memory->opened_ = store.value();
    return heap_memory;
  }
  heap_memory.reset();
  // What the store contained before is kept: it may be of use, or another heap's.
  if (options.store_object == nullptr && was_empty) static_cast<void>(store.value()->resize(0));
  return mapped.error();
}

Status RegionMemory::map(Runtime& runtime, const HeapOptions& options,
                         const std::shared_ptr<Store>& inner) {
  Result<uint64_t> page = base::parse_bytes(option_of(runtime, "page"));
  const uint64_t usual = page ? page.value() : kSystemPage;
  const uint64_t page_bytes = options.page_bytes != 0 ? options.page_bytes : usual;
  if (!base::is_power_of_two(page_bytes) || page_bytes < kSystemPage ||
      page_bytes > base::kPageBytesMax)
    return Error{EINVAL, "heap: pages of " + std::to_string(page_bytes) +
                             " bytes: a power of two from 4 KiB to 16 MiB will do"};
  MapOptions how;
  how.access = Access::kReadWrite;
  how.size_bytes = page_bytes;
  how.page_bytes = page_bytes;
  how.advice = options.advice;
  how.delivery = options.delivery;
  // As with malloc, buffers in the heap may be passed to system calls, if the process may use
  // message delivery.
  const bool is_open = !how.delivery && option_of(runtime, "delivery") == "auto";
  if (is_open) how.delivery = Delivery::kMessages;
  if (inner->size_bytes() < page_bytes)
    if (const int error = inner->resize(page_bytes); error != 0)
      return base::system_error(error, "heap on " + inner->uri() + ": make it larger");
  for (uint64_t bytes = addresses_wanted(options, page_bytes);;) {
    how.reserve_bytes = bytes;
    store_ = HeapMemoryStore::make(inner, page_bytes, bytes);
    if (store_ == nullptr) return base::system_error(ENOMEM, "heap: map what is written of it");
    Result<Region> region = runtime.map(store_, how);
    if (region) {
      region_ = std::move(region).value();
      break;
    }
    if (region.code() == EPERM && is_open && how.delivery == Delivery::kMessages)
      how.delivery = Delivery::kAuto;
    else if (region.code() == ENOMEM && options.reserve_bytes == 0 && bytes / 2 >= kAddressesMin)
      bytes = base::round_up(bytes / 2, page_bytes);
    else
      return region.error();
  }
  base_ = region_.data();
  capacity_bytes_ = how.reserve_bytes;
  page_bytes_ = page_bytes;
  granted_bytes_ = page_bytes;
  if (const int error = store_->reserve(0, page_bytes); error != 0)
    return base::system_error(error, "reserve space of " + store_->uri());
  return {};
}

RegionMemory::~RegionMemory() {
  if (store_ == nullptr) return;
  store_->end();
  if (region_.is_mapped()) static_cast<void>(region_.unmap(true));
  // In a forked child it stays mapped, and the store still belongs to the parent.
  if (!region_.is_mapped() && opened_ != nullptr) static_cast<void>(opened_->resize(0));
}

int RegionMemory::grow(uint64_t end) {
  OC_CHECK(end <= capacity_bytes_);
  if (end <= granted_bytes_) return 0;
  end = std::min(base::round_up(end, page_bytes_), capacity_bytes_);
  if (end > region_.size_bytes())  // an attempt that found no space may have enlarged it
    if (const Status s = region_.grow(end); !s) return -s.code();
  if (const int error = store_->reserve(granted_bytes_, end - granted_bytes_); error != 0)
    return error;
  granted_bytes_ = end;
  return 0;
}

int RegionMemory::reserve(uint64_t offset, uint64_t size_bytes) {
  OC_ASSERT(offset + size_bytes <= capacity_bytes_);
  return store_->reserve(offset, size_bytes);
}

int RegionMemory::give_back(uint64_t offset, uint64_t size_bytes) {
  OC_ASSERT(offset + size_bytes <= capacity_bytes_);
  if (const Status s = region_.discard(offset, size_bytes); !s) return -s.code();
  static_cast<void>(store_->release(offset, size_bytes));
  return 0;
}

void RegionMemory::zero(uint64_t offset, uint64_t size_bytes) {
  OC_ASSERT(offset + size_bytes <= capacity_bytes_);
  if (!region_.discard(offset, size_bytes)) std::memset(base_ + offset, 0, size_bytes);
}

void RegionMemory::expect(uint64_t offset, uint64_t size_bytes) {
  static_cast<void>(region_.prepare(offset, size_bytes));
}

}  // namespace outcore::heap
