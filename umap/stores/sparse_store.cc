// Umap::SparseStore: see outcore/umap_sparse_store.h.
#include <sys/stat.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstdio>
#include <utility>

#include "core/base/units.h"
#include "core/store/range.h"
#include "core/store/sparse_store.h"
#include "outcore/store.h"
#include "outcore/umap_sparse_store.h"

using outcore::base::kSystemPage;

namespace Umap {

SparseStore::SparseStore(std::size_t region_bytes, std::size_t page_bytes, std::string folder,
                         std::size_t file_bytes) {
  static_cast<void>(page_bytes);
  constexpr std::size_t kFileBytesMax = std::size_t{1} << 60;
  const std::size_t segment_bytes =
      std::bit_ceil(std::clamp<std::size_t>(file_bytes, kSystemPage, kFileBytesMax));
  struct stat about;
  if (::stat(folder.c_str(), &about) == 0) {
    error_ = EEXIST;
    std::fprintf(stderr,
                 "outcore: make the folder %s of a SparseStore: it is there already; remove it, or "
                 "open it by SparseStore(folder, is_read_only)\n",
                 folder.c_str());
    return;
  }
  outcore::store::SparseStoreOptions options;
  options.folder = std::move(folder);
  options.open.is_writable = options.open.may_create = true;
  options.open.size_bytes = region_bytes;
  options.segment_bytes = segment_bytes;
  open(options);
}

SparseStore::SparseStore(const std::string& folder, bool is_read_only)
    : is_read_only_(is_read_only) {
  outcore::store::SparseStoreOptions options;
  options.folder = folder;
  options.open.is_writable = !is_read_only;
  open(options);
}

SparseStore::~SparseStore() = default;

void SparseStore::open(const outcore::store::SparseStoreOptions& options) {
  auto opened = outcore::store::SparseStore::open(options);
  if (opened.ok()) {
    store_ = std::move(opened).value();
    return;
  }
  error_ = opened.code();
  std::fprintf(stderr, "outcore: %s\n", opened.message().c_str());
}

ssize_t SparseStore::read_from_store(char* buf, std::size_t nb, off_t off) {
  const auto offset = static_cast<uint64_t>(off);
  int error = store_ == nullptr ? error_ : 0;
  if (error == 0 && !outcore::store::is_range_of(offset, nb, store_->size_bytes())) error = EINVAL;
  if (error == 0) error = -store_->read(offset, {reinterpret_cast<std::byte*>(buf), nb});
  if (error == 0) return static_cast<ssize_t>(nb);
  errno = error;
  return -1;
}

ssize_t SparseStore::write_to_store(char* buf, std::size_t nb, off_t off) {
  const auto offset = static_cast<uint64_t>(off);
  int error = store_ == nullptr ? error_ : is_read_only_ ? EACCES : 0;
  if (error == 0 && !outcore::store::is_range_of(offset, nb, store_->size_bytes())) error = EINVAL;
  if (error == 0) error = -store_->write(offset, {reinterpret_cast<const std::byte*>(buf), nb});
  if (error == 0) return static_cast<ssize_t>(nb);
  errno = error;
  return -1;
}

std::size_t SparseStore::get_current_capacity() const {
  return store_ == nullptr ? 0 : store_->size_bytes();
}

std::size_t SparseStore::get_capacity(const std::string& folder) {
  const SparseStore store(folder, true);
  if (store.store_ == nullptr) errno = store.error_;
  return store.get_current_capacity();
}

int SparseStore::get_directory_creation_status() const { return error_; }

int SparseStore::close_files() {
  store_.reset();
  if (error_ == 0) error_ = EBADF;
  return 0;
}

}  // namespace Umap
