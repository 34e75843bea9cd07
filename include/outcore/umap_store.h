// Store of UMap: where the bytes of a region of Umap::umap_ex() live. Names and arguments are those
// of UMap (outcore/umap.h); for new programs outcore/store.h has more to offer.
#pragma once

// NOLINTBEGIN(readability-identifier-naming): names as in UMap

#include <sys/types.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>

namespace Umap {

// A store of the program. Threads of Outcore call its functions, many at a time, from umap_ex()
// until uunmap() has returned; the program owns the store and keeps it that long. Calls are for one
// whole page: `off` is a multiple of the region's page size and `nb` is that size; `buf` is
// page-aligned. Never two calls at a time for the same page. A function must not touch memory of a
// region of umap() itself, nor map or unmap one.
class Store {
 public:
  virtual ~Store() = default;

  // Fills `buf` with the bytes at `off`. -1 with errno: the access that needed them gets SIGBUS.
  // Everything else is a success; bytes that were not filled read zero.
  virtual ssize_t read_from_store(char* buf, std::size_t nb, off_t off) = 0;
  // Stores `buf`. -1 with errno: the page stays in memory and is written again later; umap_flush()
  // and uunmap() return the error. Everything else is a success.
  virtual ssize_t write_to_store(char* buf, std::size_t nb, off_t off) = 0;

  // A store over a file that the program has open, by pread and pwrite, for stores that add
  // something to one. The caller deletes it, and keeps the descriptor open. The first three
  // arguments are UMap's, and are not used.
  static Store* make_store(void* region, std::size_t region_bytes, std::size_t page_bytes, int fd);
};

}  // namespace Umap

// NOLINTEND(readability-identifier-naming)
