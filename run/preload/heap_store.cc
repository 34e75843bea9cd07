#include "run/preload/heap_store.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "core/base/assert.h"
#include "core/base/error.h"
#include "core/base/units.h"
#include "core/os/file_calls.h"
#include "core/store/range.h"
#include "core/store/registry.h"
#include "core/store/unwritten_zeros.h"
#include "run/preload/heap_file.h"

namespace outcore::preload {

using base::kSystemPage;

namespace {

constexpr size_t kCopyBytes = 1 << 20;

Error refuse(const store::Uri& uri) {
  return {EINVAL, "store '" + uri.text +
                      "': memory of --alloc rests in space that dies with the process: "
                      "write scratch:DIR or far://HOST:PORT"};
}

}  // namespace

Result<std::shared_ptr<HeapStore>> HeapStore::open(const std::string& text,
                                                   const std::string& folder) {
  const Result<store::Uri> parsed = store::parse_uri(text);
  if (!parsed) return parsed.error();
  const store::Uri& uri = parsed.value();
  if (!store::dies_with_process(text)) return refuse(uri);
  const auto kind = find_store_kind(uri);
  if (!kind) return kind.error();
  const Result<unsigned> reads = uri.count_of("read_concurrency", 0);
  if (!reads) return reads.error();
  const Result<unsigned> writes = uri.count_of("write_concurrency", 0);
  if (!writes) return writes.error();
  const StoreLimits limits{reads.value(), writes.value()};
  std::shared_ptr<HeapStore> heap(new HeapStore);
  if (kind.value()->place != StoreKind::Place::kFolder) {
    heap->folder_ = folder;
    if (Status s = heap->open_far(*kind.value(), uri, limits); !s) return s.error();
    return heap;
  }
  if (os::file_size_limit() != UINT64_MAX)
    return Error{EFBIG,
                 "the size of files is limited, and so is scratch space: lift it (ulimit -f)"};
  auto file = HeapFile::open(uri.path.empty() ? folder : uri.path, limits);
  if (!file) return file.error();
  heap->folder_ = file.value()->folder();
  heap->file_ = file.value()->descriptor();
  heap->booking_ = file.value().get();
  heap->space_ = std::move(file).value();
  return heap;
}

// Opens a store on other machines, which must be one that books its space.
Status HeapStore::open_far(const StoreKind& kind, store::Uri uri, const StoreLimits& limits) {
  // Space is reserved piece by piece, when it is promised, and not when the store is opened.
  const std::string* const reserve = uri.find("reserve");
  if (reserve == nullptr || *reserve == "yes") {  // the kind checks any other value
    std::erase_if(uri.parameters, [](const auto& one) { return one.first == "reserve"; });
    uri.parameters.emplace_back("reserve", "no");
  }
  auto store = kind.open(uri, {.is_writable = true, .may_create = true}, limits);
  if (!store) return store.error();
  space_ = std::move(store.value());
  booking_ = dynamic_cast<store::Booking*>(space_.get());
  return booking_ != nullptr ? Status{} : refuse(uri);
}

Status HeapStore::cover(uint64_t capacity_bytes, uint64_t page_bytes) {
  for (store::WrittenMap* map : {&written_, &reserved_})
    if (const int error = map->cover(capacity_bytes, kSystemPage); error != 0)
      return base::system_error(error, "map what is written of " + uri());
  granule_bytes_ = booking_->granule_bytes();
  if (is_far()) granule_bytes_ = std::max(granule_bytes_, page_bytes);
  const int error = space_->resize(capacity_bytes);
  return error == 0 ? Status{}
                    : base::system_error(error, "cover " + base::format_bytes(capacity_bytes) +
                                                    " of addresses with " + space_->uri());
}

uint64_t HeapStore::free_bytes() const {
  const Result<uint64_t> free = booking_->free_bytes();
  return free ? free.value() : 0;
}

int HeapStore::promise(uint64_t offset, uint64_t size_bytes) {
  OC_CHECK(store::is_range_of(offset, size_bytes, this->size_bytes()));
  const std::lock_guard<std::mutex> guard(reserving_);
  const uint64_t end = offset + size_bytes;
  uint64_t missing = 0;
  for (uint64_t at = offset, next; at < end; at = next) {
    next = reserved_.run_end(at, end);
    if (!reserved_.is_written(at)) missing += next - at;
  }
  if (missing == 0) return 0;
  // Checked first, so that a request that must fail does not fill the disk before.
  if (!is_far() && missing > free_bytes()) return -ENOSPC;
  for (uint64_t at = offset, next; at < end; at = next) {
    next = reserved_.run_end(at, end);
    if (reserved_.is_written(at)) continue;
    if (const int error = reserve_space(at, next); error != 0) return error;
    reserved_.mark(at, next - at);
    reserved_bytes_.fetch_add(next - at, std::memory_order_relaxed);
  }
  return 0;
}

int HeapStore::reserve_space(uint64_t from, uint64_t to) {
  OC_CHECK(booking_ != nullptr && granule_bytes_ != 0);
  from = base::round_down(from, granule_bytes_);
  to = std::min(base::round_up(to, granule_bytes_), space_->size_bytes());
  return space_->reserve(from, to - from);
}

// Space goes in whole granules: free system pages between the range and their ends are released,
// too. What the store cannot release stays reserved without our knowledge: only space is lost.
void HeapStore::release_space(uint64_t from, uint64_t to) {
  OC_ASSERT(from < to && to <= size_bytes());
  const uint64_t before = base::round_down(from, granule_bytes_);
  const uint64_t behind = std::min(base::round_up(to, granule_bytes_), size_bytes());
  if (reserved_.next_written(before, from) == from) from = before;
  if (reserved_.next_written(to, behind) == behind) to = behind;
  static_cast<void>(space_->release(from, to - from));
}

void HeapStore::withdraw(uint64_t offset, uint64_t size_bytes) {
  OC_CHECK(store::is_range_of(offset, size_bytes, this->size_bytes()));
  const std::lock_guard<std::mutex> guard(reserving_);
  const uint64_t end = offset + size_bytes;
  OC_ASSERT(written_.is_untouched(offset, size_bytes));
  for (uint64_t at = reserved_.next_written(offset, end), next; at < end;
       at = reserved_.next_written(next, end)) {
    next = reserved_.run_end(at, end);
    reserved_.clear_inside(at, next - at);
    release_space(at, next);
    OC_ASSERT(reserved_bytes_.load(std::memory_order_relaxed) >= next - at);
    reserved_bytes_.fetch_sub(next - at, std::memory_order_relaxed);
  }
}

int HeapStore::read(uint64_t offset, std::span<std::byte> into) {
  OC_CHECK(store::is_range_of(offset, into.size(), size_bytes()));
  return store::read_written(
      written_, offset, into,
      [this](uint64_t at, std::span<std::byte> part) { return space_->read(at, part); });
}

int HeapStore::write(uint64_t offset, std::span<const std::byte> from) {
  OC_CHECK(store::is_range_of(offset, from.size(), size_bytes()));
  written_.mark(offset, from.size());
  return space_->write(offset, from);
}

// Writes, and reads of ranges that were written as a whole, go to the other store in one batch.
void HeapStore::transfer(std::span<StoreRequest> batch) {
  const auto is_plain = [this](const StoreRequest& r) {
    return r.is_write || written_.is_all_written(r.offset, r.size_bytes);
  };
  for (StoreRequest& r : batch) {
    OC_CHECK(store::is_range_of(r.offset, r.size_bytes, size_bytes()));
    if (r.is_write) written_.mark(r.offset, r.size_bytes);
  }
  store::transfer_plain(
      batch, is_plain, [this](std::span<StoreRequest> part) { space_->transfer(part); },
      [this](const StoreRequest& r) {
        return read(r.offset, {r.bytes, r.size_bytes});
      });
}

int HeapStore::copy_to(int file, uint64_t end) {
  std::vector<std::byte> buffer;  // used where the kernel cannot copy
  if (is_far()) buffer.resize(kCopyBytes);
  for (uint64_t at = written_.next_written(0, end), next; at < end;
       at = written_.next_written(next, end)) {
    next = written_.run_end(at, end);
    if (const int error = copy_run(file, at, next, buffer); error != 0) return error;
  }
  return 0;
}

int HeapStore::copy_run(int file, uint64_t from, uint64_t to, std::vector<std::byte>& buffer) {
  OC_ASSERT(file >= 0 && from <= to);
  constexpr uint64_t kBytesMax = uint64_t{8} << 20;
  while (from < to) {
    auto at = static_cast<off_t>(from), there = at;
    ssize_t n = -1;
    if (buffer.empty()) {
      n = ::copy_file_range(file_, &at, file, &there, std::min(to - from, kBytesMax), 0);
      if (n < 0 && errno != EINTR && errno != ENOSPC && errno != EIO) {
        buffer.resize(kCopyBytes);
        continue;
      }
    } else {
      const std::span<std::byte> part(buffer.data(), std::min<uint64_t>(to - from, kCopyBytes));
      if (const int error = space_->read(from, part); error != 0) return error;
      n = ::pwrite(file, part.data(), part.size(), there);
    }
    if (n == 0) return -EIO;
    if (n < 0 && errno != EINTR) return -errno;
    if (n > 0) from += static_cast<uint64_t>(n);
  }
  return 0;
}

int HeapStore::discard(uint64_t offset, uint64_t size_bytes) {
  OC_CHECK(store::is_range_of(offset, size_bytes, this->size_bytes()));
  forget(offset, size_bytes);
  return 0;
}

void HeapStore::use_room(std::shared_ptr<store::Room> room) {
  if (auto* lodger = dynamic_cast<store::Lodger*>(space_.get()); lodger != nullptr)
    lodger->use_room(std::move(room));
}

}  // namespace outcore::preload
