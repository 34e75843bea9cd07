#include "bench/memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <fstream>

#include "bench/page_dropper.h"
#include "cli/text.h"

namespace outcore::bench {
namespace {

// The kernel's own memories: anonymous (dram) or a mapped file (mmap).
class PlainMemory : public Memory {
 public:
  explicit PlainMemory(std::string name)
      : name_(std::move(name)), is_anonymous_(name_.starts_with("dram") || name_ == "swap") {}
  ~PlainMemory() override { (void)unmap_all(); }

  Result<std::span<std::byte>> map(const MapRequest& request) override {
    if (name_ == "direct" || name_ == "two-pass")
      return Error{EINVAL, name_ + " maps nothing: use mmap"};
    Mapping mapping{request, -1, nullptr};
    const int flags = (request.is_writable ? O_RDWR : O_RDONLY) | O_CLOEXEC;
    mapping.file = open(request.uri.c_str(), flags);
    if (mapping.file < 0) return cli::failure(errno, "open " + request.uri);
    const int protection = PROT_READ | (request.is_writable || is_anonymous_ ? PROT_WRITE : 0);
    const int fixed = request.address == nullptr ? 0 : MAP_FIXED_NOREPLACE;
    void* const address =
        is_anonymous_ ? mmap(request.address, request.size_bytes, protection,
                             MAP_PRIVATE | MAP_ANONYMOUS | fixed, -1, 0)
                      : mmap(request.address, request.size_bytes, protection, MAP_SHARED | fixed,
                             mapping.file, static_cast<off_t>(request.offset));
    if (address == MAP_FAILED) {
      const int code = errno;
      ::close(mapping.file);
      return cli::failure(code,
                          "mmap " + cli::format_bytes(request.size_bytes) + " of " + request.uri);
    }
    mapping.bytes = static_cast<std::byte*>(address);
    mappings_.push_back(mapping);
    if (Status s = advise(mapping); !s) return s.error();
    return std::span<std::byte>{mapping.bytes, request.size_bytes};
  }

  Status flush() override {
    for (const Mapping& m : mappings_) {
      if (!m.request.is_writable) continue;
      if (is_anonymous_) {
        if (m.request.is_fresh) continue;
        if (Status s = copy(m, true); !s) return s;
      } else if (msync(m.bytes, m.request.size_bytes, MS_SYNC) != 0) {
        return cli::failure(errno, "msync " + m.request.uri);
      }
    }
    return {};
  }

  Status close() override { return unmap_all(); }

  Status pin(std::span<const std::byte> part) override {
    if (is_dropped()) return Error{EINVAL, name_ + " drops what it has mapped: use mmap-random"};
    if (has_all() || mlock(part.data(), part.size()) == 0) return {};
    return cli::failure(errno, "mlock " + cli::format_bytes(part.size()),
                        "raise the limit of locked memory (ulimit -l)");
  }

  Status prefetch(std::span<const std::byte> mapped, std::span<const uint64_t> pages) override {
    if (has_all()) return {};
    // Of pages that are there, too, as Outcore's list is: the kernel passes over them.
    for (const uint64_t page : pages)
      if (madvise(const_cast<std::byte*>(mapped.data()) + page * page_bytes(), page_bytes(),
                  MADV_WILLNEED) != 0)
        return cli::failure(errno, "madvise a page");
    return {};
  }

  Result<Heap> make_heap() override {
    if (!is_anonymous_) return Error{EINVAL, name_ + " has no heap: use dram"};
    return Heap::in_memory();
  }
  MemoryUsage usage() const override { return kernel_usage(); }

 private:
  // What is mapped was loaded by then, and stays.
  bool has_all() const { return name_.starts_with("dram"); }
  bool is_dropped() const { return name_ == "mmap-dontneed"; }

  struct Mapping {
    MapRequest request;
    int file;
    std::byte* bytes;
  };

  Status advise(const Mapping& m) {
    if (is_anonymous_) {
      // Without huge pages: a rival with pages of the same size. The kernel may have none: no
      // error.
      madvise(m.bytes, m.request.size_bytes,
              name_ == "dram-huge" ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
      return m.request.is_fresh ? Status() : copy(m, false);
    }
    if (name_ == "mmap") return {};
    if (madvise(m.bytes, m.request.size_bytes, MADV_RANDOM) != 0)
      return cli::failure(errno, "madvise " + m.request.uri);
    if (is_dropped() && !m.request.is_writable) dropper_.add({m.bytes, m.request.size_bytes});
    return {};
  }

  static Status copy(const Mapping& m, bool is_write) {
    static constexpr uint64_t kStepBytes = uint64_t{8} << 20;
    for (uint64_t at = 0; at < m.request.size_bytes;) {
      const size_t size = std::min(kStepBytes, m.request.size_bytes - at);
      const auto position = static_cast<off_t>(m.request.offset + at);
      const ssize_t n = is_write ? pwrite(m.file, m.bytes + at, size, position)
                                 : pread(m.file, m.bytes + at, size, position);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return cli::failure(errno, (is_write ? "write " : "read ") + m.request.uri);
      if (n == 0)
        return cli::failure(EIO, "read " + m.request.uri, "the file is shorter than asked for");
      at += static_cast<uint64_t>(n);
    }
    return {};
  }

  Status unmap_all() {
    dropper_.forget_all();
    for (const Mapping& m : mappings_) {
      munmap(m.bytes, m.request.size_bytes);
      ::close(m.file);
    }
    mappings_.clear();
    return {};
  }

  std::string name_;
  bool is_anonymous_;
  std::vector<Mapping> mappings_;
  PageDropper dropper_;
};

}  // namespace

MemoryUsage kernel_usage() {
  MemoryUsage usage;
  rusage counts{};
  getrusage(RUSAGE_SELF, &counts);
  usage.fills = usage.major_faults = static_cast<uint64_t>(counts.ru_majflt);
  usage.minor_faults = static_cast<uint64_t>(counts.ru_minflt);
  std::ifstream io("/proc/self/io");
  std::string key;
  uint64_t value = 0;
  while (io >> key >> value) {
    if (key == "read_bytes:") usage.read_bytes = value;
    if (key == "write_bytes:") usage.written_bytes = value;
  }
  return usage;
}

const std::vector<std::string>& memory_names() {
  static const std::vector<std::string> names = {
      "dram",   "dram-huge", "mmap",     "mmap-random", "mmap-dontneed", "swap",
      "direct", "malloc",    "two-pass", "outcore",     "outcore-random"};
  return names;
}

std::unique_ptr<Memory> make_plain_memory(const std::string& name) {
  return std::make_unique<PlainMemory>(name);
}

Result<std::unique_ptr<Memory>> make_memory(const std::string& name, const Options& options) {
  if (name == "outcore") return make_outcore_memory(options);
  if (is_outcore(name)) {
    Options random = options;
    random.advice = "random";
    return make_outcore_memory(random);
  }
  return make_plain_memory(name);
}

}  // namespace outcore::bench
