#include "umap/stores/tail_store.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "core/base/assert.h"
#include "core/os/file_calls.h"
#include "core/store/range.h"

namespace outcore::umapped {

using store::is_range_of;

TailStore::TailStore(std::shared_ptr<store::FileStore> file, bool is_writable, uint64_t size_bytes)
    : file_(std::move(file)), is_writable_(is_writable), size_bytes_(size_bytes) {
  OC_CHECK(file_ != nullptr);
}

bool TailStore::is_in_file(uint64_t offset, uint64_t size_bytes) const {
  return is_range_of(offset, size_bytes, file_->size_bytes());
}

uint64_t TailStore::bytes_in_file(uint64_t offset, uint64_t size_bytes) const {
  const uint64_t file_bytes = file_->size_bytes();
  return std::min(size_bytes, file_bytes - std::min(offset, file_bytes));
}

// Others may have made the file longer since.
int TailStore::look_past_end(uint64_t offset, uint64_t size_bytes) const {
  return is_in_file(offset, size_bytes) ? 0 : file_->look_at_size(true);
}

int TailStore::read(uint64_t offset, std::span<std::byte> into) {
  OC_CHECK(is_range_of(offset, into.size(), size_bytes_));
  if (const int error = look_past_end(offset, into.size()); error != 0) return error;
  const uint64_t in_file = bytes_in_file(offset, into.size());
  std::ranges::fill(into.subspan(in_file), std::byte{0});
  return in_file == 0 ? 0 : file_->read(offset, into.first(in_file));
}

int TailStore::write(uint64_t offset, std::span<const std::byte> from) {
  OC_CHECK(is_range_of(offset, from.size(), size_bytes_));
  if (!is_writable_) return -EACCES;
  if (is_in_file(offset, from.size())) return file_->write(offset, from);
  return write_past_end(offset, from);
}

int TailStore::write_past_end(uint64_t offset, std::span<const std::byte> from) {
  const std::lock_guard<std::mutex> guard(growth_);
  // Others may have made it longer, which must not be undone.
  if (const int error = file_->look_at_size(true); error != 0) return error;
  const auto is_zero = [](std::byte byte) { return byte == std::byte{0}; };
  const auto zeros = std::find_if_not(from.rbegin(), from.rend(), is_zero) - from.rbegin();
  const uint64_t until_zeros = from.size() - static_cast<uint64_t>(zeros);
  // Bytes of the file are written whatever they are; past its end zeros need not be.
  const uint64_t bytes = std::max(until_zeros, bytes_in_file(offset, from.size()));
  OC_CHECK(bytes <= from.size());
  if (bytes == 0) return 0;
  if (!is_in_file(offset, bytes)) {
    // Never shorter, whoever makes it longer at this moment.
    int error = os::allocate_space(file_->descriptor(), offset, bytes);
    if (error == 0) error = file_->look_at_size(true);
    if (error == -ENOTSUP) error = file_->resize(offset + bytes);
    if (error != 0) return error;
  }
  return file_->write(offset, from.first(bytes));
}

void TailStore::transfer(std::span<StoreRequest> batch) {
  // Neighbours that lie in the file go to it in one piece; those past its end, one by one.
  size_t from = 0;
  for (size_t i = 0; i < batch.size(); ++i) {
    const StoreRequest& request = batch[i];
    if (is_in_file(request.offset, request.size_bytes)) continue;
    if (i > from) file_->transfer(batch.subspan(from, i - from));
    Store::transfer(batch.subspan(i, 1));
    from = i + 1;
  }
  if (from < batch.size()) file_->transfer(batch.subspan(from));
}

int TailStore::discard(uint64_t offset, uint64_t size_bytes) {
  OC_CHECK(is_range_of(offset, size_bytes, size_bytes_));
  const uint64_t in_file = bytes_in_file(offset, size_bytes);
  return in_file == 0 ? 0 : file_->discard(offset, in_file);
}

bool TailStore::is_hole(uint64_t offset, uint64_t size_bytes) const {
  if (look_past_end(offset, size_bytes) != 0) return false;
  if (bytes_in_file(offset, size_bytes) == 0) return true;
  return is_in_file(offset, size_bytes) && file_->is_hole(offset, size_bytes);
}

}  // namespace outcore::umapped
