// Leaves while a thread is still unmapping a region of a store of its own. Usage: leave_busy FILE.
#include <fcntl.h>

#include <atomic>
#include <thread>

#include "umap/umap.h"

namespace {

std::atomic<bool> is_writing{false};

class Endless : public Umap::Store {
 public:
  ssize_t read_from_store(char*, std::size_t nb, off_t) override {
    return static_cast<ssize_t>(nb);
  }
  ssize_t write_to_store(char*, std::size_t, off_t) override {
    is_writing = true;
    for (;;) pause();
  }
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const int fd = open(argv[1], O_RDWR);
  void* file = umap(nullptr, 8192, PROT_READ | PROT_WRITE, UMAP_PRIVATE, fd, 0);
  static Endless store;
  void* own = Umap::umap_ex(nullptr, 8192, PROT_READ | PROT_WRITE, UMAP_PRIVATE, -1, 0, &store);
  if (file == UMAP_FAILED || own == UMAP_FAILED) return 4;
  static_cast<char*>(file)[5000] = 'w';
  static_cast<char*>(own)[5000] = 'w';
  std::thread unmapper([own] { uunmap(own, 8192); });
  unmapper.detach();  // banned-ok: it never ends, but with the process
  while (!is_writing) std::this_thread::yield();
  return 0;
}
