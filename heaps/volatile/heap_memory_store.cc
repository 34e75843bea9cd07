#include "heaps/volatile/heap_memory_store.h"

#include <cerrno>
#include <utility>

#include "core/base/assert.h"
#include "core/base/units.h"
#include "core/store/unwritten_zeros.h"

namespace outcore::heap {

std::shared_ptr<HeapMemoryStore> HeapMemoryStore::make(std::shared_ptr<Store> inner,
                                                       uint64_t size_bytes,
                                                       uint64_t capacity_bytes) {
  OC_ASSERT(inner != nullptr && size_bytes <= capacity_bytes);
  std::shared_ptr<HeapMemoryStore> store(new HeapMemoryStore);
  if (store->written_.cover(capacity_bytes, base::kSystemPage) != 0) return nullptr;
  store->inner_ = std::move(inner);
  store->size_bytes_.store(size_bytes);
  return store;
}

StoreTraits HeapMemoryStore::traits() const {
  StoreTraits traits = inner_->traits();
  traits.is_volatile = true;
  return traits;
}

void HeapMemoryStore::use_room(std::shared_ptr<store::Room> room) {
  if (auto* lodger = dynamic_cast<store::Lodger*>(inner_.get()); lodger != nullptr)
    lodger->use_room(std::move(room));
}

int HeapMemoryStore::read(uint64_t offset, std::span<std::byte> into) {
  return store::read_written(
      written_, offset, into,
      [this](uint64_t at, std::span<std::byte> part) { return inner_->read(at, part); });
}

int HeapMemoryStore::write(uint64_t offset, std::span<const std::byte> from) {
  if (is_ended_.load(std::memory_order_relaxed)) return 0;
  written_.mark(offset, from.size());
  return inner_->write(offset, from);
}

// Requests that the other store can answer as a whole travel together.
void HeapMemoryStore::transfer(std::span<StoreRequest> batch) {
  const bool is_ended = is_ended_.load(std::memory_order_relaxed);
  const auto is_plain = [&](const StoreRequest& r) {
    return r.is_write ? !is_ended : written_.is_all_written(r.offset, r.size_bytes);
  };
  if (!is_ended)
    for (const StoreRequest& r : batch)
      if (r.is_write) written_.mark(r.offset, r.size_bytes);
  store::transfer_plain(
      batch, is_plain, [this](std::span<StoreRequest> part) { inner_->transfer(part); },
      [this](const StoreRequest& r) {
        return r.is_write ? 0 : read(r.offset, {r.bytes, r.size_bytes});
      });
}

int HeapMemoryStore::resize(uint64_t size_bytes) {
  if (size_bytes > inner_->size_bytes())
    if (const int error = inner_->resize(size_bytes); error != 0)
      return error == -ENOTSUP ? -ENOSPC : error;  // its size is fixed
  if (size_bytes > this->size_bytes()) size_bytes_.store(size_bytes, std::memory_order_release);
  return 0;
}

int HeapMemoryStore::reserve(uint64_t offset, uint64_t size_bytes) {
  const int error = inner_->reserve(offset, size_bytes);
  if (error == 0 || error == -ENOTSUP) return 0;
  static_cast<void>(inner_->release(offset, size_bytes));  // a part may have got space
  return error;
}

int HeapMemoryStore::discard(uint64_t offset, uint64_t size_bytes) {
  OC_ASSERT(offset % base::kSystemPage == 0 && size_bytes % base::kSystemPage == 0);
  written_.clear_inside(offset, size_bytes);
  return 0;
}

int HeapMemoryStore::release(uint64_t offset, uint64_t size_bytes) {
  OC_ASSERT(written_.is_untouched(offset, size_bytes));
  return inner_->release(offset, size_bytes);
}

}  // namespace outcore::heap
