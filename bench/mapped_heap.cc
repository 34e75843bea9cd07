#include "bench/mapped_heap.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "cli/text.h"

namespace outcore::bench {

namespace bi = boost::interprocess;

Result<MappedHeap> make_mapped_heap(const std::string& path, uint64_t size_bytes) {
  MappedHeap heap(bi::create_only, path.c_str(), size_bytes);
  const int fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (fd < 0) return cli::failure(errno, "open " + path);
  const int code = ::posix_fallocate(fd, 0, static_cast<off_t>(size_bytes));
  ::close(fd);
  if (code != 0)
    return cli::failure(code, "make room for " + cli::format_bytes(size_bytes) + " in " + path,
                        "use --dir or a smaller --size");
  return heap;
}

Result<MappedHeap> open_mapped_heap(const std::string& path, bool may_write,
                                    const std::string& memory) {
  MappedHeap heap = may_write ? MappedHeap(bi::open_only, path.c_str())
                              : MappedHeap(bi::open_read_only, path.c_str());
  if (memory == "mmap-random" && ::madvise(heap.get_address(), heap.get_size(), MADV_RANDOM) != 0)
    return cli::failure(errno, "advise the kernel on " + path);
  return heap;
}

Status flush_mapped_heap(MappedHeap& heap, const std::string& path) {
  return heap.flush() ? Status() : Status(cli::failure(EIO, "flush " + path));
}

}  // namespace outcore::bench
