// SparseStore of UMap: a folder of files that are created when they are first written, for
// Umap::umap_ex(). It is Outcore's store sparse:FOLDER (docs/reference/stores.md), under UMap's
// names. A folder that UMap has made has another form: copy its bytes, do not open it.
#pragma once

// NOLINTBEGIN(readability-identifier-naming): names as in UMap

#include <cstddef>
#include <memory>
#include <string>

#include "outcore/umap_store.h"

// As all headers for programs of UMap, this one compiles from C++11 on.
namespace outcore {
class Store;
namespace store {
struct SparseStoreOptions;  // of the library
}  // namespace store
}  // namespace outcore

namespace Umap {

// Any thread. A store that could not be opened says why on stderr; its calls, and umap_ex() with
// it, fail with the errno of that.
class SparseStore : public Store {
 public:
  // Makes the folder, which must not be there yet (EEXIST), for `region_bytes` in files of
  // `file_bytes`, rounded up to a power of two. `page_bytes` is UMap's, and is not used.
  SparseStore(std::size_t region_bytes, std::size_t page_bytes, std::string folder,
              std::size_t file_bytes);
  // Opens a folder that the other constructor has made.
  SparseStore(const std::string& folder, bool is_read_only);
  SparseStore(const SparseStore&) = delete;
  SparseStore& operator=(const SparseStore&) = delete;
  ~SparseStore() override;

  ssize_t read_from_store(char* buf, std::size_t nb, off_t off) override;
  ssize_t write_to_store(char* buf, std::size_t nb, off_t off) override;
  std::size_t get_current_capacity() const;  // bytes; 0 if it could not be opened
  // The same of a folder, without a store. 0: there is none, with errno.
  static std::size_t get_capacity(const std::string& folder);
  int get_directory_creation_status() const;  // 0, or the errno of opening
  // Ends this object's use of the files, after uunmap(). 0.
  int close_files();

  // For umap_ex(): the store that does the work; nullptr if it could not be opened.
  const std::shared_ptr<outcore::Store>& opened() const { return store_; }
  bool is_read_only() const { return is_read_only_; }

 private:
  void open(const outcore::store::SparseStoreOptions& options);

  std::shared_ptr<outcore::Store> store_;
  bool is_read_only_ = false;
  int error_ = 0;
};

}  // namespace Umap

// NOLINTEND(readability-identifier-naming)
