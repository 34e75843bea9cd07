#include "core/os/kernel_features.h"

#include <fcntl.h>
#include <liburing.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <iterator>

#include "core/base/units.h"
#include "core/os/descriptor_place.h"
#include "core/os/file_calls.h"
#include "core/os/own_ring.h"
#include "core/os/uapi.h"
#include "core/os/userfaultfd.h"

namespace outcore::os {
namespace {

constexpr uint64_t kPage = base::kSystemPage;
constexpr uint64_t kShmem =
    UFFD_FEATURE_SIGBUS | UFFD_FEATURE_MISSING_SHMEM | UFFD_FEATURE_MINOR_SHMEM;
constexpr uint64_t kProtectedShmem =
    kShmem | UFFD_FEATURE_PAGEFAULT_FLAG_WP | UFFD_FEATURE_WP_HUGETLBFS_SHMEM;
constexpr uint64_t kTrackedShmem =
    kProtectedShmem | kUffdFeatureWpUnpopulated | kUffdFeatureWpAsync;
constexpr uint64_t kMissing = UFFDIO_REGISTER_MODE_MISSING, kMinor = UFFDIO_REGISTER_MODE_MINOR,
                   kProtect = UFFDIO_REGISTER_MODE_WP;

// Trial: a few pages, of a memfd or anonymous, registered with a userfaultfd while the probe runs.
class Trial {
 public:
  static constexpr size_t kPages = 4;

  Trial(bool is_shared, uint64_t features, uint64_t mode)
      : memfd_(is_shared ? ::memfd_create("outcore-probe", MFD_CLOEXEC) : -1),
        uffd_(open_quietly(features)) {
    if (is_shared && (memfd_.get() < 0 || set_size(memfd_.get(), kPages * kPage) != 0)) return;
    const int flags = is_shared ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS;
    void* p = ::mmap(nullptr, kPages * kPage, PROT_READ | PROT_WRITE, flags, memfd_.get(), 0);
    if (p == MAP_FAILED) return;
    first_ = static_cast<char*>(p);
    ::madvise(first_, kPages * kPage, MADV_NOHUGEPAGE);
    uffdio_register request{};
    request.range = {at(0), kPages * kPage};
    request.mode = mode;
    is_ready_ = uffd_.get() >= 0 && ::ioctl(uffd_.get(), UFFDIO_REGISTER, &request) == 0;
  }
  ~Trial() {
    if (first_ != nullptr) ::munmap(first_, kPages * kPage);
  }
  Trial(const Trial&) = delete;
  Trial& operator=(const Trial&) = delete;

  bool is_ready() const { return is_ready_; }
  int memfd() const { return memfd_.get(); }
  char* page(size_t i) const { return first_ + i * kPage; }
  uint64_t at(size_t i) const { return reinterpret_cast<uint64_t>(page(i)); }

  // Calls an ioctl of the userfaultfd, and repeats it on EAGAIN.
  template <typename Request>
  bool does(unsigned long what, Request request) const {
    constexpr int kTriesMax = 100;
    for (int i = 0; i < kTriesMax; ++i) {
      Request copy = request;
      if (::ioctl(uffd_.get(), what, &copy) == 0) return true;
      if (errno != EAGAIN && errno != EINTR && errno != EBUSY) return false;
    }
    return false;
  }
  bool copies(size_t i, uint64_t mode) const {
    static const char bytes[kPage] = {7};
    return does(UFFDIO_COPY, uffdio_copy{at(i), reinterpret_cast<uint64_t>(bytes), kPage, mode, 0});
  }

 private:
  static int open_quietly(uint64_t features) {
    Result<int> fd = open_userfaultfd(features, false);
    return fd ? fd.value() : -1;
  }
  Descriptor memfd_, uffd_;
  char* first_ = nullptr;
  bool is_ready_ = false;
};

// In SIGBUS mode a system call on an absent page must be refused, not zero-filled, and filling the
// page must work.
bool can_sigbus() {
  const Trial trial(false, UFFD_FEATURE_SIGBUS, kMissing);
  if (!trial.is_ready()) return false;
  const bool is_refused = ::access(trial.page(0), F_OK) != 0 && errno == EFAULT;
  return is_refused && trial.copies(0, 0);
}

bool can_protect_anonymous() {
  const Trial trial(false, UFFD_FEATURE_SIGBUS | UFFD_FEATURE_PAGEFAULT_FLAG_WP,
                    kMissing | kProtect);
  return trial.is_ready() && trial.copies(0, UFFDIO_COPY_MODE_WP) &&
         trial.does(UFFDIO_WRITEPROTECT, uffdio_writeprotect{{trial.at(0), kPage}, 0});
}

// Bit 57 of a page's entry must be set if and only if the page is write-protected.
bool can_see_protection() {
  const Trial trial(false, UFFD_FEATURE_SIGBUS | UFFD_FEATURE_PAGEFAULT_FLAG_WP,
                    kMissing | kProtect);
  const Descriptor pagemap(::open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC));
  if (!trial.is_ready() || !trial.copies(0, UFFDIO_COPY_MODE_WP) || !trial.copies(1, 0))
    return false;
  uint64_t entry[2] = {};
  const off_t offset = static_cast<off_t>(trial.at(0) / kPage * sizeof entry[0]);
  if (::pread(pagemap.get(), entry, sizeof entry, offset) != sizeof entry) return false;
  return (entry[0] >> 57 & 1) == 1 && (entry[1] >> 57 & 1) == 0;
}

bool can_continue(uint64_t features, uint64_t registered, uint64_t mode) {
  const Trial trial(true, features, registered);
  if (!trial.is_ready() || ::pwrite(trial.memfd(), "7", 1, 0) != 1) return false;
  return trial.does(UFFDIO_CONTINUE, uffdio_continue{{trial.at(0), kPage}, mode, 0});
}

// Shared frames depend on this: a page that was installed write-protected and then zapped still
// says whether it was written in between, and the write needed no fault handler.
bool can_track_writes() {
  const Trial trial(true, kTrackedShmem, kMissing | kMinor | kProtect);
  const Descriptor pagemap(::open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC));
  if (!trial.is_ready() || pagemap.get() < 0) return false;
  for (size_t i = 0; i < 3; ++i)
    if (!trial.copies(i, UFFDIO_COPY_MODE_WP)) return false;
  std::atomic_ref<char>(*trial.page(1)).store(9);
  if (::madvise(trial.page(0), 3 * kPage, MADV_DONTNEED) != 0) return false;
  PageRegion region[4] = {};
  PagemapScan scan{};
  scan.size = sizeof scan;
  scan.start = trial.at(0), scan.end = trial.at(3);
  scan.vec = reinterpret_cast<uint64_t>(region), scan.vec_len = std::size(region);
  scan.category_mask = scan.return_mask = kPageIsWritten;
  return ::ioctl(pagemap.get(), OC_PAGEMAP_SCAN, &scan) == 1 && region[0].start == trial.at(1) &&
         region[0].end == trial.at(2);
}

bool can_poison() {
  const Trial trial(false, UFFD_FEATURE_SIGBUS | kUffdFeaturePoison, kMissing);
  return trial.is_ready() && trial.does(OC_UFFDIO_POISON, UffdPoison{{trial.at(0), kPage}, 0, 0});
}

bool can_move() {
  const Trial trial(false, UFFD_FEATURE_SIGBUS | kUffdFeatureMove, kMissing);
  return trial.is_ready() && trial.copies(0, 0) &&
         trial.does(OC_UFFDIO_MOVE, UffdMove{trial.at(2), trial.at(0), kPage, 0, 0});
}

bool can_advise_in_batches() {
  const Descriptor self(static_cast<int>(::syscall(SYS_pidfd_open, ::getpid(), 0)));
  const Descriptor memfd(::memfd_create("outcore-probe", MFD_CLOEXEC));
  if (self.get() < 0 || memfd.get() < 0 || set_size(memfd.get(), 3 * kPage) != 0) return false;
  void* p = ::mmap(nullptr, 3 * kPage, PROT_READ | PROT_WRITE, MAP_SHARED, memfd.get(), 0);
  if (p == MAP_FAILED) return false;
  const iovec ranges[2] = {{p, kPage}, {static_cast<char*>(p) + 2 * kPage, kPage}};
  const long all = 2 * kPage;
  const bool does_both =
      ::syscall(SYS_process_madvise, self.get(), ranges, 2, MADV_DONTNEED, 0) == all &&
      ::syscall(SYS_process_madvise, self.get(), ranges, 2, MADV_REMOVE, 0) == all;
  ::munmap(p, 3 * kPage);
  return does_both;
}

// A kernel that permits rings rejects the number of entries (0), others the call. No ring is
// created, because closing one interrupts its creator some milliseconds later (epoll_wait: EINTR;
// copy_file_range: a partial copy).
bool can_io_uring() {
  io_uring_params none = {};
  return set_up_own_ring(0, &none) == -EINVAL;
}

struct Release {
  unsigned major = ~0u, minor = ~0u;
  bool has(Release feature) const {
    return major != feature.major ? major > feature.major : minor >= feature.minor;
  }
};

// A feature, the kernel version that has it, and the function that tries it.
struct Feature {
  bool KernelFeatures::*is_there;
  Release since;
  bool (*is_proven)();
};

constexpr Feature kFeatures[] = {
    {&KernelFeatures::has_io_uring, {5, 1}, can_io_uring},
    {&KernelFeatures::has_sigbus, {4, 14}, can_sigbus},
    {&KernelFeatures::has_anonymous_wp, {5, 7}, can_protect_anonymous},
    {&KernelFeatures::has_pagemap, {5, 13}, can_see_protection},
    {&KernelFeatures::has_minor_shmem,
     {5, 14},
     [] { return can_continue(kShmem, kMissing | kMinor, 0); }},
    {&KernelFeatures::has_continue_wp,
     {6, 4},
     [] {
       return can_continue(kProtectedShmem, kMissing | kMinor | kProtect, kUffdioContinueModeWp);
     }},
    {&KernelFeatures::has_poison, {6, 6}, can_poison},
    {&KernelFeatures::has_write_tracking, {6, 7}, can_track_writes},
    {&KernelFeatures::has_move, {6, 8}, can_move},
    {&KernelFeatures::has_batched_advice, {6, 13}, can_advise_in_batches},
};

Result<Release> parse_mask(const std::string& mask) {
  Release release;
  if (mask.empty() || mask == "all") return release;
  int end = 0;
  const bool is_release =
      mask.size() < 10 && mask.find_first_not_of("0123456789.") == std::string::npos &&
      std::sscanf(mask.c_str(), "%u.%u%n", &release.major, &release.minor, &end) == 2 &&
      static_cast<size_t>(end) == mask.size();
  if (is_release) return release;
  return Error{
      EINVAL,
      "'" + mask + "' is not a kernel release: write \"all\", or one as in 5.15, 6.1 or 6.8"};
}

}  // namespace

Status check_kernel_mask(const std::string& mask) { return parse_mask(mask).status(); }

Result<KernelFeatures> detect_kernel_features(const std::string& mask) {
  Result<Release> newest = parse_mask(mask);
  if (!newest) return newest.error();
  KernelFeatures found;
  for (const Feature& feature : kFeatures) {
    if (!newest->has(feature.since))
      found.is_masked = true;
    else
      found.*feature.is_there = feature.is_proven();
  }
  utsname system{};
  if (::uname(&system) == 0) found.release = system.release;
  if (!found.has_sigbus) {
    Result<int> fd = open_userfaultfd(UFFD_FEATURE_SIGBUS, false);
    found.why_no_userfaultfd =
        fd ? "userfaultfd is there, but does not raise SIGBUS" : fd.message();
    if (fd) ::close(fd.value());
    if (!newest->has({4, 14})) found.why_no_userfaultfd = "masked by the option kernel=" + mask;
  }
  Result<int> fd = open_userfaultfd(UFFD_FEATURE_THREAD_ID, true);
  found.has_messages = fd.ok() && newest->has({4, 14});
  if (!fd)
    found.why_no_messages = fd.message();
  else if (!found.has_messages)
    found.why_no_messages = "masked by the option kernel=" + mask;
  if (fd) ::close(fd.value());
  return found;
}

}  // namespace outcore::os
