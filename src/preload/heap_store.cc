#include "preload/heap_store.h"

#include <fcntl.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/assert.h"
#include "base/error.h"
#include "base/units.h"
#include "store/range.h"
#include "store/scratch_store.h"
#include "store/uri.h"

namespace outcore::preload {

using base::kSystemPage;

Result<std::shared_ptr<HeapStore>> HeapStore::open(const std::string& uri,
                                                   const std::string& folder) {
  Result<store::Uri> parsed = store::parse_uri(uri);
  if (!parsed) return parsed.error();
  if (!parsed.value().authority.empty())
    return Error{EINVAL, "store '" + parsed.value().text + "': a host has no meaning here"};
  const Result<unsigned> reads = parsed.value().count_of("read_concurrency", 0);
  if (!reads) return reads.error();
  const Result<unsigned> writes = parsed.value().count_of("write_concurrency", 0);
  if (!writes) return writes.error();
  std::shared_ptr<HeapStore> heap(new HeapStore);
  heap->folder_ = parsed.value().path.empty() ? folder : parsed.value().path;
  const int fd = store::open_scratch_file(&heap->folder_);
  if (fd < 0)
    return base::system_error(fd, "make a scratch file in " + heap->folder_,
                              "name a folder you may write to (scratch_dir, or TMPDIR)");
  if (Status s = heap->file_.adopt(fd, true, store::DirectMode::kAuto, heap->uri()); !s)
    return s.error();
  StoreTraits& traits = heap->traits_;
  traits.is_fault_safe = true;
  traits.can_read_while_written = true;
  traits.is_volatile = true;
  traits.alignment_bytes = heap->file_.is_direct() ? store::kDirectAlignment : 1;
  traits.read_concurrency = reads.value();
  traits.write_concurrency = writes.value();
  return heap;
}

Status HeapStore::cover(uint64_t capacity_bytes) {
  for (store::WrittenMap* map : {&written_, &reserved_})
    if (const int error = map->cover(capacity_bytes, kSystemPage); error != 0)
      return base::system_error(error, "map what is written of " + uri());
  return {};
}

uint64_t HeapStore::free_bytes() const {
  struct statvfs space;
  return ::fstatvfs(file_.fd(), &space) == 0 ? uint64_t{space.f_bavail} * space.f_frsize : 0;
}

int HeapStore::promise(uint64_t offset, uint64_t size_bytes) {
  const std::lock_guard<std::mutex> guard(reserving_);
  const uint64_t end = offset + size_bytes;
  uint64_t missing = 0;
  for (uint64_t at = offset, next; at < end; at = next) {
    next = reserved_.run_end(at, end);
    if (!reserved_.is_written(at)) missing += next - at;
  }
  if (missing == 0) return 0;
  // Asked first, so that a hopeless wish does not fill the disk before it fails.
  if (missing > free_bytes()) return -ENOSPC;
  for (uint64_t at = offset, next; at < end; at = next) {
    next = reserved_.run_end(at, end);
    if (reserved_.is_written(at)) continue;
    if (const int error = reserve(at, next - at); error != 0) {
      give_up(at, next - at);
      return error;
    }
    reserved_.mark(at, next - at);
    reserved_bytes_.fetch_add(next - at, std::memory_order_relaxed);
  }
  return 0;
}

int HeapStore::reserve(uint64_t offset, uint64_t size_bytes) {
  if (!is_reservable_.load(std::memory_order_relaxed)) return 0;
  int result = 0;
  do
    result = ::fallocate(file_.fd(), 0, static_cast<off_t>(offset), static_cast<off_t>(size_bytes));
  while (result != 0 && errno == EINTR);
  if (result == 0) return 0;
  if (errno != EOPNOTSUPP && errno != ENOSYS) return -errno;
  is_reservable_.store(false, std::memory_order_relaxed);
  return 0;
}

// What cannot be given back stays reserved, unknown to us: no harm but the space.
void HeapStore::give_up(uint64_t offset, uint64_t size_bytes) {
  static_cast<void>(store::free_blocks(file_.fd(), offset, size_bytes, store::DiscardMode::kHole));
}

void HeapStore::take_back(uint64_t offset, uint64_t size_bytes) {
  const std::lock_guard<std::mutex> guard(reserving_);
  const uint64_t end = offset + size_bytes;
  OC_ASSERT(written_.is_untouched(offset, size_bytes));
  for (uint64_t at = reserved_.next_written(offset, end), next; at < end;
       at = reserved_.next_written(next, end)) {
    next = reserved_.run_end(at, end);
    give_up(at, next - at);
    reserved_.clear_inside(at, next - at);
    reserved_bytes_.fetch_sub(next - at, std::memory_order_relaxed);
  }
}

std::string HeapStore::remark() const {
  std::string text = file_.why_buffered();
  if (!is_reservable_)
    text += std::string(text.empty() ? "" : "; ") +
            "the filesystem cannot reserve space: it may run out later";
  return text;
}

bool HeapStore::is_all_written(uint64_t offset, uint64_t size_bytes) const {
  return written_.is_written(offset) &&
         written_.run_end(offset, offset + size_bytes) == offset + size_bytes;
}

int HeapStore::read(uint64_t offset, std::span<std::byte> into) {
  OC_CHECK(store::is_range_of(offset, into.size(), size_bytes()));
  const uint64_t end = offset + into.size();
  for (uint64_t at = offset, next; at < end; at = next) {
    next = written_.run_end(at, end);
    const std::span<std::byte> part = into.subspan(at - offset, next - at);
    if (!written_.is_written(at))
      std::fill(part.begin(), part.end(), std::byte{0});
    else if (const int error = file_.read(at, part); error != 0)
      return error;
  }
  return 0;
}

int HeapStore::write(uint64_t offset, std::span<const std::byte> from) {
  OC_CHECK(store::is_range_of(offset, from.size(), size_bytes()));
  written_.mark(offset, from.size());
  return file_.write(offset, from);
}

// Those that are in the file as a whole travel together.
void HeapStore::transfer(std::span<StoreRequest> batch) {
  const auto is_plain = [this](const StoreRequest& r) {
    return r.is_write || is_all_written(r.offset, r.size_bytes);
  };
  for (StoreRequest& r : batch) {
    OC_CHECK(store::is_range_of(r.offset, r.size_bytes, size_bytes()));
    if (r.is_write) written_.mark(r.offset, r.size_bytes);
  }
  for (size_t i = 0; i < batch.size();) {
    size_t end = i;
    while (end < batch.size() && is_plain(batch[end])) ++end;
    if (end > i) file_.transfer(batch.subspan(i, end - i), traits_);
    for (; end < batch.size() && !is_plain(batch[end]); ++end)
      batch[end].result = read(batch[end].offset, {batch[end].bytes, batch[end].size_bytes});
    i = end;
  }
}

int HeapStore::copy_to(int file, uint64_t end) {
  std::vector<std::byte> buffer;  // used where the kernel does not copy
  for (uint64_t at = written_.next_written(0, end), next; at < end;
       at = written_.next_written(next, end)) {
    next = written_.run_end(at, end);
    if (const int error = copy_run(file, at, next, buffer); error != 0) return error;
  }
  return 0;
}

int HeapStore::copy_run(int file, uint64_t from, uint64_t to, std::vector<std::byte>& buffer) {
  constexpr uint64_t kBytesMax = uint64_t{8} << 20, kBufferBytes = uint64_t{1} << 20;
  while (from < to) {
    auto at = static_cast<off_t>(from), there = at;
    ssize_t n = -1;
    if (buffer.empty()) {
      n = ::copy_file_range(file_.fd(), &at, file, &there, std::min(to - from, kBytesMax), 0);
      if (n < 0 && errno != EINTR && errno != ENOSPC && errno != EIO) {
        buffer.resize(kBufferBytes);
        continue;
      }
    } else {
      n = ::pread(file_.fd(), buffer.data(), std::min(to - from, kBufferBytes), at);
      if (n > 0) n = ::pwrite(file, buffer.data(), static_cast<size_t>(n), there);
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

}  // namespace outcore::preload
