#include "core/os/fault_ranges.h"

#include <sys/ioctl.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>

#include "core/base/assert.h"
#include "core/base/units.h"
#include "core/os/uapi.h"
#include "core/os/wait.h"

namespace outcore::os {
namespace {

uint64_t as_number(const std::byte* p) { return reinterpret_cast<uint64_t>(p); }

// What the kernel's calls take.
[[maybe_unused]] bool is_whole_pages(const std::byte* at, uint64_t size_bytes) {
  return (as_number(at) | size_bytes) % base::kSystemPage == 0 && size_bytes != 0;
}

// Calls `step(offset, bytes, &done)` until all is done. Skips pages that are present already.
template <typename Step>
int carry_through(const FaultSource& source, std::byte* to, uint64_t size_bytes, const Step& step,
                  uint64_t* there_pages = nullptr) {
  OC_CHECK(source.fd >= 0);
  OC_CHECK(is_whole_pages(to, size_bytes));
  uint64_t at = 0;
  while (at < size_bytes) {
    int64_t done = 0;
    if (step(at, size_bytes - at, &done) == 0) return 0;
    const int error = errno;
    if (done > 0) at += static_cast<uint64_t>(done);
    OC_CHECK(at <= size_bytes);
    OC_CHECK(at % base::kSystemPage == 0);
    if (error == EEXIST) {
      wake_range(source, to + at, base::kSystemPage);
      at += base::kSystemPage;
      if (there_pages != nullptr) ++*there_pages;
    } else if (error == EAGAIN || error == EINTR) {
      if (done <= 0) yield();
    } else {
      return -error;
    }
  }
  return 0;
}

}  // namespace

int copy_in(const FaultSource& source, std::byte* to, const std::byte* from, uint64_t size_bytes,
            bool is_protected, uint64_t* there_pages) {
  const uint64_t mode = (source.is_messages ? 0 : UFFDIO_COPY_MODE_DONTWAKE) |
                        (is_protected ? uint64_t{UFFDIO_COPY_MODE_WP} : 0);
  const auto step = [&](uint64_t at, uint64_t bytes, int64_t* done) {
    uffdio_copy c{as_number(to) + at, as_number(from) + at, bytes, mode, 0};
    const int result = ::ioctl(source.fd, UFFDIO_COPY, &c);
    *done = c.copy;
    return result;
  };
  if (there_pages != nullptr) *there_pages = 0;
  return carry_through(source, to, size_bytes, step, there_pages);
}

int copy_zeros_in(const FaultSource& source, std::byte* to, uint64_t size_bytes,
                  bool is_protected) {
  alignas(4096) static const std::byte zeros[65536] = {};
  for (uint64_t at = 0; at < size_bytes; at += sizeof zeros) {
    const uint64_t bytes = std::min<uint64_t>(size_bytes - at, sizeof zeros);
    if (const int r = copy_in(source, to + at, zeros, bytes, is_protected); r != 0) return r;
  }
  return 0;
}

int zero_in(const FaultSource& source, std::byte* to, uint64_t size_bytes) {
  return carry_through(source, to, size_bytes, [&](uint64_t at, uint64_t bytes, int64_t* done) {
    uffdio_zeropage z{{as_number(to) + at, bytes},
                      source.is_messages ? 0 : uint64_t{UFFDIO_ZEROPAGE_MODE_DONTWAKE},
                      0};
    const int result = ::ioctl(source.fd, UFFDIO_ZEROPAGE, &z);
    *done = z.zeropage;
    return result;
  });
}

int continue_in(const FaultSource& source, std::byte* to, uint64_t size_bytes, bool is_protected) {
  const uint64_t mode = (source.is_messages ? 0 : uint64_t{UFFDIO_CONTINUE_MODE_DONTWAKE}) |
                        (is_protected ? uint64_t{kUffdioContinueModeWp} : 0);
  return carry_through(source, to, size_bytes, [&](uint64_t at, uint64_t bytes, int64_t* done) {
    uffdio_continue c{{as_number(to) + at, bytes}, mode, 0};
    const int result = ::ioctl(source.fd, UFFDIO_CONTINUE, &c);
    *done = c.mapped;
    return result;
  });
}

int continue_missing(const FaultSource& source, std::byte* to, uint64_t size_bytes,
                     bool is_protected) {
  constexpr uint64_t kPages = 16, kPresent = uint64_t{1} << 63;
  const uint64_t pages = size_bytes / base::kSystemPage;
  uint64_t entry[kPages];  // on a signal stack
  const auto first = static_cast<off_t>(as_number(to) / base::kSystemPage * sizeof entry[0]);
  const auto bytes = static_cast<ssize_t>(pages * sizeof entry[0]);
  if (pages == 1 || pages > kPages || source.pagemap < 0 ||
      ::pread(source.pagemap, entry, static_cast<size_t>(bytes), first) != bytes)
    return continue_in(source, to, size_bytes, is_protected);
  const auto is_missing = [&](uint64_t i) { return (entry[i] & kPresent) == 0; };
  for (uint64_t begin = 0, end = 0; begin < pages; begin = end) {
    for (end = begin + 1; end < pages && is_missing(end) == is_missing(begin);) ++end;
    if (!is_missing(begin)) continue;
    if (const int result = continue_in(source, to + begin * base::kSystemPage,
                                       (end - begin) * base::kSystemPage, is_protected);
        result != 0)
      return result;
  }
  wake_range(source, to, size_bytes);
  return 0;
}

int write_protect(const FaultSource& source, std::byte* at, uint64_t size_bytes,
                  bool is_protected) {
  OC_CHECK(is_whole_pages(at, size_bytes));
  uffdio_writeprotect w{
      {as_number(at), size_bytes},
      is_protected ? uint64_t{UFFDIO_WRITEPROTECT_MODE_WP}
                   : (source.is_messages ? 0 : uint64_t{UFFDIO_WRITEPROTECT_MODE_DONTWAKE})};
  while (::ioctl(source.fd, UFFDIO_WRITEPROTECT, &w) != 0) {
    if (errno != EAGAIN && errno != EINTR) return -errno;
    yield();
  }
  return 0;
}

void wake_range(const FaultSource& source, std::byte* at, uint64_t size_bytes) {
  if (!source.is_messages) return;
  OC_ASSERT(as_number(at) % base::kSystemPage == 0);
  uffdio_range range{as_number(at), size_bytes};
  ::ioctl(source.fd, UFFDIO_WAKE, &range);
}

int poison(const FaultSource& source, std::byte* at) {
  OC_CHECK(as_number(at) % base::kSystemPage == 0);
  OC_CHECK(source.has_poison || source.nothing >= 0);
  if (!source.has_poison) {
    void* p = ::mmap(at, base::kSystemPage, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
                     source.nothing, 0);
    return p == MAP_FAILED ? -errno : 0;
  }
  UffdPoison p{};
  p.range = {as_number(at), base::kSystemPage};
  int result = ::ioctl(source.fd, OC_UFFDIO_POISON, &p);
  if (result != 0 && errno == EEXIST) {
    // Already poisoned; or there is the mark of an evicted clean page, which poison does not
    // replace.
    write_protect(source, at, base::kSystemPage, false);
    result = ::ioctl(source.fd, OC_UFFDIO_POISON, &p);
  }
  return result == 0 || errno == EEXIST ? 0 : -errno;
}

int register_range(const FaultSource& source, std::byte* at, uint64_t size_bytes, uint64_t mode) {
  OC_CHECK(source.fd >= 0);
  OC_CHECK(is_whole_pages(at, size_bytes));
  OC_CHECK(mode != 0);
  uffdio_register request{};
  request.range = {as_number(at), size_bytes};
  request.mode = mode;
  return ::ioctl(source.fd, UFFDIO_REGISTER, &request) == 0 ? 0 : -errno;
}

}  // namespace outcore::os
