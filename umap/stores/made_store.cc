// Umap::Store::make_store: a store over a descriptor of the program. See outcore/umap_store.h.
#include <cerrno>
#include <cstddef>

#include "core/os/file_calls.h"
#include "outcore/umap_store.h"

namespace {

class MadeStore final : public Umap::Store {
 public:
  explicit MadeStore(int fd) : fd_(fd) {}

  // All of it, or up to the end of the file.
  ssize_t read_from_store(char* buf, std::size_t nb, off_t off) override {
    return transfer(nb, [&](std::size_t done) {
      return ::pread(fd_, buf + done, nb - done, off + static_cast<off_t>(done));
    });
  }
  // All of it, or an error: what is short is tried again, and then told why.
  ssize_t write_to_store(char* buf, std::size_t nb, off_t off) override {
    const ssize_t written = transfer(nb, [&](std::size_t done) {
      return ::pwrite(fd_, buf + done, nb - done, off + static_cast<off_t>(done));
    });
    if (written < 0 || static_cast<std::size_t>(written) == nb) return written;
    errno = EIO;
    return -1;
  }

 private:
  template <typename Call>
  static ssize_t transfer(std::size_t nb, const Call& call) {
    for (std::size_t done = 0;;) {
      const ssize_t moved = done == nb ? 0 : outcore::os::repeat([&] { return call(done); });
      if (moved < 0) return -1;  // errno is set
      if (moved == 0) return static_cast<ssize_t>(done);
      done += static_cast<std::size_t>(moved);
    }
  }

  const int fd_;
};

}  // namespace

Umap::Store* Umap::Store::make_store(void* region, std::size_t region_bytes, std::size_t page_bytes,
                                     int fd) {
  static_cast<void>(region), static_cast<void>(region_bytes), static_cast<void>(page_bytes);
  return new MadeStore(fd);
}
