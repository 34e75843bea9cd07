// Umap::Store::make_store: a store over a descriptor of the program. See outcore/umap_store.h.
#include <cstddef>

#include "core/os/file_calls.h"
#include "outcore/umap_store.h"

namespace {

class MadeStore final : public Umap::Store {
 public:
  explicit MadeStore(int fd) : fd_(fd) {}

  ssize_t read_from_store(char* buf, std::size_t nb, off_t off) override {
    return told(outcore::os::repeat([&] { return ::pread(fd_, buf, nb, off); }));
  }
  ssize_t write_to_store(char* buf, std::size_t nb, off_t off) override {
    return told(outcore::os::repeat([&] { return ::pwrite(fd_, buf, nb, off); }));
  }

 private:
  static ssize_t told(ssize_t result) { return result < 0 ? -1 : result; }  // errno is set

  const int fd_;
};

}  // namespace

Umap::Store* Umap::Store::make_store(void* region, std::size_t region_bytes, std::size_t page_bytes,
                                     int fd) {
  static_cast<void>(region), static_cast<void>(region_bytes), static_cast<void>(page_bytes);
  return new MadeStore(fd);
}
